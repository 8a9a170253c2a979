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

    /// Computes what is due; how many that is.
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
