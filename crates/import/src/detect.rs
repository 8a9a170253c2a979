//! The formats, and how the content of a file shows which one it has.

use crate::error::ImportError;
use crate::reading::plain;
use plimsoll_report::plain::{clip, printable};
use std::str::FromStr;

/// Makes the enum of formats from a list: variant, name, and what the file is.
macro_rules! formats {
    ($($variant:ident = $name:literal: $what:literal;)+) => {
        /// A format of another tool's file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $(#[doc = $what] $variant,)+
        }

        impl Format {
            /// All formats, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word for `--format`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The file that has it.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$variant => $what,)+
                }
            }
        }
    };
}

formats! {
    Hlog = "hlog": "interval log of HdrHistogram (.hlog), with or without tags";
    Hgrm = "hgrm": "percentile distribution of HdrHistogram (.hgrm), vegeta's hdrplot";
    Fbench = "fbench": "summary of vespa-fbench or plimsoll fbench";
    Feedsim = "feedsim": "FeedSim's feedsim_results.txt (CSV)";
    FeedsimLog = "feedsim-log": "FeedSim's search as it is printed";
    Benchpress = "benchpress": "metrics of DCPerf's benchpress (JSON)";
    GatlingLog = "gatling-log": "Gatling's simulation.log as text (2.3 to 3.11)";
    GatlingStats = "gatling-stats": "Gatling's js/stats.json or js/global_stats.json";
    K6Summary = "k6-summary": "k6: --summary-export, or data of handleSummary";
    K6Json = "k6-json": "k6: --out json (one JSON object a line)";
    Wrk = "wrk": "output of wrk";
    Wrk2 = "wrk2": "output of wrk2";
    Hey = "hey": "output of hey";
    HeyCsv = "hey-csv": "hey -o csv";
    Oha = "oha": "output of oha --no-tui";
    OhaJson = "oha-json": "oha --output-format json";
    OhaCsv = "oha-csv": "oha --output-format csv";
    Ab = "ab": "output of ab (ApacheBench)";
    AbCsv = "ab-csv": "ab -e FILE (percentiles)";
    AbTsv = "ab-tsv": "ab -g FILE (all requests)";
    Vegeta = "vegeta": "vegeta report";
    VegetaJson = "vegeta-json": "vegeta report -type=json";
    VegetaResults = "vegeta-results": "vegeta encode --to json, or csv";
    H2load = "h2load": "output of h2load";
    Pgbench = "pgbench": "output of pgbench";
    PgbenchLog = "pgbench-log": "pgbench -l (all transactions)";
    PgbenchAggregate = "pgbench-aggregate": "pgbench -l --aggregate-interval";
}

impl Format {
    /// All words for `--format`.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|format| format.name()).collect()
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|format| format.name() == text);
        found.copied().ok_or_else(|| format!("expected one of {}", Self::names().join(", ")))
    }
}

/// Recognises a format by the beginning of a file.
///
/// # Errors
/// If no format begins so, or one that cannot be read.
pub fn recognise(head: &[u8]) -> Result<Format, ImportError> {
    if head.is_empty() {
        return Err(ImportError::Form(
            "empty: the tool wrote nothing into it; run it again, or name another file".to_owned(),
        ));
    }
    if let Some(problem) = unreadable(head) {
        return Err(ImportError::Form(problem.to_owned()));
    }
    let text = plain(&String::from_utf8_lossy(head));
    let begin = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let found = match begin.chars().next() {
        Some('{' | '[') => of_json(begin)?,
        _ => of_text(begin),
    };
    found.ok_or_else(|| {
        let first = begin.lines().next().unwrap_or_default();
        let first = printable(&clip(first, 40));
        ImportError::Form(format!(
            "no known format begins with '{first}'; name it with --format ('plimsoll import --help' lists them)"
        ))
    })
}

/// Files that are known and not read, with what to import instead.
fn unreadable(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(&[0x1f, 0x8b]) {
        return Some("compressed with gzip; unpack it first: gunzip FILE");
    }
    let start = &head[..head.len().min(512)];
    let has = |word: &[u8]| start.windows(word.len()).any(|part| part == word);
    if !start.contains(&0) {
        return None;
    }
    Some(if has(b"Latency") && has(b"Attack") {
        "a binary file of vegeta attack; write 'vegeta encode FILE' to have it as JSON"
    } else if head[0] == 0 && start.iter().any(|&byte| byte != 0) {
        "binary, as simulation.log of Gatling 3.12 and later is; import js/stats.json of its report instead"
    } else {
        "binary, and of no format that plimsoll imports"
    })
}

fn of_json(text: &str) -> Result<Option<Format>, ImportError> {
    let has = |key: &str| text.contains(&format!("\"{key}\""));
    let all = |keys: &[&str]| keys.iter().all(|key| has(key));
    let first = text.lines().next().unwrap_or_default();
    let first_has = |key: &str| first.contains(&format!("\"{key}\""));
    if has("plimsoll.run/1") {
        return Err(ImportError::Form(
            "a run record of plimsoll already; 'plimsoll report FOLDER' shows it".to_owned(),
        ));
    }
    let is_point = |kind: &str| first.contains(&format!("\"type\":\"{kind}\""));
    Ok(Some(if is_point("Metric") || is_point("Point") {
        Format::K6Json
    } else if ["attack", "seq", "latency", "timestamp"].iter().all(|key| first_has(key)) {
        Format::VegetaResults
    } else if all(&["benchmark_name", "metrics"]) {
        Format::Benchpress
    } else if all(&["latencies", "bytes_in", "requests"]) {
        Format::VegetaJson
    } else if all(&["summary", "successRate"]) {
        Format::OhaJson
    } else if has("numberOfRequests") {
        Format::GatlingStats
    } else if has("metrics")
        && ["root_group", "http_reqs", "iterations", "http_req_duration"].iter().any(|key| has(key))
    {
        Format::K6Summary
    } else {
        return Ok(None);
    }))
}

/// Pieces of text that only one format has, the more special ones first. All pieces of a line must be there.
const PIECES: [(Format, &[&str]); 22] = [
    (Format::Hlog, &["[Histogram log format version"]),
    (Format::Hlog, &["\"StartTimestamp\",\"Interval_Length\""]),
    (Format::Fbench, &["Benchmark Summary", "clients:"]),
    (Format::Fbench, &["successful requests:", "actual query rate:"]),
    (Format::Feedsim, &["duration_secs,total_queries,requested_qps"]),
    (Format::FeedsimLog, &["requested_qps = ", "measured_qps = "]),
    (Format::Wrk2, &[" test @ ", "Thread calibration"]),
    (Format::Wrk2, &[" test @ ", "HdrHistogram"]),
    (Format::Wrk, &["Running ", " test @ "]),
    (Format::Oha, &["Summary:", "Success rate:"]),
    (Format::Hey, &["Summary:", "Slowest:", "Requests/sec:"]),
    (Format::HeyCsv, &["response-time,DNS+dialup,DNS,"]),
    (Format::OhaCsv, &["request-start,DNS,DNS+dialup,"]),
    (Format::Ab, &["ApacheBench"]),
    (Format::Ab, &["Concurrency Level:", "Complete requests:"]),
    (Format::AbCsv, &["Percentage served,Time in ms"]),
    (Format::AbTsv, &["starttime\tseconds\tctime"]),
    (Format::Vegeta, &["Requests ", "[total, rate"]),
    (Format::H2load, &["starting benchmark..."]),
    (Format::H2load, &["finished in ", "status codes:"]),
    (Format::Pgbench, &["transaction type:"]),
    (Format::Hgrm, &["Percentile", "TotalCount"]),
];

fn of_text(text: &str) -> Option<Format> {
    let is = |pieces: &&[&str]| pieces.iter().all(|piece| text.contains(piece));
    if let Some((format, _)) = PIECES.iter().find(|(_, pieces)| is(pieces)) {
        return Some(*format);
    }
    let lines = || text.lines().filter(|line| !line.starts_with('#'));
    let first = lines().next()?;
    if ["RUN\t", "ASSERTION\t", "REQUEST\t", "USER\t"].iter().any(|word| first.starts_with(word)) {
        return Some(Format::GatlingLog);
    }
    if lines().take(3).any(|line| line.contains(",HISTFAAA") || line.contains(",HISTIAAA")) {
        return Some(Format::Hlog);
    }
    of_numbers(first)
}

/// Logs whose lines are numbers.
fn of_numbers(line: &str) -> Option<Format> {
    let columns: Vec<&str> = line.split(',').collect();
    let is_ns = |text: &str| text.len() == 19 && text.bytes().all(|b| b.is_ascii_digit());
    if columns.len() >= 6 && is_ns(columns[0]) && columns[1].parse::<u16>().is_ok() {
        return Some(Format::VegetaResults);
    }
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
    let is_epoch = |s: u64| (1_000_000_000..10_000_000_000).contains(&s);
    let is_log = (6..=8).contains(&fields.len())
        && number(4).is_some_and(is_epoch)
        && number(5).is_some_and(|us| us < 1_000_000);
    if is_log {
        return Some(Format::PgbenchLog);
    }
    let is_aggregate = (6..=15).contains(&fields.len())
        && number(0).is_some_and(is_epoch)
        && fields.iter().all(|field| field.parse::<f64>().is_ok());
    is_aggregate.then_some(Format::PgbenchAggregate)
}
