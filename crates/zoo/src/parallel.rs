//! Searches side by side: they share nothing, so all processors may work on them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// `each(0), each(1) ... each(count - 1)` in that order, worked out on all processors.
pub fn map<T: Send>(count: u64, each: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, |n| n.get() as u64).min(count.max(1));
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
    let mut results: Vec<(u64, T)> = thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Vec<(u64, T)>>| match thread.join() {
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
        let squares = map(1000, |n| n * n);
        assert!(squares.iter().zip(0..).all(|(square, n): (&u64, u64)| *square == n * n));
        assert_eq!(squares.len(), 1000);
        assert!(map(0, |n| n).is_empty());
    }
}
