//! Room for connections: when it is full, the connection that has waited longest without a request in the server makes room for
//! a new one, so that thousands of silent or slow clients do not keep others out.

use plimsoll_core::clock::{MILLISECOND_NS, now_ns};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// Longest wait before a full room is looked at again: connections become idle without a word.
const GLANCE: Duration = Duration::from_millis(20);
/// Time in which a new connection does not make room for others: it can send its request, however many come after it.
const GRACE_NS: u64 = 50 * MILLISECOND_NS;

/// Room for a number of connections.
pub struct Room {
    most: usize,
    taken: AtomicUsize,
    /// Connections in the order in which they may have to go, each with the time when it was last seen at rest.
    line: Mutex<VecDeque<(u64, Weak<State>)>>,
    freed: Notify,
}

/// State of one connection.
struct State {
    /// Requests in the server.
    requests: AtomicUsize,
    /// Time at which it came, ns.
    came_ns: u64,
    /// Time at which it came, or at which its last request ended, ns.
    rests_since_ns: AtomicU64,
    must_go: AtomicBool,
    going: Notify,
}

/// The place of one connection, until it is dropped.
pub struct Seat {
    room: Arc<Room>,
    state: Arc<State>,
}

/// A request that has arrived whole and is not answered: its connection keeps its place meanwhile.
pub struct Served(Arc<State>);

impl Room {
    /// Room for `most` connections.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        let line = Mutex::new(VecDeque::new());
        Arc::new(Self { most, taken: AtomicUsize::new(0), line, freed: Notify::new() })
    }

    /// Waits for a place. In a full room, the connection that has been at rest longest has to go, of those that came at least 50 ms
    /// ago; if all have requests in the server, this waits for one of them. For one caller at a time.
    pub async fn seat(self: &Arc<Self>) -> Seat {
        loop {
            if self.taken.load(Ordering::Acquire) < self.most {
                return self.take();
            }
            let wait = GLANCE.min(Duration::from_nanos(self.send_away(GRACE_NS)));
            let _ = tokio::time::timeout(wait, self.freed.notified()).await;
        }
    }

    /// Waits until no connection is left.
    pub async fn emptied(&self) {
        while self.taken.load(Ordering::Acquire) > 0 {
            let _ = tokio::time::timeout(GLANCE, self.freed.notified()).await;
        }
    }

    fn take(self: &Arc<Self>) -> Seat {
        self.taken.fetch_add(1, Ordering::AcqRel);
        let now_ns = now_ns();
        let state = Arc::new(State {
            requests: AtomicUsize::new(0),
            came_ns: now_ns,
            rests_since_ns: AtomicU64::new(now_ns),
            must_go: AtomicBool::new(false),
            going: Notify::new(),
        });
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.len() > 2 * self.most {
            // Those that went by themselves are still in it.
            line.retain(|(_, state)| state.strong_count() > 0);
        }
        line.push_back((now_ns, Arc::downgrade(&state)));
        Seat { room: Arc::clone(self), state }
    }

    /// The connection that has been at rest longest has to go, also when the room is not full: the system has no file descriptors
    /// left.
    pub fn send_one_away(&self) {
        self.send_away(0);
    }

    /// Sends the connection away that has been at rest longest, of those that came at least `grace_ns` ago. Returns the time until
    /// another one will have, ns; `u64::MAX` if that need not be waited for.
    fn send_away(&self, grace_ns: u64) -> u64 {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ns = now_ns();
        let (mut new, mut left_ns) = (Vec::new(), u64::MAX);
        for _ in 0..line.len() {
            let Some((seen_ns, weak)) = line.pop_front() else { break };
            let Some(state) = weak.upgrade() else { continue };
            let since_ns = state.rests_since_ns.load(Ordering::Relaxed);
            if state.requests.load(Ordering::Acquire) > 0 || since_ns > seen_ns {
                line.push_back((since_ns, weak));
            } else if state.came_ns + grace_ns > now_ns {
                left_ns = left_ns.min(state.came_ns + grace_ns - now_ns);
                new.push((seen_ns, weak));
            } else {
                state.must_go.store(true, Ordering::Release);
                state.going.notify_one();
                left_ns = u64::MAX;
                break;
            }
        }
        new.into_iter().rev().for_each(|one| line.push_front(one));
        left_ns
    }
}

impl Seat {
    /// Returns when the connection has to go.
    pub async fn sent_away(&self) {
        while !self.state.must_go.load(Ordering::Acquire) {
            self.state.going.notified().await;
        }
    }

    /// A request has arrived whole; it is answered when this is dropped.
    #[must_use]
    pub fn serve(&self) -> Served {
        self.state.requests.fetch_add(1, Ordering::AcqRel);
        Served(Arc::clone(&self.state))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(1, Ordering::AcqRel);
        self.room.freed.notify_one();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.rests_since_ns.store(now_ns(), Ordering::Relaxed);
        self.0.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(future)
    }

    /// True if the connection has to go.
    fn goes(seat: &Seat) -> bool {
        seat.state.must_go.load(Ordering::Acquire)
    }

    #[test]
    fn the_connection_that_rested_longest_makes_room() {
        block_on(async {
            let room = Room::new(3);
            let (first, second, third) = (room.seat().await, room.seat().await, room.seat().await);
            // The first has a request in the server, the second had one.
            let served = first.serve();
            drop(second.serve());
            let waiting = tokio::spawn({
                let room = Arc::clone(&room);
                async move { room.seat().await }
            });
            third.sent_away().await;
            assert!(goes(&third) && !goes(&first) && !goes(&second));
            drop(third);
            let fourth = waiting.await.unwrap();
            assert!(!goes(&fourth));
            drop(served);
        });
    }

    #[test]
    fn a_new_connection_has_time_for_its_first_request() {
        block_on(async {
            let room = Room::new(1);
            let began_ns = now_ns();
            let new = room.seat().await;
            let waiting = tokio::time::timeout(GLANCE, room.seat());
            assert!(waiting.await.is_err());
            // A busy machine may wake this thread later than that.
            assert!(!goes(&new) || now_ns() - began_ns >= GRACE_NS);
            let waiting = tokio::spawn({
                let room = Arc::clone(&room);
                async move { room.seat().await }
            });
            new.sent_away().await;
            assert!(now_ns() - began_ns >= GRACE_NS);
            drop(new);
            waiting.await.unwrap();
        });
    }

    #[test]
    fn a_room_of_busy_connections_sends_none_of_them_away() {
        block_on(async {
            let room = Room::new(2);
            let seats = [room.seat().await, room.seat().await];
            let served = [seats[0].serve(), seats[1].serve()];
            let waiting = tokio::time::timeout(Duration::from_millis(100), room.seat());
            assert!(waiting.await.is_err() && !seats.iter().any(goes));
            drop(served);
            let waiting = tokio::spawn({
                let room = Arc::clone(&room);
                async move { room.seat().await }
            });
            tokio::select! {
                () = seats[0].sent_away() => {}
                () = seats[1].sent_away() => {}
            }
            drop(seats);
            let last = waiting.await.unwrap();
            drop(last);
            room.emptied().await;
        });
    }

    #[test]
    fn connections_that_went_by_themselves_are_forgotten() {
        block_on(async {
            let room = Room::new(4);
            for _ in 0..1_000 {
                drop(room.seat().await);
            }
            assert!(room.line.lock().unwrap().len() <= 9);
        });
    }
}
