//! Seconds and failures that one process of several writes on stdout as they pass, for the process that started it.

use plimsoll_core::interval::{Interval, IntervalLine};
use plimsoll_record::{FailureSample, Sink};
use std::io::{self, Write};

/// Prefix of a line with a second.
pub const SECOND: &str = "second ";
/// Prefix of a line with a failure.
pub const FAILURE: &str = "failure ";

/// Returns true if a line is about a second or a failure.
pub fn is_told(line: &str) -> bool {
    line.starts_with(SECOND) || line.starts_with(FAILURE)
}

/// The sink of one process of several: it keeps the results that it must keep, and reports to the parent process.
pub struct Telling<'a> {
    inner: &'a mut (dyn Sink + Send),
}

impl<'a> Telling<'a> {
    /// In front of another sink.
    pub fn before(inner: &'a mut (dyn Sink + Send)) -> Self {
        Self { inner }
    }

    /// Returns the inner sink alone, for seconds that are not reported to the other process.
    pub fn inner(&mut self) -> &mut (dyn Sink + Send) {
        self.inner
    }
}

fn tell(kind: &str, what: &impl serde::Serialize) -> io::Result<()> {
    let text = serde_json::to_string(what).map_err(io::Error::other)?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{kind}{text}")?;
    stdout.flush()
}

impl Sink for Telling<'_> {
    fn counts_from(&mut self, start_ns: u64) {
        self.inner.counts_from(start_ns);
    }

    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        self.inner.interval(interval).and(tell(SECOND, &IntervalLine::from(interval)))
    }

    fn failure(&mut self, sample: &FailureSample) -> io::Result<()> {
        self.inner.failure(sample).and(tell(FAILURE, sample))
    }
}
