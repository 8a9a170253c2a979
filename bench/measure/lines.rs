//! The lines that `seek` finds on real sockets, beside the truth: of queues by long simulation, of real programs by long
//! runs at rates around what the searches said.

use super::long_runs::{LONG_S, SPEED_S};
use super::{Bench, Section, long_runs, search};
use crate::child::Child;
use crate::server::Server;
use crate::statistics::{median, short, whole};
use crate::table::Table;
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::{SECOND_NS, now_ns};
use plimsoll_core::rng::Rng;
use plimsoll_stations::queue::ServiceTime;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Searches of queues that run at the same time, each with a server of its own: a queue sleeps nearly all of the time.
const AT_ONCE: usize = 5;
/// Time that a search may take beyond its budget, s.
const PATIENCE_S: u32 = 60;
/// Simulated requests behind the truth of a queue.
const SIMULATED: u32 = 4_000_000;
/// The queue that changes gets this much faster after this share of the budget.
const FASTER: f64 = 1.5;
const AFTER: f64 = 0.4;

/// A server, and the line that is sought.
pub struct Subject {
    /// Its name in the table.
    pub name: &'static str,
    /// The limit, of the form `p95=100ms`.
    pub limit: &'static str,
    kind: Kind,
}

enum Kind {
    /// So many servers with this service time; `changes`: it gets faster in the middle.
    Queue {
        servers: usize,
        service: &'static str,
        changes: bool,
    },
    Nginx,
    Search,
    PostgreSql,
}

const QUEUES: [Subject; 5] = [
    queue("M/M/1, 5 ms", "p95=50ms", 1, "exponential:5ms", false),
    queue("M/M/4, 20 ms", "p95=100ms", 4, "exponential:20ms", false),
    queue("M/D/1, 5 ms", "p95=30ms", 1, "fixed:5ms", false),
    queue("M/lognormal/4, median 10 ms, sigma 1", "p95=150ms", 4, "lognormal:10ms,1", false),
    queue("M/M/4, 1.5 times as fast later", "p95=100ms", 4, "exponential:20ms", true),
];

const PROGRAMS: [Subject; 3] = [
    Subject { name: "plimsoll serve search", limit: "p95=50ms", kind: Kind::Search },
    Subject { name: "nginx, gzip", limit: "p95=100ms", kind: Kind::Nginx },
    Subject { name: "PostgreSQL", limit: "p95=50ms", kind: Kind::PostgreSql },
];

const fn queue(
    name: &'static str,
    limit: &'static str,
    servers: usize,
    service: &'static str,
    changes: bool,
) -> Subject {
    Subject { name, limit, kind: Kind::Queue { servers, service, changes } }
}

/// The rate at which a target breaks its limit.
pub struct Truth {
    /// The line, requests/s.
    pub line_per_s: f64,
    /// The interval in which it lies, requests/s, if it was measured.
    pub interval_per_s: Option<(f64, f64)>,
}

/// End of one search.
pub struct Found {
    verdict: String,
    certified_per_s: Option<f64>,
    /// Its estimate, requests/s.
    pub estimate_per_s: Option<f64>,
    interval_per_s: Option<(f64, f64)>,
    took_s: f64,
}

/// The lines of queues, `--rounds` searches with a budget of `--seconds` each.
///
/// # Errors
/// When a target does not start, or a search fails.
pub fn queues(bench: &Bench) -> Result<Section> {
    let note = format!(
        "`plimsoll serve queue`, {AT_ONCE} searches at a time, each with a server of its own. The line is that of a \
         simulation of {} requests a rate. The queue that changes gets {FASTER} times as fast after {:.0} % of the budget; \
         its line is the later one.",
        whole(f64::from(SIMULATED)),
        AFTER * 100.0
    );
    table(bench, &QUEUES, "Lines of queues on real sockets", note)
}

/// The lines of real programs, in the same way.
///
/// # Errors
/// When a target does not start, or a search fails.
pub fn programs(bench: &Bench) -> Result<Section> {
    let note = format!(
        "Each program on one core: nginx packs 200 KB a request, the embedded search target answers the mix of six kinds \
         over the bundled text, PostgreSQL adds up 20,000 numbers a statement. A long run of {LONG_S} s follows each search, at \
         rates within 12 % of the estimates; the line is where their p95 crosses the limit; in brackets \
         its 95 % interval, of draws of these runs with replacement. Machines are not equally fast all the \
         time: a closed run of {SPEED_S} s before and after each measures how fast, and all figures are those of its median.",
    );
    table(bench, &PROGRAMS, "Lines of programs on real sockets", note)
}

fn table(bench: &Bench, subjects: &[Subject], title: &str, note: String) -> Result<Section> {
    let header = [
        "target",
        "limit",
        "line/s",
        "estimate/s",
        "intervals with the line",
        "half-width",
        "certified, of the line",
        "verdicts",
        "took s",
    ];
    let mut table = Table::new(&header);
    for subject in subjects {
        eprintln!("searching: {}", subject.name);
        let (found, truth) = subject.measure(bench)?;
        let row = row(subject, &found, &truth);
        // Should another target fail an hour later.
        eprintln!("  {}", row.join(" | "));
        table.row(row);
    }
    let columns = format!(
        "{} searches of each, budget {} s. `intervals with the line`: of those that were printed; their half-width is the \
         median. `estimate/s` and `certified, of the line`: least to most. `took s`: the median.",
        bench.rounds, bench.seconds
    );
    let (title, notes) = (title.to_owned(), vec![note, columns]);
    Ok(Section { title, tables: vec![table], claims: Vec::new(), notes })
}

impl Found {
    /// Its rates, times `factor`.
    pub fn scale(&mut self, factor: f64) {
        for rate in [&mut self.certified_per_s, &mut self.estimate_per_s].into_iter().flatten() {
            *rate *= factor;
        }
        self.interval_per_s = self.interval_per_s.map(|(low, high)| (factor * low, factor * high));
    }

    fn show(&self) {
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), short);
        let (low, high) = self.interval_per_s.unzip();
        eprintln!(
            "  {:<18} certified {:>7} estimate {:>7} between {} and {}, {:.0} s",
            self.verdict,
            shown(self.certified_per_s),
            shown(self.estimate_per_s),
            shown(low),
            shown(high),
            self.took_s
        );
    }
}

fn row(subject: &Subject, found: &[Found], truth: &Truth) -> Vec<String> {
    let line = truth.line_per_s;
    let estimates: Vec<f64> = found.iter().filter_map(|one| one.estimate_per_s).collect();
    let intervals: Vec<(f64, f64)> = found.iter().filter_map(|one| one.interval_per_s).collect();
    let holding = intervals.iter().filter(|(low, high)| (*low..=*high).contains(&line)).count();
    let widths: Vec<f64> = intervals.iter().map(|(low, high)| 50.0 * (high / low).ln()).collect();
    let certified: Vec<f64> =
        found.iter().filter_map(|one| Some(one.certified_per_s? / line)).collect();
    let mut verdicts: Vec<(&str, usize)> = Vec::new();
    for one in found {
        match verdicts.iter_mut().find(|(verdict, _)| *verdict == one.verdict) {
            Some((_, count)) => *count += 1,
            None => verdicts.push((&one.verdict, 1)),
        }
    }
    let took: Vec<f64> = found.iter().map(|one| one.took_s).collect();
    let said: Vec<String> = verdicts.iter().map(|(verdict, n)| format!("{n} {verdict}")).collect();
    vec![
        subject.name.to_owned(),
        subject.limit.to_owned(),
        match truth.interval_per_s {
            Some((low, high)) => format!("{} ({} to {})", short(line), short(low), short(high)),
            None => short(line),
        },
        range(&estimates, short),
        format!("{holding} of {}", intervals.len()),
        if widths.is_empty() { "-".to_owned() } else { format!("{:.1} %", median(&widths)) },
        range(&certified, |share| format!("{share:.2}")),
        said.join(", "),
        format!("{:.0}", median(&took)),
    ]
}

fn range(values: &[f64], format: impl Fn(f64) -> String) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.is_empty() {
        "-".to_owned()
    } else {
        format!("{} to {}", format(least), format(most))
    }
}

impl Subject {
    /// The searches, and the line.
    fn measure(&self, bench: &Bench) -> Result<(Vec<Found>, Truth)> {
        match self.kind {
            Kind::Queue { servers, service, changes } => {
                let found = self.search_queues(bench, servers, service, changes)?;
                let faster = if changes { FASTER } else { 1.0 };
                let line_per_s = simulated_line(servers, service, faster, self.limit)?;
                Ok((found, Truth { line_per_s, interval_per_s: None }))
            }
            Kind::Nginx => {
                let server = Server::nginx_packing(bench)?;
                long_runs::search(self, bench, &server, &["--header", "Accept-Encoding: gzip"])
            }
            Kind::Search => {
                let server = Server::plimsoll(bench, "search", &[])?;
                let queries = mix(bench, &server)?;
                let queries = queries.display().to_string();
                let flags = ["--queries", &queries, "--check", "vespa"];
                long_runs::search(self, bench, &server, &flags)
            }
            Kind::PostgreSql => {
                let server = Server::plimsoll(bench, "postgresql", &[])?;
                let body = "SELECT sum(i) FROM generate_series(1, 20000) AS i";
                long_runs::search(self, bench, &server, &["--body", body])
            }
        }
    }

    fn search_queues(
        &self,
        bench: &Bench,
        servers: usize,
        service: &str,
        changes: bool,
    ) -> Result<Vec<Found>> {
        let servers = servers.to_string();
        let mut found = Vec::new();
        let seeds: Vec<u32> = (1..=bench.rounds).collect();
        for seeds in seeds.chunks(AT_ONCE) {
            let mut searches = Vec::new();
            for &seed in seeds {
                let seed_text = seed.to_string();
                let flags = ["--servers", &servers, "--service", service, "--seed", &seed_text];
                let server = Server::plimsoll(bench, "queue", &flags)?;
                let child = self.seek(bench, &server, seed, &[])?;
                searches.push((server, child));
            }
            if changes {
                wait(bench, (f64::from(bench.seconds) * AFTER * 1e9) as u64)?;
                for (server, _) in &searches {
                    server.get_json(&format!("/_speed?factor={FASTER}"))?;
                }
            }
            for (server, child) in searches {
                found.push(read(bench, child)?);
                drop(server);
            }
        }
        Ok(found)
    }

    /// Starts a search.
    ///
    /// # Errors
    /// When it does not start.
    pub fn seek(&self, bench: &Bench, server: &Server, seed: u32, flags: &[&str]) -> Result<Child> {
        let words = format!("--budget {}s --seed {seed}", bench.seconds);
        self.start(bench, "seek", server, &words, flags)
    }

    /// Starts a command of plimsoll with the limit of this target.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(
        &self,
        bench: &Bench,
        command: &str,
        server: &Server,
        words: &str,
        flags: &[&str],
    ) -> Result<Child> {
        let fixed = ["--slo", self.limit, "--no-record", "--quiet", "--json", "-"];
        let arguments: Vec<String> = [command, &server.url]
            .into_iter()
            .chain(words.split(' '))
            .chain(flags.iter().copied())
            .chain(fixed)
            .map(str::to_owned)
            .collect();
        Child::start(&bench.plimsoll, &arguments, Some(bench.cores.generator))
    }
}

/// The search target with the bundled text, and its queries.
fn mix(bench: &Bench, server: &Server) -> Result<PathBuf> {
    search::feed_bundled(bench, server, 1)?;
    let queries = bench.folder.path().join("line-queries.ndjson");
    let shown = queries.display().to_string();
    let made = ["corpus", "queries", "--each", "200", "--out", &shown].map(str::to_owned);
    let ended = Child::start(&bench.plimsoll, &made, None)?.finish(60, &bench.interrupted)?;
    if ended.code != Some(0) {
        bail!("making queries failed: {}", ended.errors.trim());
    }
    wait(bench, SECOND_NS)?;
    Ok(queries)
}

fn wait(bench: &Bench, for_ns: u64) -> Result<()> {
    let end_ns = now_ns() + for_ns;
    while now_ns() < end_ns {
        if bench.interrupted.load(std::sync::atomic::Ordering::Relaxed) {
            bail!("interrupted");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Waits for the end of a search.
///
/// # Errors
/// When it does not end, or its record has no result.
pub fn read(bench: &Bench, child: Child) -> Result<Found> {
    let ended = child.finish(bench.seconds + PATIENCE_S, &bench.interrupted)?;
    let record: Value = serde_json::from_str(&ended.output)
        .with_context(|| format!("a search ended with: {}", ended.errors.trim()))?;
    let at = |path: &str| record.pointer(path).and_then(Value::as_f64);
    let interval = at("/seek/interval_per_s/0").zip(at("/seek/interval_per_s/1"));
    let verdict = match record.pointer("/seek/verdict") {
        Some(Value::String(verdict)) => verdict.clone(),
        // A verdict with figures is an object of one key.
        Some(Value::Object(one)) => one.keys().next().context("an empty verdict")?.clone(),
        _ => bail!("a search without a verdict"),
    };
    let found = Found {
        verdict,
        certified_per_s: at("/seek/certified_rate_per_s"),
        estimate_per_s: at("/seek/estimate_per_s"),
        interval_per_s: interval,
        took_s: number(&record, "/seek/elapsed_s")?,
    };
    // Each is shown as it comes: the whole takes an hour.
    found.show();
    Ok(found)
}

/// The time in a limit of the form `p95=100ms`, ms.
///
/// # Errors
/// When it has another form.
pub fn limit_ms(limit: &str) -> Result<f64> {
    let time = limit.trim_start_matches("p95=").trim_end_matches("ms");
    time.parse().with_context(|| format!("a limit of another form: {limit}"))
}

/// The line of a queue without anything around it, `faster` times as fast as its service time says.
fn simulated_line(servers: usize, service: &str, faster: f64, limit: &str) -> Result<f64> {
    let service: ServiceTime = service.parse().map_err(anyhow::Error::msg)?;
    let limit_s = limit_ms(limit)? / 1e3;
    let capacity_per_s = servers as f64 * faster * 1e9 / service.mean_ns();
    let (mut low, mut high) = (0.05 * capacity_per_s, capacity_per_s);
    for _ in 0..12 {
        let mid = f64::midpoint(low, high);
        if late_share(servers, &service, faster, mid, limit_s) <= 0.05 {
            low = mid;
        } else {
            high = mid;
        }
    }
    Ok(f64::midpoint(low, high))
}

/// Share of requests that take longer than a limit: Poisson arrivals, each to the server that is free first.
fn late_share(servers: usize, service: &ServiceTime, faster: f64, per_s: f64, limit_s: f64) -> f64 {
    let (mut arrivals, mut services) = (Rng::new(1), Rng::new(2));
    let mut free_s = vec![0.0_f64; servers];
    let (mut now_s, mut late) = (0.0, 0_u32);
    for _ in 0..SIMULATED {
        now_s -= (1.0 - arrivals.uniform()).ln() / per_s;
        let Some(first) = free_s.iter_mut().min_by(|a, b| a.total_cmp(b)) else { break };
        let takes_s = service.draw_ns(&mut services) as f64 / 1e9 / faster;
        *first = first.max(now_s) + takes_s;
        late += u32::from(*first - now_s > limit_s);
    }
    f64::from(late) / f64::from(SIMULATED)
}

/// A number of a record.
///
/// # Errors
/// When it is not there.
pub fn number(record: &Value, path: &str) -> Result<f64> {
    record.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}"))
}
