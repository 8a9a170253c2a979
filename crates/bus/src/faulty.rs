//! A bus that fails on purpose: it loses, repeats, delays and reorders messages, and can be cut off.

use crate::bus::{Bus, BusError, Link, Message, Subscription, check_payload};
use crate::subject;
use bytes::Bytes;
use plimsoll_core::clock::now_ns;
use plimsoll_core::rng::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time between two looks at the partition.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Most messages that are held back; more are lost.
const HELD_MAX: usize = 65_536;
/// Longest time that a reordered message stays behind, if delays are shorter.
const BEHIND_MAX: Duration = Duration::from_millis(20);
/// Time after which a subscription through a silent link fails.
const SUBSCRIBE_WITHIN: Duration = Duration::from_secs(5);

/// Rates of the faults: each from 0 (never) to 1 (every message).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Share of messages that are lost.
    pub drop: f64,
    /// Share of messages that arrive twice.
    pub duplicate: f64,
    /// Share of messages that later ones overtake.
    pub reorder: f64,
    /// Longest delay; each message has one of its own, from 0 to this.
    pub delay_max: Duration,
}

/// Number of messages that met a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Injected {
    /// Lost.
    pub dropped: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Held back so that later ones overtake them.
    pub reordered: u64,
    /// Lost in a partition, in either direction.
    pub partitioned: u64,
}

/// State of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Open,
    /// Lost, and known to be.
    Cut { since_ns: u64 },
    /// Lost without a sign, as behind a switch that drops packets.
    Silent,
}

/// A bus with faults. They befall what is published through this connection; a partition befalls both directions.
pub struct Faulty<B: Bus + 'static> {
    shared: Arc<Shared<B>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<B> {
    bus: B,
    faults: Faults,
    fate: Mutex<Fate>,
    has_changed: Condvar,
    link: Arc<Gate>,
}

/// The dice for the next message, and the messages that wait for their time.
struct Fate {
    rng: Rng,
    /// By time and number.
    held: BTreeMap<(u64, u64), Message>,
    number: u64,
    /// Time before which no message that keeps the order may arrive.
    in_order_ns: u64,
    injected: Injected,
    is_over: bool,
}

/// The link, which tests switch.
#[derive(Default)]
struct Gate {
    mode: Mutex<Mode>,
    sides: Mutex<Vec<Weak<Side>>>,
    partitioned: AtomicU64,
}

/// A switch for the link of a [`Faulty`] bus, from any thread.
#[derive(Clone)]
pub struct Partition {
    gate: Arc<Gate>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Bus + 'static> Faulty<B> {
    /// Wraps a bus. The same seed gives the same faults to the same sequence of messages.
    #[must_use]
    pub fn new(bus: B, faults: Faults, seed: u64) -> Self {
        let fate = Fate {
            rng: Rng::new(seed),
            held: BTreeMap::new(),
            number: 0,
            in_order_ns: 0,
            injected: Injected::default(),
            is_over: false,
        };
        let shared = Arc::new(Shared {
            bus,
            faults,
            fate: Mutex::new(fate),
            has_changed: Condvar::new(),
            link: Arc::default(),
        });
        let own = Arc::clone(&shared);
        // Without the thread, which only a machine without memory refuses, delayed messages are lost.
        let thread = std::thread::Builder::new().name("faulty-bus".to_owned());
        let thread = thread.spawn(move || own.deliver()).ok();
        Self { shared, thread }
    }

    /// Returns the switch of the link.
    #[must_use]
    pub fn partition(&self) -> Partition {
        Partition { gate: Arc::clone(&self.shared.link) }
    }

    /// Returns the number of faults so far.
    #[must_use]
    pub fn injected(&self) -> Injected {
        let partitioned = self.shared.link.partitioned.load(Ordering::Relaxed);
        Injected { partitioned, ..lock(&self.shared.fate).injected }
    }
}

impl<B: Bus + 'static> Drop for Faulty<B> {
    fn drop(&mut self) {
        lock(&self.shared.fate).is_over = true;
        self.shared.has_changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Partition {
    /// Cuts the link, and both ends know it: calls fail, and what the other side publishes is lost.
    pub fn cut(&self) {
        self.gate.close(Mode::Cut { since_ns: now_ns() });
    }

    /// Cuts the link without a sign: calls succeed or wait, and everything is lost.
    pub fn silence(&self) {
        self.gate.close(Mode::Silent);
    }

    /// Heals the link. Messages published meanwhile stay lost.
    pub fn heal(&self) {
        self.gate.open();
    }
}

impl Gate {
    fn mode(&self) -> Mode {
        *lock(&self.mode)
    }

    fn count(&self, messages: u64) {
        self.partitioned.fetch_add(messages, Ordering::Relaxed);
    }

    fn sides(&self) -> Vec<Arc<Side>> {
        let mut sides = lock(&self.sides);
        sides.retain(|side| side.strong_count() > 0);
        sides.iter().filter_map(Weak::upgrade).collect()
    }

    fn close(&self, mode: Mode) {
        let before = std::mem::replace(&mut *lock(&self.mode), mode);
        if before == Mode::Open {
            // Messages that arrived before the cut are still to be read.
            self.sides().iter().for_each(|side| lock(&side.arrived).extend(side.drain()));
        }
    }

    fn open(&self) {
        self.sides().iter().for_each(|side| self.count(side.drain().len() as u64));
        *lock(&self.mode) = Mode::Open;
    }

    /// Waits while the link is silent; returns whether it is open.
    fn wait_open(&self, within: Duration) -> Result<(), BusError> {
        let deadline_ns = deadline(within);
        loop {
            match self.mode() {
                Mode::Open => return Ok(()),
                Mode::Cut { .. } => return Err(BusError::Disconnected),
                Mode::Silent if now_ns() >= deadline_ns => {
                    return Err(BusError::NotInTime { within });
                }
                Mode::Silent => std::thread::sleep(LOOK_EVERY),
            }
        }
    }
}

fn deadline(within: Duration) -> u64 {
    now_ns().saturating_add(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX))
}

impl Fate {
    /// Decides what happens to a message at this time.
    fn meet(&mut self, faults: &Faults, message: &Message) {
        // Every message draws the same number of times, so that its fate does not depend on the faults of others.
        let [drop, twice, behind] = [(); 3].map(|()| self.rng.uniform());
        let delays = [(); 3].map(|()| self.rng.uniform());
        if drop < faults.drop {
            self.injected.dropped += 1;
            return;
        }
        let now = now_ns();
        let delayed = |share: f64, longest: Duration| longest.mul_f64(share).as_nanos() as u64;
        let on_time_ns = self.in_order_ns.max(now + delayed(delays[0], faults.delay_max));
        if behind < faults.reorder {
            self.injected.reordered += 1;
            let longest = faults.delay_max.max(BEHIND_MAX);
            self.hold(on_time_ns + 1 + delayed(delays[1], longest), message);
        } else {
            self.in_order_ns = on_time_ns;
            self.hold(on_time_ns, message);
        }
        if twice < faults.duplicate {
            self.injected.duplicated += 1;
            self.hold(on_time_ns + delayed(delays[2], faults.delay_max), message);
        }
    }

    fn hold(&mut self, due_ns: u64, message: &Message) {
        if self.held.len() >= HELD_MAX {
            self.injected.dropped += 1;
            return;
        }
        self.number += 1;
        self.held.insert((due_ns, self.number), message.clone());
    }
}

impl<B: Bus> Shared<B> {
    /// Publishes what is due, until the bus is dropped.
    fn deliver(&self) {
        let mut fate = lock(&self.fate);
        while !fate.is_over {
            let now = now_ns();
            match fate.held.first_key_value().map(|((due_ns, _), _)| *due_ns) {
                Some(due_ns) if due_ns <= now => {
                    let Some((_, message)) = fate.held.pop_first() else { continue };
                    drop(fate);
                    self.pass(&message);
                    fate = lock(&self.fate);
                }
                Some(due_ns) => {
                    let left = Duration::from_nanos(due_ns - now);
                    let waited = self.has_changed.wait_timeout(fate, left);
                    fate = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => {
                    let waited = self.has_changed.wait(fate);
                    fate = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn pass(&self, message: &Message) {
        let is_lost = self.link.mode() != Mode::Open
            || self.bus.publish(&message.subject, &message.payload).is_err();
        if is_lost {
            self.link.count(1);
        }
    }
}

impl<B: Bus + 'static> Bus for Faulty<B> {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        subject::check_published(subject)?;
        check_payload(payload)?;
        match self.shared.link.mode() {
            Mode::Open => {}
            Mode::Cut { .. } => return Err(BusError::Disconnected),
            Mode::Silent => {
                self.shared.link.count(1);
                return Ok(());
            }
        }
        if self.shared.faults == Faults::default() {
            return self.shared.bus.publish(subject, payload);
        }
        let payload = Bytes::copy_from_slice(payload);
        let message = Message { subject: subject.to_owned(), payload };
        lock(&self.shared.fate).meet(&self.shared.faults, &message);
        self.shared.has_changed.notify_all();
        Ok(())
    }

    fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError> {
        let gate = &self.shared.link;
        gate.wait_open(SUBSCRIBE_WITHIN)?;
        let inner = Mutex::new(self.shared.bus.subscribe(subject)?);
        let side = Arc::new(Side { inner, arrived: Mutex::default(), gate: Arc::clone(gate) });
        lock(&gate.sides).push(Arc::downgrade(&side));
        Ok(Box::new(Behind(side)))
    }

    fn flush(&self, within: Duration) -> Result<(), BusError> {
        self.shared.link.wait_open(within)?;
        self.shared.bus.flush(within)
    }

    fn state(&self) -> Link {
        match self.shared.link.mode() {
            Mode::Cut { since_ns } => Link::Disconnected { since_ns },
            Mode::Open | Mode::Silent => self.shared.bus.state(),
        }
    }
}

/// A subscription behind the link.
struct Side {
    inner: Mutex<Box<dyn Subscription>>,
    /// Messages from before the link was cut.
    arrived: Mutex<VecDeque<Message>>,
    gate: Arc<Gate>,
}

impl Side {
    fn drain(&self) -> Vec<Message> {
        let inner = lock(&self.inner);
        let next = || inner.next(Duration::ZERO).ok().flatten();
        std::iter::from_fn(next).collect()
    }
}

struct Behind(Arc<Side>);

impl Subscription for Behind {
    fn next(&self, within: Duration) -> Result<Option<Message>, BusError> {
        let deadline_ns = deadline(within);
        loop {
            if let Some(message) = lock(&self.0.arrived).pop_front() {
                return Ok(Some(message));
            }
            let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns()));
            let slice = left.min(LOOK_EVERY);
            if self.0.gate.mode() == Mode::Open {
                // In slices, because a thread that cuts the link waits for this lock.
                if let Some(message) = lock(&self.0.inner).next(slice)? {
                    return Ok(Some(message));
                }
            } else {
                std::thread::sleep(slice);
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    fn lost(&self) -> u64 {
        lock(&self.0.inner).lost()
    }
}

#[cfg(test)]
mod tests;
