//! The parts of the simulation: sessions, protocol and peer of each.

mod feed;
mod sessions;
mod visit;

use crate::asker::{Asker, Habits, Tongue};
use crate::diary::{Diary, Watched};
use crate::faults::{Counts, Fault};
use crate::judge::{Findings, judge};
use crate::planted::{Bent, Misled, Planted};
use crate::played::Played;
use crate::scene::{Model, Scene};
use crate::speakers::Speaker;
use crate::speakers::application::Echo;
use crate::speakers::frames::{Frames, FramesSpeaker};
use crate::speakers::http1::Http1Speaker;
use crate::speakers::http2::Http2Speaker;
use crate::speakers::postgres::{PostgresSpeaker, STATEMENT};
use crate::speakers::volt::VoltSpeaker;
use crate::stage::play;
use crate::station::Station;
use crate::truth::Log;
use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::Http1;
use plimsoll_wire::http2::Http2;
use plimsoll_wire::postgres::{Login as SqlLogin, Postgres, Statement};
use plimsoll_wire::volt::{Login as VoltLogin, Volt};
use plimsoll_wire::{Protocol, Sessions};
use std::cell::RefCell;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// One run that is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// The seed that everything is drawn from.
    pub seed: u64,
    /// The defect that is planted.
    pub planted: Planted,
    /// True if the record is wanted, to compare it with another.
    pub wants_record: bool,
    /// True if the scene and each request are wanted in words.
    pub wants_trace: bool,
}

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Findings of the judge.
    pub findings: Vec<String>,
    /// Requests that were due.
    pub requests: u64,
    /// Time on the virtual clock, ns.
    pub simulated_ns: u64,
    /// Faults that the peer committed.
    pub faults: Counts,
    /// Everything that must be the same when the run is done again, if it was wanted.
    pub record: String,
    /// The run in words, if that was wanted.
    pub trace: String,
}

/// A part of the simulation.
#[derive(Clone, Copy)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// The part in words.
    pub words: &'static str,
    run: fn(Order) -> Outcome,
}

/// All parts, in the order of the table.
pub const PARTS: [Part; 10] = [
    Part { name: "engine", words: "every load model over the smallest protocol", run: engine },
    Part {
        name: "sessions",
        words: "query files, classes and checks over HTTP",
        run: sessions::run,
    },
    Part { name: "http1", words: "HTTP/1.1", run: http1 },
    Part { name: "http2", words: "HTTP/2", run: http2 },
    Part { name: "postgres", words: "PostgreSQL", run: postgres },
    Part { name: "volt", words: "VoltDB", run: volt },
    Part { name: "feed", words: "a feed of documents", run: feed::run },
    Part { name: "visit", words: "a visit of a corpus", run: visit::run },
    Part { name: "users", words: "virtual users", run: users },
    Part { name: "admission", words: "managed admission", run: admission },
];

impl Part {
    /// Returns the part of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        PARTS.into_iter().find(|part| part.name == name)
    }

    /// Carries one run out. A panic is a finding.
    #[must_use]
    pub fn run(self, order: Order) -> Outcome {
        let result = catch_unwind(AssertUnwindSafe(|| (self.run)(order)));
        result.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let finding = format!("panic: {}", text.unwrap_or_default());
            Outcome { findings: vec![finding], ..Outcome::default() }
        })
    }

    /// Carries one run out twice, the second time for its record only.
    #[must_use]
    pub fn run_twice(self, order: Order) -> Outcome {
        let order = Order { wants_record: true, ..order };
        let (mut first, second) = (self.run(order), self.run(order));
        if first.record != second.record && first.findings.is_empty() {
            let same = first.record.bytes().zip(second.record.bytes());
            let at = same.take_while(|(left, right)| left == right).count();
            first.findings.push(format!("the same seed gives another record, from byte {at} on"));
        }
        first
    }
}

/// Protocol, sessions and peer of a run.
pub(crate) struct Cast<P, S, K: Speaker> {
    pub protocol: P,
    pub sessions: S,
    pub diary: Rc<RefCell<Diary>>,
    pub peer: Rc<RefCell<Station<K>>>,
}

/// Plays a run and judges it as all parts are judged.
pub(crate) fn perform<P, S, K>(
    order: Order,
    scene: &Scene,
    cast: Cast<P, S, K>,
    stamp: fn(&mut P::Request, u64),
) -> (Played, Log, Findings)
where
    P: Protocol,
    S: Sessions<P> + 'static,
    K: Speaker + 'static,
    P::Request: 'static,
{
    let Cast { protocol, sessions, diary, peer } = cast;
    // What judges wrongly is below the diary, what tells an end twice above it.
    let below = if order.planted == Planted::Credulous { order.planted } else { Planted::Nothing };
    let above = if order.planted == Planted::ToldTwice { order.planted } else { Planted::Nothing };
    let watched = Watched::new(Misled(sessions, below), diary.clone(), stamp);
    let sessions = Box::new(Misled(watched, above));
    let clock = peer.borrow().clock.clone();
    let played = play(scene, protocol, sessions, &diary, (&peer, clock), order.planted);
    let log = std::mem::take(&mut peer.borrow_mut().log);
    let findings = judge(scene, &played, Some(&log));
    (played, log, findings)
}

/// Sums a run up.
pub(crate) fn outcome(
    order: Order,
    scene: &Scene,
    (played, log, findings): (&Played, &Log, Findings),
) -> Outcome {
    let mut outcome = Outcome {
        findings: findings.list(),
        requests: played.all().ledger.scheduled,
        simulated_ns: played.over_ns.saturating_sub(SECOND_NS),
        faults: log.faults.clone(),
        ..Outcome::default()
    };
    if order.wants_record {
        outcome.record = format!("{} {log:?}", played.record());
    }
    if order.wants_trace {
        outcome.trace = trace(scene, played, log);
    }
    outcome
}

/// The run in words: the scene, each request with its attempts, and the ledger.
fn trace(scene: &Scene, played: &Played, log: &Log) -> String {
    let mut text = format!("{scene:#?}\n");
    for (serial, asked) in played.diary.asked.iter().enumerate() {
        // Writing to a text does not fail.
        let _ = writeln!(text, "{serial}: {asked:?}");
        for attempt in log.attempts.iter().filter(|attempt| attempt.serial == serial as u64) {
            let _ = writeln!(text, "    {attempt:?}");
        }
    }
    for (request, reason) in &played.failures_told {
        let _ = writeln!(text, "request {request} failed: {reason}");
    }
    let _ = writeln!(text, "ruined: {:?}", log.ruined);
    let _ = writeln!(
        text,
        "start {} over {} interrupted {} cut {} refused {:?}\n{:?}",
        played.start_ns,
        played.over_ns,
        played.end.interrupted,
        played.end.drain_cut,
        played.end.refused,
        played.all().ledger
    );
    text
}

/// Numbered requests in a protocol.
fn ask<P, K>(order: Order, scene: &Scene, protocol: P, speaker: K) -> Outcome
where
    P: Tongue,
    P::Request: 'static,
    K: Speaker + 'static,
{
    match order.planted {
        Planted::SwappedAnswers | Planted::SentTwice => {
            ask_in(order, scene, Bent(protocol, order.planted), speaker)
        }
        _ => ask_in(order, scene, protocol, speaker),
    }
}

fn ask_in<P, K>(order: Order, scene: &Scene, protocol: P, speaker: K) -> Outcome
where
    P: Tongue,
    P::Request: 'static,
    K: Speaker + 'static,
{
    let diary = Diary::shared();
    let habits = Habits { source: scene.source, pause_ns: scene.pause_ns };
    let sessions = Asker::new(diary.clone(), scene.seed, habits);
    let peer = Rc::new(RefCell::new(Station::new(speaker, scene.script.clone())));
    let cast = Cast { protocol, sessions, diary, peer };
    let (played, log, findings) = perform(order, scene, cast, |_, _| {});
    outcome(order, scene, (&played, &log, findings))
}

fn engine(order: Order) -> Outcome {
    let scene = Scene::draw(order.seed, "engine", Model::Any, FramesSpeaker::FAULTS);
    let depth = 1 + Rng::new(derive_seed(order.seed, "depth")).below(40) as u32;
    ask(order, &scene, Frames(depth), FramesSpeaker)
}

fn admission(order: Order) -> Outcome {
    let mut rng = Rng::new(derive_seed(order.seed, "admission-of"));
    let depth = 1 + rng.below(20) as u32;
    let scene = Scene::draw(order.seed, "admission", Model::Managed, FramesSpeaker::FAULTS);
    if rng.below(2) == 0 {
        return ask(order, &scene.with_exact_queue(depth), Frames(depth), FramesSpeaker);
    }
    ask(order, &scene, Frames(depth), FramesSpeaker)
}

fn echo(rng: &mut Rng) -> Echo {
    Echo { body_max: [0, 50, 3000, 70_000][rng.below(4) as usize] }
}

fn http1(order: Order) -> Outcome {
    let scene = Scene::draw(order.seed, "http1", Model::Any, Http1Speaker::<Echo>::FAULTS);
    let mut rng = Rng::new(derive_seed(order.seed, "http1-of"));
    let speaker = Http1Speaker { application: echo(&mut rng) };
    ask(order, &scene, Http::One(Http1::default()), speaker)
}

fn http2_of(order: Order, scene: &Scene) -> Outcome {
    let mut rng = Rng::new(derive_seed(order.seed, "http2-of"));
    let streams_max = 1 + rng.below(60) as u32;
    let windows_zero = rng.below(2) * rng.below(300);
    let speaker = Http2Speaker { application: echo(&mut rng), windows_zero };
    ask(order, scene, Http::Two(Http2 { streams_max, ..Http2::default() }), speaker)
}

fn http2(order: Order) -> Outcome {
    let scene = Scene::draw(order.seed, "http2", Model::Any, Http2Speaker::<Echo>::FAULTS);
    http2_of(order, &scene)
}

fn users(order: Order) -> Outcome {
    if order.seed.is_multiple_of(2) {
        let faults: &[Fault] = Http2Speaker::<Echo>::FAULTS;
        return http2_of(order, &Scene::draw(order.seed, "users", Model::Users, faults));
    }
    let scene = Scene::draw(order.seed, "users", Model::Users, Http1Speaker::<Echo>::FAULTS);
    let mut rng = Rng::new(derive_seed(order.seed, "users-of"));
    ask(order, &scene, Http::One(Http1::default()), Http1Speaker { application: echo(&mut rng) })
}

fn postgres(order: Order) -> Outcome {
    let scene = Scene::draw(order.seed, "postgres", Model::Any, PostgresSpeaker::FAULTS);
    let mut rng = Rng::new(derive_seed(order.seed, "postgres-of"));
    let login = SqlLogin::new("me", Some("secret"), "db", &[]);
    let login = login.unwrap_or_else(|error| panic!("{error}"));
    let statement = Statement::new(STATEMENT).unwrap_or_else(|error| panic!("{error}"));
    let protocol =
        Postgres::new(login).with_statements([statement]).with_depth(1 + rng.below(8) as u32);
    let refused = if rng.below(20) == 0 { rng.below(300) } else { 0 };
    ask(order, &scene, protocol, PostgresSpeaker { refused })
}

fn volt(order: Order) -> Outcome {
    let scene = Scene::draw(order.seed, "volt", Model::Any, VoltSpeaker::FAULTS);
    let mut rng = Rng::new(derive_seed(order.seed, "volt-of"));
    let protocol = Volt::new(VoltLogin::new("", "")).with_depth(1 + rng.below(60) as u32);
    let refused = if rng.below(20) == 0 { rng.below(300) } else { 0 };
    ask(order, &scene, protocol, VoltSpeaker { refused })
}
