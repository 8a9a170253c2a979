//! The service station, without sockets and without a clock: time comes in as an argument, so the
//! same code answers HTTP requests and runs on virtual time.
//!
//! Requests wait in one queue, first come first served, for one of k servers. Since no request overtakes another
//! and a request's service time is drawn when it arrives, its departure is known at its arrival: it
//! starts when the earliest server is free (Kiefer and Wolfowitz 1955), and late calls of
//! [`Station::advance`] change nothing.

use super::service::{SERVICE_NS_MAX, ServiceTime};
use plimsoll_core::rng::{Rng, derive_seed};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The most servers; 0 stands for unlimited ones.
pub const SERVERS_MAX: u32 = 65_536;
/// Requests in the station, waiting or served, above which arrivals are rejected, even without
/// other limits.
pub const IN_FLIGHT_MAX: usize = 4_000_000;

/// Regular stalls: nothing is served for the last `length_ns` of every `period_ns`.
///
/// With the first request (since the start or the last reset) at time 0, the station is frozen in
/// `[m * period - length, m * period)` for m = 1, 2, ... Work in progress stands still. A service
/// that would end exactly when a stall begins still ends; a request that arrives at that instant,
/// even one without service time, waits until the stall is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stall {
    /// Time that each stall takes, above 0 and below the period.
    pub length_ns: u64,
    /// From the end of one stall to the end of the next, at most one day.
    pub period_ns: u64,
}

/// The behaviour of a station.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationConfig {
    /// Servers, 1 to [`SERVERS_MAX`]; 0 means that no request waits for a server.
    pub servers: u32,
    /// Time that a server is busy with a request.
    pub service: ServiceTime,
    /// Added to every reply after its service, in nanoseconds, at most one hour. It occupies no
    /// server and goes on during stalls, as a network's delay does.
    pub delay_ns: u64,
    /// Regular stalls.
    pub stall: Option<Stall>,
    /// Every so-many-th accepted request, counted since the start or the last reset, ends in an
    /// error; it takes its service time like any other. 0 means never.
    pub error_every: u64,
    /// Requests in the station (waiting, in service or delayed) above which an arrival is turned
    /// away at once.
    pub in_flight_cap: Option<u64>,
    /// Requests waiting for a server or for the end of a stall, above which an arrival is turned
    /// away at once.
    pub waiting_max: usize,
    /// Seed of the service times.
    pub seed: u64,
}

impl Default for StationConfig {
    /// One server, 5 ms exponential, no extras, 1,000,000 waiting, seed 1.
    fn default() -> Self {
        Self {
            servers: 1,
            service: ServiceTime::Exponential { mean_ns: 5_000_000 },
            delay_ns: 0,
            stall: None,
            error_every: 0,
            in_flight_cap: None,
            waiting_max: 1_000_000,
            seed: 1,
        }
    }
}

/// The reason for rejecting an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The cap on requests in flight was reached.
    InFlightCap,
    /// The line was as long as it may be, or [`IN_FLIGHT_MAX`] was reached.
    QueueFull,
}

/// A request that an arrival has become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Time at which its service starts.
    pub start_ns: u64,
    /// When its reply is due, delay included.
    pub due_ns: u64,
    /// The service time that was drawn.
    pub service_ns: u64,
}

/// A request whose reply is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Completion {
    /// When the reply is due, which is what completions are ordered by.
    pub due_ns: u64,
    /// Number of the accepted request, counted from 0 since the station was made.
    pub sequence: u64,
    /// The caller's name for the request.
    pub id: u64,
    /// Time at which it arrived.
    pub arrived_ns: u64,
    /// The service time that was drawn.
    pub service_ns: u64,
    /// True if the reply is an error.
    pub is_error: bool,
}

/// A service station on a given clock.
///
/// ```
/// use plimsoll_stations::queue::{ServiceTime, Station, StationConfig};
/// let service = ServiceTime::Fixed { ns: 10 };
/// let mut station = Station::new(StationConfig { service, ..StationConfig::default() });
/// station.arrive(100, 1).expect("an empty station accepts");
/// station.arrive(103, 2).expect("the second waits");
/// assert_eq!(station.next_event(), Some(110));
/// let mut done = Vec::new();
/// station.advance(120, &mut done);
/// assert_eq!(done.iter().map(|c| (c.id, c.due_ns)).collect::<Vec<_>>(), [(1, 110), (2, 120)]);
/// ```
#[derive(Clone, Debug)]
pub struct Station {
    config: StationConfig,
    /// Speed of the servers, relative to the configured one.
    speed: f64,
    rng: Rng,
    /// When each server that ever worked is free again, the earliest first.
    free_ns: BinaryHeap<Reverse<u64>>,
    /// Requests whose reply is not yet due, the next first.
    pending: BinaryHeap<Reverse<Completion>>,
    /// Time at which those that wait will start, in order; those in the past are dropped at each arrival.
    starts_ns: VecDeque<u64>,
    /// The first request since the start or the last reset, from which stalls are counted.
    origin_ns: Option<u64>,
    sequence: u64,
    /// Accepted requests since the start or the last reset.
    accepted: u64,
}

impl Station {
    /// An empty station. The ranges of the configuration are the caller's to check
    /// ([`super::QueueConfig::validate`] does).
    #[must_use]
    pub fn new(config: StationConfig) -> Self {
        let rng = Rng::new(derive_seed(config.seed, "service"));
        Self {
            config,
            speed: 1.0,
            rng,
            free_ns: BinaryHeap::new(),
            pending: BinaryHeap::new(),
            starts_ns: VecDeque::new(),
            origin_ns: None,
            sequence: 0,
            accepted: 0,
        }
    }

    /// A request arrives. Times must not go back from one call to the next.
    ///
    /// A rejected request draws no service time.
    ///
    /// # Errors
    /// When one of the limits rejects it.
    pub fn arrive(&mut self, now_ns: u64, id: u64) -> Result<Admitted, Rejection> {
        let origin_ns = *self.origin_ns.get_or_insert(now_ns);
        let in_flight = self.pending.len();
        if self.config.in_flight_cap.is_some_and(|cap| in_flight as u64 >= cap) {
            return Err(Rejection::InFlightCap);
        }
        self.forget_starts(now_ns);
        let start_ns = self.start_ns(now_ns, origin_ns);
        let must_wait = start_ns > now_ns;
        if must_wait && self.starts_ns.len() >= self.config.waiting_max
            || in_flight >= IN_FLIGHT_MAX
        {
            return Err(Rejection::QueueFull);
        }
        let drawn_ns = self.config.service.draw_ns(&mut self.rng) as f64 / self.speed;
        let service_ns = (drawn_ns.round() as u64).min(SERVICE_NS_MAX);
        let free_ns = self.end_ns(start_ns, service_ns, origin_ns);
        self.occupy(free_ns);
        if must_wait {
            self.starts_ns.push_back(start_ns);
        }
        self.accepted += 1;
        let due_ns = free_ns.saturating_add(self.config.delay_ns);
        let every = self.config.error_every;
        self.pending.push(Reverse(Completion {
            due_ns,
            sequence: self.sequence,
            id,
            arrived_ns: now_ns,
            service_ns,
            is_error: every > 0 && self.accepted.is_multiple_of(every),
        }));
        self.sequence += 1;
        Ok(Admitted { start_ns, due_ns, service_ns })
    }

    /// From now on servers work `speed` times as fast as configured, above 0. Requests that have arrived keep their times.
    pub fn set_speed(&mut self, speed: f64) {
        self.speed = speed;
    }

    /// Speed of the servers, relative to the configured one.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// Time at which the next reply is due.
    #[must_use]
    #[inline]
    pub fn next_event(&self) -> Option<u64> {
        self.pending.peek().map(|Reverse(completion)| completion.due_ns)
    }

    /// Takes the next reply that is due by `now_ns`, in order of due times, then of arrivals.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Completion> {
        if self.next_event()? > now_ns {
            return None;
        }
        self.pending.pop().map(|Reverse(completion)| completion)
    }

    /// Appends all replies that are due by `now_ns`.
    pub fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        while let Some(completion) = self.pop_due(now_ns) {
            completions.push(completion);
        }
    }

    /// Requests in the station: waiting, in service or delayed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Requests that wait for a server or for the end of a stall.
    pub fn waiting(&mut self, now_ns: u64) -> usize {
        self.forget_starts(now_ns);
        self.starts_ns.len()
    }

    /// Counts stalls from the next request, and errors from it as well. Requests in the station
    /// keep their times, and the stream of service times goes on, so that repeated measurements are
    /// independent.
    pub fn restart(&mut self) {
        self.origin_ns = None;
        self.accepted = 0;
    }

    fn forget_starts(&mut self, now_ns: u64) {
        while self.starts_ns.front().is_some_and(|start_ns| *start_ns <= now_ns) {
            self.starts_ns.pop_front();
        }
    }

    /// Time at which a request that arrives now can start: once a server is free and no stall is on.
    fn start_ns(&self, now_ns: u64, origin_ns: u64) -> u64 {
        let servers = self.config.servers as usize;
        let free_ns = match self.free_ns.peek() {
            Some(Reverse(free_ns)) if servers > 0 && self.free_ns.len() >= servers => *free_ns,
            _ => now_ns,
        };
        let start_ns = now_ns.max(free_ns);
        match self.config.stall {
            Some(stall) => {
                let phase_ns = start_ns.saturating_sub(origin_ns) % stall.period_ns;
                let is_frozen = phase_ns >= stall.period_ns - stall.length_ns;
                let rest_ns = if is_frozen { stall.period_ns - phase_ns } else { 0 };
                start_ns.saturating_add(rest_ns)
            }
            None => start_ns,
        }
    }

    /// Time at which a service that starts outside a stall ends: stalls that it meets are added.
    fn end_ns(&self, start_ns: u64, service_ns: u64, origin_ns: u64) -> u64 {
        let Some(stall) = self.config.stall else { return start_ns.saturating_add(service_ns) };
        let working_ns = stall.period_ns - stall.length_ns;
        let worked_ns = start_ns.saturating_sub(origin_ns) % stall.period_ns + service_ns;
        // Work that just fits before a stall does not meet it.
        let stalls = worked_ns.saturating_sub(1) / working_ns;
        start_ns.saturating_add(service_ns).saturating_add(stalls.saturating_mul(stall.length_ns))
    }

    fn occupy(&mut self, free_ns: u64) {
        let servers = self.config.servers as usize;
        if servers == 0 {
            return;
        }
        if self.free_ns.len() >= servers {
            self.free_ns.pop();
        }
        self.free_ns.push(Reverse(free_ns));
    }
}

#[cfg(test)]
mod tests;
