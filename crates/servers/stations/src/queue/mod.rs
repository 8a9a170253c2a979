//! The queue target: a service station whose response times are known, behind HTTP.
//!
//! [`Station`] is pure and runs on virtual time as well; [`truth`] states what its response times
//! must be; [`run`] puts it behind a socket, where replies leave within some 50 us of their due
//! time. See `docs/targets.md`.

mod service;
mod special;
mod station;
mod stats;
mod truth;

pub use plimsoll_serving::sample::SampleSummary;
pub use service::{SERVICE_NS_MAX, ServiceTime, ServiceTimeError};
pub use station::{
    Admitted, Completion, IN_FLIGHT_MAX, Rejection, SERVERS_MAX, Stall, Station, StationConfig,
};
pub use stats::{QueueSummary, Rejections};
pub use truth::{Arrivals, Truth, truth, truth_or_reason};

use plimsoll_core::clock::{SECOND_NS, now_ns};
use plimsoll_serving::http::{
    Asked, Canned, ConnectionCounters, EventLoop, Intake, Options, Route, Service, StatsArrivals,
    StatsQuery, Step, Ticket, raise_descriptor_limit, write_json,
};
use plimsoll_serving::stop::Stop;
use serde::Serialize;
use stats::QueueStats;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use thiserror::Error;

/// The largest body of a reply, in bytes.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most requests that may be allowed to wait.
pub const WAITING_MAX: usize = IN_FLIGHT_MAX;
/// The longest delay, one hour in nanoseconds.
pub const DELAY_NS_MAX: u64 = 3_600 * SECOND_NS;
/// The longest stall period, one day in nanoseconds.
pub const STALL_PERIOD_NS_MAX: u64 = 24 * 3_600 * SECOND_NS;

/// The way the queue target answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueConfig {
    /// The station.
    pub station: StationConfig,
    /// Size of the body of each reply, 0 to [`BODY_BYTES_MAX`] bytes.
    pub body_bytes: usize,
    /// Status of a rejected request: 429 or 503.
    pub reject_status: u16,
    /// Before a reply is due, spin for this many nanoseconds instead of sleeping (at most one
    /// second). 50,000 to 100,000 remove most of the wake-up's delay and cost up to a whole
    /// core.
    pub spin_ns: u64,
    /// Never sleep at all: takes a whole core.
    pub busy_poll: bool,
}

impl Default for QueueConfig {
    /// The default station, 64 bytes, 503, and 100 us of spinning: about what a virtual core takes to wake.
    fn default() -> Self {
        Self {
            station: StationConfig::default(),
            body_bytes: 64,
            reject_status: 503,
            spin_ns: 100_000,
            busy_poll: false,
        }
    }
}

/// A configuration that the queue target refuses.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum QueueConfigError {
    /// The service time is out of its range.
    #[error(transparent)]
    Service(#[from] ServiceTimeError),
    /// A number is out of its range.
    #[error("{name} is {value}, but must be between {least} and {most}")]
    Range {
        /// Name of the number.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The least that is allowed.
        least: u64,
        /// The most that is allowed.
        most: u64,
    },
    /// The stall leaves too little time for work.
    #[error(
        "a stall of {length_ns} ns in every {period_ns} ns is not possible; the stall must be \
         above 0 and leave at least a thousandth of the period"
    )]
    Stall {
        /// The stall.
        length_ns: u64,
        /// The period.
        period_ns: u64,
    },
    /// The status is neither 429 nor 503.
    #[error("{0} is not a status for rejected requests; give 429 or 503")]
    RejectStatus(u16),
}

impl QueueConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn validate(&self) -> Result<(), QueueConfigError> {
        let station = &self.station;
        station.service.validate()?;
        let within = |name, value: u64, least: u64, most: u64| match value {
            value if (least..=most).contains(&value) => Ok(()),
            value => Err(QueueConfigError::Range { name, value, least, most }),
        };
        within("the number of servers", station.servers.into(), 0, SERVERS_MAX.into())?;
        within("the delay in ns", station.delay_ns, 0, DELAY_NS_MAX)?;
        within("the limit of waiting requests", station.waiting_max as u64, 0, WAITING_MAX as u64)?;
        within("the cap on requests in flight", station.in_flight_cap.unwrap_or(1), 1, u64::MAX)?;
        within("the body size in bytes", self.body_bytes as u64, 0, BODY_BYTES_MAX as u64)?;
        within("the spin in ns", self.spin_ns, 0, SECOND_NS)?;
        if let Some(Stall { length_ns, period_ns }) = station.stall {
            within("the stall period in ns", period_ns, 1_000, STALL_PERIOD_NS_MAX)?;
            if length_ns == 0 || length_ns > period_ns - period_ns / 1_000 {
                return Err(QueueConfigError::Stall { length_ns, period_ns });
            }
        }
        match self.reject_status {
            429 | 503 => Ok(()),
            status => Err(QueueConfigError::RejectStatus(status)),
        }
    }
}

/// Serves until `stop` is requested and says what was served. Requests still in the station then
/// are not answered.
///
/// # Errors
/// An invalid configuration ([`io::ErrorKind::InvalidInput`]), or a kernel that gives no event
/// queue.
pub fn run(listener: TcpListener, config: QueueConfig, stop: Stop) -> io::Result<QueueSummary> {
    config.validate().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    raise_descriptor_limit();
    let options = Options { busy_poll: config.busy_poll, spin_ns: config.spin_ns };
    let connections = Arc::<ConnectionCounters>::default();
    let service = QueueService::new(config, Arc::clone(&connections));
    let intake = Intake::Listener { listener, others: Vec::new() };
    let mut service = EventLoop::new(service, intake, options, stop, connections)?.run()?;
    Ok(service.summary(StatsQuery::default()))
}

/// The answer to a query of `/_stats` that was not understood.
const BAD_QUERY: &str = concat!(
    r#"{"error":"the query of /_stats is made of reset=1, rate=PER_SECOND "#,
    r#"and arrivals=poisson or uniform"}"#
);

/// The answer to a query of `/_speed` that was not understood.
const BAD_SPEED: &str = r#"{"error":"the query of /_speed is factor=NUMBER, from 0.001 to 1000; 1 is the speed at the start"}"#;

struct QueueService {
    config: QueueConfig,
    station: Station,
    stats: QueueStats,
    connections: Arc<ConnectionCounters>,
    ok: Canned,
    error: Canned,
    reject: Canned,
    /// The completion that the loop is about to send.
    popped: Option<Completion>,
}

impl QueueService {
    fn new(config: QueueConfig, connections: Arc<ConnectionCounters>) -> Self {
        let reject = match config.reject_status {
            429 => "429 Too Many Requests",
            _ => "503 Service Unavailable",
        };
        let text = |text: &str| text.as_bytes().to_vec();
        Self {
            station: Station::new(config.station.clone()),
            stats: QueueStats::new(now_ns()),
            connections,
            ok: Canned::new("200 OK", "text/plain", Canned::filler(config.body_bytes)),
            error: Canned::new("503 Service Unavailable", "text/plain", text("planned error\n")),
            reject: Canned::new(reject, "text/plain", text("rejected\n")),
            popped: None,
            config,
        }
    }

    fn summary(&mut self, query: StatsQuery) -> QueueSummary {
        let now_ns = now_ns();
        let (in_flight, queued) = (self.station.in_flight(), self.station.waiting(now_ns));
        let mut summary = self.stats.summary(now_ns, in_flight, queued, self.connections.counts());
        summary.config = Some(self.config.clone());
        if let Some(rate_per_s) = query.rate_per_s {
            let arrivals = match query.arrivals {
                StatsArrivals::Poisson => Arrivals::Poisson,
                StatsArrivals::Uniform => Arrivals::Uniform,
            };
            match truth_or_reason(&self.config, rate_per_s, arrivals) {
                Ok(_) if self.station.speed() != 1.0 => {
                    summary.no_truth_because =
                        Some("the speed was changed; closed forms are for speed 1");
                }
                Ok(truth) => summary.truth = Some(truth),
                Err(reason) => summary.no_truth_because = Some(reason),
            }
        }
        summary
    }

    fn change_speed(&mut self, speed: Option<f64>, asked: &Asked, out: &mut Vec<u8>) {
        let Some(speed) = speed else {
            return write_json("400 Bad Request", BAD_SPEED.as_bytes().to_vec(), asked, out);
        };
        self.station.set_speed(speed);
        write_json("200 OK", format!("{{\"speed\":{speed}}}").into_bytes(), asked, out);
    }

    fn write_stats(&mut self, query: StatsQuery, asked: &Asked, out: &mut Vec<u8>) {
        if query.malformed {
            return write_json("400 Bad Request", BAD_QUERY.as_bytes().to_vec(), asked, out);
        }
        match serde_json::to_vec(&self.summary(query)) {
            Ok(text) => write_json("200 OK", text, asked, out),
            Err(_) => write_json("500 Internal Server Error", Vec::new(), asked, out),
        }
        if query.reset {
            self.stats.reset();
            self.station.restart();
        }
    }
}

impl Service for QueueService {
    fn request(&mut self, asked: &Asked, ticket: Ticket, now_ns: u64, out: &mut Vec<u8>) -> Step {
        if let Route::Stats(query) = asked.route {
            self.write_stats(query, asked, out);
            return Step::Replied;
        }
        if let Route::Speed(speed) = asked.route {
            self.change_speed(speed, asked, out);
            return Step::Replied;
        }
        self.stats.arrived(asked.method, now_ns);
        match self.station.arrive(now_ns, ticket) {
            Ok(admitted) => {
                self.stats.admitted(&admitted);
                Step::Waiting
            }
            Err(rejection) => {
                self.stats.rejected(rejection);
                self.reject.write(asked, out);
                Step::Replied
            }
        }
    }

    #[inline]
    fn due_ns(&self) -> u64 {
        self.station.next_event().unwrap_or(u64::MAX)
    }

    fn pop_due(&mut self, now_ns: u64) -> Option<Ticket> {
        self.popped = self.station.pop_due(now_ns);
        self.popped.map(|completion| completion.id)
    }

    fn reply(&mut self, asked: &Asked, now_ns: u64, out: &mut Vec<u8>) {
        let Some(completion) = self.popped.take() else { return };
        self.stats.answered(&completion, now_ns);
        if completion.is_error { &self.error } else { &self.ok }.write(asked, out);
    }

    fn abandoned(&mut self) {
        self.popped = None;
        self.stats.abandoned();
    }
}

#[cfg(test)]
mod tests;
