//! The start line: shards wait at it until all have opened their connections, and start at one agreed time.

use crate::shard::{Agreement, Part};
use plimsoll_core::clock::{MILLISECOND_NS, now_ns};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Shards come from the start line this long before an agreed start, and wait for the rest with their own timers.
const AHEAD_NS: u64 = 20 * MILLISECOND_NS;

/// The line at which shards wait for each other after their connections are open.
pub(super) struct StartLine {
    shards: usize,
    /// Agreed with others.
    not_before_ns: u64,
    agreement: Option<Arc<dyn Agreement>>,
    stop: Arc<AtomicBool>,
    standing: Mutex<Standing>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Standing {
    arrived: usize,
    start_ns: Option<u64>,
    given_up: bool,
}

impl StartLine {
    pub fn new(shards: usize, part: &Part, stop: Arc<AtomicBool>) -> Self {
        Self {
            shards,
            not_before_ns: part.start_ns.unwrap_or(0),
            agreement: part.agreement.clone(),
            stop,
            standing: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the others and returns the start that all agree on; `None` when one of them will not come.
    pub fn wait(&self) -> Option<u64> {
        let mut standing = self.standing();
        standing.arrived += 1;
        if standing.arrived == self.shards && !standing.given_up {
            drop(standing);
            let start_ns = self.agree();
            standing = self.standing();
            standing.start_ns = Some(start_ns);
            self.changed.notify_all();
        }
        while standing.start_ns.is_none() && !standing.given_up {
            standing = self.changed.wait(standing).unwrap_or_else(PoisonError::into_inner);
        }
        standing.start_ns.filter(|_| !standing.given_up)
    }

    /// Lets no one wait any longer: one of them will not come.
    pub fn give_up(&self) {
        self.standing().given_up = true;
        self.changed.notify_all();
    }

    /// The last one to come waits for a start that was agreed with others.
    fn agree(&self) -> u64 {
        let not_before_ns = match &self.agreement {
            None => self.not_before_ns,
            Some(agreement) => agreement.start_ns().unwrap_or_else(|| {
                // The shards find the flag set, and end in order without a request.
                self.stop.store(true, Ordering::Relaxed);
                0
            }),
        };
        while now_ns() + AHEAD_NS < not_before_ns && !self.stop.load(Ordering::Relaxed) {
            let left_ns = not_before_ns.saturating_sub(now_ns() + AHEAD_NS);
            std::thread::sleep(Duration::from_nanos(left_ns.min(10 * MILLISECOND_NS)));
        }
        not_before_ns.max(now_ns() + MILLISECOND_NS)
    }

    pub fn agreed_ns(&self) -> u64 {
        self.standing().start_ns.unwrap_or(0)
    }
}

/// A shard on its way to the line. Should it die before, it takes no one with it: the others are let go.
pub(super) struct OnTheWay<'a>(Option<&'a StartLine>);

impl<'a> OnTheWay<'a> {
    pub fn new(line: &'a StartLine) -> Self {
        Self(Some(line))
    }

    pub fn wait(mut self) -> Option<u64> {
        self.0.take().and_then(StartLine::wait)
    }
}

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        if let Some(line) = self.0 {
            line.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_start_at_the_same_time() {
        let line = StartLine::new(4, &Part::default(), Arc::default());
        let starts: Vec<Option<u64>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| OnTheWay::new(&line).wait())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(starts[0].is_some() && starts.iter().all(|start| *start == starts[0]));
        assert_eq!(starts[0], Some(line.agreed_ns()));
    }

    #[derive(Debug)]
    struct Fixed(Option<u64>);

    impl Agreement for Fixed {
        fn start_ns(&self) -> Option<u64> {
            self.0
        }
    }

    #[test]
    fn a_start_that_others_decide_is_waited_for() {
        let later_ns = now_ns() + 50 * MILLISECOND_NS;
        let with = |start| Part { agreement: Some(Arc::new(Fixed(start))), ..Part::default() };
        let (agreed, none) = (
            StartLine::new(1, &with(Some(later_ns)), Arc::default()),
            Arc::new(AtomicBool::new(false)),
        );
        assert_eq!(agreed.wait(), Some(later_ns));
        let line = StartLine::new(1, &with(None), none.clone());
        assert!(line.wait().is_some() && none.load(Ordering::Relaxed), "the run is stopped");
    }

    #[test]
    fn a_shard_that_dies_before_the_line_lets_the_others_go() {
        let line = StartLine::new(3, &Part::default(), Arc::default());
        std::thread::scope(|scope| {
            let waiting = [0, 1].map(|_| scope.spawn(|| OnTheWay::new(&line).wait()));
            let dying = scope.spawn(|| {
                let _on_the_way = OnTheWay::new(&line);
                std::panic::resume_unwind(Box::new("it dies"));
            });
            assert!(dying.join().is_err());
            assert!(waiting.into_iter().all(|thread| thread.join().unwrap().is_none()));
        });
    }
}
