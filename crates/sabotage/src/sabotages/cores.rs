//! Core that a thread runs on, and neighbours that take it.

use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The cores that this process may use, the target's first: of one core both are the same.
#[must_use]
pub fn two() -> (usize, usize) {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let first = cores.next().unwrap_or(0);
    (first, cores.next().unwrap_or(first))
}

/// Binds this thread, and what it starts later, to a core. Where that is refused the run goes on without.
pub fn bind_to(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    let _ = sched_setaffinity(None, &set);
}

/// Threads that always have work; they end when dropped.
pub struct Neighbours {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Neighbours {
    /// Starts `count` of them on a core.
    #[must_use]
    pub fn on(core: usize, count: u32) -> Self {
        Self::started(Some(core), count)
    }

    /// Starts `count` of them on all cores that this process may use.
    #[must_use]
    pub fn anywhere(count: u32) -> Self {
        Self::started(None, count)
    }

    fn started(core: Option<usize>, count: u32) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let work = |_| {
            let over = over.clone();
            std::thread::spawn(move || {
                if let Some(core) = core {
                    bind_to(core);
                }
                let mut sum = 1u64;
                while !over.load(Ordering::Relaxed) {
                    sum = (0..10_000).fold(sum, |a, b| std::hint::black_box(a.wrapping_mul(b | 1)));
                }
                sum
            })
        };
        Self { threads: (0..count).map(work).collect(), over }
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
