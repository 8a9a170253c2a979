//! Requests under way.

use plimsoll_core::recorder::Times;
use plimsoll_wire::{Protocol, Submission};

/// One request between becoming due and its end.
pub(super) struct Flight<P: Protocol> {
    pub request: P::Request,
    pub what: Submission,
    pub client: u32,
    pub connection: u32,
    pub times: Times,
    /// Whether the connection had carried a request before this one.
    pub on_kept_connection: bool,
    pub retried: bool,
    /// Whether the target may have done it: it was encoded for a connection, and nobody has vouched that it was not done.
    pub may_be_done: bool,
    /// Where it stands in its connection's list.
    pub place: u32,
    /// The connection that it was lost with, while it waits to be sent again.
    pub lost_on: u32,
    /// How often it was sent again because its peer vouched that it had not looked at it, or had undone it.
    pub resent: u8,
    pub measured: bool,
}

impl<P: Protocol> Flight<P> {
    /// Begins anew with the request that is in its buffer.
    #[inline]
    pub fn begin(
        &mut self,
        what: Submission,
        client: u32,
        connection: u32,
        times: Times,
        measured: bool,
    ) {
        self.what = what;
        self.client = client;
        self.connection = connection;
        self.times = times;
        self.on_kept_connection = false;
        self.retried = false;
        self.may_be_done = false;
        self.resent = 0;
        self.lost_on = NOWHERE;
        self.measured = measured;
    }
}

/// All requests of a shard that are under way. Slots and their request buffers are used again.
pub(super) struct Flights<P: Protocol> {
    slots: Vec<Flight<P>>,
    free: Vec<u32>,
    /// When each slot's request times out, ns; dense, because all are looked at together.
    deadlines: Vec<u64>,
}

/// The connection of a request that waits for one.
pub(super) const NOWHERE: u32 = u32::MAX;

/// No deadline.
const NEVER: u64 = u64::MAX;

impl<P: Protocol> Flights<P> {
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), deadlines: Vec::new() }
    }

    /// How many are under way.
    pub fn len(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// A slot for a new request; its request buffer still holds an earlier one.
    #[inline]
    pub fn take_slot(&mut self) -> u32 {
        if let Some(tag) = self.free.pop() {
            return tag;
        }
        self.slots.push(Flight {
            request: P::Request::default(),
            what: Submission::default(),
            client: 0,
            connection: 0,
            times: Times::default(),
            on_kept_connection: false,
            retried: false,
            may_be_done: false,
            place: 0,
            lost_on: NOWHERE,
            resent: 0,
            measured: true,
        });
        self.deadlines.push(NEVER);
        (self.slots.len() - 1) as u32
    }

    /// All requests in flight.
    pub fn in_use(&self) -> Vec<u32> {
        let mut is_free = vec![false; self.slots.len()];
        self.free.iter().for_each(|&tag| is_free[tag as usize] = true);
        (0..self.slots.len() as u32).filter(|&tag| !is_free[tag as usize]).collect()
    }

    /// Gives a slot back.
    #[inline]
    pub fn release(&mut self, tag: u32) {
        self.deadlines[tag as usize] = NEVER;
        self.free.push(tag);
    }

    pub fn get(&self, tag: u32) -> &Flight<P> {
        &self.slots[tag as usize]
    }

    pub fn get_mut(&mut self, tag: u32) -> &mut Flight<P> {
        &mut self.slots[tag as usize]
    }

    pub fn set_deadline(&mut self, tag: u32, deadline_ns: u64) {
        self.deadlines[tag as usize] = deadline_ns;
    }

    /// The earliest deadline of all.
    pub fn first_deadline_ns(&self) -> u64 {
        self.deadlines.iter().copied().min().unwrap_or(NEVER)
    }

    /// When a request times out, ns.
    pub fn deadline_ns(&self, tag: u32) -> u64 {
        self.deadlines[tag as usize]
    }

    /// The first request from slot `from` on whose deadline has come.
    pub fn overdue(&self, now_ns: u64, from: u32) -> Option<u32> {
        let later = self.deadlines.get(from as usize..)?;
        later.iter().position(|&d| d <= now_ns).map(|place| from + place as u32)
    }

    /// Nothing was received for so long, ns, and that was not for the target's sake: the times of all that is in flight, and
    /// its deadlines, move on with the clock.
    pub fn postpone(&mut self, passed_ns: u64) {
        for (flight, deadline) in self.slots.iter_mut().zip(&mut self.deadlines) {
            if *deadline != NEVER {
                *deadline = deadline.saturating_add(passed_ns);
            }
            flight.times.intended_ns += passed_ns;
            flight.times.sent_ns += passed_ns;
        }
    }

    /// Makes every request overdue at `now_ns`.
    pub fn all_overdue(&mut self, now_ns: u64) {
        for deadline in self.deadlines.iter_mut().filter(|d| **d != NEVER) {
            *deadline = (*deadline).min(now_ns);
        }
    }
}
