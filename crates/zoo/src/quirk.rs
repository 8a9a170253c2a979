//! Deviations of a target from a plain queue.

/// The deviation from a plain queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quirk {
    /// Nothing.
    None,
    /// The servers stand still for `stop_s` in every `period_s`.
    Pauses {
        /// Length of a pause, s.
        stop_s: f64,
        /// From one pause to the next, s.
        period_s: f64,
    },
    /// Service times grow by `share` over `over_s`, then stay.
    Drift {
        /// Growth, as a share of the start's service time; negative gets faster.
        share: f64,
        /// Time that it takes, s.
        over_s: f64,
    },
    /// Service times are `factor` times as long in the first `until_s`.
    Cold {
        /// Slow-down factor, at least 1.
        factor: f64,
        /// Time at which it is warm, s.
        until_s: f64,
    },
    /// Service times are `factor` times as long at first and become shorter with each of the first `requests` requests: a
    /// compiler at run time, or a cache.
    Warms {
        /// First slow-down factor, at least 1.
        factor: f64,
        /// Number of requests warm it.
        requests: f64,
    },
    /// From `at_s` on service times are `factor` times as long.
    Step {
        /// Time, s.
        at_s: f64,
        /// Below 1 it gets faster.
        factor: f64,
    },
    /// For `for_s` in every `every_s` service times are `factor` times as long: compaction, a snapshot.
    Compacts {
        /// From one to the next, s.
        every_s: f64,
        /// Time that it lasts, s.
        for_s: f64,
        /// At least 1.
        factor: f64,
    },
    /// A neighbour takes `share` of the processors for exponential times of mean `mean_s`, and leaves for as long.
    Neighbour {
        /// Share of the capacity, 0 to 1.
        share: f64,
        /// Mean length of its stays and of the times between, s.
        mean_s: f64,
    },
    /// Another server is added, up to `most`, whenever the servers were over 70 % busy for `after_s`.
    ScalesOut {
        /// Servers in the end.
        most: usize,
        /// Time that each step takes, s.
        after_s: f64,
    },
    /// After `busy_s` of work service times are `factor` times as long: credits for bursts are used up.
    Throttles {
        /// Work until then, s of a server's time.
        busy_s: f64,
        /// At least 1.
        factor: f64,
    },
    /// Requests wait until `size` are there or the first has waited `patience_s`; a batch is served at once.
    Batches {
        /// Requests in a full batch.
        size: u32,
        /// Longest wait for more, s.
        patience_s: f64,
    },
    /// A share of requests takes `slow_s` more, without occupying a server.
    Bimodal {
        /// Share of slow requests, 0 to 1.
        share: f64,
        /// Their extra time, s.
        slow_s: f64,
    },
    /// Requests above `cap` in flight are rejected at once, as failures.
    Cap {
        /// Largest number of requests in flight.
        cap: usize,
    },
    /// Services of requests that find more than `from` others in flight take longer: by `share` from twice as many on. A
    /// server that looks after thousands of connections has less time for requests.
    Degrades {
        /// Requests in flight up to which nothing changes.
        from: usize,
        /// Growth of the service time, as a share.
        share: f64,
    },
    /// A share of requests fails at every rate, without occupying a server.
    Fails {
        /// Share of requests that fail, 0 to 1.
        share: f64,
    },
    /// A share of requests belongs to a second class, whose services are `factor` times as long. The first limit judges
    /// the first class, the second limit the second one.
    Classes {
        /// Share of the second class, 0 to 1.
        share: f64,
        /// Factor.
        factor: f64,
    },
    /// Everything fails from this time on.
    Dies {
        /// Time, s.
        at_s: f64,
    },
    /// The generator stands still for `stall_s` at the end of every `every_s`.
    Stalls {
        /// From one standstill's end to the next one's, s.
        every_s: f64,
        /// Its length, s.
        stall_s: f64,
    },
    /// The generator sends at most this many requests per second.
    Starved {
        /// Requests per second.
        most_per_s: f64,
    },
}
