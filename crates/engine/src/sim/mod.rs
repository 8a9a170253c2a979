//! The network in memory: virtual time, seeded peers, faults, and no threads.
//!
//! [`SimNet`] stands where the sockets stand. Time passes only in [`Net::wait`], which moves a
//! [`VirtualClock`] to the next thing that happens, so that a run of minutes takes milliseconds and
//! the same seed gives the same run. The behaviour of the servers is up to a [`Peer`]; [`http`] has one that
//! speaks HTTP/1.1 and misbehaves by the seed.

mod agenda;
pub mod http;
pub mod parts;
mod peer;
mod plan;
pub mod thread;
pub mod walk;

use crate::net::{Completion, Net, NetError, RoundTrip, WaitMode};
use crate::vitals::{Looks, VitalSigns, Waited};
use agenda::{Delivery, Entry, Happening};
pub use peer::{Act, Acts, Arrival, Link, Peer};
pub use plan::closed_plan;
use plimsoll_core::clock::{Clock, VirtualClock};
use plimsoll_core::rng::{Rng, derive_seed};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use thread::{Absent, Running, Thread};

/// Waits that end with nothing learnt and no time passed, one after the other, before the
/// simulation says that its caller hangs.
const IDLE_WAITS_MAX: u32 = 1_000;
/// Completions that one wait finds, as many as epoll is asked for.
const BATCH: usize = 512;
/// Most pieces that one piece of a peer's bytes is split into.
const PIECES_MAX: u64 = 6;
/// A send is never accepted in a smaller part than this, bytes.
const PART_MIN: usize = 64;

/// The client's end of a connection.
struct Line {
    key: u32,
    connected: bool,
    wants_write: bool,
    broken: Option<NetError>,
    /// Arrival of the last piece at the client, ns; later pieces do not come before it.
    last_in_ns: u64,
    /// The same at the peer, ns.
    last_out_ns: u64,
}

/// A network in memory on a virtual clock.
pub struct SimNet<P: Peer> {
    clock: VirtualClock,
    peer: Rc<RefCell<P>>,
    link: Link,
    rng: Rng,
    agenda: BinaryHeap<Reverse<Entry>>,
    planned: u64,
    /// The connection that each key stands for.
    keys: Vec<Option<u64>>,
    lines: BTreeMap<u64, Line>,
    connections: u64,
    /// Completions that no wait has found yet.
    ready: VecDeque<(u64, Delivery)>,
    /// The batch that the last wait found.
    batch: VecDeque<(u64, Delivery)>,
    acts: Acts,
    idle_ns: u64,
    /// CPU time of the thread's work, ns.
    cpu_ns: u64,
    looks: Looks,
    arrived_after_ns: u64,
    idle_waits: u32,
    thread: Running,
    /// CPU time of the completion that was taken last and is judged now, ns.
    owed_ns: u64,
}

impl<P: Peer> SimNet<P> {
    /// A network on `clock` whose every choice comes from `seed`. The peer is shared, so that the caller can
    /// ask it afterwards what it saw.
    pub fn new(clock: VirtualClock, peer: Rc<RefCell<P>>, link: Link, seed: u64) -> Self {
        Self {
            clock,
            peer,
            link,
            rng: Rng::new(derive_seed(seed, "sim-net")),
            agenda: BinaryHeap::new(),
            planned: 0,
            keys: Vec::new(),
            lines: BTreeMap::new(),
            connections: 0,
            ready: VecDeque::new(),
            batch: VecDeque::new(),
            acts: Vec::new(),
            idle_ns: 0,
            cpu_ns: 0,
            looks: Looks::default(),
            arrived_after_ns: 0,
            idle_waits: 0,
            thread: Running::default(),
            owed_ns: 0,
        }
    }

    /// Gives the thread that drives this network costs and absences; without them its work takes no time.
    #[must_use]
    pub fn driven_by(mut self, thread: Thread) -> Self {
        self.thread = Running::new(thread);
        self
    }

    /// Returns what a kernel would show of the thread's absences.
    pub fn absent(&mut self) -> Absent {
        self.thread.absent(self.clock.now_ns())
    }

    /// Lets the thread work for `cpu_ns`, which takes longer when it does not run all the time.
    fn work(&mut self, cpu_ns: u64) {
        let mut left_ns = cpu_ns;
        loop {
            let now_ns = self.clock.now_ns();
            let runs_ns = self.thread.resumes_ns(now_ns);
            if runs_ns > now_ns {
                self.pass(runs_ns, false);
                continue;
            }
            if left_ns == 0 {
                return;
            }
            let part_ns = left_ns.min(self.thread.interrupted_ns() - now_ns);
            self.pass(now_ns + part_ns, false);
            self.cpu_ns += part_ns;
            left_ns -= part_ns;
        }
    }

    /// Lets the thread come to the end of what it does with the completion that it took last.
    fn pay(&mut self) {
        let owed_ns = std::mem::take(&mut self.owed_ns);
        self.work(owed_ns);
    }

    /// Has `hook` called when the clock shows `at_ns`: a user who stops the run, say.
    pub fn at(&mut self, at_ns: u64, hook: impl FnOnce() + 'static) {
        self.plan(at_ns, Happening::Hook(Box::new(hook)));
    }

    fn plan(&mut self, at_ns: u64, what: Happening) {
        self.planned += 1;
        self.agenda.push(Reverse(Entry { at_ns, number: self.planned, what }));
    }

    fn latency_ns(&mut self) -> u64 {
        let spread_ns = self.link.latency_max_ns.saturating_sub(self.link.latency_min_ns);
        self.link.latency_min_ns + self.rng.below(spread_ns + 1)
    }

    /// Plans what the client learns, behind everything that it learns on this connection before.
    fn deliver(&mut self, connection: u64, sent_ns: u64, what: Delivery) {
        let at_ns = sent_ns + self.latency_ns();
        let Some(line) = self.lines.get_mut(&connection) else { return };
        line.last_in_ns = line.last_in_ns.max(at_ns);
        let at_ns = line.last_in_ns;
        self.plan(at_ns, Happening::ToClient(connection, what));
    }

    fn deliver_bytes(&mut self, connection: u64, sent_ns: u64, mut bytes: Vec<u8>) {
        if self.rng.below(1000) < self.link.split_per_mille {
            for _ in 1..PIECES_MAX {
                if bytes.len() < 2 {
                    break;
                }
                let cut = 1 + self.rng.below(bytes.len() as u64 - 1) as usize;
                let rest = bytes.split_off(cut);
                self.deliver(connection, sent_ns, Delivery::Bytes(bytes));
                bytes = rest;
            }
        }
        if !bytes.is_empty() {
            self.deliver(connection, sent_ns, Delivery::Bytes(bytes));
        }
    }

    fn enact(&mut self, connection: u64) {
        let now_ns = self.clock.now_ns();
        let mut acts = std::mem::take(&mut self.acts);
        for (after_ns, act) in acts.drain(..) {
            let at_ns = now_ns + after_ns;
            match act {
                Act::Bytes(bytes) => self.deliver_bytes(connection, at_ns, bytes),
                Act::Close => {
                    self.deliver(connection, at_ns, Delivery::Plain(Completion::Closed));
                }
                Act::Reset => {
                    let reset = Completion::Failed(NetError::Reset);
                    self.deliver(connection, at_ns, Delivery::Plain(reset));
                }
                Act::Wake(token) => self.plan(at_ns, Happening::Wake(connection, token)),
            }
        }
        self.acts = acts;
    }

    fn happen(&mut self, what: Happening) {
        let now_ns = self.clock.now_ns();
        match what {
            Happening::ToClient(connection, delivery) => {
                let Some(line) = self.lines.get_mut(&connection) else { return };
                match delivery {
                    Delivery::Plain(Completion::Connected) => line.connected = true,
                    Delivery::Plain(Completion::Failed(error)) => line.broken = Some(error),
                    _ => {}
                }
                self.ready.push_back((connection, delivery));
            }
            Happening::ToPeer(connection, bytes) => {
                let peer = self.peer.clone();
                peer.borrow_mut().received(connection, &bytes, now_ns, &mut self.acts);
                self.enact(connection);
            }
            Happening::Wake(connection, token) => {
                let peer = self.peer.clone();
                peer.borrow_mut().woken(connection, token, now_ns, &mut self.acts);
                self.enact(connection);
            }
            Happening::ClientClosed(connection) => self.peer.borrow_mut().closed(connection),
            Happening::Hook(hook) => hook(),
        }
    }

    /// Lets time pass up to `until_ns`, or only up to the first completion.
    fn pass(&mut self, until_ns: u64, to_first: bool) {
        while let Some(Reverse(entry)) = self.agenda.peek() {
            let now_ns = self.clock.now_ns();
            let enough = to_first && !self.ready.is_empty() && entry.at_ns > now_ns;
            if enough || entry.at_ns > until_ns.max(now_ns) {
                break;
            }
            let Some(Reverse(entry)) = self.agenda.pop() else { break };
            self.clock.advance_to(entry.at_ns);
            self.happen(entry.what);
        }
        if !to_first || self.ready.is_empty() {
            self.clock.advance_to(until_ns);
        }
    }

    fn line_of(&mut self, key: u32) -> Option<(u64, &mut Line)> {
        let connection = (*self.keys.get(key as usize)?)?;
        self.lines.get_mut(&connection).map(|line| (connection, line))
    }
}

impl<P: Peer> Net for SimNet<P> {
    fn connect(&mut self, key: u32, address: SocketAddr) -> Result<(), NetError> {
        self.close(key);
        if self.keys.len() <= key as usize {
            self.keys.resize(key as usize + 1, None);
        }
        self.connections += 1;
        let (connection, now_ns) = (self.connections, self.clock.now_ns());
        let arrival = self.peer.borrow_mut().connecting(connection, address, now_ns);
        if let Arrival::FailedAtOnce(error) = arrival {
            return Err(error);
        }
        self.keys[key as usize] = Some(connection);
        let line = Line {
            key,
            connected: false,
            wants_write: false,
            broken: None,
            last_in_ns: 0,
            last_out_ns: 0,
        };
        self.lines.insert(connection, line);
        match arrival {
            Arrival::Accepted { after_ns } => {
                let up = Delivery::Plain(Completion::Connected);
                self.deliver(connection, now_ns + after_ns, up);
            }
            Arrival::Failed { after_ns, error } => {
                let failed = Delivery::Plain(Completion::Failed(error));
                self.deliver(connection, now_ns + after_ns, failed);
            }
            Arrival::FailedAtOnce(_) | Arrival::Silence => {}
        }
        Ok(())
    }

    /// # Panics
    /// When the connection is not up yet: the caller is at fault.
    fn send(&mut self, key: u32, bytes: &[u8]) -> Result<usize, NetError> {
        self.pay();
        self.work(self.thread.send_ns());
        let (now_ns, latency_ns) = (self.clock.now_ns(), self.latency_ns());
        let in_part = self.rng.below(1000) < self.link.partial_per_mille;
        let room = bytes.len().saturating_sub(PART_MIN) as u64;
        let part = PART_MIN + self.rng.below(room + 1) as usize;
        let (connection, line) = self.line_of(key).ok_or(NetError::Reset)?;
        if let Some(error) = line.broken {
            return Err(error);
        }
        assert!(line.connected, "bytes were sent on a connection that is not up");
        if line.wants_write {
            return Ok(0);
        }
        let taken = if in_part { part.min(bytes.len()) } else { bytes.len() };
        line.wants_write = taken < bytes.len();
        line.last_out_ns = line.last_out_ns.max(now_ns + latency_ns);
        let at_ns = line.last_out_ns;
        self.peer.borrow_mut().sent(connection, now_ns);
        self.plan(at_ns, Happening::ToPeer(connection, bytes[..taken].to_vec()));
        if taken < bytes.len() {
            let writable = Delivery::Plain(Completion::Writable);
            self.plan(at_ns + latency_ns, Happening::ToClient(connection, writable));
        }
        Ok(taken)
    }

    fn close(&mut self, key: u32) {
        let Some(connection) = self.keys.get_mut(key as usize).and_then(Option::take) else {
            return;
        };
        let Some(line) = self.lines.remove(&connection) else { return };
        let at_ns = line.last_out_ns.max(self.clock.now_ns() + self.link.latency_min_ns);
        self.plan(at_ns, Happening::ClientClosed(connection));
    }

    /// # Panics
    /// When the caller waits a thousand times without any time passing: it would hang for ever.
    fn wait(&mut self, until_ns: u64, mode: WaitMode) {
        self.pay();
        let start_ns = self.clock.now_ns();
        let mut gathered_ns = None;
        let left_ns = until_ns.saturating_sub(start_ns);
        match mode {
            WaitMode::Sleep => {
                self.pass(until_ns, true);
                if self.clock.now_ns() > start_ns {
                    let late_ns = self.rng.below(self.link.oversleep_max_ns + 1);
                    self.pass(self.clock.now_ns() + late_ns, false);
                }
            }
            WaitMode::Spin { before_ns } if left_ns > before_ns => {
                self.pass(until_ns - before_ns, true);
            }
            WaitMode::Spin { .. } => self.pass(until_ns, true),
            WaitMode::Hold => self.pass(until_ns, false),
            WaitMode::Batch { gather_ns } => {
                self.pass(start_ns + gather_ns.min(left_ns), false);
                gathered_ns = Some(self.clock.now_ns());
                self.pass(until_ns, true);
            }
        }
        if self.thread.timers_late_ns() > 0 && self.ready.is_empty() {
            let late_ns = self.rng.below(self.thread.timers_late_ns() + 1);
            self.pass(self.clock.now_ns() + late_ns, true);
        }
        // It wakes when it may run again.
        self.work(0);
        // For an ideal thread a batch has no end: it would take the next one in the same moment.
        let most = if self.thread.completion_ns() > 0 { BATCH } else { usize::MAX };
        let found = self.ready.len().min(most.saturating_sub(self.batch.len()));
        self.batch.extend(self.ready.drain(..found));
        let passed_ns = self.clock.now_ns() - start_ns;
        self.idle_ns += passed_ns;
        let to_ns = self.clock.now_ns();
        let stops = self.thread.absent(to_ns).stops;
        let waited =
            Waited { from_ns: start_ns, to_ns, until_ns, gathered_ns, in_vain_ns: None, stops };
        self.arrived_after_ns = self.looks.arrived_after(&waited);
        let in_vain = passed_ns == 0 && self.batch.is_empty();
        self.idle_waits = if in_vain { self.idle_waits + 1 } else { 0 };
        assert!(self.idle_waits < IDLE_WAITS_MAX, "the caller waits and waits at {start_ns} ns");
    }

    fn next(&mut self, buffer: &mut [u8]) -> Option<(u32, Completion)> {
        self.pay();
        while let Some((connection, delivery)) = self.batch.pop_front() {
            // What belongs to a connection that was closed in the meantime is never delivered.
            let Some(line) = self.lines.get_mut(&connection) else { continue };
            let key = line.key;
            let completion = match delivery {
                Delivery::Plain(completion) => {
                    if completion == Completion::Writable {
                        line.wants_write = false;
                    }
                    completion
                }
                Delivery::Bytes(mut bytes) => {
                    let taken = bytes.len().min(buffer.len());
                    buffer[..taken].copy_from_slice(&bytes[..taken]);
                    if taken < bytes.len() {
                        bytes.drain(..taken);
                        self.batch.push_front((connection, Delivery::Bytes(bytes)));
                    }
                    Completion::Received(taken)
                }
            };
            if matches!(completion, Completion::Received(_)) {
                self.owed_ns = self.thread.completion_ns();
            }
            return Some((key, completion));
        }
        None
    }

    fn unread(&mut self, key: u32, buffer: &mut [u8]) -> usize {
        let Some(connection) = self.keys.get(key as usize).copied().flatten() else { return 0 };
        for queue in [&mut self.batch, &mut self.ready] {
            let is_own = |(own, what): &(u64, Delivery)| {
                *own == connection && matches!(what, Delivery::Bytes(_))
            };
            let Some(place) = queue.iter().position(is_own) else { continue };
            let Some((_, Delivery::Bytes(mut bytes))) = queue.remove(place) else { continue };
            let taken = bytes.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&bytes[..taken]);
            if taken < bytes.len() {
                bytes.drain(..taken);
                queue.insert(place, (connection, Delivery::Bytes(bytes)));
            }
            return taken;
        }
        0
    }

    fn round_trip(&self, key: u32) -> Option<RoundTrip> {
        let connection = (*self.keys.get(key as usize)?)?;
        self.lines.get(&connection).filter(|line| line.connected)?;
        Some(RoundTrip {
            min_us: (self.link.latency_min_ns / 500) as u32,
            smoothed_us: ((self.link.latency_min_ns + self.link.latency_max_ns) / 1000) as u32,
            retransmits: 0,
        })
    }

    fn idle_ns(&self) -> u64 {
        self.idle_ns
    }

    fn arrived_after_ns(&self) -> u64 {
        self.arrived_after_ns
    }

    fn vitals(&mut self) -> VitalSigns {
        let absent = self.thread.absent(self.clock.now_ns());
        VitalSigns {
            cpu_ns: self.cpu_ns,
            run_delay_ns: absent.run_delay_ns,
            timeslices: 0,
            throttled_ns: absent.throttled_ns,
            stolen_ns: absent.stolen_ns,
            stops: absent.stops,
        }
    }
}
