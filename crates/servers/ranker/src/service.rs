//! Requests from admission to reply: the line, the workers, and the wait.

use super::RankConfig;
use super::metrics::{Metrics, Now, Stage};
use super::stages::{Codec, Progress, StageFailed, Stages};
use plimsoll_core::clock::now_ns;
use plimsoll_wire::rank::{KIND_FAILED, KIND_RANK, KIND_REFUSED};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The reply to a request that failed.
const FAILED_TEXT: &[u8] = b"the request failed inside the server\n";

/// The reply to a request that was refused.
const REFUSED_TEXT: &[u8] = b"the server is full; ask again later, or raise --in-flight-max\n";

/// One request's place among those that may be in the server; given back when dropped, that is,
/// when its reply has been written.
#[derive(Debug)]
pub(crate) struct Place {
    taken: Arc<AtomicU64>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The kind of the reply, as in frames.
    pub(crate) kind: u32,
    pub(crate) payload: Vec<u8>,
    /// From the request read to the reply made.
    pub(crate) processing_ns: u64,
    /// A refused request has none.
    pub(crate) _place: Option<Place>,
}

/// Takes the answer to whoever asked.
pub(crate) type Deliver = Box<dyn FnOnce(Answer) + Send>;

struct Job {
    id: u64,
    arrived_ns: u64,
    /// Since when it waits for a worker.
    queued_ns: u64,
    progress: Progress,
    place: Place,
    deliver: Deliver,
}

#[derive(Default)]
struct Line {
    /// Requests after their wait: they go first, so that what was begun is ended.
    resumed: VecDeque<Job>,
    fresh: VecDeque<Job>,
    is_stopping: bool,
}

/// A request in a wait that holds no worker, ordered by the end of the wait.
struct Waiting {
    due_ns: u64,
    began_ns: u64,
    /// Breaks ties in the order of beginning.
    number: u64,
    job: Job,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        (self.due_ns, self.number) == (other.due_ns, other.number)
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due_ns, self.number).cmp(&(other.due_ns, other.number))
    }
}

#[derive(Default)]
struct Waits {
    heap: BinaryHeap<Reverse<Waiting>>,
    count: u64,
    is_stopping: bool,
}

/// The server behind its connections.
pub(crate) struct Service {
    pub(crate) config: RankConfig,
    pub(crate) stages: Stages,
    pub(crate) metrics: Metrics,
    in_flight: Arc<AtomicU64>,
    line: Mutex<Line>,
    has_job: Condvar,
    waits: Mutex<Waits>,
    has_wait: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics with one of these locks held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn precise_sleeps() {
    // Without the right to do so waits end some 50 us later.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

impl Service {
    /// Makes the data and starts all threads.
    pub(crate) fn open(config: RankConfig) -> io::Result<Arc<Self>> {
        let service = Arc::new(Self {
            stages: Stages::open(&config)?,
            metrics: Metrics::default(),
            in_flight: Arc::default(),
            line: Mutex::default(),
            has_job: Condvar::new(),
            waits: Mutex::default(),
            has_wait: Condvar::new(),
            threads: Mutex::default(),
            config,
        });
        let thread = |name: String| std::thread::Builder::new().name(name);
        for number in 0..service.config.threads.workers {
            let (own, mut codec) = (Arc::clone(&service), Codec::new()?);
            let worker = thread(format!("rank-worker-{number}"));
            lock(&service.threads).push(worker.spawn(move || own.work(&mut codec))?);
        }
        let own = Arc::clone(&service);
        let timer = thread("rank-timer".to_owned()).spawn(move || own.keep_time())?;
        lock(&service.threads).push(timer);
        Ok(service)
    }

    /// Takes a request in; a full server refuses it at once.
    pub(crate) fn submit(&self, id: u64, arrived_ns: u64, deliver: Deliver) {
        let most = self.config.in_flight_max as u64;
        let take = |taken: u64| (taken < most).then_some(taken + 1);
        if self.in_flight.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_err() {
            self.metrics.refused.fetch_add(1, Ordering::Relaxed);
            let processing_ns = now_ns().saturating_sub(arrived_ns);
            let payload = REFUSED_TEXT.to_vec();
            return deliver(Answer { kind: KIND_REFUSED, payload, processing_ns, _place: None });
        }
        let place = Place { taken: Arc::clone(&self.in_flight) };
        let progress = Progress::default();
        let job = Job { id, arrived_ns, queued_ns: arrived_ns, progress, place, deliver };
        let mut line = lock(&self.line);
        // A request that comes after the end goes with its line; whoever waits for it is told.
        if !line.is_stopping {
            line.fresh.push_back(job);
            drop(line);
            self.has_job.notify_one();
        }
    }

    /// The counts of this moment.
    pub(crate) fn now(&self) -> Now {
        let queued = {
            let line = lock(&self.line);
            line.fresh.len() + line.resumed.len()
        };
        Now {
            now_ns: now_ns(),
            in_flight: self.in_flight.load(Ordering::Acquire),
            queued: queued as u64,
            waiting: lock(&self.waits).heap.len() as u64,
        }
    }

    /// Ends all threads once the requests in service have ended; those that wait are dropped.
    pub(crate) fn stop(&self) {
        {
            let mut line = lock(&self.line);
            line.is_stopping = true;
            (line.fresh, line.resumed) = (VecDeque::new(), VecDeque::new());
        }
        self.has_job.notify_all();
        {
            let mut waits = lock(&self.waits);
            waits.is_stopping = true;
            waits.heap.clear();
        }
        self.has_wait.notify_all();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            let _ = thread.join();
        }
        self.stages.stop();
    }

    fn next_job(&self) -> Option<Job> {
        let mut line = lock(&self.line);
        loop {
            if line.is_stopping {
                return None;
            }
            if let Some(job) = line.resumed.pop_front().or_else(|| line.fresh.pop_front()) {
                return Some(job);
            }
            line = self.has_job.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work(&self, codec: &mut Codec) {
        precise_sleeps();
        while let Some(mut job) = self.next_job() {
            let queued_ns = now_ns().saturating_sub(job.queued_ns);
            job.progress.times[Stage::Queue as usize].wall_ns += queued_ns;
            // Whoever asked must learn of a panic, and the thread must outlive it.
            let payload = catch_unwind(AssertUnwindSafe(|| self.take_on(&mut job, codec)));
            match payload.unwrap_or(Err(StageFailed)) {
                Ok(None) => self.begin_wait(job),
                Ok(Some(payload)) => self.answer(job, Ok(payload)),
                Err(failed) => self.answer(job, Err(failed)),
            }
        }
    }

    /// Takes a request as far as this worker can: to its payload, or to a wait without a worker.
    fn take_on(&self, job: &mut Job, codec: &mut Codec) -> Result<Option<Vec<u8>>, StageFailed> {
        let is_fresh = job.progress.times[Stage::Wait as usize].wall_ns == 0;
        if is_fresh {
            self.stages.before_wait(job.id, &mut job.progress)?;
            if self.config.wait_ns > 0 && !self.config.wait_holds_worker {
                return Ok(None);
            }
            self.hold(job);
        }
        self.stages.after_wait(job.id, &mut job.progress, codec).map(Some)
    }

    /// Waits on this thread, as the original does.
    fn hold(&self, job: &mut Job) {
        let began_ns = now_ns();
        let end_ns = began_ns.saturating_add(self.config.wait_ns);
        let mut waits = lock(&self.waits);
        while let left_ns @ 1.. = end_ns.saturating_sub(now_ns())
            && !waits.is_stopping
        {
            let left = Duration::from_nanos(left_ns);
            let waited = self.has_wait.wait_timeout(waits, left);
            waits = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(waits);
        job.progress.times[Stage::Wait as usize].wall_ns += now_ns().saturating_sub(began_ns);
    }

    fn begin_wait(&self, job: Job) {
        let began_ns = now_ns();
        let due_ns = began_ns.saturating_add(self.config.wait_ns);
        let mut waits = lock(&self.waits);
        if waits.is_stopping {
            return;
        }
        waits.count += 1;
        let number = waits.count;
        waits.heap.push(Reverse(Waiting { due_ns, began_ns, number, job }));
        drop(waits);
        self.has_wait.notify_all();
    }

    /// Puts requests whose wait is over into the line again.
    fn keep_time(&self) {
        precise_sleeps();
        let mut waits = lock(&self.waits);
        while !waits.is_stopping {
            let now_ns = now_ns();
            let next_ns = waits.heap.peek().map(|Reverse(waiting)| waiting.due_ns);
            match next_ns.map(|due_ns| due_ns.saturating_sub(now_ns)) {
                Some(0) => {
                    if let Some(Reverse(waiting)) = waits.heap.pop() {
                        drop(waits);
                        self.resume(waiting, now_ns);
                        waits = lock(&self.waits);
                    }
                }
                Some(left_ns) => {
                    let left = Duration::from_nanos(left_ns);
                    let waited = self.has_wait.wait_timeout(waits, left);
                    waits = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => {
                    waits = self.has_wait.wait(waits).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn resume(&self, waiting: Waiting, now_ns: u64) {
        let Waiting { began_ns, mut job, .. } = waiting;
        job.progress.times[Stage::Wait as usize].wall_ns = now_ns.saturating_sub(began_ns).max(1);
        job.queued_ns = now_ns;
        let mut line = lock(&self.line);
        if !line.is_stopping {
            line.resumed.push_back(job);
            drop(line);
            self.has_job.notify_one();
        }
    }

    fn answer(&self, job: Job, payload: Result<Vec<u8>, StageFailed>) {
        let processing_ns = now_ns().saturating_sub(job.arrived_ns);
        let (kind, payload) = match payload {
            Ok(payload) => {
                self.metrics.served(&job.progress.times, processing_ns);
                (KIND_RANK, payload)
            }
            Err(StageFailed) => {
                self.metrics.failed.fetch_add(1, Ordering::Relaxed);
                (KIND_FAILED, FAILED_TEXT.to_vec())
            }
        };
        (job.deliver)(Answer { kind, payload, processing_ns, _place: Some(job.place) });
    }
}
