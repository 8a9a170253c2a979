//! Connections that have not shown the token. They are bounded, and the oldest make room for new ones: a browser with the token
//! reaches the page even if others hold all connections and send nothing.

use plimsoll_core::clock::now_ns;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::{AbortHandle, Id};

/// Most of them at once.
pub const STRANGERS_MAX: usize = 256;
/// Most that are ended together.
const ENDED_MAX: usize = STRANGERS_MAX / 4;
/// Time in which a connection can show the token, however many others come. New ones wait in the listening socket's queue for
/// the rest of it.
pub const GRACE: Duration = Duration::from_millis(50);
/// Shortest wait for room: the requests that the sockets hold already are read within it.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// One of them.
struct Stranger {
    connection: AbortHandle,
    since_ns: u64,
}

/// The connections without the token, in the order in which they came.
#[derive(Default)]
pub struct Strangers(Mutex<VecDeque<Stranger>>);

impl Strangers {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Stranger>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for one more. If there are too many, ends those whose [`GRACE`] is over. Must be called by a
    /// task, which runs after the tasks of the connections that were woken before it.
    pub async fn make_room(&self) {
        while let Some(wait) = self.wait() {
            tokio::time::sleep(wait).await;
            self.end_old();
        }
    }

    /// Time until the oldest can be ended; `None` if there is room.
    fn wait(&self) -> Option<Duration> {
        let all = self.lock();
        let oldest = all.front().filter(|_| all.len() >= STRANGERS_MAX)?;
        let age = Duration::from_nanos(now_ns().saturating_sub(oldest.since_ns));
        Some(GRACE.saturating_sub(age).max(WAIT_MIN))
    }

    /// Ends the oldest if there are too many.
    fn end_old(&self) {
        let mut all = self.lock();
        let before_ns = now_ns().saturating_sub(GRACE.as_nanos() as u64);
        if all.len() < STRANGERS_MAX {
            return;
        }
        let old = all.iter().take(ENDED_MAX).take_while(|one| one.since_ns <= before_ns).count();
        all.drain(..old).for_each(|one| one.connection.abort());
    }

    /// Takes a new connection in.
    pub fn add(&self, connection: AbortHandle) {
        self.lock().push_back(Stranger { connection, since_ns: now_ns() });
    }

    /// A connection has shown the token, or has ended.
    pub fn remove(&self, connection: Id) {
        self.lock().retain(|other| other.connection.id() != connection);
    }
}
