//! A peer on virtual time: a [`Speaker`] that answers after a drawn time, commits faults, and writes down what it did.

use crate::faults::{Fault, Shares};
use crate::speakers::{Answer, Heard, Request, Speaker};
use crate::truth::{Attempt, Fate, Log};
use plimsoll_core::clock::{Clock, MILLISECOND_NS, VirtualClock};
use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_engine::net::NetError;
use plimsoll_engine::sim::{Act, Acts, Arrival, Peer};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// The way a [`Station`] behaves. Times are ns.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Every choice comes from here.
    pub seed: u64,
    /// Faults of requests.
    pub shares: Shares,
    /// Shortest and longest service time.
    pub service_ns: (u64, u64),
    /// Longest time between two pieces of an answer.
    pub spread_max_ns: u64,
    /// Longest time to accept a connection.
    pub accept_max_ns: u64,
    /// Connections that are refused, per mille.
    pub refused: u64,
    /// Connections that are never answered, per mille.
    pub silent: u64,
    /// Addresses at which nothing listens, ever.
    pub dead: Vec<SocketAddr>,
    /// Delay of a late answer.
    pub late_ns: u64,
    /// Kept connections are closed after this long without a request; 0: never.
    pub idle_close_ns: u64,
}

/// The time within which a peer learns that the client has closed, ns, and more than that.
const GIVEN_UP_NS: u64 = 5 * MILLISECOND_NS;

/// Something that is said or done at a time.
enum Step {
    Answer { request: Request, attempt: usize, fault: Option<Fault>, spread_ns: u64 },
    Rest { attempt: usize, handle: u64, answer: Answer },
    Raw(Vec<u8>),
    End(Act),
    Idle(u64),
}

struct Line<L> {
    state: L,
    /// Nothing is said on it any more.
    is_mute: bool,
    /// It was closed or reset.
    is_over: bool,
    requests: u32,
    /// Requests that have begun, complete or not.
    begun: u32,
    /// Of those that are not complete, the number that had begun before.
    half: BTreeMap<(u64, u64), u32>,
    /// Times at which the bytes that are on their way were sent, ns.
    under_way_ns: VecDeque<u64>,
    /// Time at which the last bytes that came were sent, ns.
    sent_ns: u64,
    answered: u32,
    /// Attempts that are not answered, by their handles.
    open: BTreeMap<(u64, u64), usize>,
    /// The last handle that is looked at.
    last_handle: Option<u64>,
    /// Time at which the answers before are said, where they come in order, ns.
    busy_ns: u64,
    /// Answers come in order, and one of them never comes.
    is_stuck: bool,
}

/// A peer with a script.
pub struct Station<S: Speaker> {
    /// Its side of the protocol.
    pub speaker: S,
    /// Requests that came, and answers that left.
    pub log: Log,
    /// The clock of the run.
    pub clock: VirtualClock,
    script: Script,
    rng: Rng,
    lines: BTreeMap<u64, Line<S::Line>>,
    steps: BTreeMap<u64, Step>,
    tokens: u64,
}

impl<S: Speaker> Station<S> {
    /// A peer that no one has contacted.
    #[must_use]
    pub fn new(speaker: S, script: Script) -> Self {
        let rng = Rng::new(derive_seed(script.seed, "station"));
        let (lines, steps) = (BTreeMap::new(), BTreeMap::new());
        let log = Log { is_ordered: S::ORDERED, ..Log::default() };
        let clock = VirtualClock::new();
        Self { speaker, log, clock, script, rng, lines, steps, tokens: 0 }
    }

    fn plan(&mut self, after_ns: u64, step: Step, acts: &mut Acts) {
        self.tokens += 1;
        self.steps.insert(self.tokens, step);
        acts.push((after_ns, Act::Wake(self.tokens)));
    }

    /// The connection ends behind what was said.
    fn end(&mut self, connection: u64, act: Act, now_ns: u64, acts: &mut Acts) {
        let Some(line) = self.lines.get_mut(&connection) else { return };
        if std::mem::replace(&mut line.is_over, true) {
            return;
        }
        line.is_mute = true;
        self.log.ruin(connection, now_ns + 1);
        acts.push((0, act));
    }

    /// A complete request has come: it is written down, and what becomes of it is drawn.
    fn begin(&mut self, connection: u64, mut request: Request, now_ns: u64, acts: &mut Acts) {
        let attempt = self.log.attempts.len();
        let Some(line) = self.lines.get_mut(&connection) else { return };
        let half = line.half.remove(&(request.handle, request.serial));
        let prior = half.unwrap_or(line.begun);
        line.begun += u32::from(half.is_none());
        line.requests += 1;
        let is_beyond = line.last_handle.is_some_and(|last| request.handle > last);
        // A peer that has said goodbye before it closed vouches for what comes behind that.
        let fate = match (is_beyond, line.is_over) {
            (true, _) => Fate::Unprocessed,
            (false, true) => Fate::DeadOnArrival,
            (false, false) => Fate::Broken,
        };
        let sent_ns = line.sent_ns;
        request.sent_ns = sent_ns;
        self.log.attempts.push(Attempt {
            serial: request.serial,
            connection,
            prior,
            sent_ns,
            came_ns: now_ns,
            fate,
            began_ns: None,
            said_ns: None,
            is_cut: false,
        });
        if fate != Fate::Broken || line.is_stuck {
            return;
        }
        line.open.insert((request.handle, request.serial), attempt);
        self.speaker.begun(&request);
        let fault = self.script.shares.fault(&mut self.rng);
        let fault = fault.filter(|fault| !matches!(fault, Fault::HalfClosed | Fault::IdleClosed));
        fault.into_iter().for_each(|fault| self.log.commit(fault));
        let (least_ns, most_ns) = self.script.service_ns;
        let mut at_ns = now_ns + least_ns + self.rng.below(most_ns - least_ns + 1);
        let spread_ns = self.rng.below(self.script.spread_max_ns + 1) * self.rng.below(2);
        if fault == Some(Fault::Late) {
            at_ns += self.script.late_ns;
        }
        if S::ORDERED {
            at_ns = at_ns.max(line.busy_ns);
            line.busy_ns = at_ns + spread_ns + 1;
            line.is_stuck = fault == Some(Fault::Stalled);
        }
        let after_ns = at_ns - now_ns;
        match fault {
            Some(Fault::Stalled) => self.speaker.forsaken(&request, &mut self.rng),
            Some(Fault::Reset | Fault::Closed) => {
                self.speaker.forsaken(&request, &mut self.rng);
                let act = if fault == Some(Fault::Reset) { Act::Reset } else { Act::Close };
                self.plan(after_ns, Step::End(act), acts);
            }
            _ => self.plan(after_ns, Step::Answer { request, attempt, fault, spread_ns }, acts),
        }
    }

    /// The time for an answer has come.
    fn answer(
        &mut self,
        connection: u64,
        (request, attempt, fault, spread_ns): (Request, usize, Option<Fault>, u64),
        now_ns: u64,
        acts: &mut Acts,
    ) {
        let Some(line) = self.lines.get_mut(&connection) else { return };
        if line.is_mute || line.open.get(&(request.handle, request.serial)) != Some(&attempt) {
            return;
        }
        // If answers are off their places already, another number could make it the right answer to the request in whose
        // place it comes: no client could tell.
        let is_off = S::ORDERED && self.log.ruined_ns(connection) < u64::MAX;
        let renames = matches!(fault, Some(Fault::Stranger | Fault::Flipped));
        let fault = fault.filter(|_| !is_off || !renames);
        if fault == Some(Fault::Garbage) {
            self.speaker.forsaken(&request, &mut self.rng);
            return self.garbage(connection, attempt, now_ns, acts);
        }
        let answer = self.speaker.answer(&mut line.state, &request, fault, &mut self.rng);
        let own = &mut self.log.attempts[attempt];
        own.began_ns = Some(now_ns);
        match fault {
            Some(Fault::ResetInside | Fault::CutInside) => {
                let bytes = answer.pieces.concat();
                let cut =
                    1 + self.rng.below((bytes.len() as u64).saturating_sub(1).max(1)) as usize;
                own.is_cut = true;
                line.is_mute = true;
                acts.push((0, Act::Bytes(bytes[..cut.min(bytes.len() - 1)].to_vec())));
                self.log.ruin(connection, now_ns);
                let act = if fault == Some(Fault::CutInside) { Act::Close } else { Act::Reset };
                let after_ns = self.rng.below(2) * MILLISECOND_NS;
                self.plan(after_ns, Step::End(act), acts);
            }
            Some(Fault::Flipped) => {
                let mut bytes = answer.pieces.concat();
                let bit = self.rng.below(8 * bytes.len() as u64) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
                (own.fate, own.said_ns) = (Fate::Doubtful, Some(now_ns));
                acts.push((0, Act::Bytes(bytes)));
                self.log.ruin(connection, now_ns);
                self.finished(connection, (request.handle, request.serial), acts);
            }
            _ => {
                let late = fault == Some(Fault::Late);
                let fate = if late { Fate::Late } else { answer.fate };
                self.say(connection, (attempt, request, fate), answer, (now_ns, spread_ns), acts);
            }
        }
    }

    /// Says an answer, all of it or only its beginning first.
    fn say(
        &mut self,
        connection: u64,
        (attempt, request, fate): (usize, Request, Fate),
        mut answer: Answer,
        (now_ns, spread_ns): (u64, u64),
        acts: &mut Acts,
    ) {
        answer.fate = fate;
        if spread_ns > 0 && answer.pieces.len() > 1 {
            let first = 1 + self.rng.below(answer.pieces.len() as u64 - 1) as usize;
            let rest = answer.pieces.split_off(first);
            acts.push((0, Act::Bytes(answer.pieces.concat())));
            answer.pieces = rest;
            // In the key the number of the request tells apart what has the same handle.
            let handle = request.handle;
            self.plan(spread_ns, Step::Rest { attempt, handle, answer }, acts);
        } else {
            self.complete(connection, (attempt, request.handle), answer, now_ns, acts);
        }
    }

    /// Says the last piece of an answer, and what follows of it.
    fn complete(
        &mut self,
        connection: u64,
        (attempt, handle): (usize, u64),
        answer: Answer,
        now_ns: u64,
        acts: &mut Acts,
    ) {
        let own = &mut self.log.attempts[attempt];
        (own.fate, own.said_ns) = (answer.fate, Some(now_ns));
        let serial = own.serial;
        acts.push((0, Act::Bytes(answer.pieces.concat())));
        if answer.ruins {
            self.log.ruin(connection, now_ns + u64::from(!answer.extra.is_empty()));
        }
        if !answer.extra.is_empty() {
            acts.push((0, Act::Bytes(answer.extra)));
        }
        if let Some(last) = answer.last_handle {
            self.leave(connection, last, (handle, serial));
        }
        if answer.closes {
            self.end(connection, Act::Close, now_ns, acts);
        }
        self.finished(connection, (handle, serial), acts);
    }

    /// No request behind this handle is looked at any more.
    fn leave(&mut self, connection: u64, last: u64, own: (u64, u64)) {
        let Some(line) = self.lines.get_mut(&connection) else { return };
        let last = line.last_handle.map_or(last, |before| last.min(before));
        line.last_handle = Some(last);
        let attempts = &mut self.log.attempts;
        line.open.retain(|key, attempt| {
            let stays = key.0 <= last || *key == own;
            if !stays && attempts[*attempt].began_ns.is_none() {
                attempts[*attempt].fate = Fate::Unprocessed;
            }
            stays
        });
    }

    fn finished(&mut self, connection: u64, key: (u64, u64), acts: &mut Acts) {
        let Some(line) = self.lines.get_mut(&connection) else { return };
        line.open.remove(&key);
        line.answered += 1;
        let turn = u64::from(line.requests);
        if self.script.idle_close_ns > 0 && line.open.is_empty() && !line.is_over {
            self.plan(self.script.idle_close_ns, Step::Idle(turn), acts);
        }
    }

    fn garbage(&mut self, connection: u64, attempt: usize, now_ns: u64, acts: &mut Acts) {
        let bytes = match self.rng.below(3) {
            0 => b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\nnot what you came for\r\n\r\n".to_vec(),
            1 => b"\x15\x03\x01\x00\x02\x02\x46".to_vec(),
            _ => (0..1 + self.rng.below(60)).map(|_| self.rng.below(256) as u8).collect(),
        };
        let own = &mut self.log.attempts[attempt];
        (own.fate, own.is_cut) = (Fate::Wrong, true);
        if let Some(line) = self.lines.get_mut(&connection) {
            line.is_mute = true;
        }
        acts.push((0, Act::Bytes(bytes)));
        self.log.ruin(connection, now_ns);
        if self.rng.below(2) == 0 {
            let after_ns = self.rng.below(20) * MILLISECOND_NS;
            self.plan(after_ns, Step::End(Act::Close), acts);
        }
    }

    fn heard(&mut self, connection: u64, heard: Heard, now_ns: u64, acts: &mut Acts) {
        if let Some(what) = heard.offence
            && self.log.ruined_ns(connection) > now_ns
        {
            self.log.offence(|| format!("connection {connection}: {what}"));
        }
        heard.faults.into_iter().for_each(|fault| self.log.commit(fault));
        let Some(line) = self.lines.get_mut(&connection) else { return };
        let speaks = !line.is_mute;
        for handle in heard.given_up {
            line.open.retain(|(own, _), _| *own != handle);
        }
        if speaks && !heard.at_once.is_empty() {
            acts.push((0, Act::Bytes(heard.at_once)));
        }
        if speaks {
            for (after_ns, bytes) in heard.later {
                self.plan(after_ns, Step::Raw(bytes), acts);
            }
        }
        for request in heard.requests {
            if request.is_whole {
                self.begin(connection, request, now_ns, acts);
                continue;
            }
            if let Some(line) = self.lines.get_mut(&connection) {
                line.half.insert((request.handle, request.serial), line.begun);
                line.begun += 1;
            }
            if self.script.shares.fault(&mut self.rng) == Some(Fault::HalfClosed) {
                self.log.commit(Fault::HalfClosed);
                self.end(connection, Act::Close, now_ns, acts);
            }
        }
        if heard.ends {
            self.end(connection, Act::Close, now_ns, acts);
        }
    }
}

impl<S: Speaker> Peer for Station<S> {
    fn connecting(&mut self, connection: u64, address: SocketAddr, _: u64) -> Arrival {
        let after_ns = self.rng.below(self.script.accept_max_ns + 1);
        let drawn = self.rng.below(1000);
        let (refused, silent) = (self.script.refused, self.script.silent);
        if self.script.dead.contains(&address) || drawn < refused {
            self.log.commit(Fault::ConnectRefused);
            return match self.rng.below(8) {
                0 => Arrival::FailedAtOnce(NetError::Refused),
                _ => Arrival::Failed { after_ns, error: NetError::Refused },
            };
        }
        if drawn < refused + silent {
            self.log.commit(Fault::ConnectSilent);
            return Arrival::Silence;
        }
        self.log.connections += 1;
        let line = Line {
            state: self.speaker.open(&mut self.rng),
            is_mute: false,
            is_over: false,
            requests: 0,
            begun: 0,
            half: BTreeMap::new(),
            under_way_ns: VecDeque::new(),
            sent_ns: 0,
            answered: 0,
            open: BTreeMap::new(),
            last_handle: None,
            busy_ns: 0,
            is_stuck: false,
        };
        self.lines.insert(connection, line);
        Arrival::Accepted { after_ns }
    }

    fn sent(&mut self, connection: u64, now_ns: u64) {
        if let Some(line) = self.lines.get_mut(&connection) {
            line.under_way_ns.push_back(now_ns);
        }
    }

    fn received(&mut self, connection: u64, bytes: &[u8], now_ns: u64, acts: &mut Acts) {
        let Some(line) = self.lines.get_mut(&connection) else { return };
        line.sent_ns = line.under_way_ns.pop_front().unwrap_or(line.sent_ns);
        let mut heard = Heard::default();
        self.speaker.hear(&mut line.state, bytes, &mut heard, &mut self.rng);
        self.heard(connection, heard, now_ns, acts);
    }

    fn woken(&mut self, connection: u64, token: u64, now_ns: u64, acts: &mut Acts) {
        let Some(step) = self.steps.remove(&token) else { return };
        let Some(line) = self.lines.get_mut(&connection) else { return };
        match step {
            Step::Answer { request, attempt, fault, spread_ns } => {
                self.answer(connection, (request, attempt, fault, spread_ns), now_ns, acts);
            }
            Step::Rest { attempt, handle, answer } => {
                let serial = self.log.attempts[attempt].serial;
                if !line.is_mute && line.open.contains_key(&(handle, serial)) {
                    self.complete(connection, (attempt, handle), answer, now_ns, acts);
                }
            }
            Step::Raw(bytes) if !line.is_mute => acts.push((0, Act::Bytes(bytes))),
            Step::Raw(_) => {}
            Step::End(act) => self.end(connection, act, now_ns, acts),
            Step::Idle(turn) => {
                if u64::from(line.requests) == turn && line.open.is_empty() && !line.is_over {
                    self.log.commit(Fault::IdleClosed);
                    let act = if self.rng.below(3) == 0 { Act::Reset } else { Act::Close };
                    self.end(connection, act, now_ns, acts);
                }
            }
        }
    }

    fn closed(&mut self, connection: u64) {
        let Some(line) = self.lines.remove(&connection) else { return };
        // The client has given the connection up with all that was on it, a little before this is known here.
        if line.requests > line.answered {
            self.log.left.insert(connection, self.clock.now_ns().saturating_sub(GIVEN_UP_NS));
        }
    }
}
