//! The agenda of a shard: what is due, who waits to be let in, and who rests.
//!
//! Invariants: each request that the schedule has given is in the ledger or waits in the managed queue; each that has
//! entered the queue has left it or is in it; nothing is due once the schedule is done.

mod resting;

use super::{ShardPlan, UsersBefore};
use plimsoll_core::admission::{AdmissionModel, Due, ManagedQueue, Offer};
use plimsoll_core::schedule::{ModelError, Next, Schedule, Skipped, UserTurn};
pub(super) use resting::Rest;
use resting::Resting;

/// Future events that do not depend on the network.
pub(super) struct Agenda {
    schedule: Schedule,
    done: bool,
    /// Requests that the schedule has given and that were not taken back.
    given: u64,
    queue: Option<ManagedQueue>,
    /// Requests that have entered the queue, and that have left it.
    entered: u64,
    left: u64,
    /// Most requests in flight at once; all that fit when admission is direct.
    slots: u32,
    /// Time at which the last of all slots became free again, ns.
    slot_free_since_ns: u64,
    /// Since when each client could ask again, ns.
    client_free_since_ns: Vec<u64>,
    resting: Resting,
}

impl Agenda {
    /// The agenda of a plan, over connections that take `depth` requests each. Its schedule starts at 0.
    pub fn new(plan: &ShardPlan, depth: u32) -> Result<Self, ModelError> {
        let (queue, slots) = queue_and_slots(plan, depth);
        let clients = plan.model.clients().map_or(0, |c| plan.slice.share(u64::from(c)) as usize);
        Ok(Self {
            schedule: Schedule::start(&plan.model, plan.slice, plan.limits, plan.seed, 0)?,
            done: false,
            given: 0,
            queue,
            entered: 0,
            left: 0,
            slots,
            slot_free_since_ns: 0,
            client_free_since_ns: vec![0; clients],
            resting: Resting::default(),
        })
    }

    /// The schedule starts.
    pub fn begin(&mut self, plan: &ShardPlan, start_ns: u64) -> Result<(), ModelError> {
        assert_eq!(self.given, 0, "a schedule starts once");
        self.schedule = Schedule::start(&plan.model, plan.slice, plan.limits, plan.seed, start_ns)?;
        if let Some(UsersBefore { before_ns, answer_ns }) = plan.part.users_before {
            self.schedule.begin_before(before_ns, answer_ns);
        }
        Ok(())
    }

    /// Number of clients; 0 in models without clients.
    pub fn clients(&self) -> usize {
        self.client_free_since_ns.len()
    }

    /// Returns true if nothing becomes due any more.
    #[inline]
    pub const fn is_done(&self) -> bool {
        self.done
    }

    /// Returns true if admission is managed.
    #[inline]
    pub const fn is_managed(&self) -> bool {
        self.queue.is_some()
    }

    /// Returns the next event at `now_ns`.
    #[inline]
    pub fn next(&mut self, now_ns: u64) -> Next {
        debug_assert!(!self.done, "a schedule that is done is asked");
        let next = self.schedule.next(now_ns);
        match next {
            Next::Send { .. } => self.given += 1,
            Next::Done => self.done = true,
            Next::Wait { .. } | Next::Blocked => {}
        }
        next
    }

    /// Tells bursts that wait for each other how many requests are behind.
    #[inline]
    pub fn see_backlog(&mut self, backlog: u64, now_ns: u64) {
        self.schedule.see_backlog(backlog, now_ns);
    }

    /// Time at which the schedule wants to be asked again, ns, if it has not said more than `next_due_ns`.
    pub fn upcoming_ns(&self, next_due_ns: u64) -> u64 {
        match &self.schedule {
            Schedule::Paced(paced) if !self.done => paced.upcoming_ns(),
            _ => next_due_ns,
        }
    }

    /// Takes back a request of this client: nothing is left to ask.
    pub fn withdraw(&mut self, client: u32) {
        self.schedule.withdraw(client);
        self.given -= 1;
    }

    /// Takes back a request of this client, which rests.
    pub fn postpone(&mut self, client: u32) {
        self.schedule.postpone(client);
        self.given -= 1;
    }

    /// User of a request and the index of its request; `None` in models without users.
    #[inline]
    pub fn user_turn(&self, client: u32) -> Option<UserTurn> {
        self.schedule.user_turn(client)
    }

    /// Time at which whoever asks could ask, ns: a client that is behind its cycle is late for the target's sake, not for the
    /// generator's.
    #[inline]
    pub fn could_ask_ns(&self, due: Due) -> u64 {
        let client_free_ns = match self.schedule.user_turn(due.client) {
            Some(turn) => turn.free_ns,
            None => self.client_free_since_ns.get(due.client as usize).copied().unwrap_or(0),
        };
        due.intended_ns.max(client_free_ns)
    }

    /// A client may go on.
    #[inline]
    pub fn client_goes_on(&mut self, client: u32, intended_ns: u64, now_ns: u64) {
        if let Some(free_since_ns) = self.client_free_since_ns.get_mut(client as usize) {
            *free_since_ns = now_ns;
        }
        self.schedule.ended(client, intended_ns, now_ns);
    }

    /// Since when a slot was free, ns.
    #[inline]
    pub const fn slot_free_since_ns(&self) -> u64 {
        self.slot_free_since_ns
    }

    /// One of this many requests in flight ends.
    #[inline]
    pub fn slot_is_freed(&mut self, in_flight: u32, now_ns: u64) {
        if in_flight >= self.slots {
            self.slot_free_since_ns = now_ns;
        }
    }

    /// Puts a due request into the managed queue, if that has a place.
    pub fn offer(&mut self, due: Due, in_flight: u32) -> Offer {
        let Some(queue) = &mut self.queue else { return Offer::Refused };
        let offer = queue.offer(due, in_flight);
        self.entered += u64::from(offer == Offer::Queued);
        offer
    }

    /// Takes a request out of the queue whose time in it is over.
    pub fn take_expired(&mut self, now_ns: u64) -> Option<Due> {
        let due = self.queue.as_mut()?.expired(now_ns)?;
        self.left += 1;
        Some(due)
    }

    /// Takes the request that has waited longest, if a slot is free.
    #[inline]
    pub fn take_waiting(&mut self, in_flight: u32) -> Option<Due> {
        let due = self.queue.as_mut()?.take(in_flight)?;
        self.left += 1;
        Some(due)
    }

    /// Returns true if a slot is free behind the queue.
    pub fn has_slot(&self, in_flight: u32) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.has_slot(in_flight))
    }

    /// Time at which the queue no longer holds a request, ns.
    pub fn expiry_ns(&self, due: Due) -> u64 {
        self.queue.as_ref().map_or(u64::MAX, |queue| queue.expiry_ns(due))
    }

    /// Time at which the first request in the queue has waited too long, ns.
    pub fn next_expiry_ns(&self) -> u64 {
        self.queue.as_ref().and_then(ManagedQueue::next_expiry_ns).unwrap_or(u64::MAX)
    }

    /// Number of requests in the queue.
    #[inline]
    pub fn queued(&self) -> u64 {
        self.queue.as_ref().map_or(0, |queue| queue.len() as u64)
    }

    /// Resting clients and connections.
    #[inline]
    pub fn resting(&mut self) -> &mut Resting {
        &mut self.resting
    }

    /// The end of the first pause, ns, or the time at which the sessions call a client: `called_ns`.
    pub fn next_rest_ns(&self, called_ns: impl FnOnce() -> u64) -> u64 {
        let call_ns = if self.resting.is_anybody_uncalled() { called_ns() } else { u64::MAX };
        self.resting.next_ns().min(call_ns)
    }

    /// Makes at most `most` of the arrivals that are due by `until_ns`: no one will send them.
    pub fn skip(&mut self, until_ns: u64, most: u64) -> Option<Skipped> {
        let skipped = self.schedule.skip(until_ns, most)?;
        self.given += skipped.count;
        Some(skipped)
    }

    /// Returns true if arrivals are drawn one by one.
    pub fn is_random(&self) -> bool {
        self.schedule.is_random()
    }

    /// Number of arrivals that [`Agenda::skip`] would make in all.
    pub fn owed(&self, until_ns: u64) -> u64 {
        self.schedule.owed(until_ns)
    }

    /// Makes all that is owed by `until_ns` at once, and nothing more after it. Returns how many those are.
    pub fn give_all_owed(&mut self, until_ns: u64) -> u64 {
        let owed = self.owed(until_ns);
        self.given += owed;
        self.schedule.stop();
        owed
    }

    /// Makes nothing due any more.
    pub fn stop(&mut self) {
        self.schedule.stop();
        self.done = true;
    }

    /// Returns true if users are there who have not left.
    pub fn is_somebody_there(&self) -> bool {
        self.schedule.somebody_is_there()
    }

    /// End of the time that the arrivals of a run with a number of requests stand for, ns; `None` if only the last reply ends it.
    pub fn spans_until_ns(&self) -> Option<u64> {
        self.schedule.spans_until_ns()
    }

    /// Checks that what the schedule has given is in the ledger, of which `scheduled` is the first column, or in the queue.
    ///
    /// # Panics
    /// When it is not.
    pub fn check(&self, scheduled: u64) {
        let queued = self.queued();
        assert_eq!(
            self.entered - self.left,
            queued,
            "requests that entered the queue and did not leave"
        );
        assert_eq!(self.given, scheduled + queued, "each given request is written down or waits");
    }
}

/// The queue in front of the slots, where admission is managed, and how many slots were asked for, with connections that
/// take `depth` requests each.
fn queue_and_slots(plan: &ShardPlan, depth: u32) -> (Option<ManagedQueue>, u32) {
    match plan.admission {
        AdmissionModel::Direct => (None, u32::MAX),
        AdmissionModel::Managed { slots, queue_max, queue_timeout_ns } => {
            // Without a slot nothing would ever be sent, and one without a connection sends nothing:
            // counted as free it would let more wait than the queue holds.
            let places = plan.connections.saturating_mul(depth.max(1));
            let usable = slots.min(places).max(1);
            (Some(ManagedQueue::new(usable, queue_max, queue_timeout_ns)), slots)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::closed_plan;
    use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
    use plimsoll_core::schedule::{Arrivals, LoadModel};

    /// 1000 arrivals a second over 4 connections.
    fn open(admission: AdmissionModel) -> Agenda {
        let mut plan = closed_plan(4, SECOND_NS);
        plan.model = LoadModel::Open { rate_per_s: 1000.0, arrivals: Arrivals::Uniform };
        plan.admission = admission;
        let mut agenda = Agenda::new(&plan, 1).unwrap();
        agenda.begin(&plan, SECOND_NS).unwrap();
        agenda
    }

    fn give(agenda: &mut Agenda, now_ns: u64) -> Option<Due> {
        match agenda.next(now_ns) {
            Next::Send { intended_ns, client } => Some(Due { intended_ns, client }),
            _ => None,
        }
    }

    #[test]
    fn what_was_given_is_counted_until_it_is_taken_back() {
        let mut agenda = open(AdmissionModel::Direct);
        let given: Vec<Due> =
            std::iter::from_fn(|| give(&mut agenda, SECOND_NS + 9 * MILLISECOND_NS)).collect();
        assert_eq!((given.len(), given[9].intended_ns), (10, SECOND_NS + 9 * MILLISECOND_NS));
        agenda.check(10);
        agenda.postpone(0);
        agenda.check(9);
        let skipped = agenda.skip(SECOND_NS + 19 * MILLISECOND_NS, 4).unwrap();
        assert_eq!(skipped.count, 4);
        agenda.check(13);
        let owed = agenda.owed(2 * SECOND_NS);
        assert_eq!(agenda.give_all_owed(2 * SECOND_NS), owed);
        agenda.check(13 + owed);
        agenda.stop();
        assert!(agenda.is_done() && agenda.upcoming_ns(7) == 7);
    }

    #[test]
    fn the_queue_holds_what_entered_and_did_not_leave() {
        let timeout_ns = 100 * MILLISECOND_NS;
        let mut agenda =
            open(AdmissionModel::Managed { slots: 9, queue_max: 2, queue_timeout_ns: timeout_ns });
        let dues: Vec<Due> =
            std::iter::from_fn(|| give(&mut agenda, SECOND_NS + 7 * MILLISECOND_NS)).collect();
        assert_eq!(dues.len(), 8);
        // Four slots have a connection, and two places are in the queue.
        let offers = dues.iter().map(|&due| agenda.offer(due, 0)).filter(|&o| o == Offer::Queued);
        assert_eq!((offers.count(), agenda.queued()), (6, 6));
        agenda.check(2);
        assert_eq!(agenda.take_waiting(3), Some(dues[0]));
        assert_eq!((agenda.take_waiting(4), agenda.has_slot(4)), (None, false));
        agenda.check(3);
        let late_ns = dues[2].intended_ns + timeout_ns + 1;
        assert_eq!(agenda.next_expiry_ns(), dues[1].intended_ns + timeout_ns + 1);
        let expired: Vec<Due> = std::iter::from_fn(|| agenda.take_expired(late_ns)).collect();
        assert_eq!(expired, dues[1..3]);
        agenda.check(5);
    }

    #[test]
    #[should_panic(expected = "written down or waits")]
    fn a_request_that_is_in_no_book_is_found() {
        let mut agenda = open(AdmissionModel::Direct);
        give(&mut agenda, SECOND_NS).unwrap();
        agenda.check(0);
    }

    #[test]
    fn a_client_could_ask_when_it_was_due_and_free() {
        let plan = closed_plan(2, SECOND_NS);
        let mut agenda = Agenda::new(&plan, 1).unwrap();
        agenda.begin(&plan, 5).unwrap();
        let first = give(&mut agenda, 5).unwrap();
        assert_eq!((agenda.clients(), agenda.could_ask_ns(first)), (2, 5));
        agenda.client_goes_on(first.client, first.intended_ns, 90);
        let due = Due { intended_ns: 40, client: first.client };
        assert_eq!(agenda.could_ask_ns(due), 90);
        assert_eq!(agenda.could_ask_ns(Due { intended_ns: 95, ..due }), 95);
    }

    #[test]
    fn a_slot_becomes_free_when_all_were_taken() {
        let managed = AdmissionModel::Managed { slots: 3, queue_max: 0, queue_timeout_ns: 0 };
        let mut agenda = open(managed);
        agenda.slot_is_freed(2, 50);
        assert_eq!(agenda.slot_free_since_ns(), 0);
        agenda.slot_is_freed(3, 60);
        assert_eq!(agenda.slot_free_since_ns(), 60);
    }
}
