//! The end of a run as a message, and the ends of several agents as one.

use plimsoll_core::histogram::DecodeError;
use plimsoll_core::interval::{Compact, Interval};
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::verdict::Health;
use plimsoll_engine::net::RoundTrip;
use plimsoll_engine::run::RunEnd;
use plimsoll_engine::shard::Slow;
use plimsoll_wire::Submission;
use serde::{Deserialize, Serialize};

/// A [`RunEnd`] that can be sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndLine {
    /// Not part of the text of a message; the bytes stand before it.
    #[serde(skip)]
    pub(crate) totals: Compact,
    #[serde(skip)]
    pub(crate) warmup: Option<Compact>,
    slowest: Vec<SlowLine>,
    /// Smallest and smoothed time of each, us, and segments that were sent again.
    round_trips: Vec<(u32, u32, u32)>,
    measured_s: f64,
    client_elapsed_ns: u64,
    clients_measured: u32,
    cpu_s: f64,
    health: Health,
    since_success: (f64, u64),
    connections: u32,
    rss_max_bytes: u64,
    interrupted: bool,
    drain_cut: bool,
    refused: Option<String>,
    sink_error: Option<String>,
}

/// A slow request; times count from the start of the run, ns.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SlowLine {
    intended_ns: u64,
    sent_ns: u64,
    done_ns: u64,
    class: u16,
    item: u64,
    failed: Option<Failure>,
    text: String,
    trace_id: Option<String>,
}

impl SlowLine {
    fn of(slow: &Slow, start_ns: u64) -> Self {
        let since = |time_ns: u64| time_ns.saturating_sub(start_ns);
        Self {
            intended_ns: since(slow.times.intended_ns),
            sent_ns: since(slow.times.sent_ns),
            done_ns: since(slow.times.done_ns),
            class: slow.what.class,
            item: slow.what.item,
            failed: match slow.outcome {
                Outcome::Ok => None,
                Outcome::Failed(kind) => Some(kind),
            },
            text: slow.text.clone(),
            trace_id: slow.trace_id.clone(),
        }
    }

    fn slow(self, start_ns: u64) -> Slow {
        let at = |time_ns: u64| start_ns.saturating_add(time_ns);
        Slow {
            times: Times {
                intended_ns: at(self.intended_ns),
                sent_ns: at(self.sent_ns),
                done_ns: at(self.done_ns),
            },
            what: Submission { class: self.class, item: self.item, idempotent: false },
            outcome: self.failed.map_or(Outcome::Ok, Outcome::Failed),
            text: self.text,
            trace_id: self.trace_id,
        }
    }
}

impl From<&RunEnd> for EndLine {
    fn from(end: &RunEnd) -> Self {
        let trip = |trip: &RoundTrip| (trip.min_us, trip.smoothed_us, trip.retransmits);
        Self {
            totals: Compact::from(&end.totals),
            warmup: end.warmup.as_ref().map(Compact::from),
            slowest: end.slowest.iter().map(|slow| SlowLine::of(slow, end.start_ns)).collect(),
            round_trips: end.round_trips.iter().map(trip).collect(),
            measured_s: end.measured_s,
            client_elapsed_ns: end.client_elapsed_ns,
            clients_measured: end.clients_measured,
            cpu_s: end.cpu_s,
            health: end.health,
            since_success: end.since_success,
            connections: end.connections,
            rss_max_bytes: end.rss_max_bytes,
            interrupted: end.interrupted,
            drain_cut: end.drain_cut,
            refused: end.refused.as_deref().map(str::to_owned),
            sink_error: end.sink_error.as_ref().map(ToString::to_string),
        }
    }
}

impl EndLine {
    /// Puts the title of the part before the error of its journal, if there is one.
    pub(crate) fn name_error(&mut self, title: impl FnOnce() -> String) {
        if let Some(error) = &mut self.sink_error {
            *error = format!("{}: {error}", title());
        }
    }

    /// The end as it was, for a run that started at a time of this machine's clock, ns.
    ///
    /// # Errors
    /// When a histogram cannot be read.
    pub fn end(self, start_ns: u64) -> Result<RunEnd, DecodeError> {
        let mut end = RunEnd::default();
        self.refill(&mut end, start_ns)?;
        Ok(end)
    }

    /// The same in the memory of another end.
    ///
    /// # Errors
    /// When a histogram cannot be read; then the content is undefined.
    pub fn refill(self, end: &mut RunEnd, start_ns: u64) -> Result<(), DecodeError> {
        let trip =
            |(min_us, smoothed_us, retransmits)| RoundTrip { min_us, smoothed_us, retransmits };
        let mut totals = std::mem::take(&mut end.totals);
        self.totals.refill(&mut totals)?;
        let warmup = match self.warmup {
            None => None,
            Some(line) => {
                let mut warmup: Interval = end.warmup.take().unwrap_or_default();
                line.refill(&mut warmup)?;
                Some(warmup)
            }
        };
        *end = RunEnd {
            totals,
            warmup,
            slowest: self.slowest.into_iter().map(|slow| slow.slow(start_ns)).collect(),
            round_trips: self.round_trips.into_iter().map(trip).collect(),
            measured_s: self.measured_s,
            client_elapsed_ns: self.client_elapsed_ns,
            clients_measured: self.clients_measured,
            start_ns,
            cpu_s: self.cpu_s,
            health: self.health,
            since_success: self.since_success,
            connections: self.connections,
            rss_max_bytes: self.rss_max_bytes,
            interrupted: self.interrupted,
            drain_cut: self.drain_cut,
            refused: self.refused.map(Into::into),
            sink_error: self.sink_error.map(std::io::Error::other),
        };
        Ok(())
    }
}
