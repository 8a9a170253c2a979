//! One column: what happened between two moments of a run.

use plimsoll_core::histogram::{DecodeError, Histogram, Packed};
use plimsoll_core::interval::{ClassPart, Counters, Interval, IntervalLine};
use plimsoll_core::ledger::Ledger;

/// Quantiles of a column's times that pages show.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

/// Counts and times of a stretch of a run. Times of requests are those of all classes together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Start, ns since the start of the measured stretch.
    pub from_ns: u64,
    /// End, ns since the start of the measured stretch.
    pub to_ns: u64,
    /// Phase of its first interval.
    pub phase: u32,
    /// Number of intervals in it.
    pub intervals: u32,
    /// Requests that the schedule made due.
    pub scheduled: u64,
    /// Requests sent.
    pub sent: u64,
    /// Requests that succeeded.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that admission rejected.
    pub refused: u64,
    /// Requests that were due and never sent.
    pub unsent: u64,
    /// Requests that came to an end in the measured stretch, good or bad.
    pub ended: u64,
    /// Requests in flight at the end.
    pub in_flight: u32,
    /// Connections opened.
    pub connects: u64,
    /// Requests that were due while no connection was free.
    pub waited: u64,
    /// Bytes handed to the kernel.
    pub bytes_sent: u64,
    /// Bytes taken from the kernel.
    pub bytes_received: u64,
    /// Requests sent in the aftermath of a stall of the generator.
    pub disturbed: u64,
    /// Longest time of a failed request, ns; 0 if none failed.
    pub failed_max_ns: u64,
    /// Longest time that a reply may have waited for the generator to have a processor, ns; 0 if none waited noticeably.
    pub starved_max_ns: u64,
    /// Longest time that a reply may have waited to be read, ns; 0 if none waited noticeably.
    pub receive_max_ns: u64,
    /// Response times of successful requests.
    pub response: Packed,
    /// Service times of successful requests.
    pub service: Packed,
    /// Lag of sent requests.
    pub lag: Packed,
    /// The server's own times, if they were asked for.
    pub server: Packed,
}

/// Percentiles of a column, ns, to the resolution of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p99_9_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

impl Times {
    /// Returns the percentiles of packed times; `None` if there are none.
    #[must_use]
    pub fn of(times: &Packed) -> Option<Self> {
        if times.is_empty() {
            return None;
        }
        let [p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns] =
            times.quantiles_ns(&QUANTILES).try_into().ok()?;
        Some(Self { p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns })
    }
}

impl Column {
    /// Returns the column of one interval.
    #[must_use]
    pub fn of(interval: &Interval) -> Self {
        let all = |times: fn(&ClassPart) -> Option<&Histogram>| match interval
            .classes
            .iter()
            .filter_map(times)
            .collect::<Vec<_>>()
            .as_slice()
        {
            [] => Packed::default(),
            [one] => Packed::of(one),
            several => {
                let mut sum = Histogram::new();
                several.iter().for_each(|times| sum.merge(times));
                Packed::of(&sum)
            }
        };
        Self {
            from_ns: interval.from_ns,
            to_ns: interval.to_ns,
            phase: interval.phase,
            in_flight: interval.in_flight,
            disturbed: interval.delays.disturbed,
            failed_max_ns: longest(interval.classes.iter().map(|class| &class.failed)),
            starved_max_ns: longest([&interval.delays.starved]),
            receive_max_ns: longest([&interval.delays.receive]),
            response: all(|class| Some(&class.response)),
            service: all(|class| Some(&class.service)),
            server: all(|class| class.server.as_ref().map(|server| &server.times)),
            lag: Packed::of(&interval.lag),
            ..Self::of_counts(&interval.ledger, &interval.counters)
        }
    }

    /// Returns the column of one line of a journal, which is that of its interval. `scratch` is used for one histogram after
    /// another: a journal has tens of thousands of them.
    ///
    /// # Errors
    /// When a histogram of the line is damaged.
    pub fn of_line(line: &IntervalLine, scratch: &mut Histogram) -> Result<Self, DecodeError> {
        let mut sum = |encoded: &mut dyn Iterator<Item = &String>| -> Result<Packed, DecodeError> {
            scratch.clear();
            encoded
                .filter(|text| !text.is_empty())
                .try_for_each(|text| scratch.add_encoded(text))?;
            Ok(Packed::of(scratch))
        };
        let longest = |packed: &Packed| packed.range_ns().map_or(0, |range| range.1);
        Ok(Self {
            from_ns: (line.from_s * 1e9).round() as u64,
            to_ns: (line.to_s * 1e9).round() as u64,
            phase: line.phase,
            in_flight: line.in_flight,
            disturbed: line.delays.disturbed,
            failed_max_ns: longest(&sum(&mut line.classes.iter().map(|class| &class.failed))?),
            starved_max_ns: longest(&sum(&mut [&line.delays.starved].into_iter())?),
            receive_max_ns: longest(&sum(&mut [&line.delays.receive].into_iter())?),
            response: sum(&mut line.classes.iter().map(|class| &class.response))?,
            service: sum(&mut line.classes.iter().map(|class| &class.service))?,
            server: sum(&mut line
                .classes
                .iter()
                .filter_map(|class| Some(&class.server.as_ref()?.times)))?,
            lag: sum(&mut [&line.lag].into_iter())?,
            ..Self::of_counts(&line.ledger, &line.counters)
        })
    }

    fn of_counts(ledger: &Ledger, counters: &Counters) -> Self {
        Self {
            intervals: 1,
            scheduled: ledger.scheduled,
            sent: ledger.sent,
            ok: ledger.ok,
            failed: ledger.failed.total(),
            refused: ledger.refused.queue_full + ledger.refused.queue_timeout,
            unsent: ledger.unsent.stopped,
            ended: counters.ended_in_time,
            connects: counters.connects,
            waited: counters.waited,
            bytes_sent: counters.bytes_sent,
            bytes_received: counters.bytes_received,
            ..Self::default()
        }
    }

    /// Returns true if the column has no length and nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        let Self { from_ns, to_ns, phase, intervals, .. } = *self;
        to_ns <= from_ns && *self == Self { from_ns, to_ns, phase, intervals, ..Self::default() }
    }

    /// Returns one column for all of these, which follow each other; `None` for none.
    #[must_use]
    pub fn sum(columns: &[Self]) -> Option<Self> {
        let (first, rest) = columns.split_first()?;
        let mut sum = first.clone();
        if rest.is_empty() {
            return Some(sum);
        }
        rest.iter().for_each(|next| sum.append_counts(next));
        let of = |times: fn(&Self) -> &Packed| {
            Packed::sum(&columns.iter().map(times).collect::<Vec<_>>())
        };
        sum.response = of(|column| &column.response);
        sum.service = of(|column| &column.service);
        sum.lag = of(|column| &column.lag);
        sum.server = of(|column| &column.server);
        Some(sum)
    }

    /// Adds the next column.
    pub fn append(&mut self, next: &Self) {
        if let Some(sum) = Self::sum(&[self.clone(), next.clone()]) {
            *self = sum;
        }
    }

    fn append_counts(&mut self, next: &Self) {
        self.to_ns = self.to_ns.max(next.to_ns);
        self.intervals += next.intervals;
        self.scheduled += next.scheduled;
        self.sent += next.sent;
        self.ok += next.ok;
        self.failed += next.failed;
        self.refused += next.refused;
        self.unsent += next.unsent;
        self.ended += next.ended;
        self.in_flight = next.in_flight;
        self.connects += next.connects;
        self.waited += next.waited;
        self.bytes_sent += next.bytes_sent;
        self.bytes_received += next.bytes_received;
        self.disturbed += next.disturbed;
        self.failed_max_ns = self.failed_max_ns.max(next.failed_max_ns);
        self.starved_max_ns = self.starved_max_ns.max(next.starved_max_ns);
        self.receive_max_ns = self.receive_max_ns.max(next.receive_max_ns);
    }

    /// Length, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }

    /// Returns a count of the column per second; `None` if the column has no length.
    #[must_use]
    pub fn per_s(&self, count: u64) -> Option<f64> {
        let seconds = self.seconds();
        (seconds > 0.0).then(|| count as f64 / seconds)
    }

    pub(super) fn cells_bytes(&self) -> usize {
        self.response.bytes() + self.service.bytes() + self.lag.bytes() + self.server.bytes()
    }
}

fn longest<'a>(times: impl IntoIterator<Item = &'a Histogram>) -> u64 {
    times.into_iter().map(Histogram::max_ns).max().unwrap_or(0)
}
