//! The result as a person reads it.
//!
//! The page has the order in which people read it: speed, credibility, parts of the response time, failures,
//! the slowest requests, and the place of the record. It is plain ASCII unless a request's text is not.

pub(crate) mod tables;
mod verdict;

use crate::forms::{Below, Forms};
use crate::number::{bytes, count, counted, percent, significant, time};
use crate::page::{Page, Tone};
use crate::plain::printable;
use plimsoll_core::histogram::LatencySummary;
use plimsoll_core::ledger::{Failed, Ledger};
use plimsoll_core::outcome::Failure;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::{Network, RunRecord};
use std::path::Path;

pub use crate::page::Style;

/// An open schedule that achieves less than this share of its rate has fallen behind.
const FELL_BEHIND_BELOW: f64 = 0.98;

/// Returns the whole page. `folder` is where the record lies, when it was kept; `jobs` show their own sections. The last line
/// is the outcome that decides the exit code.
#[must_use]
pub fn render(record: &RunRecord, folder: Option<&Path>, style: &Style, jobs: &[Forms]) -> String {
    let mut page = Page::new(style);
    head(&mut page, record);
    let own = jobs.iter().find_map(|job| (job.page)(&mut page, record));
    let below = own.unwrap_or_else(|| {
        headline(&mut page, record);
        Below::Figures
    });
    let text = page.finish();
    match below {
        Below::Figures => text + &figures(record, folder, style) + &result(record, style),
        Below::Books => text + &books(record, folder, style) + &result(record, style),
        // Nothing was run, so that nothing has an outcome.
        Below::Remarks => text + &remarks(record, folder, style),
    }
}

/// The last line of a page: the outcome that decides the exit code.
#[must_use]
pub fn result(record: &RunRecord, style: &Style) -> String {
    let mut page = Page::new(style);
    verdict::result(&mut page, record, style.lost_file);
    page.finish()
}

/// The job, its target, and when it was run.
fn head(page: &mut Page<'_>, record: &RunRecord) {
    let mut what = printable(&record.job);
    if !record.target.url.is_empty() {
        what += &format!("  {}", printable(&record.target.url));
    }
    if record.target.same_host {
        what += "  (on this machine)";
    }
    page.line(&what, Tone::Strong);
    let mut when = format!("started {}", record.started_at);
    when += &format!(", measured {} s", significant(record.duration_s));
    if let Some(seed) = record.scenario.get("seed").and_then(serde_json::Value::as_u64) {
        when += &format!(", seed {seed}");
    }
    page.line(&when, Tone::Plain);
    page.blank();
}

/// The headline of a run at one load: its rate and its response times.
pub fn headline(page: &mut Page<'_>, record: &RunRecord) {
    verdict::headline(page, record);
    page.blank();
}

/// The end of a page whose job has shown its own results: the ledger of all requests, without their times.
fn books(record: &RunRecord, folder: Option<&Path>, style: &Style) -> String {
    let mut page = Page::new(style);
    ledger(&mut page, &record.ledger);
    statuses(&mut page, record);
    generator(&mut page, record);
    asserted(&mut page, record);
    ending(&mut page, record, folder);
    page.finish()
}

fn asserted(page: &mut Page<'_>, record: &RunRecord) {
    if !record.assertions.is_empty() {
        page.blank();
        tables::assertions(page, record);
        page.blank();
    }
}

/// The page without its head: from the times to where the record lies.
#[must_use]
pub fn figures(record: &RunRecord, folder: Option<&Path>, style: &Style) -> String {
    let mut page = Page::new(style);
    tables::latency(&mut page, record);
    page.note("response: intended start to last byte; service: sent to last byte; lag: intended start to sent");
    if record.latency_ms.judged.is_some() {
        page.note("judged: every scheduled request; one that did not succeed misses every limit");
    }
    page.blank();
    if record.phases.len() > 1 {
        tables::phases(&mut page, record);
        page.blank();
    }
    if record.classes.len() > 1 {
        tables::classes(&mut page, record);
        page.blank();
    }
    if !record.slowest.is_empty() {
        tables::slowest(&mut page, record);
        page.blank();
    }
    rate(&mut page, record);
    ledger(&mut page, &record.ledger);
    statuses(&mut page, record);
    zero_hits(&mut page, record);
    if let Some(network) = &record.network {
        network_floor(&mut page, network, &record.latency_ms.service);
    }
    generator(&mut page, record);
    verdict::limits(&mut page, record);
    asserted(&mut page, record);
    ending(&mut page, record, folder);
    page.finish()
}

/// The rest of a page if nothing was measured.
fn remarks(record: &RunRecord, folder: Option<&Path>, style: &Style) -> String {
    let mut page = Page::new(style);
    asserted(&mut page, record);
    warnings(&mut page, record);
    place(&mut page, folder);
    page.finish()
}

/// Warnings and the verdict, which a reader should know before using the figures, and the place of the record.
fn ending(page: &mut Page<'_>, record: &RunRecord, folder: Option<&Path>) {
    warnings(page, record);
    verdict::verdict(page, record);
    place(page, folder);
}

fn warnings(page: &mut Page<'_>, record: &RunRecord) {
    let unknown = record.job_results.unknown().map(|section| {
        let key = &section.key;
        format!("the section '{key}' is not shown: this plimsoll does not know it; use a newer one")
    });
    let warnings = record.warnings.iter().cloned().chain(unknown);
    for (index, warning) in warnings.enumerate() {
        let label = if index == 0 { "Warning" } else { "" };
        page.entry(label, &printable(&warning), Tone::Warn);
    }
}

fn place(page: &mut Page<'_>, folder: Option<&Path>) {
    if let Some(folder) = folder {
        page.entry("Record", &folder.display().to_string(), Tone::Plain);
    }
}

fn rate(page: &mut Page<'_>, record: &RunRecord) {
    let rates = &record.rate;
    let refused = record.ledger.refused.queue_full + record.ledger.refused.queue_timeout;
    let admitted = record.ledger.scheduled.saturating_sub(refused) as f64;
    // What is in flight at the end of a run is no backlog: it is as much as was in flight at its beginning.
    let in_flight = rates.achieved_per_s * record.latency_ms.response.mean / 1e3;
    let behind = verdict::is_open(record)
        && record.verdict.kind == VerdictKind::Valid
        && rates.achieved_per_s * record.duration_s + 2.0 * in_flight
            < admitted * FELL_BEHIND_BELOW;
    let mut text = format!(
        "offered {}/s, achieved {}/s, ok {}/s",
        significant(rates.offered_per_s),
        significant(rates.achieved_per_s),
        significant(rates.ok_per_s)
    );
    if behind {
        text += ": the target fell behind, and response times include the wait";
    }
    page.entry("Rate", &text, if behind { Tone::Warn } else { Tone::Plain });
    let counters = &record.counters;
    let mut text = format!(
        "{} sent, {} received",
        bytes(record.bytes.sent as f64),
        bytes(record.bytes.received as f64)
    );
    if counters.connects > 0 {
        text += &format!(", {} opened", counted(counters.connects, "connection"));
    }
    if counters.retries > 0 {
        // Over HTTP/2 also those that the server gave back, as with a GOAWAY.
        text +=
            &format!(", {} sent again on another connection", counted(counters.retries, "request"));
    }
    if counters.waited > 0 {
        text += &format!(", {} waited for a connection", counted(counters.waited, "request"));
    }
    page.entry("Traffic", &text, Tone::Plain);
}

/// Two sums that the reader can check.
fn ledger(page: &mut Page<'_>, ledger: &Ledger) {
    let refused = ledger.refused.queue_full + ledger.refused.queue_timeout;
    let detail = kinds(&[
        ("queue full", ledger.refused.queue_full),
        ("queue timeout", ledger.refused.queue_timeout),
    ]);
    let due = format!(
        "{} scheduled = {} sent + {} refused{detail} + {} unsent",
        count(ledger.scheduled),
        count(ledger.sent),
        count(refused),
        count(ledger.unsent.stopped)
    );
    let sent = format!(
        "{} sent = {} ok + {} failed{} + {} unfinished",
        count(ledger.sent),
        count(ledger.ok),
        count(ledger.failed.total()),
        failed_kinds(&ledger.failed),
        count(ledger.unfinished)
    );
    let tone = if ledger.failed.total() > 0 { Tone::Bad } else { Tone::Plain };
    page.entry("Ledger", &due, if refused > 0 { Tone::Warn } else { Tone::Plain });
    page.entry("", &sent, tone);
    if let Err(imbalance) = ledger.balance() {
        page.entry("", &format!("DOES NOT BALANCE: {imbalance}"), Tone::Bad);
    }
}

fn failed_kinds(failed: &Failed) -> String {
    kinds(&Failure::ALL.map(|kind| (kind.name(), failed.get(kind))))
}

/// ` (timeout 20, reset 10)`, or nothing when all are 0.
fn kinds(counts: &[(&str, u64)]) -> String {
    let some: Vec<_> = counts
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| format!("{name} {}", count(*n)))
        .collect();
    if some.is_empty() { String::new() } else { format!(" ({})", some.join(", ")) }
}

fn statuses(page: &mut Page<'_>, record: &RunRecord) {
    if record.statuses.is_empty() {
        return;
    }
    let text: Vec<_> = record.statuses.iter().map(|(s, n)| format!("{s}: {}", count(*n))).collect();
    page.entry("Status", &text.join(", "), Tone::Plain);
}

fn zero_hits(page: &mut Page<'_>, record: &RunRecord) {
    let known: u64 = record.classes.values().map(|class| class.hits_known).sum();
    let zero: u64 = record.classes.values().map(|class| class.zero_hits).sum();
    if known > 0 {
        let share = percent(zero as f64 / known as f64);
        let text = format!("{share} of {} ok replies had no hits", count(known));
        page.entry("Zero hits", &text, Tone::Plain);
    }
}

/// The part of every time that no server can go below.
fn network_floor(page: &mut Page<'_>, network: &Network, service: &LatencySummary) {
    let floor_ms = f64::from(network.rtt_floor_median_us) / 1e3;
    let mut text = format!(
        "round-trip floor {} (median of {} connection{}, smallest {})",
        time(floor_ms),
        count(u64::from(network.connections)),
        if network.connections == 1 { "" } else { "s" },
        time(f64::from(network.rtt_min_us) / 1e3)
    );
    if service.p50 > 0.0 {
        text += &format!(", {} of the median service time", percent(floor_ms / service.p50));
    }
    if network.retransmits > 0 {
        text += &format!("; {} retransmits", count(network.retransmits));
    }
    page.entry("Network", &text, Tone::Plain);
}

fn generator(page: &mut Page<'_>, record: &RunRecord) {
    let generator = &record.generator;
    if generator.threads == 0 {
        return;
    }
    let mut text = format!(
        "{} us of CPU per request, busiest thread {} of a core, {} thread{}, {}",
        significant(generator.cpu_us_per_request),
        percent(generator.busiest_thread),
        generator.threads,
        if generator.threads == 1 { "" } else { "s" },
        bytes(generator.rss_max_bytes as f64)
    );
    if !generator.wait.is_empty() {
        text += &format!(", wait mode {}", generator.wait);
    }
    let health = &generator.health;
    for (share, what) in [
        (health.starved, "waiting for a processor"),
        (health.throttled, "held back by a CPU quota"),
        (health.stolen, "taken by the hypervisor"),
        (health.stopped, "stopped by a signal"),
    ] {
        if share >= 0.005 {
            text += &format!(", {} of the time {what}", percent(share));
        }
    }
    page.entry("Generator", &text, Tone::Plain);
}

#[cfg(test)]
mod tests;
