//! The lines that decide: the headline, the limits, the verdict, the outcome.

use crate::number::{count, percent, significant, time};
use crate::outcome;
use crate::page::{Page, Tone};
use crate::plain::printable;
use plimsoll_core::histogram::LatencySummary;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::exit::{FINE, of_record};
use plimsoll_record::{RunRecord, SloResult};

/// An open run that got fewer than this share of its requests through says both rates.
const FELL_SHORT_BELOW: f64 = 0.95;

/// A stop cuts off what is in flight; more than this share of the requests is worth a word.
const MANY_UNFINISHED: f64 = 0.01;

/// True if requests arrived at their own time (open model).
pub fn is_open(record: &RunRecord) -> bool {
    let model = record.scenario.get("load").and_then(|load| load.get("model"));
    matches!(model.and_then(serde_json::Value::as_str), Some("open" | "burst" | "profile"))
}

/// Rate, failures and response time in one line; it says less than a number when there is no number to be had.
pub fn headline(page: &mut Page<'_>, record: &RunRecord) {
    let response = &record.latency_ms.response;
    if record.ledger.ok == 0 {
        let text = match record.ledger.sent {
            0 => "  no request was sent".to_owned(),
            sent => format!("  none of {} requests succeeded", count(sent)),
        };
        page.line(&text, Tone::Bad);
        return;
    }
    let failed = record.ledger.failed.total();
    let rate = rate(record);
    let rate = match record.verdict.kind {
        VerdictKind::GeneratorLimited if !is_open(record) => format!("at least {rate}"),
        VerdictKind::Void => format!("{rate}: VOID, do not use"),
        VerdictKind::Partial => format!("{rate} until it was cut short"),
        VerdictKind::Unstable => format!("{rate} from a target that changed during the run"),
        _ => rate,
    };
    let points = headline_points(response)
        .iter()
        .map(|(name, ms)| format!("{name} {}", time(*ms)))
        .collect::<Vec<_>>()
        .join("   ");
    let tone = if failed > 0 { Tone::Bad } else { Tone::Strong };
    let one_line = format!("  {rate}     response {points}");
    if one_line.chars().count() <= page.width() {
        page.line(&one_line, tone);
    } else {
        page.line(&format!("  {rate}"), tone);
        page.line(&format!("  response {points}"), Tone::Strong);
    }
}

/// `500 requests/s`, or `28.2 ok/s of 100/s, 72 % failed`.
fn rate(record: &RunRecord) -> String {
    let (rates, ledger) = (&record.rate, &record.ledger);
    let failed = ledger.failed.total();
    let lost = ledger.scheduled.saturating_sub(ledger.sent);
    let short = is_open(record) && rates.ok_per_s < rates.offered_per_s * FELL_SHORT_BELOW;
    let unfinished = ledger.unfinished as f64 > ledger.sent as f64 * MANY_UNFINISHED;
    if failed == 0 && lost == 0 && !short && !unfinished {
        return format!("{} requests/s", significant(rates.ok_per_s));
    }
    let mut text = format!("{} ok/s", significant(rates.ok_per_s));
    if rates.offered_per_s > rates.ok_per_s {
        text += &format!(" of {}/s", significant(rates.offered_per_s));
    }
    let share = |part: u64, all: u64| {
        let share = part as f64 / all.max(1) as f64;
        // Of very many, a few are no share that rounds to anything.
        if share < 5e-4 { count(part) } else { percent(share) }
    };
    if failed > 0 {
        text += &format!(", {} failed", share(failed, ledger.finished()));
    }
    let refused = ledger.refused.queue_full + ledger.refused.queue_timeout;
    if refused > 0 {
        text += &format!(", {} refused", share(refused, ledger.scheduled));
    }
    if ledger.unsent.stopped > 0 {
        text += &format!(", {} never sent", share(ledger.unsent.stopped, ledger.scheduled));
    }
    if unfinished {
        text += &format!(", {} unfinished", share(ledger.unfinished, ledger.sent));
    }
    text
}

pub(super) fn headline_points(response: &LatencySummary) -> Vec<(&'static str, f64)> {
    let all = [("p50", response.p50), ("p95", response.p95), ("p99", response.p99)];
    let mut points: Vec<_> =
        all.into_iter().filter(|(name, _)| response.count >= samples_needed(name)).collect();
    if points.len() < 3 {
        points.push(("max", response.max));
    }
    points
}

/// Number of samples from which a percentile says more than the maximum.
pub fn samples_needed(percentile: &str) -> u64 {
    match percentile {
        "p50" => 2,
        "p90" => 10,
        "p95" | "p99" => 100,
        "p99.9" => 1_000,
        _ => 1,
    }
}

/// One line a limit: what was asked, what was measured over every scheduled request, and whether it was met.
pub fn limits(page: &mut Page<'_>, record: &RunRecord) {
    for (name, slo) in &record.slo {
        let tone = if slo.held { Tone::Good } else { Tone::Bad };
        page.entry("SLO", &limit(name, slo), tone);
    }
}

fn limit(name: &str, slo: &SloResult) -> String {
    let least = if slo.at_least { "at least " } else { "" };
    let held = if slo.held { "held" } else { "MISSED" };
    let mut text =
        format!("{name} {}: {least}{} {}, {held}", slo.limit, significant(slo.measured), slo.unit);
    if let Some(ok_only) = slo.ok_only {
        text += &format!(
            " (over every scheduled request; {} {} over the successful ones)",
            significant(ok_only),
            slo.unit
        );
    }
    text
}

/// The meaning of the verdict, and its reasons.
pub fn verdict(page: &mut Page<'_>, record: &RunRecord) {
    let verdict = &record.verdict;
    let (meaning, tone) = match verdict.kind {
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
    };
    page.entry("Verdict", &format!("{}: {meaning}", verdict.kind.name()), tone);
    for reason in &verdict.reasons {
        page.entry("", &printable(reason), Tone::Plain);
    }
}

/// The last line: the outcome that decides the exit code.
pub fn result(page: &mut Page<'_>, record: &RunRecord, lost_file: bool) {
    let tone = if of_record(record) == FINE && !lost_file { Tone::Good } else { Tone::Bad };
    page.entry("Result", &outcome::line(record, lost_file), tone);
}
