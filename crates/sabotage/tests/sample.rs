//! A few dozen runs in virtual time with fixed seeds: what `make sabotage` does by the thousand.

use plimsoll_sabotage::virtual_time::draw::KINDS;
use plimsoll_sabotage::virtual_time::one;
use plimsoll_zoo::parallel;

/// Kinds in which some runs are still valid and wrong: time between the reading of the clock and the end of a send, waits
/// for a connection behind admission, and time that the host takes, which has no bound for a request.
const NOT_YET: [&str; 4] =
    ["costly send", "few connections", "CPU stolen by the host", "two at once"];

#[test]
fn no_sabotaged_run_is_valid_and_wrong() {
    let found = parallel::map(2 * KINDS.len() as u64, one);
    let told: Vec<String> = found
        .iter()
        .enumerate()
        .filter(|(_, (kind, _, _))| !NOT_YET.contains(kind))
        .filter(|(_, (_, _, finding))| {
            finding.wrong.is_some() || finding.false_alarm || !finding.defects.is_empty()
        })
        .map(|(seed, (kind, _, finding))| format!("seed {seed}, {kind}: {finding:?}"))
        .collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    // A verdict that is never valid would be right, too, and good for nothing.
    let valid = found.iter().filter(|(_, healthy, _)| *healthy).count();
    assert!(valid >= KINDS.len() / 2, "{valid} of {}", found.len());
}
