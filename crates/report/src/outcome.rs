//! The outcome of a run in one line: what decides its exit code.

use crate::number::significant;
use crate::plain::printable;
use crate::sheet::Tone;
use plimsoll_core::units::Span;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::ab::AbJudged;
use plimsoll_record::exit::{FAILED, of_record};
use plimsoll_record::{AssertionResult, RunRecord, SloResult};

/// `valid, exit 0`, `MISSED p95: 0.39 ms > 0.1 ms, exit 2`, `NOT VALID: generator-limited, exit 3`. A file of the result that is
/// lost outranks them.
#[must_use]
pub fn line(record: &RunRecord, lost_file: bool) -> String {
    with_exit(&words_with(record, &missed(record)), record, lost_file)
}

fn with_exit(words: &str, record: &RunRecord, lost_file: bool) -> String {
    match lost_file {
        true => format!("{words}, but a file of the result is lost, exit {FAILED}"),
        false => format!("{words}, exit {}", of_record(record)),
    }
}

/// The meaning of the verdict in words, and its judgement.
#[must_use]
pub fn meaning(record: &RunRecord) -> (&'static str, Tone) {
    let verdict = &record.verdict;
    match verdict.kind {
        VerdictKind::Valid if verdict.is_within_bounds() => {
            ("these figures describe the target within the bounds named here", Tone::Good)
        }
        VerdictKind::Valid => ("these figures describe the target", Tone::Good),
        VerdictKind::GeneratorLimited => {
            ("plimsoll or its machine limited the result, not the target", Tone::Warn)
        }
        VerdictKind::ConnectionLimited => {
            ("the number of connections limited the result, not the target", Tone::Warn)
        }
        VerdictKind::TargetFailed if record.ledger.ok > 0 => {
            ("too many requests failed for the figures to mean anything", Tone::Bad)
        }
        VerdictKind::TargetFailed => {
            ("no request succeeded, so there is nothing to measure", Tone::Bad)
        }
        VerdictKind::Partial => ("the result is incomplete", Tone::Warn),
        VerdictKind::Infeasible => ("no rate holds the limits", Tone::Bad),
        VerdictKind::BudgetTooSmall => ("no rate was certified in this time", Tone::Warn),
        VerdictKind::Unstable => ("the target changed during the run", Tone::Warn),
        VerdictKind::Void => ("do not use these numbers", Tone::Bad),
        VerdictKind::Imported => ("another tool measured these figures", Tone::Plain),
    }
}

/// The same with at most `misses_max` misses by name, and the number of the others.
pub(crate) fn first_line(record: &RunRecord, lost_file: bool, misses_max: usize) -> String {
    let mut missed = missed(record);
    if missed.len() > misses_max {
        let more = missed.len() - misses_max;
        missed.truncate(misses_max);
        missed.push(format!("and {more} more"));
    }
    with_exit(&words_with(record, &missed), record, lost_file)
}

fn words_with(record: &RunRecord, missed: &[String]) -> String {
    let kind = record.verdict.kind;
    let head = match kind {
        VerdictKind::Imported if missed.is_empty() => {
            return match record.assertions.len() {
                0 => "imported, not judged".to_owned(),
                1 => "imported, 1 limit met".to_owned(),
                judged => format!("imported, {judged} limits met"),
            };
        }
        VerdictKind::Valid if missed.is_empty() => {
            let within = if record.verdict.is_within_bounds() { " within its bounds" } else { "" };
            let judged = record.slo.len() + record.assertions.len();
            return match judged {
                0 => format!("valid{within}"),
                1 => format!("valid{within}, 1 limit met"),
                _ => format!("valid{within}, {judged} limits met"),
            };
        }
        VerdictKind::Valid | VerdictKind::Imported => String::new(),
        VerdictKind::TargetFailed => "FAILED: target-failed".to_owned(),
        VerdictKind::Infeasible => "MISSED: infeasible".to_owned(),
        _ => format!("NOT VALID: {}", kind.name()),
    };
    match (head.is_empty(), missed.is_empty()) {
        (true, _) => format!("MISSED {}", missed.join("; ")),
        (false, true) => head,
        (false, false) => format!("{head}; MISSED {}", missed.join("; ")),
    }
}

/// The limits and assertions that were missed, each with its figure.
pub(crate) fn missed(record: &RunRecord) -> Vec<String> {
    let limits = record.slo.iter().filter(|(_, slo)| !slo.held).map(|(name, slo)| limit(name, slo));
    let assertions = record.assertions.iter().filter(|one| !one.held).map(assertion);
    let last_run = record
        .missed_run_per_s()
        .map(|rate| format!("the limits in the last run, at {} requests/s", significant(rate)));
    limits.chain(assertions).chain(last_run).chain(broken_rules(record)).collect()
}

/// The rules of `--fail-on` that two sides broke, or may have broken.
fn broken_rules(record: &RunRecord) -> impl Iterator<Item = String> + '_ {
    let rules = record.job_results.ab().map(|ab| &ab.rules[..]).unwrap_or_default();
    rules.iter().filter_map(|one| match one.judged {
        AbJudged::Holds => None,
        AbJudged::Fails => Some(one.rule.clone()),
        AbJudged::CannotTell => Some(format!("{} (cannot tell)", one.rule)),
    })
}

/// Reason why a figure that is under its limit misses it.
const LOST: &str = "depends on requests that did not succeed";

/// `p95: 0.39 ms > 0.1 ms`.
fn limit(name: &str, slo: &SloResult) -> String {
    let unit = &slo.unit;
    let allowed = slo.limit.parse::<Span>().ok().filter(|_| unit == "ms");
    let allowed = match allowed {
        Some(span) => format!("{} ms", significant(span.ns as f64 / 1e6)),
        None => slo.limit.clone(),
    };
    let (sign, least) = match (name, slo.at_least) {
        ("rate", _) => ("<", ""),
        (_, true) => (">", "at least "),
        (_, false) => (">", ""),
    };
    let gap = if unit == "%" || unit == "/s" { "" } else { " " };
    if slo.at_least {
        return format!(
            "{name}: {least}{}{gap}{unit}, limit {allowed} ({LOST})",
            significant(slo.measured)
        );
    }
    format!("{name}: {}{gap}{unit} {sign} {allowed}", significant(slo.measured))
}

fn assertion(one: &AssertionResult) -> String {
    let least = if one.at_least { "at least " } else { "" };
    let actual = match one.actual {
        Some(value) => format!("{least}{} {}", significant(value), one.unit),
        None => "unknown".to_owned(),
    };
    let what = format!("{} {} {}", printable(&one.scope), one.metric, one.condition);
    let lost = if one.at_least { format!(" ({LOST})") } else { String::new() };
    format!("{what}: {}{lost}", actual.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use plimsoll_core::verdict::Bounds;
    use plimsoll_record::rank::{RankResult, RankRun};

    /// A ranking benchmark has its limits in its runs, of which the last is the result.
    #[test]
    fn a_last_run_that_missed_decides() {
        let mut record = samples::good();
        record.slo.clear();
        let run = |held| RankRun { requested_qps: 40.0, held, ..RankRun::default() };
        let mut ran = |runs: [bool; 2]| {
            let runs = runs.map(run).to_vec();
            record.job_results.put(RankResult { runs, ..RankResult::default() });
            line(&record, false)
        };
        assert_eq!(
            ran([true, false]),
            "MISSED the limits in the last run, at 40.0 requests/s, exit 2"
        );
        assert_eq!(ran([false, true]), "valid, exit 0");
    }

    #[test]
    fn the_last_line_names_what_decided() {
        let mut record = samples::good();
        assert_eq!(line(&record, false), "valid, 1 limit met, exit 0");
        assert_eq!(
            line(&record, true),
            "valid, 1 limit met, but a file of the result is lost, exit 1"
        );
        // A search says why it ended where it did, and that bounds nothing.
        record.verdict.reasons.push("the limits hold at 95 %".to_owned());
        assert_eq!(line(&record, false), "valid, 1 limit met, exit 0");
        record.verdict.bounds = Some(Bounds::default());
        assert_eq!(line(&record, false), "valid within its bounds, 1 limit met, exit 0");
        let missed = SloResult {
            limit: "100us".to_owned(),
            measured: 0.39,
            unit: "ms".to_owned(),
            ..SloResult::default()
        };
        record.slo.insert("p95".to_owned(), missed.clone());
        assert_eq!(line(&record, false), "MISSED p95: 0.390 ms > 0.100 ms, exit 2");
        let rate = SloResult {
            limit: "500/s".to_owned(),
            measured: 45.0,
            unit: "/s".to_owned(),
            ..SloResult::default()
        };
        record.slo = [("rate".to_owned(), rate)].into();
        assert_eq!(line(&record, false), "MISSED rate: 45.0/s < 500/s, exit 2");
        record.verdict.kind = VerdictKind::GeneratorLimited;
        assert_eq!(
            line(&record, false),
            "NOT VALID: generator-limited; MISSED rate: 45.0/s < 500/s, exit 3"
        );
        let assertion = AssertionResult {
            scope: "global".to_owned(),
            metric: "p95".to_owned(),
            condition: "< 2000ms".to_owned(),
            actual: Some(1000.0),
            unit: "ms".to_owned(),
            at_least: true,
            ..AssertionResult::default()
        };
        record.assertions = vec![assertion];
        let outcome = line(&record, false);
        let wanted =
            "global p95 < 2000ms: at least 1,000 ms (depends on requests that did not succeed)";
        assert!(outcome.contains(wanted), "{outcome}");
        record.assertions.clear();
        record.slo = [("p95".to_owned(), SloResult { at_least: true, ..missed })].into();
        record.verdict.kind = VerdictKind::Valid;
        assert!(
            line(&record, false).contains("at least 0.390 ms, limit 0.100 ms (depends on"),
            "{}",
            line(&record, false)
        );
    }
}
