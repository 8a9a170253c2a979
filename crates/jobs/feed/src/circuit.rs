//! Circuit breaker of a feed whose target accepts nothing.
//!
//! One round in which everything was rejected may be bad luck. After two in a row the circuit opens: nothing is
//! sent for a while, then one operation tries, and the pause doubles until one is accepted. So a target
//! that is down, or answers everything with 429, gets a handful of requests and not all that wait.

use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::rng::Rng;

/// The first pause, ns.
const PAUSE_MIN_NS: u64 = 10 * MILLISECOND_NS;
/// The longest, ns.
pub const PAUSE_MAX_NS: u64 = 5 * SECOND_NS;
/// Shortest time before an operation that was rejected is sent again, ns.
const AGAIN_MIN_NS: u64 = 2 * MILLISECOND_NS;
/// Rounds without anything accepted from which on the circuit is open.
const OPEN_FROM: u32 = 2;

/// Circuit breaker of one worker thread.
#[derive(Clone, Debug)]
pub struct Circuit {
    rng: Rng,
    /// Rounds in a row in which nothing was accepted.
    rounds: u32,
    /// Those among them in which it was not only 429: the target is not there, rather than busy.
    absent: u32,
    round_at_ns: u64,
    /// Time at which the first of what was rejected since was sent, ns.
    since_ns: u64,
    blocked_until_ns: u64,
    opened: u64,
}

impl Circuit {
    /// A closed one.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            rounds: 0,
            absent: 0,
            round_at_ns: 0,
            since_ns: 0,
            blocked_until_ns: 0,
            opened: 0,
        }
    }

    /// An operation was accepted.
    pub fn accepted(&mut self) {
        (self.rounds, self.absent, self.blocked_until_ns) = (0, 0, 0);
    }

    /// Notes that an operation sent at `sent_ns` was rejected, or its connection failed; `busy`: the target answered 429.
    pub fn turned_away(&mut self, sent_ns: u64, now_ns: u64, busy: bool) {
        if self.rounds > 0 && sent_ns < self.round_at_ns {
            return;
        }
        if self.rounds == 0 {
            self.since_ns = sent_ns;
        }
        self.rounds += 1;
        self.absent = if busy { 0 } else { self.absent + 1 };
        self.round_at_ns = now_ns;
        if self.rounds >= OPEN_FROM {
            self.opened += u64::from(self.rounds == OPEN_FROM);
            let doublings = (self.rounds - OPEN_FROM).min(20);
            let pause_ns = (PAUSE_MIN_NS << doublings).min(PAUSE_MAX_NS);
            self.blocked_until_ns = now_ns + self.jittered(pause_ns);
        }
    }

    /// Rounds in a row in which nothing was accepted and the target did not say that it is busy.
    #[must_use]
    pub fn absent_rounds(&self) -> u32 {
        self.absent
    }

    /// Since when the target has turned everything away, ns; none while it takes something.
    #[must_use]
    pub fn turned_away_since_ns(&self) -> Option<u64> {
        (self.rounds > 0).then_some(self.since_ns)
    }

    /// Number of times that it opened.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Nothing is to be sent before this, ns.
    #[must_use]
    pub fn blocked_until_ns(&self) -> u64 {
        self.blocked_until_ns
    }

    /// The number that may be in flight of a window of this size: one while it is open.
    #[must_use]
    pub fn limit(&self, window: u32) -> u32 {
        if self.rounds >= OPEN_FROM { 1 } else { window }
    }

    /// Time at which an operation may be sent again that was rejected this often before, ns.
    pub fn again_at_ns(&mut self, now_ns: u64, round_trip_ns: u64, tries: u32) -> u64 {
        let base_ns = round_trip_ns.clamp(AGAIN_MIN_NS, SECOND_NS);
        let pause_ns = (base_ns << tries.saturating_sub(1).min(12)).min(PAUSE_MAX_NS);
        (now_ns + self.jittered(pause_ns)).max(self.blocked_until_ns)
    }

    /// Half to one and a half times as long, so that what failed together does not come back together.
    fn jittered(&mut self, pause_ns: u64) -> u64 {
        pause_ns / 2 + self.rng.below(pause_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_two_rounds_and_lets_one_through() {
        let mut circuit = Circuit::new(1);
        for sent in 0..100 {
            circuit.turned_away(sent, 1000, true);
        }
        assert_eq!((circuit.limit(100), circuit.blocked_until_ns()), (100, 0));
        let mut now_ns = 2000;
        let mut pauses = Vec::new();
        for _ in 0..14 {
            circuit.turned_away(now_ns, now_ns, true);
            assert_eq!(circuit.limit(100), 1);
            pauses.push(circuit.blocked_until_ns() - now_ns);
            now_ns = circuit.blocked_until_ns();
        }
        assert!((5 * MILLISECOND_NS..=15 * MILLISECOND_NS).contains(&pauses[0]), "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= PAUSE_MAX_NS * 3 / 2), "{pauses:?}");
        assert!(pauses[13] >= PAUSE_MAX_NS / 2);
        assert_eq!((circuit.absent_rounds(), circuit.opened()), (0, 1));
        circuit.accepted();
        assert_eq!((circuit.limit(100), circuit.blocked_until_ns()), (100, 0));
    }

    #[test]
    fn a_target_that_is_away_is_told_from_one_that_is_busy() {
        let mut circuit = Circuit::new(1);
        for now_ns in 1..6 {
            circuit.turned_away(now_ns, now_ns, false);
        }
        assert_eq!(circuit.absent_rounds(), 5);
        circuit.turned_away(9, 9, true);
        assert_eq!(circuit.absent_rounds(), 0);
    }

    #[test]
    fn what_is_turned_away_again_waits_longer() {
        let mut circuit = Circuit::new(3);
        let mut mean = |tries| {
            (0..200).map(|_| circuit.again_at_ns(0, 4 * MILLISECOND_NS, tries)).sum::<u64>() / 200
        };
        let (first, third, many) = (mean(1), mean(3), mean(60));
        assert!((3 * MILLISECOND_NS..5 * MILLISECOND_NS).contains(&first), "{first}");
        assert!((14 * MILLISECOND_NS..18 * MILLISECOND_NS).contains(&third), "{third}");
        assert!(many < PAUSE_MAX_NS * 11 / 10, "{many}");
    }
}
