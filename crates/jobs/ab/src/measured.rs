//! Measurements of one block: its record, the seconds that count, and what another program printed.

use anyhow::{Context, Result, anyhow, bail};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::{ClassPart, Interval};
use plimsoll_record::{JobResults, RunRecord};
use plimsoll_report::journal;
use plimsoll_report::plain::printable;
use std::path::Path;

/// File of the seconds in a run record.
const INTERVALS: &str = "intervals.ndjson";

/// A block as it was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Its record; `None` for a program that is not plimsoll.
    pub record: Option<Box<RunRecord>>,
    /// The seconds that count, added up, where the beginning is cut off afterwards.
    pub cut: Option<Interval>,
    /// Time from its start to its end, s.
    pub wall_s: f64,
    /// The number that a program that is not plimsoll printed.
    pub number: Option<f64>,
    /// The highest rate that holds the limits, requests per second, where it is found from a share of late requests.
    pub max_rate: Option<f64>,
    /// True if the generators are compared, and not the targets.
    pub is_of_generator: bool,
}

/// Times of a block, ms, and how many there are.
fn times(measured: &Measured) -> Option<plimsoll_core::histogram::LatencySummary> {
    let summary = match (&measured.cut, &measured.record) {
        (Some(cut), _) => cut.all_classes().response.summary(),
        (None, Some(record)) => record.latency_ms.judged.unwrap_or(record.latency_ms.response),
        (None, None) => return None,
    };
    (summary.count > 0).then_some(summary)
}

/// Requests that failed, and all that ended.
#[must_use]
pub fn failures(measured: &Measured) -> Option<(u64, u64)> {
    let ledger = match (&measured.cut, &measured.record) {
        (Some(cut), _) => cut.ledger,
        (None, Some(record)) => record.ledger,
        (None, None) => return None,
    };
    let ended = ledger.finished();
    (ended > 0).then_some((ended - ledger.ok.min(ended), ended))
}

fn rate(measured: &Measured) -> Option<f64> {
    match (&measured.cut, &measured.record) {
        (Some(cut), _) => Some(cut.counters.ok_in_time as f64 / cut.seconds()),
        (None, Some(record)) => Some(record.rate.ok_per_s),
        (None, None) => None,
    }
}

/// CPU time by request, us: of the generator if generators are compared, otherwise of the first process that was watched.
fn cpu_us(measured: &Measured) -> Option<f64> {
    let record = measured.record.as_deref()?;
    if measured.is_of_generator {
        return Some(record.generator.cpu_us_per_request);
    }
    let resources = record.job_results.resources()?;
    let target = resources.watched.iter().find(|one| one.name != "generator")?;
    let cores = target.cpu_cores.as_ref()?.mean;
    // The kernel counts in ticks: a short block may have used none.
    Some(cores * 1e6 / record.rate.achieved_per_s).filter(|us| *us > 0.0)
}

/// Returns the value of a metric; `None` if the block has none.
#[must_use]
pub fn value(measured: &Measured, metric: &str) -> Option<f64> {
    let record = measured.record.as_deref();
    let results = record.map(|record| &record.job_results);
    let per_s = |amount: u64| {
        let seconds = record.map_or(0.0, |record| record.duration_s);
        (seconds > 0.0).then(|| amount as f64 / seconds)
    };
    let found = match metric {
        "rate" => rate(measured),
        "mean" => times(measured).map(|times| times.mean),
        "p50" => times(measured).map(|times| times.p50),
        "p90" => times(measured).map(|times| times.p90),
        "p95" => times(measured).map(|times| times.p95),
        "p99" => times(measured).map(|times| times.p99),
        "p99.9" => times(measured).map(|times| times.p99_9),
        "max" => times(measured).map(|times| times.max),
        "errors" => failures(measured).map(|(failed, all)| failed as f64 / all as f64),
        "cpu" => cpu_us(measured),
        "max-rate" => measured.max_rate.or_else(|| max_rate(results?)),
        "documents" => results.and_then(|all| {
            let visited = all.visit().and_then(|visit| per_s(visit.documents));
            visited.or_else(|| all.feed().map(|feed| feed.accepted_per_s))
        }),
        "accepted" => results.and_then(|all| all.voter()).and_then(|voter| per_s(voter.accepted)),
        "bytes" => record.and_then(|record| per_s(record.bytes.received)),
        "time" => Some(measured.wall_s),
        "number" => measured.number,
        _ => None,
    };
    found.filter(|value| value.is_finite())
}

/// The rate that a search found: plimsoll's own, that of a voter, or that of another tool's method.
fn max_rate(results: &JobResults) -> Option<f64> {
    let sought =
        results.seek().and_then(|seek| seek.finding.estimate_per_s.or(seek.certified_rate_per_s));
    let tuned = || results.voter()?.auto_tune.as_ref()?.certified_rate_per_s;
    sought.or_else(tuned).or_else(|| results.rival().map(|rival| rival.rate_per_s))
}

/// Returns a quantile of the response times of every request that was due, ms: one that did not succeed is later than all others.
#[must_use]
pub fn quantile_ms(measured: &Measured, quantile: f64) -> Option<f64> {
    let record = measured.record.as_deref()?;
    let mut times = Histogram::new();
    for name in &record.class_names {
        let text = record.histograms.get(&format!("{name}/response"))?;
        times.add_encoded(text).ok()?;
    }
    let due = record.ledger.scheduled as f64;
    let wanted = quantile * due / times.count().max(1) as f64;
    if times.count() == 0 || wanted > 1.0 {
        // Most of what was late was never answered: it is at least as late as the latest.
        let latest = times.max_ns().max(plimsoll_record::timeout_ns(&record.scenario));
        return (due > 0.0 && latest > 0).then_some(latest as f64 / 1e6);
    }
    Some(times.quantile_ns(wanted) as f64 / 1e6)
}

/// Decodes a histogram of a record; an empty one if it has none. None is damaged: [`read_record`] rejects such a record.
fn histogram(record: &RunRecord, name: &str) -> Histogram {
    let text = record.histograms.get(name);
    text.and_then(|text| Histogram::decode(text).ok()).unwrap_or_default()
}

/// The measurements of a record, all classes in one.
#[must_use]
pub fn totals(record: &RunRecord) -> Interval {
    let mut all = ClassPart { ledger: record.ledger, ..ClassPart::default() };
    for name in &record.class_names {
        all.response.merge(&histogram(record, &format!("{name}/response")));
        all.service.merge(&histogram(record, &format!("{name}/service")));
        all.failed.merge(&histogram(record, &format!("{name}/failed")));
    }
    let mut totals = Interval::new(1);
    totals.to_ns = (record.duration_s * 1e9) as u64;
    totals.ledger = record.ledger;
    totals.counters = record.counters;
    totals.lag = histogram(record, "lag");
    totals.delays.receive = histogram(record, "receive-lag");
    totals.delays.send = histogram(record, "send");
    totals.delays.starved = histogram(record, "starved");
    totals.delays.connection = histogram(record, "connection-wait");
    totals.delays.disturbed = record.generator.disturbed;
    totals.unserved = histogram(record, "unserved");
    totals.statuses.clone_from(&record.statuses);
    totals.classes[0] = all;
    totals
}

/// Reads the record that a block left.
///
/// # Errors
/// When it is not there, has another form, or has a damaged histogram: the others are those of a part of the requests.
pub fn read_record(path: &Path) -> Result<RunRecord> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    let record = plimsoll_record::read(&text).map_err(|error| anyhow!("its record: {error}"))?;
    for (name, encoded) in &record.histograms {
        Histogram::decode(encoded)
            .map_err(|error| anyhow!("its record: histograms.{}: {error}", printable(name)))?;
    }
    Ok(record)
}

/// Reads the seconds of a block.
///
/// # Errors
/// When the journal cannot be read, or a line of it is damaged: the requests of that second would be missing.
pub fn read_seconds(folder: &Path) -> Result<Vec<Interval>> {
    let path = folder.join(INTERVALS);
    let mut seconds = Vec::new();
    let found = journal::read(&path, |second| seconds.push(second.clone()))?;
    if found.damaged > 0 || found.torn_end {
        bail!(
            "{}: a line is damaged, so that a second of the block is missing; free space for temporary files, or set TMPDIR to \
             another folder",
            path.display()
        );
    }
    Ok(seconds)
}

/// Adds up the seconds that begin after `discard_s`; `None` if that leaves less than a second.
#[must_use]
pub fn cut(seconds: &[Interval], discard_s: f64) -> Option<Interval> {
    let start_ns = seconds.first()?.from_ns;
    let from_ns = start_ns + (discard_s * 1e9) as u64;
    let mut sum = Interval::new(0);
    // The last second is a part of one, in which replies are waited for.
    let whole = |second: &&Interval| second.from_ns >= from_ns && second.seconds() > 0.9;
    seconds.iter().filter(whole).for_each(|second| sum.merge(second));
    (sum.to_ns > sum.from_ns).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::interval::IntervalLine;
    use plimsoll_record::voter::VoterResult;
    use plimsoll_report::samples;

    #[test]
    fn the_highest_rate_is_that_of_any_search() {
        let mut results = JobResults::default();
        assert_eq!(max_rate(&results), None);
        let tune = serde_json::json!({
            "goal": "p99=10ms", "latency": "client", "best_rate_per_s": 900.0, "best_under_way": 9.0,
            "windows": 2, "windows_held": 1, "certified_rate_per_s": 850.0, "trace": []
        });
        let auto_tune = Some(serde_json::from_value(tune).unwrap());
        results.put(VoterResult { auto_tune, ..VoterResult::default() });
        assert_eq!(max_rate(&results), Some(850.0));
    }

    #[test]
    fn the_beginning_is_cut_off_by_whole_seconds() {
        let seconds: Vec<Interval> =
            (0..4).map(|index| samples::second(index, 0, 10 + index)).collect();
        let all = cut(&seconds, 0.0).unwrap();
        let rest = cut(&seconds, 1.5).unwrap();
        assert!((all.seconds() - 4.0).abs() < 1e-9 && (rest.seconds() - 2.0).abs() < 1e-9);
        assert_eq!(rest.ledger.sent, seconds[2].ledger.sent + seconds[3].ledger.sent);
        assert!(cut(&seconds, 4.0).is_none() && cut(&[], 0.0).is_none());
    }

    #[test]
    fn a_record_with_a_damaged_histogram_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record.json");
        for name in ["lag", "fuzzy/response"] {
            let mut record = samples::good();
            std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
            assert!(read_record(&path).is_ok());
            record.histograms.insert(name.to_owned(), "damaged".to_owned());
            std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
            let error = read_record(&path).unwrap_err().to_string();
            let place = format!("its record: histograms.{name}: a stored histogram");
            assert!(error.starts_with(&place), "{error}");
        }
    }

    #[test]
    fn seconds_of_which_a_line_is_damaged_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let line = |index| {
            let line = IntervalLine::from(&samples::second(index, 0, 10));
            serde_json::to_string(&line).unwrap() + "\n"
        };
        let read = |text: String| {
            std::fs::write(dir.path().join(INTERVALS), text).unwrap();
            read_seconds(dir.path()).map_err(|error| error.to_string())
        };
        assert_eq!(read(line(0) + &line(1)).unwrap().len(), 2);
        let whole = line(1);
        let torn = &whole[..40];
        for text in [line(0) + torn, line(0) + torn + "\n" + &line(2)] {
            let error = read(text).unwrap_err();
            assert!(error.contains("intervals.ndjson: a line is damaged"), "{error}");
        }
    }

    #[test]
    fn a_block_has_the_metrics_of_its_record_and_no_others() {
        let record = samples::good();
        let (p95, ok_per_s) = (record.latency_ms.response.p95, record.rate.ok_per_s);
        let block = Measured { record: Some(Box::new(record)), ..Measured::default() };
        assert_eq!(value(&block, "p95"), Some(p95));
        assert_eq!(value(&block, "rate"), Some(ok_per_s));
        assert_eq!(value(&block, "errors"), Some(0.0));
        assert_eq!(value(&block, "documents"), None);
        assert_eq!(value(&block, "max-rate"), None);
        let other = Measured { wall_s: 2.0, number: Some(7.0), ..Measured::default() };
        assert_eq!((value(&other, "time"), value(&other, "number")), (Some(2.0), Some(7.0)));
        assert_eq!((value(&other, "p95"), value(&other, "cpu")), (None, None));
    }
}
