//! The counts of a worker thread while requests run: no allocation, no lock, no formatting.

use crate::delays::NOTICED_NS;
use crate::histogram::Run;
use crate::interval::{Interval, OkRuns};
use crate::outcome::Outcome;

/// The times of one request, ns on the engine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time at which it should have started.
    pub intended_ns: u64,
    /// Time at which it was given its connection. Opening one, where it was not open, comes after this. Requests that go out together
    /// share a reading of the clock, eight at most: it may be a microsecond early, never late.
    pub sent_ns: u64,
    /// Time at which its last byte had come, or when it failed.
    pub done_ns: u64,
}

/// One end of a request.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its class.
    pub class: u16,
    /// Its times.
    pub times: Times,
    /// The way it is counted.
    pub outcome: Outcome,
    /// The reply's status code; 0 when there was none.
    pub status: u16,
    /// The number of hits in the reply, if it has one.
    pub hits: Option<u64>,
    /// Body bytes as transferred.
    pub body_bytes: u64,
}

/// The recorder of one worker thread: an [`Interval`] being filled.
#[derive(Clone, Debug)]
pub struct Recorder {
    interval: Interval,
    /// Replies by status code, 0..=999; a map would cost a search a request.
    statuses: Vec<u64>,
    /// Values that enter the histograms when others come, or the interval ends.
    lag: Run,
    receive: Run,
    /// The same by class.
    runs: Vec<OkRuns>,
}

const STATUS_CODES: usize = 1000;

impl Recorder {
    /// A recorder for `classes` classes of requests.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        let interval = Interval::new(classes.max(1));
        let runs = vec![OkRuns::default(); interval.classes.len()];
        Self {
            interval,
            statuses: vec![0; STATUS_CODES],
            lag: Run::default(),
            receive: Run::default(),
            runs,
        }
    }

    /// The run, or a part of it, begins: what is recorded from now on belongs to `phase`, and starts `from_ns`
    /// after the run did.
    pub fn begin(&mut self, phase: u32, from_ns: u64) {
        self.interval.phase = phase;
        self.interval.from_ns = from_ns;
    }

    /// `count` requests became due.
    #[inline]
    pub fn scheduled(&mut self, count: u64) {
        self.interval.ledger.scheduled += count;
    }

    /// A request was handed to a connection, or given up for want of one.
    #[inline]
    pub fn sent(&mut self, class: u16, intended_ns: u64, sent_ns: u64) {
        self.interval.ledger.sent += 1;
        self.lag.record(sent_ns.saturating_sub(intended_ns), &mut self.interval.lag);
        if let Some(part) = self.interval.classes.get_mut(class as usize) {
            part.ledger.sent += 1;
        }
    }

    /// A request that was due waited this long for a free connection, ns.
    #[inline]
    pub fn waited(&mut self, waited_ns: u64) {
        self.interval.counters.waited += 1;
        self.interval.delays.connection.record(waited_ns);
    }

    /// A reply may have waited this long to be read, ns.
    #[inline]
    pub fn received(&mut self, waited_ns: u64) {
        if waited_ns >= NOTICED_NS {
            self.receive.record(waited_ns, &mut self.interval.delays.receive);
        }
    }

    /// A request came to its end.
    #[inline]
    pub fn ended(&mut self, ended: &Ended) {
        let times = ended.times;
        self.interval.ledger.settle(ended.outcome);
        if ended.status > 0
            && let Some(count) = self.statuses.get_mut(ended.status as usize)
        {
            *count += 1;
        }
        let class = ended.class as usize;
        let (Some(part), Some(runs)) =
            (self.interval.classes.get_mut(class), self.runs.get_mut(class))
        else {
            return;
        };
        part.ledger.settle(ended.outcome);
        let response_ns = times.done_ns.saturating_sub(times.intended_ns);
        match ended.outcome {
            Outcome::Ok => {
                part.record_ok_in(runs, response_ns, times.done_ns.saturating_sub(times.sent_ns));
                self.interval.counters.bytes_body += ended.body_bytes;
                if let Some(hits) = ended.hits {
                    part.hits_known += 1;
                    part.zero_hits += u64::from(hits == 0);
                }
            }
            Outcome::Failed(_) => part.record_failed(response_ns),
        }
    }

    /// The interval being filled, for counters and the ledger's other columns. Its histograms are not complete before it ends.
    #[inline]
    pub fn interval_mut(&mut self) -> &mut Interval {
        &mut self.interval
    }

    /// Ends the interval at `to_ns` (since the run's start) and returns it; continues with `spare`, which
    /// must be empty, so that the memory of two intervals serves the whole run. The collector empties them, because
    /// that takes longer than a request.
    pub fn swap(&mut self, to_ns: u64, in_flight: u32, mut spare: Interval) -> Interval {
        debug_assert!(spare.is_empty(), "the content of the spare would be counted twice");
        self.lag.flush(&mut self.interval.lag);
        self.receive.flush(&mut self.interval.delays.receive);
        for (part, runs) in self.interval.classes.iter_mut().zip(&mut self.runs) {
            part.flush(runs);
        }
        spare.from_ns = to_ns;
        spare.phase = self.interval.phase;
        self.interval.to_ns = to_ns;
        self.interval.in_flight = in_flight;
        for (status, count) in self.statuses.iter_mut().enumerate() {
            if *count > 0 {
                self.interval.statuses.insert(status as u16, std::mem::take(count));
            }
        }
        std::mem::replace(&mut self.interval, spare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Failure;

    #[test]
    fn equal_times_in_a_row_stay_in_the_second_they_belong_to() {
        let mut recorder = Recorder::new(2);
        let times = Times { intended_ns: 1_000_000, sent_ns: 3_000_000, done_ns: 8_000_000 };
        for second in 1..4u64 {
            for number in 0..4 * second {
                let class = (number % 2) as u16;
                recorder.scheduled(1);
                recorder.sent(class, times.intended_ns, times.sent_ns);
                let outcome = Outcome::Ok;
                let nothing = Ended { class, times, outcome, status: 0, hits: None, body_bytes: 0 };
                recorder.ended(&nothing);
            }
            let interval = recorder.swap(second * 1_000_000_000, 0, Interval::new(2));
            assert_eq!((interval.lag.count(), interval.ledger.ok), (4 * second, 4 * second));
            for part in &interval.classes {
                let counts = (part.response.count(), part.service.count());
                assert_eq!(counts, (2 * second, 2 * second));
                assert_eq!((part.service_min_ns, part.service_max_ns), (5_000_000, 5_000_000));
                assert_eq!(part.service_sum_ns, 2 * second * 5_000_000);
                assert!(part.response.min_ns() > part.service.min_ns());
            }
        }
    }

    #[test]
    fn failures_never_enter_the_good_histograms() {
        let mut recorder = Recorder::new(1);
        for (index, outcome) in
            [Outcome::Ok, Outcome::Failed(Failure::Timeout), Outcome::Failed(Failure::Status)]
                .into_iter()
                .enumerate()
        {
            recorder.scheduled(1);
            recorder.sent(0, 100, 150);
            let times = Times { intended_ns: 100, sent_ns: 150, done_ns: 5_000_100 };
            let status = if index == 1 { 0 } else { 200 + 303 * u16::from(index == 2) };
            recorder.ended(&Ended {
                class: 0,
                times,
                outcome,
                status,
                hits: Some(0),
                body_bytes: 7,
            });
        }
        let interval = recorder.swap(1_000_000_000, 0, Interval::new(1));
        assert!(interval.ledger.balance().is_ok());
        let part = &interval.classes[0];
        assert_eq!((part.response.count(), part.service.count(), part.failed.count()), (1, 1, 2));
        assert_eq!(part.zero_hits, 1);
        assert_eq!(interval.statuses.into_iter().collect::<Vec<_>>(), vec![(200, 1), (503, 1)]);
        assert_eq!(interval.counters.bytes_body, 7);
        assert!(recorder.swap(2_000_000_000, 0, Interval::new(1)).statuses.is_empty());
    }
}
