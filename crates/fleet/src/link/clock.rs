//! The offset between the monotonic clocks of two machines, from round trips.
//!
//! Of each round trip the other end's time is taken for the middle between sending and receiving; the error is at most half the
//! round trip (Cristian, "Probabilistic clock synchronization", 1989). The shortest round trip counts.
//!
//! Only a few questions are open at a time. Thousands of agents that asked at a fixed rate, answered or not, would keep a server that
//! is busy for a moment busy for ever.

use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};

/// Round trips that are measured.
const ROUND_TRIPS: u32 = 20;
/// Round trips that are enough, if others were lost.
const ENOUGH: u32 = 5;
/// Distance between them, ns.
const EVERY_NS: u64 = 10 * MILLISECOND_NS;
/// Questions without an answer beside which another one is sent at once.
const OPEN_MAX: u32 = 4;
/// Wait for one of them, ns, which doubles until there is an answer.
const WAIT_NS: u64 = 250 * MILLISECOND_NS;
const WAIT_MAX_NS: u64 = 2 * SECOND_NS;

/// Offset of the other end's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// The other end's clock minus the own one, ns.
    pub ahead_ns: i128,
    /// Shortest round trip, ns. The offset is wrong by at most half of it.
    pub round_trip_ns: u64,
}

impl ClockOffset {
    /// The own time at which the other end's clock shows a time, ns.
    #[must_use]
    pub fn own_ns(&self, peer_ns: u64) -> u64 {
        (i128::from(peer_ns) - self.ahead_ns).clamp(0, u64::MAX.into()) as u64
    }

    /// The time that the other end's clock shows at an own time, ns.
    #[must_use]
    pub fn peer_ns(&self, own_ns: u64) -> u64 {
        (i128::from(own_ns) + self.ahead_ns).clamp(0, u64::MAX.into()) as u64
    }
}

/// Round trips so far.
#[derive(Default)]
pub(super) struct Probes {
    /// Questions that are still to be sent.
    left: u32,
    answered: u32,
    /// Questions without an answer, and the wait for the next answer, ns.
    open: u32,
    wait_ns: u64,
    /// Questions that were counted as lost when another one was sent after the wait.
    given_up: u32,
    next_ns: u64,
    best: Option<ClockOffset>,
}

impl Probes {
    pub fn begin(&mut self, at_ns: u64) {
        let wait_ns = WAIT_NS;
        *self = Self { left: ROUND_TRIPS, wait_ns, next_ns: at_ns, ..Self::default() };
    }

    /// Asks again, and keeps the shortest round trip so far.
    pub fn begin_again(&mut self, at_ns: u64) {
        (self.left, self.answered, self.next_ns) = (ROUND_TRIPS, 0, at_ns);
    }

    /// The time to put into a question that is due.
    pub fn next(&mut self, now_ns: u64) -> Option<u64> {
        if self.left == 0 || now_ns < self.next_ns {
            return None;
        }
        // One whose answer is lost is asked again, until enough have been answered.
        let is_last = self.left == 1 && self.answered < ENOUGH;
        self.left -= u32::from(!is_last);
        // One that is sent after the wait takes the place of one whose answer may be lost.
        if self.open < OPEN_MAX {
            self.open += 1;
        } else {
            self.given_up += 1;
        }
        self.next_ns = now_ns + EVERY_NS;
        if self.open >= OPEN_MAX {
            self.next_ns = now_ns + self.wait_ns;
            self.wait_ns = (2 * self.wait_ns).min(WAIT_MAX_NS);
        }
        Some(now_ns)
    }

    pub fn due_ns(&self) -> u64 {
        if self.left == 0 { u64::MAX } else { self.next_ns }
    }

    pub fn answered(&mut self, sent_ns: u64, peer_ns: u64, now_ns: u64) {
        let Some(round_trip_ns) = now_ns.checked_sub(sent_ns) else { return };
        self.answered += 1;
        if self.given_up > 0 && round_trip_ns >= WAIT_NS {
            self.given_up -= 1;
        } else {
            self.open = self.open.saturating_sub(1);
        }
        // Answers to the round before do not begin the next one.
        let has_begun = self.left < ROUND_TRIPS;
        if self.open < OPEN_MAX && has_begun {
            self.wait_ns = WAIT_NS;
            self.next_ns = self.next_ns.min(now_ns + EVERY_NS);
        }
        if self.best.is_none_or(|best| round_trip_ns < best.round_trip_ns) {
            let middle_ns = i128::from(sent_ns) + i128::from(round_trip_ns / 2);
            self.best =
                Some(ClockOffset { ahead_ns: i128::from(peer_ns) - middle_ns, round_trip_ns });
        }
    }

    pub fn offset(&self) -> Option<ClockOffset> {
        self.best.filter(|_| self.left == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Questions sent until a time, with answers after `round_trip_ns`, ns.
    fn asked(round_trip_ns: Option<u64>, until_ns: u64) -> (u32, Probes) {
        let (mut probes, mut sent, mut asked) = (Probes::default(), Vec::new(), 0);
        probes.begin(0);
        for now_ns in (0..until_ns).step_by(MILLISECOND_NS as usize) {
            if let Some(sent_ns) = probes.next(now_ns) {
                sent.push(sent_ns);
                asked += 1;
            }
            let is_back = |sent_ns: &u64| round_trip_ns.is_some_and(|ns| sent_ns + ns <= now_ns);
            for sent_ns in sent.extract_if(.., |sent_ns| is_back(sent_ns)) {
                probes.answered(sent_ns, 0, now_ns);
            }
        }
        (asked, probes)
    }

    #[test]
    fn a_near_end_is_asked_each_ten_milliseconds_and_a_far_one_is_not_asked_more_than_it_answers() {
        let (count, near) = asked(Some(2 * MILLISECOND_NS), 200 * MILLISECOND_NS);
        assert_eq!((count, near.offset().map(|clock| clock.round_trip_ns)), (20, Some(2_000_000)));
        let (count, far) = asked(Some(150 * MILLISECOND_NS), SECOND_NS);
        assert!(count == 20 && far.left == 0, "{count}");
    }

    #[test]
    fn an_answer_that_comes_late_does_not_begin_the_next_round_before_its_time() {
        let (_, mut probes) = asked(Some(150 * MILLISECOND_NS), SECOND_NS);
        probes.begin_again(9 * SECOND_NS);
        probes.answered(SECOND_NS / 2, 0, SECOND_NS);
        assert_eq!(probes.due_ns(), 9 * SECOND_NS);
    }

    /// Every third answer is lost.
    #[test]
    fn lost_answers_do_not_make_the_others_wait() {
        let mut probes = Probes::default();
        let (mut asked, mut done_ns) = (0, None);
        probes.begin(0);
        for now_ns in (0..10 * SECOND_NS).step_by(MILLISECOND_NS as usize) {
            if let Some(sent_ns) = probes.next(now_ns) {
                asked += 1;
                if asked % 3 > 0 {
                    probes.answered(sent_ns, 0, now_ns + 1);
                }
            }
            if probes.left == 0 && done_ns.is_none() {
                done_ns = Some(now_ns);
            }
        }
        assert!(done_ns.is_some_and(|ns| ns < 2 * SECOND_NS), "{done_ns:?}");
    }

    #[test]
    fn an_end_that_does_not_answer_is_asked_ever_more_rarely() {
        let (count, probes) = asked(None, 10 * SECOND_NS);
        assert!((6..12).contains(&count), "{count}");
        assert!(probes.offset().is_none());
        // A whole run of them is open when a busy server answers again.
        let (count, _) = asked(Some(3 * SECOND_NS), 10 * SECOND_NS);
        assert!(count < 20, "{count}");
    }
}
