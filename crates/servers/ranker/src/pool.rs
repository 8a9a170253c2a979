//! Threads that share out the parts of a request: a stage hands in as many tasks as it has and
//! waits until all are done, as in the original.
//!
//! The queue needs no limit of its own: whoever hands tasks in waits for them, so that there are
//! never more than the tasks of one stage for each request in service.

use plimsoll_serving::cpu_time::thread_cpu_ns;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A task, given what its thread has of its own.
type Task<L> = Box<dyn FnOnce(&mut L) + Send>;

/// A task has panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskFailed;

/// The results of all tasks together.
#[derive(Debug)]
pub(crate) struct Joined<T> {
    /// The results in the order of the tasks.
    pub(crate) results: Vec<T>,
    /// CPU time of all tasks, ns.
    pub(crate) cpu_ns: u64,
}

/// Threads with one line of tasks, first come first served.
pub(crate) struct Pool<L> {
    shared: Arc<Shared<L>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared<L> {
    queue: Mutex<Queue<L>>,
    available: Condvar,
}

struct Queue<L> {
    tasks: VecDeque<Task<L>>,
    is_closed: bool,
}

/// The tasks of one stage of one request.
struct Batch<T> {
    state: Mutex<BatchState<T>>,
    done: Condvar,
}

struct BatchState<T> {
    results: Vec<Option<T>>,
    left: usize,
    cpu_ns: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Tasks panic without holding a lock, so that what it guards is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<L: Send + 'static> Pool<L> {
    /// Starts the threads; `own` makes what each has of its own, on the thread itself.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(
        name: &str,
        threads: usize,
        own: impl Fn() -> L + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let queue = Mutex::new(Queue { tasks: VecDeque::new(), is_closed: false });
        let shared = Arc::new(Shared { queue, available: Condvar::new() });
        let own = Arc::new(own);
        let pool = Self { shared, threads: Mutex::new(Vec::with_capacity(threads)) };
        for number in 0..threads {
            let (shared, own) = (Arc::clone(&pool.shared), Arc::clone(&own));
            let thread =
                std::thread::Builder::new().name(format!("{name}-{number}")).spawn(move || {
                    let mut mine = own();
                    // What it was made from is not needed for as long as the thread lives.
                    drop(own);
                    shared.work(&mut mine);
                })?;
            lock(&pool.threads).push(thread);
        }
        Ok(pool)
    }

    /// Runs tasks 0 to `tasks - 1` and waits for all of them.
    ///
    /// # Errors
    /// When one has panicked. The others have run all the same.
    pub(crate) fn join<T: Send + 'static>(
        &self,
        tasks: usize,
        run: impl Fn(usize, &mut L) -> T + Send + Sync + 'static,
    ) -> Result<Joined<T>, TaskFailed> {
        let results = (0..tasks).map(|_| None).collect();
        let state = BatchState { results, left: tasks, cpu_ns: 0 };
        let batch = Arc::new(Batch { state: Mutex::new(state), done: Condvar::new() });
        let run = Arc::new(run);
        {
            let mut queue = lock(&self.shared.queue);
            for index in 0..tasks {
                let (batch, run) = (Arc::clone(&batch), Arc::clone(&run));
                queue.tasks.push_back(Box::new(move |own| batch.run(index, own, &*run)));
            }
        }
        self.shared.available.notify_all();
        let mut state = lock(&batch.state);
        while state.left > 0 {
            state = batch.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let results: Option<Vec<T>> = state.results.drain(..).collect();
        Ok(Joined { results: results.ok_or(TaskFailed)?, cpu_ns: state.cpu_ns })
    }

    /// Ends the threads once the queue is empty. No task may be submitted afterwards.
    pub(crate) fn stop(&self) {
        lock(&self.shared.queue).is_closed = true;
        self.shared.available.notify_all();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            let _ = thread.join();
        }
    }
}

impl<T> Batch<T> {
    fn run<L>(&self, index: usize, own: &mut L, run: &impl Fn(usize, &mut L) -> T) {
        let before_ns = thread_cpu_ns();
        // Whoever waits must learn of a panic, and the thread must outlive it.
        let result = catch_unwind(AssertUnwindSafe(|| run(index, own))).ok();
        let cpu_ns = thread_cpu_ns().saturating_sub(before_ns);
        let mut state = lock(&self.state);
        state.results[index] = result;
        state.cpu_ns += cpu_ns;
        state.left -= 1;
        if state.left == 0 {
            self.done.notify_all();
        }
    }
}

impl<L> Shared<L> {
    fn work(&self, own: &mut L) {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                drop(queue);
                task(own);
                queue = lock(&self.queue);
            } else if queue.is_closed {
                return;
            } else {
                queue = self.available.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_tasks() {
        let pool = Pool::start("test", 3, || 0u64).unwrap();
        for tasks in [0, 1, 2, 50] {
            let joined = pool.join(tasks, |index, _| index * index).unwrap();
            assert_eq!(joined.results, (0..tasks).map(|i| i * i).collect::<Vec<_>>());
        }
        pool.stop();
    }

    #[test]
    fn many_stages_share_the_threads() {
        let pool = Pool::start("test", 2, || ()).unwrap();
        std::thread::scope(|scope| {
            for stage in 0..8usize {
                let pool = &pool;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let joined = pool.join(4, move |index, ()| stage * 10 + index).unwrap();
                        let expected: Vec<_> = (0..4).map(|i| stage * 10 + i).collect();
                        assert_eq!(joined.results, expected);
                    }
                });
            }
        });
        pool.stop();
    }

    #[test]
    fn a_panic_is_told_and_the_thread_goes_on() {
        let pool = Pool::start("test", 1, || ()).unwrap();
        let failing = pool.join(3, |index, ()| assert_ne!(index, 1, "on purpose"));
        assert_eq!(failing.unwrap_err(), TaskFailed);
        assert_eq!(pool.join(2, |index, ()| index).unwrap().results, [0, 1]);
        pool.stop();
    }

    #[test]
    fn cpu_time_is_that_of_the_tasks() {
        let pool = Pool::start("test", 2, || ()).unwrap();
        let spun = pool.join(4, |_, ()| {
            let end_ns = thread_cpu_ns() + 3_000_000;
            while thread_cpu_ns() < end_ns {}
        });
        let cpu_ns = spun.unwrap().cpu_ns;
        assert!((12_000_000..16_000_000).contains(&cpu_ns), "{cpu_ns}");
        let slept = pool.join(2, |_, ()| std::thread::sleep(std::time::Duration::from_millis(5)));
        assert!(slept.unwrap().cpu_ns < 2_000_000);
        pool.stop();
    }
}
