//! Warnings that a careful reader should know, although the verdict is valid.

use super::Evidence;

/// Share of queries without hits from which on a warning is given.
const ZERO_HITS: f64 = 0.2;
/// Largest number of repeats of a request before caches are a worry.
const REPEATS: f64 = 10.0;
/// The warning that holds for every kind of run.
#[must_use]
pub fn same_host_warning(evidence: &Evidence<'_>) -> Vec<String> {
    let text = "target and generator share this machine: they take CPU time from each other";
    evidence.same_host.then(|| text.to_owned()).into_iter().collect()
}

/// Returns all warnings of a run.
#[must_use]
pub fn warnings(evidence: &Evidence<'_>) -> Vec<String> {
    let totals = evidence.totals;
    let ledger = &totals.ledger;
    let mut warnings = same_host_warning(evidence);
    let all = totals.all_classes();
    if all.hits_known > 0 {
        let share = all.zero_hits as f64 / all.hits_known as f64;
        if share > ZERO_HITS {
            warnings.push(format!(
                "{:.0} % of the queries found nothing; such queries are cheap, so the times look better than those of real ones",
                share * 100.0
            ));
        }
    }
    if evidence.cacheable && evidence.repeats > REPEATS {
        warnings.push(format!(
            "each distinct request was sent {:.0} times on average, so caches may have helped",
            evidence.repeats
        ));
    }
    let finished = ledger.finished();
    if ledger.failed.total() > 0 {
        warnings.push(format!(
            "{} of the requests failed; their times are in the row 'failed', and they are late for every limit",
            share_of(ledger.failed.total(), finished)
        ));
    }
    if ledger.unsent.stopped > 0 {
        warnings.push(format!(
            "{} requests were never sent: they still waited when the run ended; no response time includes them, and they are late for \
             every limit",
            ledger.unsent.stopped
        ));
    }
    if totals.counters.waited * 20 > ledger.sent.max(1) {
        warnings.push(format!(
            "{:.0} % of the requests waited for a free connection (counted in their response time); \
             raise --connections to put more requests in flight",
            totals.counters.waited as f64 * 100.0 / ledger.sent as f64
        ));
    }
    if evidence.health.clock_step_s.abs() > 0.05 {
        warnings.push(format!(
            "the wall clock was set by {:+.3} s during the run; times are measured by another clock and are right",
            evidence.health.clock_step_s
        ));
    }
    warnings
}

/// A share as people read it: of few, the numbers themselves.
fn share_of(part: u64, all: u64) -> String {
    let percent = part as f64 * 100.0 / all.max(1) as f64;
    if percent >= 0.1 { format!("{percent:.1} %") } else { format!("{part} of {all}") }
}
