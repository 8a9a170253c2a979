//! Output of a run: a bounded queue, and the thread that packs, hashes and writes what stands in it.
//!
//! The thread that receives replies never waits for a disk or a pipe: it leaves bytes in the queue. When much waits,
//! sessions stop asking ([`Output::may_ask`]), so that replies in flight still find room and have their true times. When
//! too much waits all the same, nothing is received either ([`Output::is_full`]). How long that was is counted
//! ([`Output::waits`]), so that a slow disk does not look like a slow target.

mod queue;
#[cfg(test)]
mod tests;
mod writer;

use queue::{Job, Shared, write_all};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use queue::{ASK_BYTES, QUEUE_BYTES, Waits};
pub use writer::{Packing, Writer, lines_between};

/// State of all destinations at a checkpoint.
pub struct Reached {
    /// Length of each file, bytes; 0 for what is not a file.
    pub lengths: Vec<u64>,
    /// The files themselves, to be synced to the disk; none for what is not a file.
    pub files: Vec<Option<Arc<File>>>,
}

/// Takes the state at a checkpoint, or the error because of which there is none. It runs on the output's thread.
pub type OnCheckpoint = Box<dyn FnOnce(Result<Reached, String>) + Send>;

/// Looks at the marks of everything that was written, in order. It runs on the output's thread, where hashing costs no
/// request anything.
pub type OnMarks = Box<dyn FnMut(&[u8]) + Send>;

/// Destinations, and the thread that writes to them.
pub struct Output {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// True if nothing waits for the thread any more: its destination can be blocked for ever.
    abandoned: AtomicBool,
}

impl Output {
    /// An output to these destinations.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn to(writers: Vec<Writer>, on_marks: OnMarks) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(writers.len()));
        let thread = if writers.is_empty() {
            None
        } else {
            let own = shared.clone();
            let builder = std::thread::Builder::new().name("output".to_owned());
            Some(builder.spawn(move || write_all(&own, writers, on_marks))?)
        };
        Ok(Self { shared, thread, abandoned: AtomicBool::new(false) })
    }

    /// Returns whether anything is written at all.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.thread.is_some()
    }

    /// Leaves bytes for a destination in the queue; never waits for what they are written to. `marks` are given to the
    /// function that looks at them once the bytes are written.
    pub fn write(&self, to: usize, bytes: &[u8], marks: &[u8]) {
        if (bytes.is_empty() && marks.is_empty()) || self.takes_nothing() {
            return;
        }
        self.shared.add(self.shared.lock(), to, bytes, marks);
    }

    /// The same once there is room, for a thread that may wait for a disk.
    pub fn write_when_room(&self, to: usize, bytes: &[u8]) {
        if bytes.is_empty() || self.takes_nothing() {
            return;
        }
        let mut queue = self.shared.lock();
        while queue.is_tight() && !self.takes_nothing() && !self.abandoned.load(Ordering::Relaxed) {
            queue = self.shared.wait_for_room(queue);
        }
        self.shared.add(queue, to, bytes, b"");
    }

    fn takes_nothing(&self) -> bool {
        self.thread.is_none() || self.shared.all_failed()
    }

    /// Returns whether a session may ask for more. If not, this counts as waiting for the output until there is room.
    #[must_use]
    pub fn may_ask(&self) -> bool {
        !self.shared.is_tight() || self.shared.lock().let_wait()
    }

    /// Returns true if too much waits to receive more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.shared.is_full()
    }

    /// Returns the time for which the output was waited for so far.
    #[must_use]
    pub fn waits(&self) -> Waits {
        self.shared.waits()
    }

    /// Bytes that are not written yet.
    #[must_use]
    pub fn unwritten_bytes(&self) -> usize {
        self.shared.lock().bytes()
    }

    /// Returns why one of the destinations is no longer written: of the first that failed.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        if !self.shared.has_failed() {
            return None;
        }
        let errors = self.shared.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.first().map(|(_, error)| error.clone())
    }

    /// Returns every destination that failed, and why.
    #[must_use]
    pub fn errors(&self) -> Vec<(usize, String)> {
        self.shared.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has `then` called when everything before has been handed to the system: a resume may begin there.
    pub fn checkpoint(&self, then: OnCheckpoint) {
        if self.thread.is_none() {
            return then(Ok(Reached { lengths: Vec::new(), files: Vec::new() }));
        }
        self.shared.push_urgent(Job::Checkpoint(then));
    }

    /// Waits until everything before has been handed to the system, for as long as `goes_on` says. `None`: it said no, and
    /// some bytes are not written.
    pub fn finish(&self, goes_on: &mut dyn FnMut() -> bool) -> Option<Result<(), String>> {
        let (tell, told) = channel();
        self.checkpoint(Box::new(move |reached| {
            // An error means that the receiver is gone.
            let _ = tell.send(reached.map(drop));
        }));
        self.wait(&told, goes_on)
    }

    /// Waits for what comes of a checkpoint in the same way. An output that is not waited for is left to itself.
    pub fn wait<T>(&self, told: &Receiver<T>, goes_on: &mut dyn FnMut() -> bool) -> Option<T> {
        loop {
            match told.recv_timeout(Duration::from_millis(20)) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Timeout) if goes_on() => {}
                Err(_) => {
                    self.abandoned.store(true, Ordering::Relaxed);
                    return None;
                }
            }
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(thread) = self.thread.take()
            && !self.abandoned.load(Ordering::Relaxed)
        {
            // What a thread that died has written is whole blocks.
            let _ = thread.join();
        }
    }
}
