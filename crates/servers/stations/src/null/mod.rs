//! The null target: the cheapest honest HTTP reply, to find out what a generator can do.
//!
//! It finds the end of every request, bodies included, answers `200 OK` with a body of fixed size,
//! and counts what arrived. With [`NullConfig::busy_poll`] it never sleeps, so that the client and
//! not a wake-up is the limit. See `docs/targets.md`.

use plimsoll_core::clock::now_ns;
use plimsoll_serving::arrivals::{ArrivalSummary, ArrivalTally};
use plimsoll_serving::http::{
    Asked, Canned, ConnectionCounters, ConnectionCounts, EventLoop, Inbox, Intake, Options, Route,
    Service, StatsQuery, Step, Ticket, raise_descriptor_limit, write_json,
};
use plimsoll_serving::stop::Stop;
use serde::Serialize;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// The largest body of a reply, in bytes.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most threads.
pub const THREADS_MAX: usize = 64;

/// The way the null target answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullConfig {
    /// Size of the body of each reply, 0 to [`BODY_BYTES_MAX`] bytes.
    pub body_bytes: usize,
    /// Threads, 1 to [`THREADS_MAX`]. The first accepts and deals connections out in turn.
    pub threads: usize,
    /// Spin instead of sleeping: each thread takes a whole core.
    pub busy_poll: bool,
}

impl Default for NullConfig {
    /// 64 bytes, one thread, sleeping.
    fn default() -> Self {
        Self { body_bytes: 64, threads: 1, busy_poll: false }
    }
}

/// A configuration that the null target refuses.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NullConfigError {
    /// The body is too large.
    #[error("a reply body of {0} bytes is too large; give at most {BODY_BYTES_MAX}")]
    BodyBytes(usize),
    /// No threads, or too many.
    #[error("{0} threads cannot be started; give 1 to {THREADS_MAX}")]
    Threads(usize),
}

impl NullConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn validate(&self) -> Result<(), NullConfigError> {
        if self.body_bytes > BODY_BYTES_MAX {
            return Err(NullConfigError::BodyBytes(self.body_bytes));
        }
        if !(1..=THREADS_MAX).contains(&self.threads) {
            return Err(NullConfigError::Threads(self.threads));
        }
        Ok(())
    }
}

/// The counts of the null target; also the reply of `/_stats`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NullSummary {
    /// Always `"null"`.
    pub target: &'static str,
    /// Seconds since the target started.
    pub uptime_s: f64,
    /// Requests since the start or the last reset, and how regularly they came.
    #[serde(flatten)]
    pub arrivals: ArrivalSummary,
    /// Connections since the start.
    pub connections: ConnectionCounts,
}

/// Serves until `stop` is requested and says what was served.
///
/// # Errors
/// An invalid configuration ([`io::ErrorKind::InvalidInput`]), or a kernel that gives no event
/// queue or thread.
pub fn run(listener: TcpListener, config: NullConfig, stop: Stop) -> io::Result<NullSummary> {
    config.validate().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    raise_descriptor_limit();
    let shared = Arc::new(Shared {
        start_ns: now_ns(),
        canned: Canned::new("200 OK", "text/plain", Canned::filler(config.body_bytes)),
        slots: (0..config.threads).map(|_| Mutex::default()).collect(),
        epoch: AtomicU64::new(0),
        last_arrival_ns: AtomicU64::new(NEVER),
        connections: Arc::default(),
    });
    let options = Options { busy_poll: config.busy_poll, spin_ns: 0 };
    let inboxes =
        (1..config.threads).map(|_| Inbox::new().map(Arc::new)).collect::<io::Result<Vec<_>>>()?;
    let intakes = std::iter::once(Intake::Listener { listener, others: inboxes.clone() })
        .chain(inboxes.into_iter().map(Intake::Inbox));
    let loops = intakes
        .enumerate()
        .map(|(slot, intake)| {
            let service = NullService::new(slot, Arc::clone(&shared));
            let connections = Arc::clone(&shared.connections);
            EventLoop::new(service, intake, options, stop.clone(), connections)
        })
        .collect::<io::Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let mut loops = loops.into_iter();
        let own = loops.next();
        let handles: Vec<_> = loops.map(|each| scope.spawn(move || each.run())).collect();
        // A loop that fails must not leave the others running behind its back.
        let mut result = own.map_or(Ok(()), |own| own.run().map(NullService::publish_last));
        if result.is_err() {
            stop.request();
        }
        for handle in handles {
            let ended = handle.join().map_err(|_| io::Error::other("a thread panicked"));
            result = result.and(ended.and_then(|ended| ended.map(NullService::publish_last)));
        }
        result
    })?;
    Ok(shared.summary())
}

/// No arrival yet.
const NEVER: u64 = u64::MAX;

/// The state that the threads of one target share.
#[derive(Debug)]
struct Shared {
    start_ns: u64,
    canned: Canned,
    /// Each thread's tally: its own to count in, or as it last published it when it is alone.
    slots: Vec<Mutex<Published>>,
    /// Number of times that the statistics were reset.
    epoch: AtomicU64,
    /// The latest arrival on any thread, from which the next gap is counted.
    last_arrival_ns: AtomicU64,
    connections: Arc<ConnectionCounters>,
}

#[derive(Clone, Debug, Default)]
struct Published {
    epoch: u64,
    tally: ArrivalTally,
}

impl Published {
    /// Forgets what was counted before the reset number `epoch`.
    fn begin(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.tally.clear();
    }
}

impl Shared {
    fn summary(&self) -> NullSummary {
        let epoch = self.epoch.load(Ordering::Acquire);
        let mut tally = ArrivalTally::default();
        for slot in &self.slots {
            let published = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if published.epoch == epoch {
                tally.merge(&published.tally);
            }
        }
        NullSummary {
            target: "null",
            uptime_s: now_ns().saturating_sub(self.start_ns) as f64 / 1e9,
            arrivals: tally.summary(self.start_ns),
            connections: self.connections.counts(),
        }
    }
}

/// One thread's part of the target.
struct NullService {
    slot: usize,
    own: Published,
    shared: Arc<Shared>,
}

impl NullService {
    fn new(slot: usize, shared: Arc<Shared>) -> Self {
        Self { slot, own: Published::default(), shared }
    }

    fn is_alone(&self) -> bool {
        self.shared.slots.len() == 1
    }

    /// The counts of this thread that the others see.
    fn published(&self) -> MutexGuard<'_, Published> {
        self.shared.slots[self.slot].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish_last(self) {
        if self.is_alone() {
            self.published().clone_from(&self.own);
        }
    }

    /// With one thread the tally is the thread's own business; with several each arrival is counted
    /// where the others see it, so that whichever thread is asked knows all replies that were sent.
    #[inline]
    fn count(&mut self, asked: &Asked, now_ns: u64) {
        if self.is_alone() {
            let previous_ns = self.own.tally.last_ns();
            self.own.tally.add(asked.method, now_ns, previous_ns);
            return;
        }
        let epoch = self.shared.epoch.load(Ordering::Acquire);
        let previous_ns = self.shared.last_arrival_ns.swap(now_ns, Ordering::AcqRel);
        let previous_ns = Some(previous_ns).filter(|at_ns| *at_ns != NEVER);
        let mut published = self.published();
        if published.epoch != epoch {
            published.begin(epoch);
        }
        published.tally.add(asked.method, now_ns, previous_ns);
    }

    fn stats(&mut self, query: StatsQuery, asked: &Asked, out: &mut Vec<u8>) {
        if query.malformed || query.rate_per_s.is_some() {
            let text = br#"{"error":"the query of /_stats on this target is reset=1 or nothing"}"#;
            return write_json("400 Bad Request", text.to_vec(), asked, out);
        }
        if self.is_alone() {
            self.published().clone_from(&self.own);
        }
        match serde_json::to_vec(&self.shared.summary()) {
            Ok(text) => write_json("200 OK", text, asked, out),
            Err(_) => write_json("500 Internal Server Error", Vec::new(), asked, out),
        }
        if query.reset {
            let epoch = self.shared.epoch.fetch_add(1, Ordering::AcqRel) + 1;
            self.shared.last_arrival_ns.store(NEVER, Ordering::Release);
            self.own.begin(epoch);
            self.published().begin(epoch);
        }
    }
}

impl Service for NullService {
    #[inline]
    fn request(&mut self, asked: &Asked, _: Ticket, now_ns: u64, out: &mut Vec<u8>) -> Step {
        match asked.route {
            // This target has no speed to change.
            Route::Load | Route::Speed(_) => {
                self.count(asked, now_ns);
                self.shared.canned.write(asked, out);
            }
            Route::Stats(query) => self.stats(query, asked, out),
        }
        Step::Replied
    }
}

#[cfg(test)]
mod tests;
