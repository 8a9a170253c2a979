//! A bounded queue between a run and a receiver of its numbers, and the thread behind it.
//!
//! The run never waits for the queue. When the queue is full, the oldest entry is lost: of sums and of seconds the newest
//! say the most.

use plimsoll_core::clock::now_ns;
use plimsoll_core::priority::{StepBack, step_back};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Numbers of entries by their fate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Entries that were put in.
    pub put: u64,
    /// Entries that were taken and delivered.
    pub delivered: u64,
    /// Entries that were left out at the end because a later one says all that they say.
    pub superseded: u64,
    /// True if the last entry was delivered.
    pub is_complete: bool,
    /// The last error of the receiver.
    pub error: Option<String>,
}

impl Tally {
    /// Entries that are lost for good: an entry that a later one replaced is not, if that one was delivered.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        let missing = self.put - self.delivered;
        if self.is_complete { missing - self.superseded } else { missing }
    }
}

/// Delivers entries, one at a time.
pub trait Carrier: Send + 'static {
    /// Delivers one; it may wait until `limit_ns`, on the monotonic clock, and no longer.
    ///
    /// # Errors
    /// The reason, in words for users.
    fn carry(&mut self, entry: &[u8], limit_ns: u64) -> Result<(), String>;

    /// Longest time for one delivery while the run goes on.
    fn patience(&self) -> Duration;

    /// True if a later entry says all that an earlier one says: earlier ones are then left out at the end.
    fn is_cumulative(&self) -> bool;
}

#[derive(Debug, Default)]
struct Inside {
    waiting: VecDeque<Vec<u8>>,
    tally: Tally,
    /// Entries that gave way to newer ones, or failed.
    dropped: u64,
    /// When the run is over: the moment at which the thread gives up, ns on the monotonic clock.
    until_ns: Option<u64>,
    is_done: bool,
}

#[derive(Debug, Default)]
struct Shared {
    inside: Mutex<Inside>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The run's end of a queue.
#[derive(Debug)]
pub struct Queue {
    most: usize,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl Queue {
    /// A queue of at most `most` entries, with the thread that empties it.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(name: &str, most: usize, carrier: impl Carrier) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let inside = shared.clone();
        let thread = Builder::new().name(name.to_owned()).spawn(move || work(&inside, carrier))?;
        Ok(Self { most, shared, thread })
    }

    /// Puts an entry in; the oldest is lost if there is no room.
    pub fn put(&self, entry: Vec<u8>) {
        let mut inside = self.shared.lock();
        inside.tally.put += 1;
        // The last entry is this one now.
        inside.tally.is_complete = false;
        if inside.waiting.len() >= self.most {
            inside.waiting.pop_front();
            inside.dropped += 1;
        }
        inside.waiting.push_back(entry);
        drop(inside);
        self.shared.changed.notify_all();
    }

    /// Entries that are lost by now; those that wait are not.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }

    /// Waits until everything is delivered, but no longer than `limit`; then returns what became of it. The thread is left
    /// alone if it has not ended by then.
    #[must_use]
    pub fn finish(self, limit: Duration) -> Tally {
        let until_ns = later(limit);
        let mut inside = self.shared.lock();
        inside.until_ns = Some(until_ns);
        self.shared.changed.notify_all();
        while !inside.is_done {
            let left = left(until_ns);
            if left.is_zero() {
                break;
            }
            let waited = self.shared.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (tally, is_done) = (inside.tally.clone(), inside.is_done);
        drop(inside);
        if is_done {
            // It has nothing left to do; a panic in it has been counted as a loss.
            let _ = self.thread.join();
        }
        tally
    }
}

/// The moment `wait` from now, ns on the monotonic clock.
fn later(wait: Duration) -> u64 {
    now_ns().saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
}

/// Time left until a moment, ns on the monotonic clock.
#[must_use]
pub fn left(until_ns: u64) -> Duration {
    Duration::from_nanos(until_ns.saturating_sub(now_ns()))
}

/// Takes entries until the run is over and none is left.
fn work(shared: &Shared, mut carrier: impl Carrier) {
    step_back(StepBack::Behind);
    // However this ends, the run that waits for it learns of it.
    let _done = Done(shared);
    loop {
        let mut inside = shared.lock();
        let (entry, until_ns) = loop {
            if inside.until_ns.is_some() && carrier.is_cumulative() {
                while inside.waiting.len() > 1 {
                    inside.waiting.pop_front();
                    inside.tally.superseded += 1;
                }
            }
            if let Some(entry) = inside.waiting.pop_front() {
                break (entry, inside.until_ns);
            }
            if inside.until_ns.is_some() {
                return;
            }
            inside = shared.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        };
        drop(inside);
        deliver(shared, &mut carrier, &entry, until_ns);
    }
}

/// Delivers one entry. The last entry of a run is tried again until the time is up.
fn deliver(shared: &Shared, carrier: &mut impl Carrier, entry: &[u8], until_ns: Option<u64>) {
    const PAUSE: Duration = Duration::from_millis(100);
    loop {
        let patience_ns = later(carrier.patience());
        let limit_ns = until_ns.map_or(patience_ns, |until_ns| until_ns.min(patience_ns));
        let result = carrier.carry(entry, limit_ns);
        let mut inside = shared.lock();
        let is_last = inside.waiting.is_empty();
        match result {
            Ok(()) => {
                inside.tally.delivered += 1;
                inside.tally.is_complete = is_last;
                return;
            }
            Err(error) => {
                inside.tally.error = Some(error);
                let again = inside.until_ns.filter(|_| is_last && carrier.is_cumulative());
                if again.is_none_or(|until_ns| later(PAUSE) >= until_ns) {
                    inside.dropped += 1;
                    inside.tally.is_complete = false;
                    return;
                }
            }
        }
        drop(inside);
        std::thread::sleep(PAUSE);
    }
}

/// Tells the run that the thread has ended.
struct Done<'a>(&'a Shared);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.lock().is_done = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Delivers what the test lets through.
    struct Gate {
        results: Receiver<Result<(), String>>,
        seen: Sender<Vec<u8>>,
        is_cumulative: bool,
    }

    impl Carrier for Gate {
        fn carry(&mut self, entry: &[u8], limit_ns: u64) -> Result<(), String> {
            self.seen.send(entry.to_vec()).unwrap();
            self.results
                .recv_timeout(left(limit_ns))
                .unwrap_or_else(|_| Err("no answer in time".to_owned()))
        }

        fn patience(&self) -> Duration {
            Duration::from_secs(60)
        }

        fn is_cumulative(&self) -> bool {
            self.is_cumulative
        }
    }

    fn gate(is_cumulative: bool) -> (Queue, Sender<Result<(), String>>, Receiver<Vec<u8>>) {
        let (let_through, results) = channel();
        let (seen, carried) = channel();
        let queue = Queue::start("test", 16, Gate { results, seen, is_cumulative }).unwrap();
        (queue, let_through, carried)
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn everything_is_delivered_in_order() {
        let (queue, let_through, carried) = gate(false);
        for number in 0..5u8 {
            queue.put(vec![number]);
            let_through.send(Ok(())).unwrap();
        }
        let tally = queue.finish(LONG);
        assert_eq!((tally.put, tally.delivered, tally.lost(), tally.is_complete), (5, 5, 0, true));
        assert_eq!(carried.iter().collect::<Vec<_>>(), [[0], [1], [2], [3], [4]]);
    }

    #[test]
    fn a_receiver_that_does_not_answer_holds_nobody_up_and_costs_the_oldest() {
        let (queue, _let_through, carried) = gate(false);
        queue.put(vec![0]);
        assert_eq!(carried.recv_timeout(LONG), Ok(vec![0]));
        let before_ns = now_ns();
        for number in 1..100u8 {
            queue.put(vec![number]);
        }
        assert_eq!(queue.dropped(), 99 - 16);
        let tally = queue.finish(Duration::from_millis(50));
        assert!(now_ns() - before_ns < 5_000_000_000);
        assert_eq!((tally.put, tally.delivered, tally.is_complete), (100, 0, false));
    }

    #[test]
    fn a_receiver_that_hangs_on_the_last_entry_has_not_got_everything() {
        let (queue, let_through, carried) = gate(true);
        queue.put(vec![0]);
        let_through.send(Ok(())).unwrap();
        let before_ns = now_ns();
        while !queue.shared.lock().tally.is_complete {
            assert!(now_ns() - before_ns < 20_000_000_000, "it is not delivered");
            std::thread::sleep(Duration::from_millis(1));
        }
        queue.put(vec![1]);
        assert_eq!(carried.iter().take(2).collect::<Vec<_>>(), [[0], [1]]);
        let tally = queue.finish(Duration::from_millis(50));
        assert_eq!((tally.delivered, tally.lost(), tally.is_complete), (1, 1, false));
    }

    #[test]
    fn at_the_end_the_last_sum_is_tried_again_and_earlier_ones_are_left_out() {
        let (queue, let_through, carried) = gate(true);
        queue.put(vec![0]);
        assert_eq!(carried.recv_timeout(LONG), Ok(vec![0]));
        for number in 1..4u8 {
            queue.put(vec![number]);
        }
        let finishing = std::thread::spawn(move || queue.finish(LONG));
        std::thread::sleep(Duration::from_millis(50));
        for result in [Err("503".to_owned()), Err("503".to_owned()), Ok(())] {
            let_through.send(result).unwrap();
        }
        let tally = finishing.join().unwrap();
        assert_eq!(carried.iter().collect::<Vec<_>>(), [[3], [3]]);
        assert_eq!((tally.put, tally.delivered, tally.is_complete), (4, 1, true));
        assert_eq!((tally.superseded, tally.lost()), (2, 1), "the first one was refused");
        assert_eq!(tally.error.as_deref(), Some("503"));
    }
}
