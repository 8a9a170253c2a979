//! The queue between those who receive and the thread that writes.

use super::{OnCheckpoint, OnMarks, Reached, Writer};
use plimsoll_core::clock::now_ns;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that may wait; from here on nothing more should be received.
pub const QUEUE_BYTES: usize = 16 << 20;
/// Bytes from which on nothing more should be asked for: what is in flight by then still finds room.
pub const ASK_BYTES: usize = QUEUE_BYTES / 4 * 3;
/// Bytes at which both go on.
pub(super) const ROOM_BYTES: usize = QUEUE_BYTES / 2;
/// Bytes of one destination are gathered in blocks of about this size.
const BLOCK_BYTES: usize = 256 << 10;
/// Time for which fewer bytes than a block wait for more, so that not every piece of a reply wakes the thread.
const GATHER: Duration = Duration::from_millis(20);
/// Empty blocks that are kept for later use.
const SPARE_MAX: usize = 8;

/// Bytes for a destination, with the marks of what they hold.
#[derive(Default)]
pub(super) struct Block {
    to: usize,
    bytes: Vec<u8>,
    marks: Vec<u8>,
}

impl Block {
    fn len(&self) -> usize {
        self.bytes.len() + self.marks.len()
    }
}

pub(super) enum Job {
    Write(Block),
    Checkpoint(OnCheckpoint),
}

/// Time for which an output was the limit so far, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Time in which nothing was received.
    pub held_ns: u64,
    /// Time in which nothing was received, or a session waited before it asked for more.
    pub limited_ns: u64,
}

#[derive(Default)]
pub(super) struct Queue {
    jobs: VecDeque<Job>,
    spare: Vec<Block>,
    /// Bytes that are not written yet.
    bytes: usize,
    /// True from [`ASK_BYTES`] until there is room.
    tight: bool,
    /// True if the thread sleeps.
    asleep: bool,
    /// True if a checkpoint stands in the queue.
    urgent: bool,
    closing: bool,
    held_since_ns: Option<u64>,
    limited_since_ns: Option<u64>,
}

impl Queue {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_tight(&self) -> bool {
        self.tight
    }

    /// Begins to count the time for which a session waits, unless there is room again; returns that.
    pub fn let_wait(&mut self) -> bool {
        if self.tight {
            self.limited_since_ns.get_or_insert_with(now_ns);
        }
        !self.tight
    }
}

pub(super) struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    room: Condvar,
    /// State of the queue, readable without its lock.
    tight: AtomicBool,
    full: AtomicBool,
    /// Totals up to the last time that there was room, ns.
    held_ns: AtomicU64,
    limited_ns: AtomicU64,
    destinations: usize,
    failed: AtomicUsize,
    /// Destinations that failed, and why, in the order in which they did.
    pub errors: Mutex<Vec<(usize, String)>>,
}

impl Shared {
    pub fn new(destinations: usize) -> Self {
        Self {
            queue: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
            tight: AtomicBool::new(false),
            full: AtomicBool::new(false),
            held_ns: AtomicU64::new(0),
            limited_ns: AtomicU64::new(0),
            destinations,
            failed: AtomicUsize::new(0),
            errors: Mutex::default(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_tight(&self) -> bool {
        self.tight.load(Ordering::Relaxed)
    }

    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed) > 0
    }

    pub fn all_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed) >= self.destinations
    }

    pub fn waits(&self) -> Waits {
        let read = |total: &AtomicU64| total.load(Ordering::Relaxed);
        let mut waits = Waits { held_ns: read(&self.held_ns), limited_ns: read(&self.limited_ns) };
        if !self.is_tight() {
            return waits;
        }
        let queue = self.lock();
        waits = Waits { held_ns: read(&self.held_ns), limited_ns: read(&self.limited_ns) };
        let since = |from: Option<u64>| from.map_or(0, |from_ns| now_ns().saturating_sub(from_ns));
        waits.held_ns += since(queue.held_since_ns);
        waits.limited_ns += since(queue.limited_since_ns);
        waits
    }

    pub fn add(&self, mut queue: MutexGuard<'_, Queue>, to: usize, bytes: &[u8], marks: &[u8]) {
        queue.bytes += bytes.len() + marks.len();
        match queue.jobs.back_mut() {
            Some(Job::Write(block))
                if block.to == to && block.len() + bytes.len() <= BLOCK_BYTES =>
            {
                block.bytes.extend_from_slice(bytes);
                block.marks.extend_from_slice(marks);
            }
            _ => {
                let mut block = queue.spare.pop().unwrap_or_default();
                block.to = to;
                block.bytes.extend_from_slice(bytes);
                block.marks.extend_from_slice(marks);
                queue.jobs.push_back(Job::Write(block));
            }
        }
        if queue.bytes >= ASK_BYTES && !queue.tight {
            queue.tight = true;
            self.tight.store(true, Ordering::Relaxed);
        }
        if queue.bytes >= QUEUE_BYTES && queue.held_since_ns.is_none() {
            let now_ns = now_ns();
            queue.held_since_ns = Some(now_ns);
            queue.limited_since_ns.get_or_insert(now_ns);
            self.full.store(true, Ordering::Relaxed);
        }
        // Less than a block is looked for from time to time: a call for each piece would cost more than its writing.
        if queue.asleep && queue.bytes >= BLOCK_BYTES {
            queue.asleep = false;
            self.work.notify_one();
        }
    }

    pub fn push_urgent(&self, job: Job) {
        let mut queue = self.lock();
        queue.jobs.push_back(job);
        queue.urgent = true;
        queue.asleep = false;
        self.work.notify_one();
    }

    pub fn wait_for_room<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.room.wait_timeout(queue, GATHER).unwrap_or_else(PoisonError::into_inner).0
    }

    pub fn close(&self) {
        self.lock().closing = true;
        self.work.notify_one();
    }

    /// The next jobs, once there is enough to do; none at the end.
    fn next_jobs(&self) -> Option<VecDeque<Job>> {
        let mut queue = self.lock();
        let mut gathered = false;
        loop {
            let enough = queue.bytes >= BLOCK_BYTES || queue.urgent || gathered;
            if queue.closing || (enough && !queue.jobs.is_empty()) {
                break;
            }
            queue.asleep = true;
            let waited = self.work.wait_timeout(queue, GATHER);
            let timeout;
            (queue, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            gathered = timeout.timed_out();
        }
        (queue.asleep, queue.urgent) = (false, false);
        let jobs = std::mem::take(&mut queue.jobs);
        (!jobs.is_empty()).then_some(jobs)
    }

    /// A block is written, or given up.
    fn written(&self, mut block: Block) {
        let mut queue = self.lock();
        queue.bytes -= block.len();
        block.bytes.clear();
        block.marks.clear();
        if queue.spare.len() < SPARE_MAX && block.bytes.capacity() <= 2 * BLOCK_BYTES {
            queue.spare.push(block);
        }
        if queue.bytes > ROOM_BYTES || !queue.tight {
            return;
        }
        let now_ns = now_ns();
        let passed =
            |since_ns: Option<u64>| since_ns.map_or(0, |at_ns| now_ns.saturating_sub(at_ns));
        self.held_ns.fetch_add(passed(queue.held_since_ns.take()), Ordering::Relaxed);
        self.limited_ns.fetch_add(passed(queue.limited_since_ns.take()), Ordering::Relaxed);
        queue.tight = false;
        self.full.store(false, Ordering::Relaxed);
        self.tight.store(false, Ordering::Relaxed);
        self.room.notify_all();
    }

    fn fail(&self, destination: usize, error: &io::Error) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.push((destination, error.to_string()));
        self.failed.store(errors.len(), Ordering::Relaxed);
    }
}

/// A destination; after its first error nothing more is written to it: a file with a hole is worse than a short one.
struct Written {
    writer: Writer,
    failed: bool,
}

/// The work of the thread.
pub(super) fn write_all(shared: &Shared, writers: Vec<Writer>, mut on_marks: OnMarks) {
    let mut all: Vec<Written> =
        writers.into_iter().map(|writer| Written { writer, failed: false }).collect();
    while let Some(jobs) = shared.next_jobs() {
        for job in jobs {
            match job {
                Job::Write(block) => {
                    let own = &mut all[block.to];
                    if !own.failed {
                        match own.writer.write(&block.bytes) {
                            Ok(()) => on_marks(&block.marks),
                            Err(error) => {
                                own.failed = true;
                                shared.fail(block.to, &error);
                            }
                        }
                    }
                    shared.written(block);
                }
                Job::Checkpoint(then) => then(reach(shared, &mut all)),
            }
        }
    }
    // Without a last checkpoint, all that can still be written is kept.
    for own in &mut all {
        let _ = own.writer.checkpoint();
    }
}

/// Hands everything to the system.
fn reach(shared: &Shared, all: &mut [Written]) -> Result<Reached, String> {
    let mut reached = Reached { lengths: Vec::new(), files: Vec::new() };
    for (index, own) in all.iter_mut().enumerate().filter(|(_, own)| !own.failed) {
        match own.writer.checkpoint() {
            Ok(length) => {
                reached.lengths.push(length);
                reached.files.push(own.writer.system_file());
            }
            Err(error) => {
                own.failed = true;
                shared.fail(index, &error);
            }
        }
    }
    let errors = shared.errors.lock().unwrap_or_else(PoisonError::into_inner);
    match errors.first() {
        None => Ok(reached),
        Some((_, error)) => Err(error.clone()),
    }
}
