//! Runs of a part over many seeds, on all processors.

use crate::faults::Counts;
use crate::parts::{Order, Part};
use crate::planted::Planted;
use plimsoll_core::clock::now_ns;
use std::cell::Cell;
use std::panic::{set_hook, take_hook};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Findings of a part that are kept, each with its seed.
const FINDINGS_KEPT: usize = 100;

/// The seeds that are run.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The first seed.
    pub from: u64,
    /// Their number.
    pub count: u64,
    /// One of this many is run twice, and its records compared; 1: each.
    pub twice_every: u64,
}

/// Result of the runs of a part.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Runs.
    pub runs: u64,
    /// Runs that were done twice.
    pub repeated: u64,
    /// Requests that were due.
    pub requests: u64,
    /// Time on virtual clocks, ns.
    pub simulated_ns: u128,
    /// Time that it took, ns.
    pub took_ns: u64,
    /// Faults that peers committed.
    pub faults: Counts,
    /// Runs with a finding.
    pub failed: u64,
    /// The first findings, with their seeds.
    pub findings: Vec<(u64, Vec<String>)>,
}

impl Tally {
    fn merge(&mut self, other: Tally) {
        self.runs += other.runs;
        self.repeated += other.repeated;
        self.requests += other.requests;
        self.simulated_ns += other.simulated_ns;
        self.faults.merge(&other.faults);
        self.failed += other.failed;
        self.findings.extend(other.findings);
    }
}

thread_local! {
    static IS_SIMULATING: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics of simulated runs off stderr: they are findings, and are shown as such.
pub fn silence_panics() {
    let before = take_hook();
    set_hook(Box::new(move |info| {
        if !IS_SIMULATING.get() {
            before(info);
        }
    }));
}

/// Runs `part` over these seeds. `progress` is called now and then with the runs that are done.
pub fn run(part: Part, seeds: Seeds, progress: impl Fn(u64) + Sync) -> Tally {
    let began_ns = now_ns();
    let (next, is_shown) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = || {
        IS_SIMULATING.set(true);
        let mut own = Tally::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= seeds.count {
                return own;
            }
            one(part, seeds, seeds.from + at, &mut own);
            if at.is_multiple_of(1_000) && !is_shown.swap(true, Ordering::Relaxed) {
                progress(at);
                is_shown.store(false, Ordering::Relaxed);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let threads = threads.min(seeds.count.max(1));
    let mut tally = thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = Tally::default();
        for thread in started {
            match thread.join() {
                Ok(own) => all.merge(own),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    tally.took_ns = now_ns() - began_ns;
    tally.findings.sort_by_key(|(seed, _)| *seed);
    tally.findings.truncate(FINDINGS_KEPT);
    tally
}

fn one(part: Part, seeds: Seeds, seed: u64, own: &mut Tally) {
    let order = Order { seed, ..Order::default() };
    let is_twice = seed.is_multiple_of(seeds.twice_every.max(1));
    let outcome = if is_twice { part.run_twice(order) } else { part.run(order) };
    own.runs += 1;
    own.repeated += u64::from(is_twice);
    own.requests += outcome.requests;
    own.simulated_ns += u128::from(outcome.simulated_ns);
    own.faults.merge(&outcome.faults);
    if !outcome.findings.is_empty() {
        own.failed += 1;
        if own.findings.len() < FINDINGS_KEPT {
            own.findings.push((seed, outcome.findings));
        }
    }
}

/// Looks for the first of `most` seeds at which a planted defect is found; returns the seed and the finding.
#[must_use]
pub fn first_found(part: Part, planted: Planted, most: u64) -> Option<(u64, String)> {
    let was_simulating = IS_SIMULATING.replace(true);
    let found = (0..most).find_map(|seed| {
        let order = Order { seed, planted, ..Order::default() };
        let twice = planted == Planted::Irreproducible;
        let outcome = if twice { part.run_twice(order) } else { part.run(order) };
        outcome.findings.into_iter().next().map(|finding| (seed, finding))
    });
    IS_SIMULATING.set(was_simulating);
    found
}
