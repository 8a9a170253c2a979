//! The ledger: every request is counted exactly once.

use crate::number::count;
use crate::page::{Page, Tone};
use plimsoll_core::ledger::{Failed, Ledger};
use plimsoll_core::outcome::Failure;
use plimsoll_record::RunRecord;

/// True if every scheduled request succeeded and the sums balance, so that there is nothing to tell.
pub fn is_clean(ledger: &Ledger) -> bool {
    ledger.ok == ledger.scheduled && ledger.balance().is_ok()
}

/// The sums as something to read first, with the statuses if replies were failures by their status.
pub fn alert(page: &mut Page<'_>, record: &RunRecord) {
    for (text, tone) in lines(&record.ledger) {
        page.alert("Ledger", &text, tone);
    }
    if record.ledger.failed.status > 0 {
        page.alert("Status", &statuses(record), Tone::Plain);
    }
}

/// The sums on the page.
pub fn sums(page: &mut Page<'_>, ledger: &Ledger) {
    for (index, (text, tone)) in lines(ledger).iter().enumerate() {
        page.entry(if index == 0 { "Ledger" } else { "" }, text, *tone);
    }
}

/// Replies by status code.
pub fn statuses(record: &RunRecord) -> String {
    let text: Vec<_> = record.statuses.iter().map(|(s, n)| format!("{s}: {}", count(*n))).collect();
    text.join(", ")
}

/// Two sums that the reader can check.
fn lines(ledger: &Ledger) -> Vec<(String, Tone)> {
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
    let due_tone = if refused > 0 { Tone::Warn } else { Tone::Plain };
    let mut lines = vec![(due, due_tone), (sent, tone)];
    if let Err(imbalance) = ledger.balance() {
        lines.push((format!("DOES NOT BALANCE: {imbalance}"), Tone::Bad));
    }
    lines
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
