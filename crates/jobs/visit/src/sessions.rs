//! The visit as the engine's sessions: one client a slice.

use super::form::VisitStep;
use super::gather::Gather;
use super::output::Lines;
use super::slice::Verdict;
use super::whole::Visit;
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_wire::http1::{Keep, Reply, Request, decode_body};
use plimsoll_wire::{Judgement, Protocol, Sessions, Submission, Turn, UNTIL_CALLED};
use plimsoll_workloads::output::Waits;
use plimsoll_workloads::render::HttpForm;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// Interval at which a slice that waits for its turn looks whether it has come, ns.
const LOOK_NS: u64 = 5 * MILLISECOND_NS;
/// Longest refusal that is unpacked, bytes.
const REFUSAL_MAX_BYTES: usize = 64 << 10;

/// The sessions of one shard.
pub struct VisitSessions {
    visit: Arc<Visit>,
    /// One a target.
    forms: Arc<Vec<HttpForm>>,
    /// The shard's number, and how many there are: client i is slice `i * shards + shard`.
    shard: (u32, u32),
    lines: Lines,
    /// Reason why the last reply was refused.
    reason: String,
    /// The latest time that is known, ns.
    now_ns: u64,
    /// Requests whose first byte has not come.
    awaiting: u32,
    gather: Gather,
    /// Times from sending to the first byte of the reply.
    first_bytes: Histogram,
    /// Takes them at the end.
    counted: Sender<Histogram>,
    /// True if slices rest because the output had no room, and not because others ask.
    were_held: bool,
}

impl VisitSessions {
    /// The sessions of shard `shard` of `shards`; `forms` holds one form for each target. At the end they send the times
    /// from sending to the first byte of each reply to `counted`.
    #[must_use]
    pub fn new(
        visit: Arc<Visit>,
        forms: Arc<Vec<HttpForm>>,
        shard: u32,
        shards: u32,
        counted: Sender<Histogram>,
    ) -> Self {
        Self {
            visit,
            forms,
            shard: (shard, shards),
            lines: Lines::default(),
            reason: String::new(),
            now_ns: 0,
            awaiting: 0,
            gather: Gather::default(),
            first_bytes: Histogram::new(),
            counted,
            were_held: false,
        }
    }

    fn index(&self, client: u32) -> u32 {
        client * self.shard.1 + self.shard.0
    }

    /// A slice that asks no more, or is one too many, makes room for another.
    fn dismiss(&self, admitted: &mut bool, for_good: bool) {
        if *admitted && (for_good || self.visit.room() < 0) {
            *admitted = false;
            self.visit.dismiss();
        }
    }

    /// Notes the end of a request; `nothing_came`: no byte of its reply arrived.
    fn no_longer_awaited(&mut self, nothing_came: bool) {
        self.awaiting = self.awaiting.saturating_sub(u32::from(nothing_came));
        self.gather.pause();
    }
}

impl<P> Sessions<P> for VisitSessions
where
    P: for<'a> Protocol<Request = Request, Reply<'a> = Reply<'a>>,
{
    fn next(&mut self, client: u32, target: u32, request: &mut Request) -> Turn {
        let index = self.index(client);
        let visit = self.visit.clone();
        let mut slice = visit.slice(index);
        if visit.is_stopped() || slice.progress.done || slice.given_up.is_some() {
            self.dismiss(&mut slice.admitted, true);
            return Turn::Exhausted;
        }
        if let Some(until_ns) = slice.retry_at_ns.take() {
            return Turn::Rest { until_ns };
        }
        let must_wait = !visit.output.may_ask();
        self.were_held |= must_wait;
        if must_wait || !(slice.admitted || visit.admit()) {
            return Turn::Rest { until_ns: UNTIL_CALLED };
        }
        slice.admitted = true;
        slice.begin(visit.waits());
        request.bytes.clear();
        let http = &self.forms[target as usize % self.forms.len()];
        let form = visit.form();
        let step = VisitStep {
            slice: form.slice_at(index),
            space: slice.progress.space,
            token: slice.progress.token.as_deref(),
            plain: slice.plain,
        };
        form.render(http, step, &mut request.bytes);
        request.head = false;
        request.keep = Keep { head: false, body: true, stream: true };
        self.awaiting += 1;
        Turn::Ask(Submission { class: 0, item: u64::from(step.slice), idempotent: true })
    }

    fn part(&mut self, client: u32, _what: &Submission, bytes: &[u8], times: Times) -> bool {
        let index = self.index(client);
        let visit = self.visit.clone();
        self.now_ns = self.now_ns.max(times.done_ns);
        self.gather.received(bytes.len(), times.done_ns);
        visit.count_bytes(bytes.len());
        let mut slice = visit.slice(index);
        // The output is asked for its time only where that matters: at the first piece, and at the end.
        if slice.awaits_first() {
            self.awaiting = self.awaiting.saturating_sub(1);
            if let Some(wait_ns) = slice.first(times, visit.waits()) {
                self.first_bytes.record(wait_ns);
            }
        }
        self.lines.clear();
        slice.piece(bytes, &visit.around(index, Waits::default()), &mut self.lines);
        // Under the slice's lock, so that whoever saves the visit sees both or neither.
        visit.output.write(index, &self.lines);
        slice.is_wanted()
    }

    fn judge(
        &mut self,
        client: u32,
        _what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let index = self.index(client);
        let visit = self.visit.clone();
        self.now_ns = self.now_ns.max(times.done_ns);
        let mut slice = visit.slice(index);
        self.no_longer_awaited(slice.awaits_first());
        self.lines.clear();
        let around = visit.around(index, visit.waits());
        let mut scratch = Vec::new();
        let body = decode_body(reply, &mut scratch, REFUSAL_MAX_BYTES).unwrap_or(reply.body);
        let verdict = slice.ended(reply.status, body, times, &around, &mut self.lines);
        visit.output.write(index, &self.lines);
        let outcome = match verdict {
            Verdict::Whole => Outcome::Ok,
            Verdict::Again(kind, reason) => {
                slice.failed(&reason, times.done_ns, visit.failures_max);
                self.reason = reason;
                Outcome::Failed(kind)
            }
            Verdict::Never(reason) => {
                visit.stop(reason.clone());
                self.reason = reason;
                Outcome::Failed(Failure::Status)
            }
        };
        let over = slice.progress.done || slice.given_up.is_some();
        self.dismiss(&mut slice.admitted, over);
        Judgement { outcome, status: reply.status, hits: None, body_bytes: reply.body_bytes }
    }

    fn lost(&mut self, client: u32, _what: &Submission, failure: Failure, times: Times) {
        let visit = self.visit.clone();
        self.now_ns = self.now_ns.max(times.done_ns);
        let mut slice = visit.slice(self.index(client));
        // A reply that was of no use and did not end has failed for that, and not because it took long.
        let broken = slice.broken();
        let reason = match &broken {
            Some(why) => why.clone(),
            None => format!("the request failed: {}", failure.name()),
        };
        self.no_longer_awaited(slice.awaits_first());
        slice.failed(&reason, times.done_ns, visit.failures_max);
        if failure == Failure::Timeout && broken.is_none() {
            visit.timed_out(self.forms.len());
        }
        let over = slice.given_up.is_some();
        self.dismiss(&mut slice.admitted, over);
    }

    fn finish(self: Box<Self>, _now_ns: u64) {
        // Nobody counts a visit that failed to start.
        let _ = self.counted.send(self.first_bytes);
    }

    fn called(&mut self, now_ns: u64) -> u32 {
        self.now_ns = self.now_ns.max(now_ns);
        self.visit.look(now_ns);
        if self.visit.is_stopped() {
            return u32::MAX;
        }
        if !self.visit.output.may_ask() {
            return 0;
        }
        match std::mem::take(&mut self.were_held) {
            true => u32::MAX,
            false => self.visit.room().clamp(0, i64::from(u32::MAX)) as u32,
        }
    }

    fn wake_ns(&self) -> u64 {
        self.now_ns + LOOK_NS
    }

    fn is_full(&self) -> bool {
        self.visit.output.is_full()
    }

    fn gather_ns(&self) -> u64 {
        // The first byte of a reply is not kept waiting.
        if self.awaiting == 0 { self.gather.nap_ns() } else { 0 }
    }

    fn describe(&self, what: &Submission, request: &Request) -> String {
        let line = request.bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        // Rendered lines are ASCII; a token is most of their length.
        let line = &line[..line.len().min(480)];
        format!("slice {}: {}", what.item, String::from_utf8_lossy(line))
    }

    fn explain(&self, _what: &Submission, reply: &Reply<'_>) -> (String, String) {
        let shown = &reply.body[..reply.body.len().min(200)];
        let text = format!("HTTP {}: {}", reply.status, String::from_utf8_lossy(shown));
        (self.reason.clone(), text)
    }
}
