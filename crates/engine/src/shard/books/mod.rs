//! The ledger of a shard: what is written down while requests run, and handed out every second.
//!
//! Invariants: each scheduled request was sent, refused or never sent; each sent request has ended, is in flight or was
//! written off; a request was intended before it was sent, and sent before it was done; a second is handed out once.

mod clients;
mod marks;
mod noticing;
mod samples;
mod seconds;
mod unserved;

use super::{Course, ShardPlan};
use crate::gauge::{Gauge, Reading};
use crate::net::RoundTrip;
use crate::vitals::VitalSigns;
use crate::windows::{EndedRequest, WindowCounts};
use clients::Clients;
pub use marks::Mark;
use marks::{Marks, Measured};
pub(super) use noticing::STALL_NS;
use noticing::{Kept, Noticing};
use plimsoll_core::admission::Due;
use plimsoll_core::interval::{Counters, Interval};
use plimsoll_core::ledger::Ledger;
use plimsoll_core::outcome::{Failure, Outcome, ServerTime};
use plimsoll_core::recorder::{Ended, Recorder, Times};
use plimsoll_core::verdict::Health;
use plimsoll_wire::{Judgement, Submission};
use samples::Samples;
pub use samples::Slow;
use seconds::Seconds;
pub use seconds::{Message, Outbox};
use std::sync::Arc;

/// A request that is sent now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub due: Due,
    pub class: u16,
    pub measured: bool,
    pub now_ns: u64,
    /// Time at which whoever asks could ask, ns.
    pub could_ask_ns: u64,
    /// Time at which it could have been sent, with its slot and its connection, ns.
    pub could_start_ns: u64,
    /// Part of the lag that was spent waiting for a connection, ns.
    pub waited_ns: u64,
    /// Requests in flight, with this one.
    pub in_flight: u32,
}

/// A request that ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub client: u32,
    pub what: Submission,
    pub times: Times,
    pub judgement: Judgement,
    pub measured: bool,
    /// True if its connection had carried a request before it.
    pub on_kept_connection: bool,
    /// True if it ended before the end of the schedule.
    pub in_time: bool,
}

/// All that a shard writes down.
pub(super) struct Books {
    recorder: Recorder,
    /// Requests that are not measured go here.
    warmup: Option<Recorder>,
    /// Sum of the ledgers of the seconds that were handed out.
    handed_out: Ledger,
    seconds: Seconds,
    samples: Samples,
    clients: Clients,
    /// Counts by when requests were due, if requested.
    windows: Option<Arc<WindowCounts>>,
    /// Counts of the shard up to now, for its gauge.
    standing: Reading,
    gauge: Option<Arc<Gauge>>,
    marks: Marks,
    noticing: Noticing,
    /// Time at which the last success ended, ns, and how many requests failed after it.
    last_success: (u64, u64),
    last_ended_ns: u64,
    start_ns: u64,
    measured_from_ns: u64,
    has_warmup: bool,
    /// The cycle time of a closed model, or the pace of users, ns; 0: none.
    cycle_ns: u64,
    /// True if clients ask as fast as they are answered.
    full_speed: bool,
    /// True if requests of a round wait for the last of them.
    together: bool,
}

impl Books {
    /// Empty books of a plan with this many clients of its own, over connections that take `depth` requests each.
    pub fn new(plan: &ShardPlan, clients: usize, depth: u32, outbox: Outbox) -> Self {
        let separate = plan.warmup_ns > 0 || plan.ignore_first > 0;
        Self {
            recorder: Recorder::new(plan.classes),
            warmup: separate.then(|| Recorder::new(plan.classes)),
            handed_out: Ledger::default(),
            seconds: Seconds::new(outbox, Interval::new(plan.classes)),
            samples: Samples::new(),
            clients: Clients::new(clients, plan.ignore_first),
            windows: plan.part.windows.first().cloned(),
            standing: Reading::default(),
            gauge: plan.part.gauges.first().cloned(),
            marks: Marks::default(),
            noticing: Noticing::default(),
            last_success: (0, 0),
            last_ended_ns: 0,
            start_ns: 0,
            measured_from_ns: plan.warmup_ns,
            has_warmup: plan.warmup_ns > 0,
            cycle_ns: plan.cycle_ns(),
            full_speed: plan.model.is_full_speed(),
            together: depth > 1,
        }
    }

    /// The run starts.
    pub fn begin(&mut self, plan: &ShardPlan, course: &Course) {
        self.start_ns = course.start_ns();
        self.measured_from_ns = course.measured_from_ns();
        self.last_ended_ns = self.start_ns;
        // Without any success the target has been silent since the start, and not since the machine runs.
        self.last_success = (self.start_ns, 0);
        if let Some(windows) = &self.windows {
            windows.start(self.start_ns);
        }
        for recorder in [Some(&mut self.recorder), self.warmup.as_mut()].into_iter().flatten() {
            recorder.begin(plan.part.phase, plan.part.offset_ns);
        }
        self.clients.begin(self.measured_from_ns);
        self.seconds.begin(self.measured_from_ns, plan.part.offset_ns);
    }

    #[inline]
    fn since_start_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.start_ns)
    }

    /// Returns true if a request counts, by its intended start and by how many its client has done.
    #[inline]
    pub fn is_measured(&self, intended_ns: u64, client: u32) -> bool {
        intended_ns >= self.measured_from_ns && self.clients.counts(client)
    }

    #[inline]
    fn recorder_of(&mut self, measured: bool) -> &mut Recorder {
        match &mut self.warmup {
            Some(warmup) if !measured => warmup,
            _ => &mut self.recorder,
        }
    }

    #[inline]
    fn recorder_at(&mut self, now_ns: u64) -> &mut Recorder {
        let is_measuring = now_ns >= self.measured_from_ns;
        self.recorder_of(is_measuring)
    }

    fn recorder_for(&mut self, due: Due) -> &mut Recorder {
        let measured = self.is_measured(due.intended_ns, due.client);
        self.recorder_of(measured)
    }

    /// Plain counts, of what is measured or of what is not.
    #[inline]
    pub fn counters(&mut self, measured: bool) -> &mut Counters {
        &mut self.recorder_of(measured).interval_mut().counters
    }

    /// A request left the managed queue after this long, ns.
    #[inline]
    pub fn left_queue(&mut self, waited_ns: u64) {
        self.standing.longest_wait_ns = self.standing.longest_wait_ns.max(waited_ns);
    }

    /// A request is sent.
    #[inline]
    pub fn sent(&mut self, sent: &Sent) {
        let (due, now_ns) = (sent.due, sent.now_ns);
        debug_assert!(due.intended_ns <= now_ns, "a request is sent before it was intended");
        self.clients.asked(due.client, sent.could_ask_ns);
        if let Some(windows) = &self.windows {
            let due_ns = self.since_start_ns(due.intended_ns);
            windows.due(due_ns);
            windows.sent(due_ns, sent.class);
        }
        // Of clients at full speed only the beginning has had no answer.
        let begins = self.full_speed && self.standing.completed() == 0;
        self.standing.sent += 1;
        let lag_ns = now_ns.saturating_sub(sent.could_start_ns);
        let disturbed = self.noticing.leaves(lag_ns, now_ns, sent.in_flight, begins);
        let recorder = self.recorder_of(sent.measured);
        recorder.scheduled(1);
        recorder.sent(sent.class, sent.could_start_ns, now_ns);
        if sent.waited_ns > 0 {
            recorder.waited(sent.waited_ns);
        }
        recorder.interval_mut().delays.disturbed += u64::from(disturbed);
    }

    /// A complete reply may have waited this long to be read, ns.
    #[inline]
    pub fn received(&mut self, measured: bool, waited_ns: u64) {
        self.recorder_of(measured).received(waited_ns);
    }

    /// A reply that was a success said this of the server's own time.
    pub fn server_time(&mut self, measured: bool, class: u16, said: ServerTime) {
        let interval = self.recorder_of(measured).interval_mut();
        if let Some(part) = interval.classes.get_mut(class as usize) {
            part.server.get_or_insert_default().record(said);
        }
    }

    /// Returns true if the end of a request belongs to the measured stretch. Rates count
    /// ends by their own time, whatever they were due: a request of the warm-up that ends later was
    /// answered in the stretch. A client's first requests are never counted.
    #[inline]
    fn counts_by_time(&self, end: &End) -> bool {
        let is_measuring = end.times.done_ns >= self.measured_from_ns;
        end.measured || (is_measuring && self.clients.counts(end.client))
    }

    /// A request has ended.
    #[inline]
    pub fn ended(&mut self, end: &End) {
        let End { what, times, judgement, .. } = *end;
        assert!(
            times.intended_ns <= times.sent_ns && times.sent_ns <= times.done_ns,
            "a request ends after it was sent, and is sent after it was due: {times:?}"
        );
        // A connection that its peer had closed before was not used again, even if it took the request.
        let reused = end.on_kept_connection && is_answered(judgement.outcome);
        let response_ns = times.done_ns - times.intended_ns;
        let late = self.cycle_ns > 0 && response_ns >= self.cycle_ns;
        let counts_by_time = self.counts_by_time(end);
        let is_ok = judgement.outcome == Outcome::Ok;
        if let Some(windows) = &self.windows {
            windows.ended(EndedRequest {
                due_ns: self.since_start_ns(times.intended_ns),
                done_ns: self.since_start_ns(times.done_ns),
                class: what.class,
                ok: is_ok,
            });
        }
        if is_ok {
            self.standing.ok += 1;
            self.last_success = (times.done_ns, 0);
        } else {
            self.standing.failed += 1;
            self.last_success.1 += 1;
        }
        let recorder = self.recorder_of(end.measured);
        recorder.ended(&Ended {
            class: what.class,
            times,
            outcome: judgement.outcome,
            status: judgement.status,
            hits: judgement.hits,
            body_bytes: judgement.body_bytes,
        });
        let counters = &mut recorder.interval_mut().counters;
        counters.reused += u64::from(reused);
        counters.cycles_late += u64::from(late);
        let counters = self.counters(counts_by_time);
        counters.ended_in_time += u64::from(end.in_time);
        counters.ok_in_time += u64::from(end.in_time && is_ok);
        self.last_ended_ns = self.last_ended_ns.max(times.done_ns);
        self.clients.ended(end.client, times.done_ns);
    }

    /// A client has nothing left to ask.
    pub fn exhausted(&mut self, client: u32, now_ns: u64) {
        self.clients.exhausted(client, now_ns);
    }

    /// Returns true if a session had nothing left to ask.
    pub const fn is_anybody_exhausted(&self) -> bool {
        self.clients.is_anybody_exhausted()
    }

    /// Returns true if the run ended because nothing was left to ask.
    pub fn is_exhausted(&self) -> bool {
        self.clients.is_exhausted(self.cycle_ns)
    }

    /// Returns true if a request of such a response time belongs among the slowest.
    #[inline]
    pub fn wants_slow(&self, response_ns: u64) -> bool {
        self.samples.wants_slow(response_ns)
    }

    pub fn keep_slow(&mut self, slow: Slow) {
        self.samples.keep_slow(slow);
    }

    /// Returns true if one more failure of a kind is to be reported; it is counted among those.
    pub fn may_tell(&mut self, kind: Failure) -> bool {
        self.samples.may_tell(kind)
    }

    /// Hands out a message.
    pub fn tell(&mut self, message: Message) {
        self.seconds.tell(message);
    }

    /// Keeps the round trips of a connection that is closed, if there is a place left.
    pub fn closing(&mut self, round_trip: impl FnOnce() -> Option<RoundTrip>) {
        self.samples.closing(round_trip);
    }

    /// Takes the round trips of the connections that are open at the end, and of those closed before.
    pub fn round_trips(&mut self, open: impl Iterator<Item = RoundTrip>) -> Vec<RoundTrip> {
        self.samples.round_trips(open)
    }

    /// Shows how the shard stands, where someone looks.
    pub fn show(&mut self, in_flight: u32, queued: u64) {
        let Some(gauge) = &self.gauge else { return };
        self.standing.under_way = u64::from(in_flight);
        self.standing.queued = queued;
        gauge.show(&self.standing);
        self.standing.longest_wait_ns = 0;
    }

    /// Requests that came to their end.
    #[inline]
    pub const fn completed(&self) -> u64 {
        self.standing.completed()
    }

    /// A look at the clock. Returns whether it is time to read the vital signs.
    #[inline]
    pub fn look(&mut self, now_ns: u64) -> bool {
        self.noticing.look(now_ns)
    }

    /// Takes the vital signs that were read.
    pub fn notice(&mut self, now_ns: u64, signs: VitalSigns) {
        let kept = self.noticing.read(now_ns, signs, self.standing.completed());
        for Kept { ns, requests } in kept {
            if ns > 0 && requests > 0 {
                let delays = &mut self.recorder_at(now_ns).interval_mut().delays;
                delays.starved.record_many(ns, requests);
            }
        }
    }

    /// A round of sending begins.
    #[inline]
    pub fn sending_begins(&mut self, now_ns: u64) {
        self.noticing.sending_begins(now_ns, self.standing.sent);
    }

    /// A round of sending is over.
    #[inline]
    pub fn sending_ends(&mut self, now_ns: u64) {
        let noted = self.noticing.sending_ends(now_ns, self.standing.sent, self.together);
        if let Some(Kept { ns, requests }) = noted {
            self.recorder_at(now_ns).interval_mut().delays.send.record_many(ns, requests);
        }
    }

    /// The shard is ready and waits for the others.
    pub fn set_ready(&mut self, signs: VitalSigns) {
        self.marks.set_ready(signs);
    }

    const fn measured(&self, end_ns: u64) -> Measured {
        Measured { from_ns: self.measured_from_ns, to_ns: end_ns }
    }

    /// Time at which the next mark of a run that ends at `end_ns` is due, ns.
    #[inline]
    pub fn next_mark_ns(&self, end_ns: u64) -> u64 {
        self.marks.next_ns(self.measured(end_ns))
    }

    /// Returns the resources used up to now.
    pub const fn mark(&self, at_ns: u64, idle_ns: u64, signs: VitalSigns) -> Mark {
        Mark { at_ns, idle_ns, signs, stopped_ns: self.noticing.stopped_ns() }
    }

    /// Sets the marks that are due.
    pub fn set_mark(&mut self, mark: Mark, end_ns: u64) {
        self.marks.set(mark, self.measured(end_ns), self.has_warmup);
    }

    /// The marks of a run that is over, and what the shard measured of itself between them.
    pub fn marks(&self, last: Mark) -> ((Mark, Mark), Health) {
        let marks = self.marks.until(last);
        (marks, marks.0.health_until(&marks.1))
    }

    /// Time at which the next second is over, ns.
    #[inline]
    pub const fn next_tick_ns(&self) -> u64 {
        self.seconds.next_tick_ns()
    }

    /// Hands out the second that has passed, if one has, with this many requests in flight at its end. Returns whether
    /// it has.
    #[inline]
    pub fn tick(&mut self, now_ns: u64, in_flight: u32) -> bool {
        if now_ns < self.seconds.next_tick_ns() {
            return false;
        }
        if let Some((to_ns, spare)) = self.seconds.passed(now_ns) {
            let full = self.recorder.swap(to_ns, in_flight, *spare);
            self.handed_out.merge(&full.ledger);
            self.seconds.hand_out(full);
        }
        true
    }

    /// All that was written down so far.
    fn ledger(&mut self) -> Ledger {
        let mut all = self.handed_out;
        for recorder in [Some(&mut self.recorder), self.warmup.as_mut()].into_iter().flatten() {
            all.merge(&recorder.interval_mut().ledger);
        }
        all
    }

    /// Checks that every request is in one place of the ledger, with this many in flight. Returns how many were scheduled.
    ///
    /// # Panics
    /// When one is not.
    pub fn check(&mut self, in_flight: u32) -> u64 {
        let mut ledger = self.ledger();
        assert_eq!(self.standing.sent, ledger.sent, "each request shown as sent was written down");
        assert_eq!(self.standing.completed(), ledger.finished(), "and what was shown as ended");
        ledger.unfinished += u64::from(in_flight);
        let balance = ledger.balance();
        assert!(balance.is_ok(), "with {in_flight} requests in flight: {balance:?}");
        ledger.scheduled
    }

    /// Time at which the last request ended, ns; the start when none did.
    pub const fn last_ended_ns(&self) -> u64 {
        self.last_ended_ns
    }

    /// Time at which the last success ended, ns, and how many requests failed after it.
    pub const fn last_success(&self) -> (u64, u64) {
        self.last_success
    }

    /// For how long clients were measured, ns, to the end of a schedule that was not cut short, and how many were.
    pub fn clients_measured(&self, plan: &ShardPlan, to_ns: Option<u64>) -> (u64, u32) {
        (self.clients.elapsed_ns(&plan.model, plan.slice, to_ns), self.clients.measured())
    }

    /// Closes the ledger at `now_ns`: the last, unfinished second, the warm-up, and the slowest requests.
    pub fn close(mut self, to_ns: u64) -> (Interval, Option<Interval>, Vec<Slow>) {
        let rest = self.recorder.swap(to_ns, 0, Interval::new(0));
        let warmup = self.warmup.as_mut().map(|w| w.swap(to_ns, 0, Interval::new(0)));
        (rest, warmup, self.samples.into_slowest())
    }
}

/// Returns whether the target said anything in reply, be it cut or wrong.
const fn is_answered(outcome: Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Failed(Failure::Connect | Failure::Tls | Failure::Timeout | Failure::Reset)
    )
}

#[cfg(test)]
mod tests;
