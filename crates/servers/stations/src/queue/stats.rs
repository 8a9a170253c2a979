//! Counts of the queue target.

use super::QueueConfig;
use super::station::{Admitted, Completion, Rejection};
use super::truth::Truth;
use plimsoll_serving::arrivals::{ArrivalSummary, ArrivalTally};
use plimsoll_serving::http::{ConnectionCounts, Method};
use plimsoll_serving::sample::{Sample, SampleSummary};
use serde::Serialize;

/// Requests that were rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rejections {
    /// Because of the cap on requests in flight.
    pub in_flight_cap: u64,
    /// Because the line was full.
    pub queue_full: u64,
}

/// The counts of the queue target; also the reply of `/_stats`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueSummary {
    /// Always `"queue"`.
    pub target: &'static str,
    /// Seconds since the target started.
    pub uptime_s: f64,
    /// Requests since the start or the last reset, and how regularly they came.
    #[serde(flatten)]
    pub arrivals: ArrivalSummary,
    /// Requests in the station now: waiting, in service or delayed.
    pub in_flight: u64,
    /// Requests that wait now for a server or for the end of a stall.
    pub queued: u64,
    /// Requests rejected.
    pub rejected: Rejections,
    /// Replies sent with the planned error.
    pub errors: u64,
    /// Replies sent, planned errors included, without rejections.
    pub answered: u64,
    /// Requests whose connection was gone when their reply was due.
    pub abandoned: u64,
    /// Service times as drawn, of all accepted requests.
    pub service: SampleSummary,
    /// From a request read whole to its reply handed to the kernel, of all replies sent.
    pub response: SampleSummary,
    /// Delay with which replies were handed to the kernel.
    pub lateness: SampleSummary,
    /// Connections since the start.
    pub connections: ConnectionCounts,
    /// The configuration.
    pub config: Option<QueueConfig>,
    /// The closed form for the rate that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<Truth>,
    /// Reason why there is none for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_truth_because: Option<&'static str>,
}

/// The counts themselves; their size does not depend on the number of requests.
#[derive(Debug)]
pub(super) struct QueueStats {
    start_ns: u64,
    arrivals: ArrivalTally,
    rejected: Rejections,
    errors: u64,
    abandoned: u64,
    service: Sample,
    response: Sample,
    lateness: Sample,
}

impl QueueStats {
    pub(super) fn new(start_ns: u64) -> Self {
        Self {
            start_ns,
            arrivals: ArrivalTally::default(),
            rejected: Rejections::default(),
            errors: 0,
            abandoned: 0,
            service: Sample::default(),
            response: Sample::default(),
            lateness: Sample::default(),
        }
    }

    pub(super) fn reset(&mut self) {
        self.arrivals.clear();
        self.rejected = Rejections::default();
        (self.errors, self.abandoned) = (0, 0);
        self.service.clear();
        self.response.clear();
        self.lateness.clear();
    }

    pub(super) fn arrived(&mut self, method: Method, now_ns: u64) {
        let previous_ns = self.arrivals.last_ns();
        self.arrivals.add(method, now_ns, previous_ns);
    }

    pub(super) fn admitted(&mut self, admitted: &Admitted) {
        self.service.record(admitted.service_ns);
    }

    pub(super) fn rejected(&mut self, rejection: Rejection) {
        match rejection {
            Rejection::InFlightCap => self.rejected.in_flight_cap += 1,
            Rejection::QueueFull => self.rejected.queue_full += 1,
        }
    }

    pub(super) fn answered(&mut self, completion: &Completion, now_ns: u64) {
        self.errors += u64::from(completion.is_error);
        self.response.record(now_ns.saturating_sub(completion.arrived_ns));
        self.lateness.record(now_ns.saturating_sub(completion.due_ns));
    }

    pub(super) fn abandoned(&mut self) {
        self.abandoned += 1;
    }

    pub(super) fn summary(
        &self,
        now_ns: u64,
        in_flight: usize,
        queued: usize,
        connections: ConnectionCounts,
    ) -> QueueSummary {
        QueueSummary {
            target: "queue",
            uptime_s: now_ns.saturating_sub(self.start_ns) as f64 / 1e9,
            arrivals: self.arrivals.summary(self.start_ns),
            in_flight: in_flight as u64,
            queued: queued as u64,
            rejected: self.rejected,
            errors: self.errors,
            answered: self.response.count(),
            abandoned: self.abandoned,
            service: self.service.summary(),
            response: self.response.summary(),
            lateness: self.lateness.summary(),
            connections,
            config: None,
            truth: None,
            no_truth_because: None,
        }
    }
}
