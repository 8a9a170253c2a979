//! What a search drives: anything that takes load at a rate and says how many requests were late.

/// Most limits that one search judges at once.
pub const LIMITS_MAX: usize = 8;

/// A stretch of open-loop load at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Its length, s.
    pub duration_s: f64,
}

/// Segments offered one after the other without a pause, into a plant that has nothing under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// What to offer.
    pub segments: Vec<Segment>,
    /// The length of one [`Window`], s. Segments are whole multiples of it.
    pub window_s: f64,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Ends the load early once this share of the requests of the last windows is late. For finding a bracket
    /// only: an estimate that drops the bad blocks comes out too high.
    pub abort: Option<Abort>,
    /// The share of requests that may miss each limit.
    pub allowed: Vec<f64>,
}

/// When to end an order early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Abort {
    /// Late requests over scheduled ones, as a multiple of what the limit allows.
    pub excess: f64,
    /// At least so many late requests must have been seen.
    pub late_min: u64,
}

impl Abort {
    /// Whether the last of these windows, whose verdicts are known, are so bad that the order should end.
    #[must_use]
    pub fn is_due(&self, windows: &[Window], allowed: &[f64]) -> bool {
        let mut sum = Window::default();
        for window in windows.iter().rev() {
            sum.add(window);
            let too_many = |(late, allowed): (&u64, &f64)| {
                *late >= self.late_min
                    && *late as f64 > self.excess * allowed * sum.scheduled as f64
            };
            if sum.late.iter().zip(allowed).any(too_many) {
                return true;
            }
            // Further back it no longer says what the plant is like now.
            if sum.scheduled > 20 * self.late_min {
                break;
            }
        }
        false
    }
}

/// What became of the requests that were due within one window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// Requests due.
    pub scheduled: u64,
    /// Those that missed each limit: not answered, or not well, by their intended start plus the limit.
    pub late: [u64; LIMITS_MAX],
    /// Those that failed.
    pub failed: u64,
    /// Requests that ended well within the window's time, whenever they were due.
    pub completed: u64,
    /// Sum of the response times of all requests of the window, s; one that failed or was given up counts until
    /// it was.
    pub response_sum_s: f64,
}

impl Window {
    /// Adds the counts of another window.
    pub fn add(&mut self, other: &Window) {
        self.scheduled += other.scheduled;
        self.failed += other.failed;
        self.completed += other.completed;
        self.response_sum_s += other.response_sum_s;
        for (mine, theirs) in self.late.iter_mut().zip(other.late) {
            *mine += theirs;
        }
    }
}

/// How well the generator itself kept up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// 99th percentile of how late requests were sent although nothing held them back at the target, s.
    pub lag_p99_s: f64,
}

/// What an order showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// One entry a window that was offered, in order of time.
    pub windows: Vec<Window>,
    /// Everything it took, with settling and waiting for the last replies, s.
    pub elapsed_s: f64,
    /// Whether the order's abort rule ended it.
    pub aborted: bool,
    /// Whether somebody asked the whole search to end.
    pub interrupted: bool,
    /// The generator's own part in it.
    pub pace: Pace,
}

/// Something under load: a real target, a queue on virtual time.
pub trait Plant {
    /// Offers the order's segments and returns when every request of them has ended or was given up.
    fn run(&mut self, order: &Order) -> Trial;

    /// How many limits the windows tell of, 1 to [`LIMITS_MAX`].
    fn limits(&self) -> usize;
}
