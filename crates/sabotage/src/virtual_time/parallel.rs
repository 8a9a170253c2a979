//! Runs side by side: they share nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// `each(0), each(1) ... each(count - 1)` in that order, worked out on all processors.
pub fn map<T: Send>(count: usize, each: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(count.max(1));
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return done;
            }
            done.push((at, each(at)));
        }
    };
    let mut results: Vec<(usize, T)> = thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Vec<(usize, T)>>| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        started.into_iter().flat_map(join).collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn results_are_in_order_and_complete() {
        assert_eq!(map(100, |n| n * n), (0..100).map(|n| n * n).collect::<Vec<_>>());
        assert!(map(0, |n| n).is_empty());
    }
}
