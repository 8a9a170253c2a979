//! Threads that run queries, reads and scans: a fixed number, with a queue that has an end.

use plimsoll_serving::STACK_BYTES;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce() + Send>;

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull {
    /// Most jobs that may wait.
    pub limit: usize,
}

struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    available: Condvar,
    limit: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A job that panicked did so without the lock: the queue is whole.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bounded pool of threads.
pub struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Pool {
    /// Starts the threads. At most `limit` jobs wait for one of them.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(kind: &str, threads: usize, limit: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue { jobs: VecDeque::new(), closed: false }),
            available: Condvar::new(),
            limit,
        });
        let mut started = Vec::with_capacity(threads);
        for number in 0..threads.max(1) {
            let shared = Arc::clone(&shared);
            let name = format!("{kind}-{number}");
            let thread = std::thread::Builder::new().name(name).stack_size(STACK_BYTES);
            started.push(thread.spawn(move || work(&shared))?);
        }
        Ok(Self { shared, threads: Mutex::new(started) })
    }

    /// Queues a job, or refuses it at once.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<(), QueueFull> {
        let mut queue = self.shared.lock();
        if queue.closed || queue.jobs.len() >= self.shared.limit {
            return Err(QueueFull { limit: self.shared.limit });
        }
        queue.jobs.push_back(Box::new(job));
        drop(queue);
        self.shared.available.notify_one();
        Ok(())
    }

    /// Number of jobs that may wait.
    pub fn limit(&self) -> usize {
        self.shared.limit
    }

    /// Number of jobs that wait.
    pub fn waiting(&self) -> usize {
        self.shared.lock().jobs.len()
    }

    /// Drops the jobs that wait, and returns when the running ones have ended.
    pub fn stop(&self) {
        {
            let mut queue = self.shared.lock();
            queue.closed = true;
            queue.jobs.clear();
        }
        self.shared.available.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

fn work(shared: &Shared) {
    loop {
        let job = {
            let mut queue = shared.lock();
            loop {
                if let Some(job) = queue.jobs.pop_front() {
                    break job;
                }
                if queue.closed {
                    return;
                }
                queue = shared.available.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        };
        // The caller sees a panic as a missing answer; the thread must outlive it.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    }
}
