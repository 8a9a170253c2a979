//! Details of a run for those who ask for them: rates, traffic, statuses, network, generator.

use super::ledger;
use crate::number::{bytes, count, counted, percent, significant, time};
use crate::page::{Page, Tone};
use plimsoll_core::histogram::LatencySummary;
use plimsoll_record::{Network, RunRecord};

/// All of them, each on a line; what the top of the page has said is left out.
pub fn all(page: &mut Page<'_>, record: &RunRecord) {
    rate(page, record);
    traffic(page, record);
    if ledger::is_clean(&record.ledger) {
        ledger::sums(page, &record.ledger);
    }
    statuses(page, record);
    zero_hits(page, record);
    if let Some(network) = &record.network {
        network_floor(page, network, &record.latency_ms.service);
    }
    generator(page, record);
}

/// Offered and achieved rate, if they say something beside the rate of the headline.
fn rate(page: &mut Page<'_>, record: &RunRecord) {
    let rates = &record.rate;
    let [offered, achieved, ok] =
        [rates.offered_per_s, rates.achieved_per_s, rates.ok_per_s].map(significant);
    if offered != ok || achieved != ok {
        let text = format!("{offered}/s offered, {achieved}/s finished, successful or not");
        page.entry("Rate", &text, Tone::Plain);
    }
}

fn traffic(page: &mut Page<'_>, record: &RunRecord) {
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

/// Replies by status code, unless they are said above.
pub fn statuses(page: &mut Page<'_>, record: &RunRecord) {
    if !record.statuses.is_empty() && record.ledger.failed.status == 0 {
        page.entry("Status", &ledger::statuses(record), Tone::Plain);
    }
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

/// CPU time, memory and health of the generator.
pub fn generator(page: &mut Page<'_>, record: &RunRecord) {
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
