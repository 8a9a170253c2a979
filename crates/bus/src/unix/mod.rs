//! A bus over a Unix socket, for the processes of one machine. One process is the hub; it notices at once when another is gone, and
//! the others notice at once when the hub is.

pub(crate) mod frame;
mod hub;
mod outbox;
#[cfg(test)]
mod tests;

pub use hub::Hub;

use crate::bus::{Bus, BusError, Link, PUBLISH_WAIT_MAX, Subscription, check_payload};
use crate::queue::{Bounds, Queue, Reader};
use crate::subject;
use frame::{Frame, published};
use outbox::Outbox;
use plimsoll_core::clock::now_ns;
use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time for the hub to confirm a subscription.
const SUBSCRIBE_WITHIN: Duration = Duration::from_secs(5);
/// Pause between two attempts at a hub that is not there yet.
const ABSENT_PAUSE: Duration = Duration::from_millis(20);
/// Most bytes that wait for the hub.
const OUT_MAX: usize = 4 * 1024 * 1024;

/// A connection to a hub in another process. It does not connect again: a hub that is gone has ended the run.
pub struct UnixBus {
    shared: Arc<Shared>,
    stream: UnixStream,
    bounds: Bounds,
    next_id: AtomicU64,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    outbox: Arc<Outbox>,
    /// By the number of the subscription.
    queues: Mutex<HashMap<u64, Arc<Queue>>>,
    /// Time at which the hub was found gone; 0 while it is there.
    lost_ns: AtomicU64,
    asked: AtomicU64,
    /// The last question that the hub has answered.
    answered: Mutex<u64>,
    has_answered: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl UnixBus {
    /// Connects to the hub at this path; one that is not there yet is waited for.
    ///
    /// # Errors
    /// When there is no hub, or the user cannot open its socket.
    pub fn connect(path: &Path, bounds: Bounds, wait_for_hub: Duration) -> io::Result<Self> {
        let within_ns = u64::try_from(wait_for_hub.as_nanos()).unwrap_or(u64::MAX);
        let deadline_ns = now_ns().saturating_add(within_ns);
        let stream = loop {
            match UnixStream::connect(path) {
                Err(error) if is_absence(&error) && now_ns() < deadline_ns => {
                    std::thread::sleep(ABSENT_PAUSE);
                }
                result => break result?,
            }
        };
        let shared = Arc::new(Shared {
            outbox: Outbox::new(OUT_MAX),
            queues: Mutex::default(),
            lost_ns: 0.into(),
            asked: 0.into(),
            answered: Mutex::default(),
            has_answered: Condvar::new(),
        });
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let (out, outbox) = (stream.try_clone()?, shared.outbox.clone());
        let writer = named("bus-out").spawn(move || outbox.write_to(&out))?;
        let (input, own) = (stream.try_clone()?, shared.clone());
        let reader = named("bus-in").spawn(move || own.read_from(&input))?;
        let threads = vec![writer, reader];
        Ok(Self { shared, stream, bounds, next_id: 1.into(), threads })
    }

    fn check_link(&self) -> Result<(), BusError> {
        if self.state().is_connected() { Ok(()) } else { Err(BusError::Disconnected) }
    }

    fn send(&self, frame: Vec<u8>) -> Result<(), BusError> {
        self.check_link()?;
        self.shared.outbox.put(frame, PUBLISH_WAIT_MAX)
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

impl Bus for UnixBus {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        subject::check_published(subject)?;
        check_payload(payload)?;
        self.send(published(subject, payload))
    }

    fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError> {
        subject::check_subscribed(subject)?;
        self.check_link()?;
        let queue = Queue::new(self.bounds);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        lock(&self.shared.queues).insert(id, queue.clone());
        // From here on an error takes it off again.
        let reader = Reader::new(queue, End { id, shared: self.shared.clone() });
        self.send(Frame::Subscribe { id, subject: subject.to_owned() }.encode())?;
        self.flush(SUBSCRIBE_WITHIN)?;
        Ok(Box::new(reader))
    }

    fn flush(&self, within: Duration) -> Result<(), BusError> {
        let number = self.shared.asked.fetch_add(1, Ordering::Relaxed) + 1;
        self.send(Frame::Flush { number }.encode())?;
        let is_open = |answered: &mut u64| *answered < number && self.state().is_connected();
        let answered = lock(&self.shared.answered);
        let waited = self.shared.has_answered.wait_timeout_while(answered, within, is_open);
        match *waited.unwrap_or_else(PoisonError::into_inner).0 >= number {
            true => Ok(()),
            false => self.check_link().and(Err(BusError::NotInTime { within })),
        }
    }

    fn state(&self) -> Link {
        match self.shared.lost_ns.load(Ordering::Relaxed) {
            0 => Link::Connected,
            since_ns => Link::Disconnected { since_ns },
        }
    }
}

impl Drop for UnixBus {
    fn drop(&mut self) {
        // What was published goes out; then both threads find the end.
        self.shared.outbox.close();
        let writer = self.threads.remove(0);
        let _ = writer.join();
        let _ = self.stream.shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn read_from(&self, stream: &UnixStream) {
        let mut reader = BufReader::with_capacity(64 * 1024, stream);
        // A hub whose bytes are no frames is as good as gone.
        while let Ok(Some(frame)) = Frame::read(&mut reader) {
            match frame {
                Frame::Deliver { id, message } => {
                    if let Some(queue) = lock(&self.queues).get(&id) {
                        queue.push(message);
                    }
                }
                Frame::Lost { id, messages } => {
                    if let Some(queue) = lock(&self.queues).get(&id) {
                        queue.count_lost(messages);
                    }
                }
                Frame::Flushed { number } => {
                    let mut answered = lock(&self.answered);
                    *answered = number.max(*answered);
                    drop(answered);
                    self.has_answered.notify_all();
                }
                _ => break,
            }
        }
        self.lost_ns.store(now_ns().max(1), Ordering::Relaxed);
        self.outbox.close();
        let _ = stream.shutdown(Shutdown::Both);
        lock(&self.queues).values().for_each(|queue| queue.close());
        // Under its lock, so that no one begins to wait in between.
        drop(lock(&self.answered));
        self.has_answered.notify_all();
    }
}

/// Takes a subscription off the bus when it is dropped.
struct End {
    id: u64,
    shared: Arc<Shared>,
}

impl Drop for End {
    fn drop(&mut self) {
        lock(&self.shared.queues).remove(&self.id);
        // Without room the hub goes on to deliver what no one reads, which is dropped here.
        let frame = Frame::Unsubscribe { id: self.id }.encode();
        let _ = self.shared.outbox.put(frame, PUBLISH_WAIT_MAX);
    }
}
