//! A fixed number of clients that wait for their answers.

use super::think::Think;
use super::{Limits, Next, Slice};
use crate::rng::derive_seed;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Clients that are ready, or will be.
///
/// Without a cycle a client's next intended start is the moment it was free to ask (after its thinking).
/// With a cycle it is the last intended start plus the cycle: an absolute schedule that a slow answer delays
/// but does not shift, so that one client at `-c 1` asks 1000 times a second.
#[derive(Clone, Debug)]
pub struct ClosedSchedule {
    think: Think,
    /// Seed of think times that are drawn.
    seed: u64,
    slice: Slice,
    /// Number of requests that each client has ended; empty unless think times are drawn.
    asked: Vec<u32>,
    cycle_ns: u64,
    end_ns: u64,
    /// Requests of this slice that may still be made.
    left: u64,
    clients: u32,
    retired: u32,
    /// Clients that may ask at once, with the moment since when.
    ready: VecDeque<(u64, u32)>,
    /// Clients that may ask later, soonest first.
    later: BinaryHeap<Reverse<(u64, u32)>>,
}

impl ClosedSchedule {
    pub(super) fn new(
        clients: u32,
        think: Think,
        cycle_ns: u64,
        slice: Slice,
        limits: Limits,
        seed: u64,
        start_ns: u64,
    ) -> Self {
        let own = slice.share(u64::from(clients)) as u32;
        let drawn = if matches!(think, Think::Random(_)) { own } else { 0 };
        let mut schedule = Self {
            think,
            seed: derive_seed(seed, "think"),
            slice,
            asked: vec![0; drawn as usize],
            cycle_ns,
            end_ns: start_ns.saturating_add(limits.duration_ns),
            left: limits.requests.map_or(u64::MAX, |r| slice.share(r)),
            clients: own,
            retired: 0,
            ready: VecDeque::with_capacity(own as usize),
            later: BinaryHeap::with_capacity(own as usize),
        };
        for client in 0..own {
            // Clients with a cycle start spread evenly over it instead of all at once.
            let number = slice.global(u64::from(client));
            let offset = u128::from(cycle_ns) * u128::from(number) / u128::from(clients.max(1));
            // No client is ready before the start, even when the schedule is asked earlier.
            schedule.becomes_ready(start_ns.saturating_add(offset as u64), client, 0);
        }
        schedule
    }

    fn becomes_ready(&mut self, intended_ns: u64, client: u32, now_ns: u64) {
        if intended_ns <= now_ns {
            self.ready.push_back((intended_ns, client));
        } else {
            self.later.push(Reverse((intended_ns, client)));
        }
    }

    pub(super) fn next(&mut self, now_ns: u64) -> Next {
        while let Some(&Reverse((intended_ns, client))) = self.later.peek() {
            if intended_ns > now_ns {
                break;
            }
            self.later.pop();
            self.ready.push_back((intended_ns, client));
        }
        if self.left == 0 || self.retired == self.clients {
            return Next::Done;
        }
        if let Some((intended_ns, client)) = self.ready.pop_front() {
            if intended_ns >= self.end_ns {
                self.stop();
                return Next::Done;
            }
            self.left -= 1;
            return Next::Send { intended_ns, client };
        }
        match self.later.peek() {
            Some(&Reverse((until_ns, _))) if until_ns < self.end_ns => Next::Wait { until_ns },
            Some(_) if self.later.len() as u32 + self.retired == self.clients => Next::Done,
            _ if now_ns >= self.end_ns => Next::Done,
            _ => Next::Blocked,
        }
    }

    #[inline]
    pub(super) fn ended(&mut self, client: u32, intended_ns: u64, now_ns: u64) {
        let free_ns = match self.think {
            Think::None => now_ns,
            Think::Fixed(think_ns) => now_ns.saturating_add(think_ns),
            Think::AsResponse => now_ns.saturating_add(now_ns.saturating_sub(intended_ns)),
            Think::Random(pause) => {
                let asked = &mut self.asked[client as usize];
                *asked = asked.wrapping_add(1);
                let number = self.slice.global(u64::from(client));
                now_ns.saturating_add(pause.draw_ns(self.seed, number, *asked))
            }
        };
        let next_ns = if self.cycle_ns > 0 {
            let due_ns = intended_ns.saturating_add(self.cycle_ns);
            if self.think == Think::None { due_ns } else { due_ns.max(free_ns) }
        } else {
            free_ns
        };
        self.becomes_ready(next_ns, client, now_ns);
    }

    pub(super) fn withdraw(&mut self) {
        self.left = self.left.saturating_add(1);
        self.retired += 1;
    }

    pub(super) fn postpone(&mut self) {
        self.left = self.left.saturating_add(1);
    }

    pub(super) fn stop(&mut self) {
        self.left = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{MILLISECOND_NS, SECOND_NS};
    use crate::schedule::{LoadModel, Pause, Schedule};

    fn start(clients: u32, think: Think, cycle_ns: u64, limits: Limits) -> Schedule {
        let model = LoadModel::Closed { clients, think, cycle_ns };
        Schedule::start(&model, Slice::WHOLE, limits, 0, 0).unwrap()
    }

    #[test]
    fn a_client_waits_for_its_answer() {
        let mut schedule = start(2, Think::None, 0, Limits::after(SECOND_NS));
        assert_eq!(schedule.next(5), Next::Send { intended_ns: 0, client: 0 });
        assert_eq!(schedule.next(5), Next::Send { intended_ns: 0, client: 1 });
        assert_eq!(schedule.next(5), Next::Blocked);
        schedule.ended(1, 0, 9);
        assert_eq!(schedule.next(9), Next::Send { intended_ns: 9, client: 1 });
    }

    #[test]
    fn nobody_asks_before_the_start() {
        let model = LoadModel::Closed { clients: 1, think: Think::None, cycle_ns: 0 };
        let limits = Limits::after(SECOND_NS);
        let mut schedule = Schedule::start(&model, Slice::WHOLE, limits, 0, 50).unwrap();
        assert_eq!(schedule.next(49), Next::Wait { until_ns: 50 });
        assert_eq!(schedule.next(50), Next::Send { intended_ns: 50, client: 0 });
    }

    #[test]
    fn a_cycle_is_a_rate_even_when_answers_are_late_now_and_then() {
        let cycle = MILLISECOND_NS;
        let mut schedule = start(1, Think::None, cycle, Limits::after(SECOND_NS));
        let (mut now, mut sent) = (0, 0);
        loop {
            match schedule.next(now) {
                Next::Send { intended_ns, client } => {
                    assert_eq!(intended_ns, sent * cycle);
                    sent += 1;
                    // Every hundredth answer takes 20 cycles.
                    now += if sent % 100 == 0 { 20 * cycle } else { cycle / 10 };
                    schedule.ended(client, intended_ns, now);
                }
                Next::Wait { until_ns } => now = until_ns,
                Next::Done => break,
                Next::Blocked => panic!("its only client is free"),
            }
        }
        assert_eq!(sent, 1000);
    }

    #[test]
    fn requests_are_shared_out_and_end_the_schedule() {
        let model = LoadModel::Closed { clients: 5, think: Think::None, cycle_ns: 0 };
        let limits = Limits { duration_ns: SECOND_NS, requests: Some(17) };
        let mut total = 0;
        for index in 0..3 {
            let slice = Slice { index, of: 3 };
            let mut schedule = Schedule::start(&model, slice, limits, 0, 0).unwrap();
            while let Next::Send { client, intended_ns } = schedule.next(1) {
                total += 1;
                schedule.ended(client, intended_ns, 1);
            }
        }
        assert_eq!(total, 17);
    }

    #[test]
    fn thinking_as_long_as_the_answer_halves_the_rate() {
        let mut schedule = start(1, Think::AsResponse, 0, Limits::after(SECOND_NS));
        assert!(matches!(schedule.next(0), Next::Send { .. }));
        schedule.ended(0, 0, 1000);
        assert_eq!(schedule.next(1000), Next::Wait { until_ns: 2000 });
    }

    /// Intended starts of a client whose every request is answered at once.
    fn starts_ns(think: &str, seed: u64, slice: Slice, requests: usize) -> Vec<u64> {
        let think = Think::from(think.parse::<Pause>().unwrap());
        let model = LoadModel::Closed { clients: 4, think, cycle_ns: 0 };
        let limits = Limits { duration_ns: u64::MAX, requests: None };
        let mut schedule = Schedule::start(&model, slice, limits, seed, 0).unwrap();
        let (mut now_ns, mut starts_ns) = (0, Vec::new());
        while starts_ns.len() < requests {
            match schedule.next(now_ns) {
                Next::Send { intended_ns, client } => {
                    starts_ns.push(intended_ns);
                    schedule.ended(client, intended_ns, now_ns);
                }
                Next::Wait { until_ns } => now_ns = until_ns,
                other => panic!("{other:?}"),
            }
        }
        starts_ns
    }

    #[test]
    fn random_think_times_have_the_mean_of_their_distribution() {
        // Deviations: (3 s - 1 s) / sqrt(12), the mean itself, and the one given.
        for (text, mean_s, deviation_s) in [
            ("uniform 1s 3s", 2.0, 2.0 / 12f64.sqrt()),
            ("exponential 2s", 2.0, 2.0),
            ("normal 2s 500ms", 2.0, 0.5),
        ] {
            let count = 40_000;
            let last_ns = starts_ns(text, 7, Slice::WHOLE, count).pop().unwrap();
            // Four clients share the requests; the first one of each has no pause before it.
            let mean = last_ns as f64 / 1e9 * 4.0 / count as f64;
            let error = 5.0 * deviation_s / (count as f64).sqrt() + 0.001;
            assert!((mean - mean_s).abs() <= error, "{text}: {mean}");
        }
    }

    #[test]
    fn random_think_times_follow_from_the_seed_whatever_the_number_of_threads() {
        let think = "exponential 50ms";
        let whole = starts_ns(think, 1, Slice::WHOLE, 400);
        assert_eq!(whole, starts_ns(think, 1, Slice::WHOLE, 400));
        assert_ne!(whole, starts_ns(think, 2, Slice::WHOLE, 400));
        let parts = (0..2).flat_map(|index| starts_ns(think, 1, Slice { index, of: 2 }, 300));
        let mut parts: Vec<u64> = parts.collect();
        parts.sort_unstable();
        assert_eq!(parts[..400], whole);
    }

    #[test]
    fn retired_clients_end_the_schedule() {
        let mut schedule = start(1, Think::None, 0, Limits::after(SECOND_NS));
        assert!(matches!(schedule.next(0), Next::Send { .. }));
        schedule.withdraw(0);
        assert_eq!(schedule.next(1), Next::Done);
    }
}
