//! The rolling lines of a run that others carry out, from its seconds.

use crate::command::task::Task;
use crate::lap::Lap;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::Interval;
use plimsoll_job::progress::Lines;

/// The sums of a run so far.
pub struct Rolling {
    lines: Lines,
    client: String,
    dump_interval_ns: u64,
    due_ns: u64,
    all: Interval,
    since: Interval,
    /// Time of the first second, on the clock that measures.
    from_ns: Option<u64>,
    last_s: f64,
}

impl Rolling {
    /// Lines of a task.
    pub fn new(task: &Task, lines: Lines) -> Self {
        Self {
            lines,
            client: task.shape.client.clone(),
            dump_interval_ns: task.shape.dump_interval.ns.max(1),
            due_ns: task.shape.dump_interval.ns,
            all: Interval::default(),
            since: Interval::default(),
            from_ns: None,
            last_s: 0.0,
        }
    }

    /// Adds a second, and prints a line if one is due.
    pub fn take(&mut self, second: &Interval) {
        let from_ns = *self.from_ns.get_or_insert(second.from_ns);
        self.all.merge(second);
        self.since.merge(second);
        let at_ns = second.to_ns.saturating_sub(from_ns);
        if at_ns < self.due_ns {
            return;
        }
        self.due_ns = (at_ns / self.dump_interval_ns + 1) * self.dump_interval_ns;
        self.lines.say(&self.lap(at_ns as f64 / SECOND_NS as f64).line(&self.client));
        self.since = Interval::default();
        self.last_s = at_ns as f64 / SECOND_NS as f64;
    }

    fn lap(&self, at_s: f64) -> Lap {
        let ended = |part: &Interval| part.ledger.ok + part.ledger.failed.total();
        let refused = &self.all.ledger.refused;
        let ms = |ns: f64| ns / MILLISECOND_NS as f64;
        let (all, since) = (self.all.all_classes(), self.since.all_classes());
        let times =
            |mean: &Histogram, most: &Histogram| (ms(mean.mean_ns()), ms(most.max_ns() as f64));
        Lap {
            at_s,
            lap_per_s: ended(&self.since) as f64 / (at_s - self.last_s).max(1e-3),
            total_per_s: ended(&self.all) as f64 / at_s.max(1e-3),
            success: self.all.ledger.ok,
            fails: self.all.ledger.failed.total() + refused.queue_full + refused.queue_timeout,
            pending: self.all.ledger.sent.saturating_sub(ended(&self.all)),
            client_ms: times(&all.response, &since.response),
            server_ms: None,
            queue: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::task::tests::task;

    fn second(number: u64, calls: u64) -> Interval {
        let mut second = Interval::new(1);
        let from_ns = 7 * SECOND_NS + number * SECOND_NS;
        (second.from_ns, second.to_ns) = (from_ns, from_ns + SECOND_NS);
        (second.ledger.sent, second.ledger.ok) = (calls + 1, calls);
        for _ in 0..calls {
            second.classes[0].record_ok(2 * MILLISECOND_NS, MILLISECOND_NS);
        }
        second
    }

    #[test]
    fn a_line_has_the_calls_since_the_one_before_and_those_of_the_run() {
        let task = task("--target volt://127.0.0.1 --clients 2").unwrap();
        let mut rolling = Rolling::new(&task, Lines::None);
        rolling.take(&second(0, 10));
        rolling.since = Interval::default();
        rolling.all.merge(&second(1, 30));
        rolling.since.merge(&second(1, 30));
        let lap = rolling.lap(2.0);
        assert_eq!((lap.lap_per_s, lap.total_per_s), (30.0, 20.0));
        assert_eq!((lap.success, lap.fails, lap.pending), (40, 0, 2));
        assert!((lap.client_ms.0 - 2.0).abs() < 0.1 && (lap.client_ms.1 - 2.0).abs() < 0.1);
    }
}
