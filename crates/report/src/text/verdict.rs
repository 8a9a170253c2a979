//! The lines that decide: the outcome with its reasons, the headline, the limits.

use super::tables::actual;
use crate::number::{count, percent, significant};
use crate::outcome;
use crate::page::{Page, Tone};
use crate::plain::printable;
use crate::rate::{is_lower_bound, is_open};
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::exit::{FINE, of_record};
use plimsoll_record::{AssertionResult, RunRecord, SloResult};

/// An open run that got fewer than this share of its requests through says both rates.
const FELL_SHORT_BELOW: f64 = 0.95;

/// A stop cuts off what is in flight; more than this share of the requests is worth a word.
const MANY_UNFINISHED: f64 = 0.01;

/// Most misses that the outcome names; the others stand among the limits.
const MISSES_MAX: usize = 4;
/// Most limits that held on a page that is not verbose.
const HELD_MAX: usize = 5;

/// Rate and failures in one line; the times are in the table below. Nothing if the outcome and its reasons say it all.
pub fn headline(page: &mut Page<'_>, record: &RunRecord) {
    if record.ledger.ok == 0 {
        let text = match record.ledger.sent {
            0 => "no request was sent".to_owned(),
            _ if has_reason(record, VerdictKind::TargetFailed) => return,
            sent => format!("none of {} requests succeeded", count(sent)),
        };
        return page.headline(&text, Tone::Bad);
    }
    let rate = rate(record);
    let rate = if is_lower_bound(record) { format!("at least {rate}") } else { rate };
    let tone = if record.ledger.failed.total() > 0 { Tone::Bad } else { Tone::Strong };
    page.headline(&rate, tone);
}

fn has_reason(record: &RunRecord, kind: VerdictKind) -> bool {
    record.verdict.kind == kind && !record.verdict.reasons.is_empty()
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

/// The first line: the outcome that decides the exit code.
pub fn outcome(page: &mut Page<'_>, record: &RunRecord) {
    let lost_file = page.style().lost_file;
    let tone = if of_record(record) == FINE && !lost_file { Tone::Good } else { Tone::Bad };
    page.outcome("Result", &outcome::first_line(record, lost_file, MISSES_MAX), tone);
}

/// The reasons of the outcome.
pub fn reasons(page: &mut Page<'_>, record: &RunRecord) {
    let verdict = &record.verdict;
    let meaning = match verdict.kind {
        VerdictKind::GeneratorLimited => {
            "plimsoll or its machine limited the result, not the target"
        }
        VerdictKind::ConnectionLimited => {
            "the number of connections limited the result, not the target"
        }
        VerdictKind::Void => "do not use these numbers",
        // The others say it in the outcome or in their reasons.
        _ => "",
    };
    let reasons = verdict.reasons.iter().map(|reason| printable(reason));
    let all = Some(meaning.to_owned()).filter(|text| !text.is_empty()).into_iter().chain(reasons);
    for (index, text) in all.enumerate() {
        page.entry(if index == 0 { "Why" } else { "" }, &text, Tone::Plain);
    }
}

/// The limits and assertions that the outcome does not name: those that held, and misses that it has no room for.
pub fn limits(page: &mut Page<'_>, record: &RunRecord) {
    let missed = outcome::missed(record);
    for text in missed.iter().skip(MISSES_MAX) {
        page.alert("Missed", text, Tone::Bad);
    }
    for (name, slo) in record.slo.iter().filter(|(_, slo)| !slo.held) {
        if let Some(ok_only) = slo.ok_only {
            let text = format!(
                "{name} over the successful requests alone: {} {}",
                significant(ok_only),
                slo.unit
            );
            page.alert("Missed", &text, Tone::Plain);
        }
    }
    let limits = record.slo.iter().filter(|(_, slo)| slo.held).map(|(name, slo)| limit(name, slo));
    let assertions = record.assertions.iter().filter(|one| one.held).map(assertion);
    let held: Vec<String> = limits.chain(assertions).collect();
    let shown = if page.is_verbose() || held.len() <= HELD_MAX + 1 { held.len() } else { HELD_MAX };
    for text in &held[..shown] {
        page.alert("Held", text, Tone::Good);
    }
    if shown < held.len() {
        page.alert("Held", &format!("and {} more", held.len() - shown), Tone::Good);
    }
}

/// The limit, and the figure over every scheduled request.
fn limit(name: &str, slo: &SloResult) -> String {
    let least = if slo.at_least { "at least " } else { "" };
    let gap = if slo.unit == "%" || slo.unit == "/s" { "" } else { " " };
    let mut text =
        format!("{name} {}: {least}{}{gap}{}", slo.limit, significant(slo.measured), slo.unit);
    if let Some(ok_only) = slo.ok_only {
        text += &format!("; {} {} over the successful ones", significant(ok_only), slo.unit);
    }
    text
}

fn assertion(one: &AssertionResult) -> String {
    let what = format!("{} {} {}", one.scope, one.metric, one.condition);
    format!("{}: {}", printable(&what), actual(one))
}
