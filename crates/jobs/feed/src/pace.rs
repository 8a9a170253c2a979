//! The intended starts of a feed with a rate.

use plimsoll_core::schedule::{Limits, LoadModel, Next, Schedule, Slice};
use std::collections::VecDeque;

/// Intended starts that are computed before they are used; the rest is computed when it is needed.
const DUE_MAX: usize = 1 << 16;

/// A schedule of operations that does not depend on the answers.
pub struct Pace {
    model: LoadModel,
    slice: Slice,
    limits: Limits,
    seed: u64,
    schedule: Option<Schedule>,
    due: VecDeque<u64>,
    upcoming_ns: u64,
    over: bool,
}

impl Pace {
    /// Starts when it is asked first.
    pub fn new(model: LoadModel, slice: Slice, limits: Limits, seed: u64) -> Self {
        Self {
            model,
            slice,
            limits,
            seed,
            schedule: None,
            due: VecDeque::new(),
            upcoming_ns: u64::MAX,
            over: false,
        }
    }

    /// Computes the intended starts up to `now_ns`. Returns how many operations are due.
    pub fn look(&mut self, now_ns: u64) -> usize {
        let Self { model, slice, limits, seed, .. } = self;
        let schedule = match &mut self.schedule {
            Some(schedule) => schedule,
            // The model was looked at before the run; one that cannot be run makes nothing due.
            none => match Schedule::start(model, *slice, *limits, *seed, now_ns) {
                Ok(schedule) => none.insert(schedule),
                Err(_) => {
                    self.over = true;
                    return 0;
                }
            },
        };
        while self.due.len() < DUE_MAX && !self.over {
            match schedule.next(now_ns) {
                Next::Send { intended_ns, .. } => self.due.push_back(intended_ns),
                Next::Wait { until_ns } => {
                    self.upcoming_ns = until_ns;
                    break;
                }
                Next::Blocked | Next::Done => {
                    self.upcoming_ns = u64::MAX;
                    self.over = true;
                }
            }
        }
        self.due.len()
    }

    /// The intended start of the next operation, when it has come.
    pub fn take(&mut self) -> Option<u64> {
        self.due.pop_front()
    }

    /// Returns true if an operation is due.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Time at which the next one will be, ns.
    pub fn upcoming_ns(&self) -> u64 {
        self.upcoming_ns
    }

    /// Returns true if its time is over and nothing is due any more.
    pub fn is_over(&self) -> bool {
        self.over && self.due.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_engine::sim::parts::any_scenario;

    #[test]
    fn the_starts_of_all_parts_are_those_of_one_process() {
        for seed in 0..100 {
            let scenario = any_scenario(seed);
            let is_paced = matches!(scenario.load, LoadModel::PacedBurst { .. });
            if scenario.load.has_askers() || is_paced {
                continue;
            }
            let limits = Limits { duration_ns: scenario.length().ns, requests: scenario.requests };
            let due = |slice| {
                let mut pace = Pace::new(scenario.load.clone(), slice, limits, seed);
                // It begins when it is asked first.
                pace.look(1_000);
                pace.look(1_000 + limits.duration_ns);
                std::iter::from_fn(move || pace.take())
            };
            let (parts, threads) = (1 + seed as u32 % 5, 1 + seed as u32 % 3);
            let part = |index| Slice { index, of: parts };
            let shards =
                (0..parts).flat_map(|a| (0..threads).map(move |s| part(a).cut(s, threads)));
            let mut union: Vec<u64> = shards.flat_map(due).collect();
            union.sort_unstable();
            assert_eq!(union, due(Slice::WHOLE).collect::<Vec<_>>(), "seed {seed}");
        }
    }
}
