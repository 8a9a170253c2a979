//! The feed as the engine's sessions: each client is a place for one operation in flight.

mod ending;

use super::answer::{self, Answer};
use super::batch::Batch;
use super::circuit::Circuit;
use super::form::{FeedForm, Packer};
use super::order::Order;
use super::pace::Pace;
use super::shared::{Feed, InflightChoice};
use super::slots::{Slots, Stage};
use super::tally::Tally;
use super::window::Window;
use ending::{End, FIELDS_IGNORED, OPERATION_IGNORED, out_of_time};
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::rng::derive_seed;
use plimsoll_wire::http1::{Keep, Reply, Request};
use plimsoll_wire::{Judgement, Protocol, Sessions, Submission, Turn, UNTIL_CALLED};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

/// Operations of a shard that may wait behind earlier ones on the same documents.
const BEHIND_MAX: u32 = 8192;
/// Bytes of operations that are held, all shards together; one is held however long it is.
const HELD_MAX_BYTES: usize = 256 << 20;
/// Interval at which an empty input is looked at again, ns.
const POLL_NS: u64 = MILLISECOND_NS;
/// Rounds in a row without anything accepted after which the target is given up, unless more tries are asked for:
/// about 20 s.
const ABSENT_ROUNDS_MIN: u32 = 13;
/// The same where no connection was ever made: about 2 s.
const NOBODY_ROUNDS: u32 = 8;
/// Value for a client without an operation.
const NONE: u32 = u32::MAX;

/// The sessions of one shard.
pub struct FeedSessions {
    feed: Arc<Feed>,
    /// One a target.
    forms: Arc<Vec<FeedForm>>,
    shard: u32,
    held_max_bytes: usize,
    /// The latest time that is known, ns: no one tells it when a request is asked for.
    now_ns: u64,
    batch: Batch,
    /// True if no batch will come any more.
    input_over: bool,
    /// Since when there has been room for an operation, and none was read, ns.
    starved_since_ns: Option<u64>,
    slots: Slots,
    order: Order,
    /// The operation that each client has in flight.
    of_client: Vec<u32>,
    under_way: u32,
    window: Window,
    circuit: Circuit,
    pace: Option<Pace>,
    packer: Packer,
    tally: Tally,
    /// Time at which the request that was written last was due, ns; 0 where the engine knows.
    due_ns: u64,
    /// Reason why the last reply was refused.
    reason: String,
    /// The last words of each status, or of each number below 9 that stands for a lost connection.
    said: BTreeMap<u16, String>,
    /// Time at which operations whose time is over are looked for next, ns.
    look_ns: u64,
    /// Takes the tally at the end.
    counted: Sender<Tally>,
}

/// Meaning of an answer, or of none, for its operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Accepted,
    /// Done, but for fields that the target does not know.
    FieldsIgnored,
    /// Answered, and not done.
    OperationIgnored,
    /// Once more, as often as it takes.
    Busy,
    /// Once more, and the target as a whole may be away.
    Away,
    /// Once more, but the target as a whole is well.
    Again,
    Refused,
}

impl FeedSessions {
    /// The sessions of shard `shard` of `shards`, which send their tally to `counted` at the end; `forms` holds one form
    /// for each target.
    #[must_use]
    pub fn new(
        feed: Arc<Feed>,
        forms: Arc<Vec<FeedForm>>,
        shard: u32,
        shards: u32,
        counted: Sender<Tally>,
    ) -> Self {
        let settings = &feed.settings;
        let slice = settings.slice.cut(shard, shards.max(1));
        let share = |all: u32| (slice.share(u64::from(all)) as u32).max(1);
        let window = match settings.inflight {
            InflightChoice::Fixed(size) => Window::fixed(share(size)),
            // A rate goes its own way: the window only keeps it from growing without end.
            InflightChoice::Adaptive(max) if settings.pace.is_some() => Window::fixed(share(max)),
            InflightChoice::Adaptive(max) => Window::adaptive(share(max)),
        };
        let seed = derive_seed(settings.seed, "feed") ^ u64::from(slice.index);
        let pace = settings.pace.clone();
        let pace = pace.map(|(model, limits)| Pace::new(model, slice, limits, settings.seed));
        Self {
            forms,
            shard,
            held_max_bytes: HELD_MAX_BYTES / shards.max(1) as usize,
            now_ns: 0,
            batch: Batch::default(),
            input_over: false,
            starved_since_ns: None,
            slots: Slots::default(),
            order: Order::default(),
            of_client: Vec::new(),
            under_way: 0,
            window,
            circuit: Circuit::new(seed),
            pace,
            packer: Packer::default(),
            tally: Tally::default(),
            due_ns: 0,
            reason: String::new(),
            said: BTreeMap::new(),
            look_ns: 0,
            counted,
            feed,
        }
    }

    fn learn_time(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Returns true if there is nothing left to do.
    fn is_over(&self) -> bool {
        let nothing_comes = (self.input_over && self.batch.is_empty())
            || self.pace.as_ref().is_some_and(Pace::is_over);
        self.feed.is_stopped() || (nothing_comes && self.slots.len() == 0)
    }

    /// Number of more requests that may be sent now.
    fn room(&self) -> u32 {
        if self.now_ns < self.circuit.blocked_until_ns() {
            return 0;
        }
        self.circuit.limit(self.window.size()).saturating_sub(self.under_way)
    }

    /// Returns true if one more operation may be taken from the input.
    fn may_hold(&self) -> bool {
        let light = self.slots.bytes() < self.held_max_bytes || self.slots.len() == 0;
        light && self.slots.behind() < BEHIND_MAX
    }

    /// Gets the next batch when the last one is used up.
    fn refill(&mut self) {
        if self.batch.is_empty() && !self.input_over {
            let used = (self.batch.bytes() > 0).then(|| std::mem::take(&mut self.batch));
            let (batch, over) = self.feed.input.take(self.shard, used);
            self.input_over = over;
            self.starve(batch.is_some());
            self.batch = batch.unwrap_or_default();
        }
    }

    /// Counts for how long there was room for operations and none had been read; what comes after the last one is no
    /// time of the feed.
    fn starve(&mut self, came: bool) {
        if came && let Some(since_ns) = self.starved_since_ns {
            self.tally.starved_ns += self.now_ns.saturating_sub(since_ns);
        }
        self.starved_since_ns = match came {
            true => None,
            false => self.starved_since_ns.or((self.now_ns > 0).then_some(self.now_ns)),
        };
    }

    /// Operations of the input that could be sent now, as far as is known.
    fn fresh(&mut self) -> usize {
        if !self.may_hold() {
            return 0;
        }
        self.refill();
        match &mut self.pace {
            None => self.batch.len(),
            Some(pace) => pace.look(self.now_ns).min(self.batch.len()),
        }
    }

    /// The next operation to send.
    fn pick(&mut self) -> Option<u32> {
        if let Some(slot) = self.slots.next_ready(self.now_ns) {
            return Some(slot);
        }
        while self.may_hold() {
            self.refill();
            if self.pace.as_ref().is_some_and(|pace| !pace.is_due()) {
                return None;
            }
            let (item, bytes) = self.batch.take()?;
            let due_ns = self.pace.as_mut().and_then(Pace::take).unwrap_or(0);
            let number = self.slots.hold(item, bytes);
            let slot = self.slots.get(number);
            (slot.first_ns, slot.due_ns) = (due_ns, due_ns);
            if self.order.enter(item.key, number) {
                return Some(number);
            }
            self.slots.wait_behind(number, self.now_ns);
        }
        None
    }

    /// Takes a client's operation back; the number of its slot.
    fn returned(&mut self, client: u32, times: Times) -> u32 {
        self.learn_time(times.done_ns);
        self.under_way -= 1;
        let number = std::mem::replace(&mut self.of_client[client as usize], NONE);
        let slot = self.slots.get(number);
        if slot.first_ns == 0 {
            slot.first_ns = times.intended_ns;
        }
        number
    }

    fn verdict(&self, status: u16) -> Verdict {
        match status {
            200..=299 => Verdict::Accepted,
            429 => Verdict::Busy,
            503 => Verdict::Away,
            408 | 500 | 502 | 504 => Verdict::Again,
            other if self.feed.settings.allowed.contains(&other) => Verdict::Accepted,
            _ => Verdict::Refused,
        }
    }

    /// Comes to a decision about an operation. `code` is the status, or the failure's number below 9.
    fn decide(&mut self, number: u32, verdict: Verdict, code: u16, sent_ns: u64, why: &str) {
        match verdict {
            Verdict::Accepted
            | Verdict::FieldsIgnored
            | Verdict::OperationIgnored
            | Verdict::Refused => {
                self.window.accepted(sent_ns, self.now_ns);
                self.circuit.accepted();
                let end = match verdict {
                    Verdict::Accepted => End::Accepted,
                    Verdict::FieldsIgnored => End::FieldsIgnored,
                    Verdict::OperationIgnored => End::OperationIgnored,
                    _ => End::Refused(why),
                };
                return self.settle(number, code, end);
            }
            Verdict::Busy | Verdict::Away => {
                // A container that is not there has not been asked for too much: the others are well.
                let unreached = [Failure::Connect as u16, Failure::Tls as u16].contains(&code);
                if !unreached {
                    self.window.turned_away(sent_ns, self.now_ns);
                }
                self.circuit.turned_away(sent_ns, self.now_ns, verdict == Verdict::Busy);
            }
            Verdict::Again => {}
        }
        let retries = self.feed.settings.retries;
        let never_there = self.tally.codes.is_empty() && code == Failure::Connect as u16;
        let rounds_max = if never_there { NOBODY_ROUNDS } else { retries.max(ABSENT_ROUNDS_MIN) };
        if self.circuit.absent_rounds() > rounds_max {
            let rounds = self.circuit.absent_rounds();
            let text =
                format!("the target accepted nothing in {rounds} consecutive attempts: {why}");
            self.feed.stop(text);
        }
        let slot = self.slots.get(number);
        slot.tries += 1;
        slot.counted += u32::from(verdict != Verdict::Busy);
        slot.last = Some(code);
        let (tries, counted) = (slot.tries, slot.counted);
        let give_up_ns = slot.first_ns.saturating_add(self.feed.settings.timeout_ns);
        if counted > retries && verdict != Verdict::Busy {
            let reason = format!("{why}; sent {tries} times");
            return self.settle(number, code, End::Refused(&reason));
        }
        let again_ns = self.circuit.again_at_ns(self.now_ns, self.window.round_trip_ns(), tries);
        if again_ns > give_up_ns {
            let reason = out_of_time(why, tries);
            return self.settle(number, code, End::Refused(&reason));
        }
        let said = self.said.entry(code).or_default();
        if said != why {
            why.clone_into(said);
        }
        *self.tally.retries.entry(code).or_default() += 1;
        let seen = &self.feed.seen[self.shard as usize].retries;
        seen.store(seen.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.slots.pause(number, again_ns);
    }
}

/// Returns the message of a server from its reply, readable for a person.
pub(super) fn said(status: u16, body: &[u8]) -> String {
    let pointer = plimsoll_workloads::json_scan::Pointer::parse("/message");
    let message = pointer
        .and_then(|pointer| pointer.find(body).map(<[u8]>::to_vec))
        .and_then(|text| serde_json::from_slice::<String>(&text).ok())
        .unwrap_or_else(|| {
            let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            shown.split_whitespace().collect::<Vec<_>>().join(" ")
        });
    match message.as_str() {
        "" => format!("HTTP {status}"),
        text => format!("HTTP {status}: {text}"),
    }
}

impl<P> Sessions<P> for FeedSessions
where
    P: for<'a> Protocol<Request = Request, Reply<'a> = Reply<'a>>,
{
    fn next(&mut self, client: u32, target: u32, request: &mut Request) -> Turn {
        if self.is_over() {
            return Turn::Exhausted;
        }
        let picked = if self.room() > 0 { self.pick() } else { None };
        let Some(number) = picked else {
            // Only now may it be known that nothing comes any more.
            let over = self.is_over();
            return if over { Turn::Exhausted } else { Turn::Rest { until_ns: UNTIL_CALLED } };
        };
        let slot = self.slots.get(number);
        slot.stage = Stage::UnderWay;
        self.due_ns = slot.due_ns;
        request.bytes.clear();
        request.head = false;
        // The reply must name the document, and may say that something was left out.
        request.keep = Keep { head: true, body: true, stream: false };
        let form = &self.forms[target as usize % self.forms.len()];
        let (item, bytes) = (slot.item, &slot.bytes);
        let (path, body) = (item.target(bytes), item.body(bytes));
        let sent = form.render(item.kind, path, body, &mut self.packer, &mut request.bytes);
        if self.of_client.len() <= client as usize {
            self.of_client.resize(client as usize + 1, NONE);
        }
        self.of_client[client as usize] = number;
        self.under_way += 1;
        if self.under_way >= self.window.size() {
            self.window.full();
        }
        self.tally.most_under_way = self.tally.most_under_way.max(self.under_way);
        self.tally.requests += 1;
        self.tally.body_bytes += sent as u64;
        let seen = &self.feed.seen[self.shard as usize];
        seen.body_bytes.store(self.tally.body_bytes, Ordering::Relaxed);
        seen.under_way.store(u64::from(self.under_way), Ordering::Relaxed);
        seen.window.store(u64::from(self.window.size()), Ordering::Relaxed);
        // The feed itself knows how often an operation may be sent.
        Turn::Ask(Submission { class: 0, item: item.number, idempotent: false })
    }

    fn due_ns(&self) -> Option<u64> {
        (self.due_ns > 0).then_some(self.due_ns)
    }

    fn judge(
        &mut self,
        client: u32,
        _what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let number = self.returned(client, times);
        let status = reply.status;
        let took_ns = times.done_ns.saturating_sub(times.sent_ns);
        self.tally.code(status).server.record(took_ns);
        self.tally.reply_bytes += reply.body_bytes;
        if self.tally.first_ns == 0 {
            self.tally.first_ns = times.sent_ns;
        }
        let mut verdict = self.verdict(status);
        let mut stranger = None;
        if verdict == Verdict::Accepted {
            let slot = self.slots.get(number);
            match answer::read(reply, &slot.item, &slot.bytes) {
                Answer::Done => {}
                Answer::FieldsIgnored => verdict = Verdict::FieldsIgnored,
                Answer::OperationIgnored => verdict = Verdict::OperationIgnored,
                Answer::Stranger(why) => {
                    verdict = Verdict::Refused;
                    stranger = Some(why);
                }
            }
        }
        let outcome = match (verdict, &stranger) {
            (Verdict::Accepted, _) => Outcome::Ok,
            (_, Some(_)) => Outcome::Failed(Failure::Check),
            (Verdict::FieldsIgnored | Verdict::OperationIgnored, _) => {
                Outcome::Failed(Failure::App)
            }
            _ => Outcome::Failed(Failure::Status),
        };
        if outcome == Outcome::Ok {
            self.decide(number, verdict, status, times.sent_ns, "");
        } else {
            let why = match verdict {
                Verdict::FieldsIgnored => FIELDS_IGNORED.to_owned(),
                Verdict::OperationIgnored => OPERATION_IGNORED.to_owned(),
                _ => stranger.unwrap_or_else(|| said(status, reply.body)),
            };
            self.decide(number, verdict, status, times.sent_ns, &why);
            self.reason = why;
        }
        Judgement { outcome, status, hits: None, body_bytes: reply.body_bytes }
    }

    fn lost(&mut self, client: u32, _what: &Submission, failure: Failure, times: Times) {
        let number = self.returned(client, times);
        self.tally.lost[failure as usize] += 1;
        if self.tally.first_ns == 0 {
            self.tally.first_ns = times.sent_ns;
        }
        let why = format!("no answer ({})", failure.name());
        self.decide(number, Verdict::Away, failure as u16, times.sent_ns, &why);
    }

    fn finish(self: Box<Self>, now_ns: u64) {
        let mut own = *self;
        own.learn_time(now_ns);
        own.leave();
    }

    fn called(&mut self, now_ns: u64) -> u32 {
        self.learn_time(now_ns);
        self.expire();
        let room = self.room();
        let waiting = match room {
            0 => 0,
            _ => self.slots.sendable(self.now_ns) + self.fresh(),
        };
        // At the end all clients leave.
        if self.is_over() { u32::MAX } else { room.min(waiting as u32) }
    }

    fn wake_ns(&self) -> u64 {
        let look_ns = if self.slots.is_waiting() { self.look_ns } else { u64::MAX };
        if self.circuit.limit(self.window.size()) <= self.under_way {
            return look_ns;
        }
        let mut wake_ns = self.slots.first_due_ns();
        let starved = self.batch.is_empty() && !self.input_over;
        if starved && self.may_hold() {
            wake_ns = wake_ns.min(self.now_ns + POLL_NS);
        }
        if let Some(pace) = &self.pace
            && self.may_hold()
        {
            wake_ns = wake_ns.min(pace.upcoming_ns());
        }
        wake_ns.max(self.circuit.blocked_until_ns()).min(look_ns)
    }

    fn describe(&self, what: &Submission, request: &Request) -> String {
        let line = request.bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = &line[..line.len().min(440)];
        format!("operation {}: {}", what.item, String::from_utf8_lossy(line))
    }

    fn explain(&self, _what: &Submission, reply: &Reply<'_>) -> (String, String) {
        let shown = &reply.body[..reply.body.len().min(200)];
        let text = format!("HTTP {}: {}", reply.status, String::from_utf8_lossy(shown));
        (self.reason.clone(), text)
    }
}
