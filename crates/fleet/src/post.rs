//! The thread between a machine and its bus: it takes packets in, and sends those that are due.

use plimsoll_bus::{Bus, BusError, Subscription};
use plimsoll_core::clock::now_ns;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time for which the thread does not look at the machine, ns.
const LOOK_EVERY_NS: u64 = 100_000_000;

/// Messages that are taken before what is due is sent: acknowledgements and answers to questions for the clock must not wait for all
/// messages that thousands of agents send at once.
const TAKEN_AT_ONCE: usize = 64;

/// A machine whose packets are moved.
pub trait Machine: Send + 'static {
    /// Takes the bytes of a message.
    fn receive(&mut self, bytes: &[u8], now_ns: u64);
    /// Messages to send now, each with the subject that it goes to.
    fn poll(&mut self, now_ns: u64) -> Vec<(String, Vec<u8>)>;
    /// Time until which nothing is to be sent if nothing arrives, ns.
    fn due_ns(&self, now_ns: u64) -> u64;
    /// Learns that the bus has ended for good.
    fn closed(&mut self) {}
}

struct Shared<M> {
    machine: Mutex<M>,
    changed: Condvar,
    bus: Arc<dyn Bus>,
    ended: AtomicBool,
    /// Bytes that were published, and that were received.
    sent: AtomicU64,
    received: AtomicU64,
}

/// A machine, and the thread that moves its packets.
pub struct Post<M: Machine> {
    shared: Arc<Shared<M>>,
    thread: Option<JoinHandle<()>>,
}

impl<M: Machine> Post<M> {
    /// Starts the thread, with a subscription to what is for this machine.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        machine: M,
        bus: Arc<dyn Bus>,
        inbox: Box<dyn Subscription>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            machine: Mutex::new(machine),
            changed: Condvar::new(),
            bus,
            ended: AtomicBool::new(false),
            sent: 0.into(),
            received: 0.into(),
        });
        let own = shared.clone();
        let thread = std::thread::Builder::new()
            .name("fleet".to_owned())
            .spawn(move || own.carry(&*inbox))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Does something with the machine, and sends what is due then.
    pub fn with<T>(&self, action: impl FnOnce(&mut M) -> T) -> T {
        let mut machine = self.shared.machine();
        let result = action(&mut machine);
        self.shared.send(&mut machine);
        drop(machine);
        self.shared.changed.notify_all();
        result
    }

    /// Waits until `look` finds something in the machine, or the time is over.
    pub fn wait<T>(&self, within: Duration, look: impl FnMut(&mut M) -> Option<T>) -> Option<T> {
        let mut look = look;
        let mut found = None;
        let mut machine = self.shared.machine();
        let until_ns = now_ns() + within.as_nanos() as u64;
        loop {
            if found.is_none() {
                found = look(&mut machine);
            }
            let left_ns = until_ns.saturating_sub(now_ns());
            if found.is_some() || left_ns == 0 {
                return found;
            }
            let left = Duration::from_nanos(left_ns);
            let waited = self.shared.changed.wait_timeout(machine, left);
            machine = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Bytes that were handed to the bus, and that came from it.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.shared.sent), load(&self.shared.received))
    }
}

impl<M: Machine> Drop for Post<M> {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that died has said so.
            let _ = thread.join();
        }
    }
}

impl<M: Machine> Shared<M> {
    fn machine(&self) -> MutexGuard<'_, M> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn carry(&self, inbox: &dyn Subscription) {
        while !self.ended.load(Ordering::Relaxed) {
            let now = now_ns();
            let due_ns = self.machine().due_ns(now).clamp(now, now + LOOK_EVERY_NS);
            let first = inbox.next(Duration::from_nanos(due_ns - now));
            let is_closed = matches!(first, Err(BusError::Closed));
            let mut machine = self.machine();
            let mut message = first.ok().flatten();
            let mut taken = 0;
            while let Some(own) = message {
                self.received.fetch_add(own.payload.len() as u64, Ordering::Relaxed);
                machine.receive(&own.payload, now_ns());
                taken += 1;
                let has_room = taken < TAKEN_AT_ONCE;
                message = has_room.then(|| inbox.next(Duration::ZERO).ok().flatten()).flatten();
            }
            if is_closed {
                machine.closed();
            }
            self.send(&mut machine);
            drop(machine);
            self.changed.notify_all();
            if is_closed {
                std::thread::sleep(Duration::from_nanos(LOOK_EVERY_NS));
            }
        }
    }

    fn send(&self, machine: &mut M) {
        for (subject, bytes) in machine.poll(now_ns()) {
            // What the bus does not take is sent again when no acknowledgement comes.
            if self.bus.publish(&subject, &bytes).is_ok() {
                self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
        }
    }
}
