//! The seconds of several processes: reported by each of them as they pass, and put together here while the run goes on, so that
//! the joint record has a journal too.

use crate::command::telling::{FAILURE, SECOND};
use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::interval::{Interval, IntervalLine};
use plimsoll_record::{FailureSample, Sink};
use std::collections::BTreeMap;
use std::io;

/// Most seconds that are held back for a process that is late; each is less than a megabyte.
const WAITING_MAX: usize = 16;

/// Seconds on their way into one journal.
pub struct Seconds<'a> {
    sink: &'a mut (dyn Sink + Send),
    /// By their number; the processes start at one time and so count alike.
    waiting: BTreeMap<u64, Interval>,
    /// The first second that each process has not reported; none if it has reported all.
    next: Vec<Option<u64>>,
    /// Error of writing.
    pub error: Option<io::Error>,
}

impl<'a> Seconds<'a> {
    /// Of this many processes.
    pub fn of(processes: usize, sink: &'a mut (dyn Sink + Send)) -> Self {
        Self { sink, waiting: BTreeMap::new(), next: vec![Some(0); processes], error: None }
    }

    /// Takes a line of a process. One that cannot be read is reported of.
    pub fn line(&mut self, process: usize, line: &str) {
        let done = if let Some(text) = line.strip_prefix(SECOND) {
            let read = serde_json::from_str::<IntervalLine>(text).map_err(io::Error::other);
            let read = read.and_then(|line| Interval::try_from(&line).map_err(io::Error::other));
            read.map(|second| self.second(process, &second))
        } else if let Some(text) = line.strip_prefix(FAILURE) {
            let read = serde_json::from_str::<FailureSample>(text).map_err(io::Error::other);
            read.and_then(|sample| self.sink.failure(&sample))
        } else {
            Ok(())
        };
        self.note(done);
    }

    fn note(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.error.get_or_insert(error);
        }
    }

    fn second(&mut self, process: usize, second: &Interval) {
        let number = second.from_ns / SECOND_NS;
        self.waiting.entry(number).or_default().merge(second);
        self.next[process] = self.next[process].map(|next| next.max(number + 1));
        self.keep();
    }

    /// A process will tell nothing more.
    pub fn ended(&mut self, process: usize) {
        self.next[process] = None;
        self.keep();
    }

    /// Keeps the seconds that no one will add to. A second that comes later has a line of its own.
    fn keep(&mut self) {
        let told_by_all = self.next.iter().flatten().min().copied().unwrap_or(u64::MAX);
        while let Some(first) = self.waiting.first_entry()
            && (*first.key() < told_by_all || self.waiting.len() > WAITING_MAX)
        {
            if let Some((_, second)) = self.waiting.pop_first() {
                let done = self.sink.interval(&second);
                self.note(done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps when each interval began, and how many calls it has.
    #[derive(Default)]
    struct Kept {
        seconds: Vec<(u64, u64)>,
        failures: Vec<String>,
    }

    impl Sink for Kept {
        fn counts_from(&mut self, _start_ns: u64) {}

        fn interval(&mut self, interval: &Interval) -> io::Result<()> {
            self.seconds.push((interval.from_ns / SECOND_NS, interval.ledger.scheduled));
            Ok(())
        }

        fn failure(&mut self, sample: &FailureSample) -> io::Result<()> {
            self.failures.push(sample.reason.clone());
            Ok(())
        }
    }

    fn second(number: u64, calls: u64) -> String {
        let mut interval = Interval::new(1);
        (interval.from_ns, interval.to_ns) = (number * SECOND_NS, (number + 1) * SECOND_NS);
        interval.ledger.scheduled = calls;
        interval.classes[0].record_ok(1_000, 900);
        format!("{SECOND}{}", serde_json::to_string(&IntervalLine::from(&interval)).unwrap())
    }

    #[test]
    fn a_second_is_kept_when_all_have_told_it_or_have_ended() {
        let mut kept = Kept::default();
        let mut seconds = Seconds::of(2, &mut kept);
        seconds.line(0, &second(0, 1));
        seconds.line(0, &second(1, 2));
        seconds.line(1, &second(0, 10));
        seconds.line(1, "ready 7");
        let sample = FailureSample { reason: "why".to_owned(), ..FailureSample::default() };
        seconds.line(1, &format!("{FAILURE}{}", serde_json::to_string(&sample).unwrap()));
        seconds.ended(1);
        seconds.line(0, &second(2, 3));
        seconds.ended(0);
        assert!(seconds.error.is_none() && seconds.waiting.is_empty());
        assert_eq!(kept.seconds, [(0, 11), (1, 2), (2, 3)]);
        assert_eq!(kept.failures, ["why"]);
    }

    #[test]
    fn a_process_that_is_late_holds_up_a_few_seconds_only() {
        let mut kept = Kept::default();
        let mut seconds = Seconds::of(2, &mut kept);
        for number in 0..100 {
            seconds.line(0, &second(number, 1));
        }
        assert_eq!(seconds.waiting.len(), WAITING_MAX);
        seconds.line(1, &second(0, 1));
        seconds.line(1, "second {torn");
        assert!(seconds.error.is_some());
        seconds.ended(0);
        seconds.ended(1);
        assert_eq!(kept.seconds.iter().map(|(_, calls)| calls).sum::<u64>(), 101);
    }
}
