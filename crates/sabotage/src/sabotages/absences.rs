//! Times when the generator's thread does not run, for virtual time.

use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::rng::Rng;
use plimsoll_engine::sim::thread::{Absence, Thread, Why};

/// Time that a thread runs before the next one of equal weight has its turn, ns: the scheduler's base slice.
const SLICE_NS: u64 = 3 * MILLISECOND_NS;

/// A part of the time from `start_ns` to `over_ns`, as (from, to): all of it, or some of what lies before `end_ns`.
pub fn stretch(rng: &mut Rng, start_ns: u64, end_ns: u64, over_ns: u64) -> (u64, u64) {
    if rng.below(2) == 0 {
        return (start_ns, over_ns);
    }
    let from_ns = start_ns + rng.below(end_ns - start_ns);
    (from_ns, from_ns + 1 + rng.below(end_ns - from_ns))
}

/// Neighbours of equal weight that always have work.
pub fn neighbours(rng: &mut Rng, (from_ns, to_ns): (u64, u64), count: u64) -> Vec<Absence> {
    let mut absences = Vec::new();
    let mut at_ns = from_ns + rng.below(SLICE_NS);
    while at_ns < to_ns {
        let for_ns = count * SLICE_NS * (50 + rng.below(100)) / 100;
        absences.push(Absence { from_ns: at_ns, for_ns, why: Why::Neighbour });
        at_ns += for_ns + SLICE_NS * (10 + rng.below(90)) / 100;
    }
    absences
}

/// An absence of `for_ns` about every `every_ns`.
pub fn every(
    rng: &mut Rng,
    (from_ns, to_ns): (u64, u64),
    every_ns: u64,
    for_ns: u64,
    why: Why,
) -> Vec<Absence> {
    let mut absences = Vec::new();
    let mut at_ns = from_ns + rng.below(every_ns);
    while at_ns < to_ns {
        absences.push(Absence { from_ns: at_ns, for_ns, why });
        at_ns += every_ns;
    }
    absences
}

/// Adds absences to a thread; of two that overlap the later one begins behind the earlier.
pub fn add(thread: &mut Thread, more: Vec<Absence>) {
    thread.absences.extend(more);
    thread.absences.sort_by_key(|absence| absence.from_ns);
    let mut reached_ns = 0;
    for absence in &mut thread.absences {
        let end_ns = absence.end_ns();
        absence.from_ns = absence.from_ns.max(reached_ns);
        absence.for_ns = end_ns.saturating_sub(absence.from_ns);
        reached_ns = reached_ns.max(end_ns);
    }
    thread.absences.retain(|absence| absence.for_ns > 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absences_are_in_order_and_do_not_overlap() {
        let mut rng = Rng::new(1);
        let all = (0, 2_000 * MILLISECOND_NS);
        let mut thread = Thread::default();
        add(&mut thread, neighbours(&mut rng, all, 2));
        let (every_ns, for_ns) = (100 * MILLISECOND_NS, 30 * MILLISECOND_NS);
        add(&mut thread, every(&mut rng, all, every_ns, for_ns, Why::Stopped));
        assert!(thread.absences.iter().filter(|a| a.why == Why::Stopped).count() >= 19);
        assert!(thread.absences.windows(2).all(|two| two[0].end_ns() <= two[1].from_ns));
        let gone_ns: u64 = thread.absences.iter().map(|absence| absence.for_ns).sum();
        assert!(gone_ns > 1_000 * MILLISECOND_NS, "two neighbours take two thirds: {gone_ns}");
    }
}
