//! A thousand runs of each part: what `make simulate` does by the million.

use plimsoll_simulate::driver::{Seeds, run, silence_panics};
use plimsoll_simulate::faults::Fault;
use plimsoll_simulate::parts::PARTS;

/// Seeds beyond the thousand with which a run had a finding; each was the judge's, of a corrupted answer that no client can tell from
/// a right one: the end of one answer with the number of another, and a chunk that swallowed a document.
const JUDGED_WRONGLY: [(&str, u64); 3] = [("http2", 35299), ("visit", 33917), ("visit", 76973)];
/// The same, and the fault was plimsoll's: a request that was sent again although its reply had begun, and slices that ended with a
/// key that was not JSON.
const FAULTS_FOUND: [(&str, u64); 5] = [
    ("postgres", 103_273),
    ("postgres", 214_798),
    ("visit", 150_738),
    ("visit", 180_359),
    ("visit", 222_661),
];

/// Fewest faults of each kind that a part must have met, where it has the kind at all.
const FAULTS_LEAST: u64 = 10;

#[test]
fn nothing_is_wrong_in_a_thousand_runs_of_each_part() {
    silence_panics();
    let mut problems = Vec::new();
    for part in PARTS {
        let tally = run(part, Seeds { from: 0, count: 1_000, twice_every: 4 }, |_| {});
        for (seed, findings) in &tally.findings {
            problems.push(format!("{} seed {seed}: {}", part.name, findings.join("; ")));
        }
        // Runs in which nothing happens would be right, too.
        assert!(tally.requests > 10_000, "{}: {} requests", part.name, tally.requests);
        let rare = Fault::ALL.iter().map(|fault| (fault.name(), tally.faults.get(*fault)));
        let rare: Vec<_> = rare.filter(|(_, count)| (1..FAULTS_LEAST).contains(count)).collect();
        assert!(rare.is_empty(), "{}: hardly any of {rare:?}", part.name);
        assert!(tally.faults.total() > 1_000, "{}: {:?}", part.name, tally.faults);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn corrupted_answers_that_look_right_are_not_held_against_the_client() {
    nothing_is_found(&JUDGED_WRONGLY);
}

#[test]
fn faults_that_were_found_are_gone() {
    nothing_is_found(&FAULTS_FOUND);
}

fn nothing_is_found(seeds: &[(&str, u64)]) {
    silence_panics();
    for &(name, seed) in seeds {
        let part = PARTS.into_iter().find(|part| part.name == name).expect("a known part");
        let tally = run(part, Seeds { from: seed, count: 1, twice_every: 1 }, |_| {});
        assert!(tally.findings.is_empty(), "{name} seed {seed}: {:?}", tally.findings);
    }
}
