//! Requests in flight.
//!
//! Invariants: a slot is either free or in use, and is freed once for each time that it was taken, so that no request
//! ends twice; no deadline comes before the next scan of the deadlines.

use plimsoll_core::recorder::Times;
use plimsoll_wire::{Protocol, Submission};

/// One request between becoming due and its end.
pub(super) struct Flight<P: Protocol> {
    pub request: P::Request,
    pub what: Submission,
    pub client: u32,
    pub connection: u32,
    /// The target that it was written for.
    pub target: u32,
    pub times: Times,
    /// True if the connection had carried a request before this one.
    pub on_kept_connection: bool,
    pub retried: bool,
    /// True if the target may have done it: it was encoded for a connection, and no one has vouched that it was not done.
    pub may_be_done: bool,
    /// Position in its connection's list.
    pub place: u32,
    /// The connection that it was lost with, while it waits to be sent again.
    pub lost_on: u32,
    /// Number of times that it was sent again because its peer vouched that it had not looked at it, or had undone it.
    pub resent: u8,
    pub measured: bool,
    /// True if the slot holds a request that has not ended.
    in_use: bool,
}

impl<P: Protocol> Flight<P> {
    /// Begins again with the request that is in its buffer.
    #[inline]
    pub fn begin(
        &mut self,
        what: Submission,
        client: u32,
        (connection, target): (u32, u32),
        times: Times,
        measured: bool,
    ) {
        self.what = what;
        self.client = client;
        (self.connection, self.target) = (connection, target);
        self.times = times;
        self.on_kept_connection = false;
        self.retried = false;
        self.may_be_done = false;
        self.resent = 0;
        self.lost_on = NOWHERE;
        self.measured = measured;
    }
}

/// All requests of a shard that are in flight. Slots and their request buffers are used again.
pub(super) struct Flights<P: Protocol> {
    slots: Vec<Flight<P>>,
    free: Vec<u32>,
    /// Time at which each slot's request times out, ns; dense, because all are looked at together.
    deadlines: Vec<u64>,
    /// Time at which the deadlines are looked at next, ns: not after the first of them.
    next_scan_ns: u64,
}

/// The connection of a request that waits for one.
pub(super) const NOWHERE: u32 = u32::MAX;

/// No deadline.
const NEVER: u64 = u64::MAX;

impl<P: Protocol> Flights<P> {
    pub fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), deadlines: Vec::new(), next_scan_ns: NEVER }
    }

    /// The number that are in flight.
    #[inline]
    pub fn len(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A slot for a new request; its request buffer still holds an earlier one.
    #[inline]
    pub fn take_slot(&mut self) -> u32 {
        if let Some(tag) = self.free.pop() {
            self.slots[tag as usize].in_use = true;
            return tag;
        }
        self.slots.push(Flight {
            request: P::Request::default(),
            what: Submission::default(),
            client: 0,
            connection: 0,
            target: 0,
            times: Times::default(),
            on_kept_connection: false,
            retried: false,
            may_be_done: false,
            place: 0,
            lost_on: NOWHERE,
            resent: 0,
            measured: true,
            in_use: true,
        });
        self.deadlines.push(NEVER);
        (self.slots.len() - 1) as u32
    }

    /// Returns true if a slot holds a request that has not ended.
    pub fn is_in_use(&self, tag: u32) -> bool {
        self.slots.get(tag as usize).is_some_and(|flight| flight.in_use)
    }

    /// All requests in flight.
    pub fn in_use(&self) -> Vec<u32> {
        (0..self.slots.len() as u32).filter(|&tag| self.is_in_use(tag)).collect()
    }

    /// Gives a slot back.
    ///
    /// # Panics
    /// When it is free: a request would be counted twice.
    #[inline]
    pub fn release(&mut self, tag: u32) {
        let was_in_use = std::mem::take(&mut self.slots[tag as usize].in_use);
        assert!(was_in_use, "request {tag} ended twice");
        self.deadlines[tag as usize] = NEVER;
        self.free.push(tag);
    }

    #[inline]
    pub fn get(&self, tag: u32) -> &Flight<P> {
        &self.slots[tag as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, tag: u32) -> &mut Flight<P> {
        &mut self.slots[tag as usize]
    }

    #[inline]
    pub fn set_deadline(&mut self, tag: u32, deadline_ns: u64) {
        self.deadlines[tag as usize] = deadline_ns;
        self.next_scan_ns = self.next_scan_ns.min(deadline_ns);
    }

    /// Time at which the deadlines are to be looked at next, ns.
    #[inline]
    pub const fn next_scan_ns(&self) -> u64 {
        self.next_scan_ns
    }

    /// All whose deadline has come have ended: the next scan is due at the first deadline that is left.
    pub fn scanned(&mut self) {
        self.next_scan_ns = self.first_deadline_ns();
    }

    fn first_deadline_ns(&self) -> u64 {
        self.deadlines.iter().copied().min().unwrap_or(NEVER)
    }

    /// Time at which a request times out, ns.
    pub fn deadline_ns(&self, tag: u32) -> u64 {
        self.deadlines[tag as usize]
    }

    /// The first request from slot `from` on whose deadline has come.
    pub fn overdue(&self, now_ns: u64, from: u32) -> Option<u32> {
        let later = self.deadlines.get(from as usize..)?;
        later.iter().position(|&d| d <= now_ns).map(|place| from + place as u32)
    }

    /// Nothing was received for this long, ns, and that was not for the target's sake: the times of all that is in flight, and
    /// its deadlines, move on with the clock.
    pub fn postpone(&mut self, passed_ns: u64) {
        for (flight, deadline) in self.slots.iter_mut().zip(&mut self.deadlines) {
            if *deadline != NEVER {
                *deadline = deadline.saturating_add(passed_ns);
            }
            flight.times.intended_ns += passed_ns;
            flight.times.sent_ns += passed_ns;
        }
        self.next_scan_ns = self.next_scan_ns.saturating_add(passed_ns);
    }

    /// Makes every request overdue at `now_ns`.
    pub fn all_overdue(&mut self, now_ns: u64) {
        for deadline in self.deadlines.iter_mut().filter(|d| **d != NEVER) {
            *deadline = (*deadline).min(now_ns);
        }
        self.next_scan_ns = self.next_scan_ns.min(now_ns);
    }

    /// Checks what must hold of the slots.
    ///
    /// # Panics
    /// When it does not.
    pub fn audit(&self) {
        let used = self.slots.iter().filter(|flight| flight.in_use).count();
        assert_eq!(used, self.len() as usize, "a slot is free or in use");
        assert!(
            self.free.iter().all(|&tag| !self.is_in_use(tag)),
            "a slot that is in use is not free"
        );
        assert!(
            self.first_deadline_ns() >= self.next_scan_ns,
            "a deadline comes before the next scan"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_wire::http1::Http1;

    fn three() -> Flights<Http1> {
        let mut flights = Flights::new();
        for deadline_ns in [300, 100, 200] {
            let tag = flights.take_slot();
            flights.set_deadline(tag, deadline_ns);
        }
        flights.audit();
        flights
    }

    #[test]
    fn a_slot_is_used_again_once_its_request_has_ended() {
        let mut flights = three();
        assert_eq!((flights.len(), flights.in_use()), (3, vec![0, 1, 2]));
        flights.release(1);
        flights.audit();
        assert_eq!((flights.len(), flights.in_use()), (2, vec![0, 2]));
        assert_eq!(flights.deadline_ns(1), NEVER);
        assert_eq!((flights.take_slot(), flights.take_slot()), (1, 3));
        assert!(!flights.is_empty() && flights.is_in_use(3) && !flights.is_in_use(4));
        flights.audit();
    }

    #[test]
    #[should_panic(expected = "request 2 ended twice")]
    fn a_request_does_not_end_twice() {
        let mut flights = three();
        flights.release(2);
        flights.release(2);
    }

    #[test]
    fn deadlines_are_scanned_when_the_first_may_have_come() {
        let mut flights = three();
        assert_eq!(flights.next_scan_ns(), 100);
        assert_eq!((flights.overdue(99, 0), flights.overdue(200, 0)), (None, Some(1)));
        assert_eq!((flights.overdue(200, 2), flights.overdue(200, 3)), (Some(2), None));
        flights.release(1);
        assert_eq!(flights.next_scan_ns(), 100, "a scan may come early");
        flights.scanned();
        assert_eq!(flights.next_scan_ns(), 200);
        flights.all_overdue(150);
        assert_eq!((flights.next_scan_ns(), flights.deadline_ns(0)), (150, 150));
        assert_eq!(flights.deadline_ns(1), NEVER, "a free slot has no deadline");
        flights.audit();
    }

    #[test]
    fn a_pause_of_the_generator_moves_times_and_deadlines() {
        let mut flights = three();
        flights.get_mut(0).times = Times { intended_ns: 10, sent_ns: 20, done_ns: 0 };
        flights.release(1);
        flights.scanned();
        flights.postpone(1_000);
        let times = flights.get(0).times;
        assert_eq!((times.intended_ns, times.sent_ns), (1_010, 1_020));
        assert_eq!((flights.deadline_ns(0), flights.deadline_ns(1)), (1_300, NEVER));
        assert_eq!(flights.next_scan_ns(), 1_200);
        flights.audit();
    }
}
