//! Bursts that wait for each other: one is due when the backlog of the one before has fallen, and a delay has passed.

use super::{Limits, Next, Slice};

/// Bursts of `size` requests, numbered over the whole run as those of [`Burst`](super::LoadModel::Burst) are.
///
/// Without a limit they are due every `delay_ns`, whatever the answers do. With one, a burst is looked after until it
/// has been handed out whole; then its successor is due `delay_ns` after the moment at which the backlog was seen at or
/// below the limit. A slice waits for its own share of the backlog, with its own share of the limit.
#[derive(Clone, Debug)]
pub struct PacedSchedule {
    size: u64,
    delay_ns: u64,
    /// This slice's share of the limit.
    limit: Option<u64>,
    slice: Slice,
    end_ns: u64,
    /// Requests of the whole that may be made.
    requests: u64,
    /// Number made in this slice.
    made: u64,
    /// The burst being handed out.
    burst: u64,
    /// Time at which it is due, ns.
    due_ns: u64,
}

impl PacedSchedule {
    pub(super) fn new(
        size: u32,
        delay_ns: u64,
        limit: Option<u32>,
        slice: Slice,
        limits: Limits,
        start_ns: u64,
    ) -> Self {
        Self {
            size: u64::from(size.max(1)),
            delay_ns,
            limit: limit.map(|limit| slice.share(u64::from(limit))),
            slice,
            end_ns: start_ns.saturating_add(limits.duration_ns),
            requests: limits.requests.unwrap_or(u64::MAX),
            made: 0,
            burst: 0,
            due_ns: start_ns,
        }
        .first()
    }

    /// A slice with no request in the first burst begins with the burst that has its first, as if those before it had
    /// been without backlog.
    fn first(mut self) -> Self {
        let burst = self.upcoming_burst();
        self.move_to(burst, self.due_ns);
        self
    }

    /// The burst that the next request belongs to.
    fn upcoming_burst(&self) -> u64 {
        self.slice.global(self.made) / self.size
    }

    /// Makes `burst` the next one, as many delays after `from_ns` as bursts lie between.
    fn move_to(&mut self, burst: u64, from_ns: u64) {
        let delays_ns = (burst - self.burst).saturating_mul(self.delay_ns);
        self.due_ns = from_ns.saturating_add(delays_ns);
        self.burst = burst;
    }

    fn is_over(&self) -> bool {
        self.slice.global(self.made) >= self.requests
    }

    /// Updates the backlog: requests waiting in the queue, or in flight without one.
    #[inline]
    pub(super) fn see_backlog(&mut self, backlog: u64, now_ns: u64) {
        let burst = self.upcoming_burst();
        if burst > self.burst && self.limit.is_some_and(|limit| backlog <= limit) {
            self.move_to(burst, now_ns.max(self.due_ns));
        }
    }

    /// Time at which it wants to be asked again, ns, as far as is known without looking at the backlog once more.
    #[must_use]
    pub fn upcoming_ns(&self) -> u64 {
        if self.limit.is_some() && self.upcoming_burst() > self.burst {
            u64::MAX
        } else {
            self.due_ns
        }
    }

    #[inline]
    pub(super) fn next(&mut self, now_ns: u64) -> Next {
        if self.is_over() {
            return Next::Done;
        }
        let burst = self.upcoming_burst();
        if burst > self.burst {
            if self.limit.is_some() {
                return if now_ns >= self.end_ns { Next::Done } else { Next::Blocked };
            }
            self.move_to(burst, self.due_ns);
        }
        if self.due_ns >= self.end_ns {
            return Next::Done;
        }
        if self.due_ns > now_ns {
            return Next::Wait { until_ns: self.due_ns };
        }
        self.made += 1;
        Next::Send { intended_ns: self.due_ns, client: 0 }
    }

    pub(super) fn stop(&mut self) {
        self.requests = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{MILLISECOND_NS, SECOND_NS};
    use crate::schedule::{LoadModel, Schedule};
    use proptest::prelude::*;

    const MS: u64 = MILLISECOND_NS;

    fn start(
        size: u32,
        delay_ns: u64,
        limit: Option<u32>,
        slice: Slice,
        limits: Limits,
    ) -> Schedule {
        let model = LoadModel::PacedBurst { size, delay_ns, limit };
        Schedule::start(&model, slice, limits, 0, 1_000).unwrap()
    }

    /// All intended starts of a slice whose requests are answered at once.
    fn all(size: u32, delay_ns: u64, limit: Option<u32>, slice: Slice, limits: Limits) -> Vec<u64> {
        let mut schedule = start(size, delay_ns, limit, slice, limits);
        let (mut now_ns, mut times) = (0, Vec::new());
        loop {
            schedule.see_backlog(0, now_ns);
            match schedule.next(now_ns) {
                Next::Send { intended_ns, .. } => times.push(intended_ns),
                Next::Wait { until_ns } => now_ns = until_ns,
                Next::Blocked => panic!("nothing is behind"),
                Next::Done => return times,
            }
        }
    }

    #[test]
    fn the_next_burst_waits_for_the_backlog_and_then_for_the_delay() {
        let limits = Limits { duration_ns: SECOND_NS, requests: Some(9) };
        let mut schedule = start(3, 5 * MS, Some(1), Slice::WHOLE, limits);
        for _ in 0..3 {
            // What is behind matters only once the burst is out.
            schedule.see_backlog(100, 2_000);
            assert_eq!(schedule.next(2_000), Next::Send { intended_ns: 1_000, client: 0 });
        }
        assert_eq!(schedule.next(3_000), Next::Blocked);
        schedule.see_backlog(2, MS);
        assert_eq!(schedule.next(MS), Next::Blocked);
        schedule.see_backlog(1, 2 * MS);
        assert_eq!(schedule.next(2 * MS), Next::Wait { until_ns: 7 * MS });
        // A backlog that grows again does not take the burst back.
        schedule.see_backlog(50, 3 * MS);
        assert_eq!(schedule.next(8 * MS), Next::Send { intended_ns: 7 * MS, client: 0 });
        assert_eq!(schedule.next(8 * MS), Next::Send { intended_ns: 7 * MS, client: 0 });
        assert_eq!(schedule.next(8 * MS), Next::Send { intended_ns: 7 * MS, client: 0 });
        schedule.see_backlog(0, 20 * MS);
        assert_eq!(schedule.next(20 * MS), Next::Wait { until_ns: 25 * MS });
    }

    #[test]
    fn a_backlog_that_never_falls_ends_with_the_time() {
        let limits = Limits::after(SECOND_NS);
        let mut schedule = start(2, MS, Some(0), Slice::WHOLE, limits);
        assert!(matches!(schedule.next(1_000), Next::Send { .. }));
        assert!(matches!(schedule.next(1_000), Next::Send { .. }));
        schedule.see_backlog(1, SECOND_NS / 2);
        assert_eq!(schedule.next(SECOND_NS / 2), Next::Blocked);
        assert_eq!(schedule.next(SECOND_NS + 1_000), Next::Done);
    }

    #[test]
    fn impossible_bursts_are_refused() {
        let told = |size, delay_ns, limit| {
            LoadModel::PacedBurst { size, delay_ns, limit }.validate().map_err(|e| e.to_string())
        };
        assert_eq!(told(100, MS, None), Ok(()));
        assert_eq!(told(100, 0, Some(5)), Ok(()));
        assert!(told(0, MS, Some(5)).unwrap_err().contains("size"));
        assert!(told(100, 0, None).unwrap_err().contains("delay"));
        assert!(told(1_000_000, MS, None).unwrap_err().contains("10,000,000"));
    }

    proptest! {
        #[test]
        fn slices_are_the_whole(
            size in 1u32..40,
            delay_ms in 1u64..300,
            limit in proptest::option::of(0u32..50),
            of in 1u32..7,
            requests in proptest::option::of(0u64..2000),
        ) {
            let limits = Limits { duration_ns: SECOND_NS, requests };
            let delay_ns = delay_ms * MS;
            let whole = all(size, delay_ns, limit, Slice::WHOLE, limits);
            let mut parts: Vec<u64> =
                (0..of).flat_map(|index| all(size, delay_ns, limit, Slice { index, of }, limits)).collect();
            parts.sort_unstable();
            prop_assert!(whole.is_sorted());
            let bursts = SECOND_NS.div_ceil(delay_ns);
            prop_assert_eq!(whole.len() as u64, (bursts * u64::from(size)).min(requests.unwrap_or(u64::MAX)));
            prop_assert_eq!(parts, whole);
        }

        #[test]
        fn limits_are_shared_out_whole(limit in 0u32..1000, of in 1u32..9) {
            let sum: u64 = (0..of)
                .map(|index| {
                    let limits = Limits::after(SECOND_NS);
                    PacedSchedule::new(5, MS, Some(limit), Slice { index, of }, limits, 0).limit.unwrap()
                })
                .sum();
            prop_assert_eq!(sum, u64::from(limit));
        }

        /// For every backlog and all times of reading it: a burst is whole, has one intended start, and comes a
        /// delay or more after a reading that found no more than the limit.
        #[test]
        fn bursts_keep_their_distance(
            size in 1u32..9,
            delay_ms in 0u64..20,
            limit in 0u32..10,
            looks in proptest::collection::vec((0u64..15, 0u64..20), 1..200),
        ) {
            let mut schedule = start(size, delay_ms * MS, Some(limit), Slice::WHOLE, Limits::after(SECOND_NS));
            let (mut now_ns, mut sent, mut allowed_ns) = (1_000, Vec::new(), vec![1_000]);
            for (step_ms, backlog) in looks {
                now_ns += step_ms * MS;
                while let Next::Send { intended_ns, .. } = schedule.next(now_ns) {
                    prop_assert!(intended_ns <= now_ns);
                    sent.push(intended_ns);
                }
                schedule.see_backlog(backlog, now_ns);
                if backlog <= u64::from(limit) {
                    allowed_ns.push(now_ns + delay_ms * MS);
                }
            }
            for burst in sent.chunks(size as usize) {
                prop_assert!(burst.iter().all(|&at_ns| at_ns == burst[0]));
                prop_assert!(allowed_ns.contains(&burst[0]));
                prop_assert_eq!(burst.len(), size as usize);
            }
            let starts: Vec<u64> = sent.iter().step_by(size as usize).copied().collect();
            prop_assert!(starts.windows(2).all(|pair| pair[1] >= pair[0] + delay_ms * MS));
        }
    }
}
