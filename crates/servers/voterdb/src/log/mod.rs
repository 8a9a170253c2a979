//! The command log: what was done is written down before or soon after it is acknowledged, many calls at a time.
//!
//! All partitions append to one queue, and one thread writes the queue to the file, with one `fdatasync` for all that came
//! together while it was busy with the last: group commit. The order of the queue is one in which everything could have
//! happened, since partitions share no rows and a transaction over all of them stands behind what each did before.
//!
//! Files are numbered. `N.snapshot` has the rows from before `N.log`; a new number begins with a snapshot, after which older
//! files are removed. At a start the newest complete snapshot is read and then all logs from its number on. An incomplete
//! record at the end of the last log was never acknowledged and is cut off; any other damage is an error.

mod folder;
mod health;
mod record;
mod replay;
mod snapshot;

pub(crate) use folder::{Folder, Part};
pub(crate) use health::{SnapshotHealth, Tell};
pub(crate) use record::{Records, read_and_write};
pub(crate) use replay::{Found, LOG_MAGIC, replay};
pub(crate) use snapshot::{Rows, write_snapshot};

use super::message::Batch;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that may wait to be written; whoever appends more waits.
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// Time that a wait for room lasts before it is looked at again.
const ROOM_WAIT: Duration = Duration::from_millis(100);
/// Time that records come together before an asynchronous log is written.
const GATHER: Duration = Duration::from_millis(5);

/// The queue before the file.
#[derive(Debug)]
pub(crate) struct Log {
    queue: Mutex<Queue>,
    filled: Condvar,
    emptied: Condvar,
    /// True if answers wait for the disk.
    pub(crate) is_sync: bool,
    /// The number of the file that records now go to.
    number: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    records: Vec<u8>,
    batches: Vec<Batch>,
    /// Bytes of the file after which a new one begins.
    cut: Option<usize>,
    /// Calls whose answers wait.
    calls: usize,
    /// Number of them to wait for before the next write.
    wanted: usize,
    is_asleep: bool,
    is_closed: bool,
    has_failed: bool,
}

/// The entries that the writer took out of the queue.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) records: Vec<u8>,
    pub(crate) batches: Vec<Batch>,
    /// Calls in the batches.
    pub(crate) calls: usize,
    pub(crate) cut: Option<usize>,
    /// Nothing more will come.
    pub(crate) is_last: bool,
}

impl Log {
    /// A queue before the file of this number.
    pub(crate) fn new(is_sync: bool, number: u64) -> Self {
        Self {
            queue: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            is_sync,
            number: AtomicU64::new(number),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends records. Of the answers, only those that wait for the disk are taken; after a failure all are taken and
    /// dropped.
    pub(crate) fn append(&self, records: &mut Records, batches: &mut Vec<Batch>) {
        if records.is_empty() && (!self.is_sync || batches.is_empty()) {
            return;
        }
        let mut queue = self.lock();
        while queue.records.len() > QUEUE_BYTES_MAX && !queue.has_failed {
            let waited = self.emptied.wait_timeout(queue, ROOM_WAIT);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if queue.has_failed {
            records.move_to(&mut Vec::new());
            return batches.clear();
        }
        if !records.is_empty() {
            records.move_to(&mut queue.records);
        }
        if self.is_sync {
            queue.calls += batches.iter().map(|batch| batch.items.len()).sum::<usize>();
            queue.batches.append(batches);
        }
        let has_work = queue.records.len() + queue.batches.len() > 0 && queue.calls >= queue.wanted;
        let must_wake = has_work && std::mem::take(&mut queue.is_asleep);
        drop(queue);
        if must_wake {
            self.filled.notify_one();
        }
    }

    /// Begins a new file behind everything that was appended, and returns its number. Nothing while the file before it has
    /// not begun.
    pub(crate) fn cut(&self) -> Option<u64> {
        let mut queue = self.lock();
        if queue.cut.is_some() || queue.has_failed {
            return None;
        }
        queue.cut = Some(queue.records.len());
        queue.is_asleep = false;
        drop(queue);
        self.filled.notify_one();
        Some(self.number.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// No file has this number.
    pub(crate) fn next_number(&self) -> u64 {
        self.number.load(Ordering::Relaxed) + 1
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_one();
    }

    /// The file cannot be written: nothing is acknowledged from here on.
    pub(crate) fn fail(&self) {
        let mut queue = self.lock();
        queue.has_failed = true;
        queue.batches.clear();
        drop(queue);
        self.emptied.notify_all();
    }

    /// Returns true if the file cannot be written, so that no answer will come any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock().has_failed
    }

    /// Waits a little for the next calls of those who have just been answered, so that they share the next write with the
    /// calls that wait already. Otherwise clients who wait for their answers fall into two halves, each of which waits while the
    /// other half is written.
    /// False when they did not come.
    pub(crate) fn gather(&self, answered: usize, most: Duration) -> bool {
        let mut queue = self.lock();
        queue.wanted = queue.calls + answered;
        queue.is_asleep = true;
        let is_short = |queue: &mut Queue| {
            let is_short = queue.calls < queue.wanted && queue.cut.is_none() && !queue.is_closed;
            queue.is_asleep = is_short;
            is_short
        };
        let waited = self.filled.wait_timeout_while(queue, most, is_short);
        let (mut queue, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (queue.wanted, queue.is_asleep) = (0, false);
        !waited.timed_out()
    }

    /// Waits until there is something, or `most` has passed, and takes all of it.
    pub(crate) fn take(&self, taken: &mut Taken, most: Duration) {
        let has_work = |queue: &Queue| {
            !queue.records.is_empty()
                || !queue.batches.is_empty()
                || queue.cut.is_some()
                || queue.is_closed
        };
        let mut queue = self.lock();
        if !has_work(&queue) {
            queue.is_asleep = true;
            let waited = self.filled.wait_timeout_while(queue, most, |queue| !has_work(queue));
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            queue.is_asleep = false;
        }
        if !self.is_sync && !queue.is_closed && queue.cut.is_none() && has_work(&queue) {
            let is_open = |queue: &mut Queue| !queue.is_closed;
            let waited = self.filled.wait_timeout_while(queue, GATHER, is_open);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut taken.records, &mut queue.records);
        std::mem::swap(&mut taken.batches, &mut queue.batches);
        taken.calls = std::mem::take(&mut queue.calls);
        taken.cut = queue.cut.take();
        taken.is_last = queue.is_closed;
        drop(queue);
        self.emptied.notify_all();
    }
}
