//! The way in: from the client library to the queues, and what it reports about the link.

use crate::bus::Message;
use crate::queue::Queue;
use async_nats::{Event, ServerError, Subscriber};
use bytes::Bytes;
use futures_core::Stream;
use plimsoll_core::clock::now_ns;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::task::{AbortHandle, unconstrained};

/// Most subjects that are remembered as forbidden.
const FORBIDDEN_MAX: usize = 256;
/// Longest wait between two looks at the state of the link.
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports of the client library about the link.
#[derive(Default)]
pub struct Watch {
    /// Time of the loss of the link; 0 while there is one.
    lost_ns: AtomicU64,
    forbidden: Mutex<BTreeSet<String>>,
    trouble: Mutex<Option<String>>,
    queues: Mutex<Vec<Weak<Queue>>>,
}

impl Watch {
    pub fn take(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.lost_ns.store(0, Ordering::Relaxed);
                *lock(&self.trouble) = None;
            }
            Event::Disconnected | Event::Closed => {
                self.since_ns();
            }
            // This happens only to a process that stands still for seconds. The library does not say which messages, so
            // every subscription counts one: too many are better than none.
            Event::SlowConsumer(_) => {
                lock(&self.queues).iter().filter_map(Weak::upgrade).for_each(|q| q.count_lost(1));
            }
            Event::ServerError(ServerError::Other(text)) => self.take_error(text),
            Event::ServerError(error) => *lock(&self.trouble) = Some(error.to_string()),
            Event::ClientError(error) => *lock(&self.trouble) = Some(error.to_string()),
            Event::LameDuckMode | Event::Draining => {}
        }
    }

    /// Reads `Permissions Violation for Publish to "a.b"`, and the same for subscriptions.
    fn take_error(&self, text: &str) {
        let mut parts = text.split('"');
        let is_permission = parts
            .next()
            .is_some_and(|words| words.to_lowercase().starts_with("permissions violation"));
        match parts.next() {
            Some(subject) if is_permission => {
                let mut forbidden = lock(&self.forbidden);
                if forbidden.len() < FORBIDDEN_MAX {
                    forbidden.insert(subject.to_owned());
                }
            }
            _ => *lock(&self.trouble) = Some(text.to_owned()),
        }
    }

    pub fn is_forbidden(&self, subject: &str) -> bool {
        lock(&self.forbidden).contains(subject)
    }

    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Returns the time of the loss; the first call after it sets it.
    pub fn since_ns(&self) -> u64 {
        let now = now_ns().max(1);
        let set = self.lost_ns.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        set.map_or_else(|earlier| earlier, |_| now)
    }

    /// Counts losses for this queue too, for as long as it exists.
    pub fn add(&self, queue: &Arc<Queue>) {
        let mut queues = lock(&self.queues);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }
}

/// The numbers of a connection's messages to itself. One that is back shows that the server has processed all before it.
#[derive(Default)]
pub struct Echo {
    sent: AtomicU64,
    back: Mutex<u64>,
    has_come: Condvar,
}

impl Echo {
    pub fn begin(&self) -> u64 {
        self.sent.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits a little for a number or a later one; returns true if it is back.
    pub fn wait_for(&self, number: u64, deadline_ns: u64) -> bool {
        let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns())).min(LOOK_EVERY);
        let back = lock(&self.back);
        let waited = self.has_come.wait_timeout_while(back, left, |back| *back < number);
        *waited.unwrap_or_else(PoisonError::into_inner).0 >= number
    }

    fn take(&self, payload: &[u8]) {
        let Ok(bytes) = payload.try_into() else { return };
        let mut back = lock(&self.back);
        *back = (*back).max(u64::from_le_bytes(bytes));
        drop(back);
        self.has_come.notify_all();
    }
}

/// Closes a queue when the task that fills it ends.
pub struct Closing(pub Arc<Queue>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Ends a task when its subscription is dropped.
pub struct End(pub AbortHandle);

impl Drop for End {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn next(subscriber: &mut Subscriber) -> Option<async_nats::Message> {
    std::future::poll_fn(|cx| Pin::new(&mut *subscriber).poll_next(cx)).await
}

/// Moves messages into a queue, all that there are in one go: unlike the library's, it counts what it drops.
pub async fn forward(mut subscriber: Subscriber, queue: Closing) {
    unconstrained(async {
        while let Some(message) = next(&mut subscriber).await {
            queue.0.push(Message {
                subject: message.subject.as_str().to_owned(),
                // A copy: the library's bytes would keep all that was read from the socket with them.
                payload: Bytes::copy_from_slice(&message.payload),
            });
        }
    })
    .await;
}

/// Moves the messages of a connection to itself.
pub async fn forward_echo(mut subscriber: Subscriber, echo: Arc<Echo>) {
    while let Some(message) = next(&mut subscriber).await {
        echo.take(&message.payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_nats::ServerError;

    #[test]
    fn a_forbidden_subject_is_remembered_by_name() {
        let watch = Watch::default();
        for text in [
            r#"Permissions Violation for Publish to "a.b""#,
            r#"permissions violation for subscription to "C.>""#,
        ] {
            watch.take(&Event::ServerError(ServerError::Other(text.to_owned())));
        }
        assert!(watch.is_forbidden("a.b") && watch.is_forbidden("C.>"));
        assert_eq!(watch.trouble(), None);
        watch.take(&Event::ServerError(ServerError::Other("stale connection".to_owned())));
        assert_eq!(watch.trouble().as_deref(), Some("stale connection"));
    }

    #[test]
    fn the_time_of_a_loss_stays_until_the_link_is_back() {
        let watch = Watch::default();
        watch.take(&Event::Disconnected);
        let since = watch.since_ns();
        assert!(since > 0 && watch.since_ns() == since);
        watch.take(&Event::Connected);
        assert!(watch.since_ns() >= since);
    }
}
