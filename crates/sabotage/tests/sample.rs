//! A few dozen runs in virtual time with fixed seeds: what `make sabotage` does by the thousand.

use plimsoll_sabotage::virtual_time::draw::KINDS;
use plimsoll_sabotage::virtual_time::one;
use plimsoll_zoo::parallel;

/// Runs that were valid and wrong once: waits for a connection below the limit of their number (1185, 8997, 10557), slots
/// that a check or a send held (1914, 2419), clients that a check kept apart (7290, 8226), refusals by a late thread
/// (16316), and a stall before the measured stretch (34263).
const WRONG_ONCE: [u64; 9] = [1185, 1914, 2419, 7290, 8226, 8997, 10557, 16316, 34263];

fn problems(seeds: &[u64]) -> Vec<String> {
    let found = parallel::map(seeds.len() as u64, |at| one(seeds[at as usize]));
    let problems = seeds.iter().zip(found).filter(|(_, (_, _, finding))| {
        finding.wrong.is_some() || finding.false_alarm || !finding.defects.is_empty()
    });
    problems.map(|(seed, (kind, _, finding))| format!("seed {seed}, {kind}: {finding:?}")).collect()
}

#[test]
fn no_sabotaged_run_is_valid_and_wrong() {
    let seeds: Vec<u64> = (0..2 * KINDS.len() as u64).collect();
    let problems = problems(&seeds);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    // A verdict that is never valid would be right, too, and good for nothing.
    let healthy = seeds.iter().filter(|seed| one(**seed).1).count();
    assert!(healthy >= KINDS.len() / 2, "{healthy} of {}", seeds.len());
}

#[test]
fn runs_that_were_valid_and_wrong_once_are_so_no_more() {
    let problems = problems(&WRONG_ONCE);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
