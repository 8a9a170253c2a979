//! The voter benchmark on a virtual clock against a made-up database: what the client says of its writes is held against
//! the rows that are really there.

#![allow(clippy::unwrap_used, missing_docs)]

mod parts;
mod server;

use plimsoll_core::clock::{Clock, MILLISECOND_NS, SECOND_NS, VirtualClock};
use plimsoll_core::interval::Interval;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::schedule::Limits;
use plimsoll_core::voter::WriteCheck;
use plimsoll_engine::shard::{Message, Shard, ShardEnd, ShardPlan};
use plimsoll_engine::sim::{Link, SimNet, closed_plan};
use plimsoll_engine::target::Target;
use plimsoll_voter::{
    Game, Settings, TuneGoal, TunedLatency, VoltHello, VoltVotes, VoterTally, Voting, VotingNow,
};
use plimsoll_wire::Sessions;
use plimsoll_wire::volt::{Login, Volt};
use server::{Faults, Server};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How a benchmark is set up.
struct Scene {
    seed: u64,
    settings: Settings,
    faults: Faults,
    clients: u32,
    depth: u32,
    calls: u64,
    /// When somebody stops the run, ns from its start.
    stop_ns: Option<u64>,
    service_max_ms: u64,
    hello: bool,
    /// Whether votes go to the hosts that lead their partitions.
    affinity: bool,
}

/// What came of it.
struct Outcome {
    tally: VoterTally,
    now: VotingNow,
    end: ShardEnd,
    ledger: Ledger,
    server: Server,
    voting: Arc<Voting>,
}

impl Scene {
    fn new(seed: u64, faults: Faults) -> Self {
        let settings = Settings { game: Game { seed, ..Game::default() }, ..Settings::default() };
        Self {
            seed,
            settings,
            faults,
            clients: 50,
            depth: 40,
            calls: 3000,
            stop_ns: None,
            service_max_ms: 5,
            hello: false,
            affinity: false,
        }
    }

    fn run(&self) -> Outcome {
        let voting = Arc::new(Voting::new(self.settings.clone(), 1).unwrap());
        let (sender, counted) = std::sync::mpsc::channel();
        let server = Server::new(self.seed, self.faults);
        server.borrow_mut().service_max_ms = self.service_max_ms;
        let sessions: Box<dyn Sessions<Volt>> = if self.hello {
            server.borrow_mut().wrong_rows = 20;
            Box::new(VoltHello::new(voting.clone(), 0, 1, sender))
        } else {
            Box::new(VoltVotes::new(voting.clone(), 0, 1, sender))
        };
        let clock = VirtualClock::new();
        clock.advance_to(SECOND_NS);
        let link = Link { split_per_mille: self.seed % 2 * 200, ..Link::default() };
        let mut net = SimNet::new(clock.clone(), server.clone(), link, self.seed);
        let stop = Arc::new(AtomicBool::new(false));
        if let Some(stop_ns) = self.stop_ns {
            let stop = stop.clone();
            let set = move || stop.store(true, std::sync::atomic::Ordering::Relaxed);
            net.at(SECOND_NS + stop_ns, set);
        }
        let seconds = Rc::new(RefCell::new(Interval::new(1)));
        let all = seconds.clone();
        let outbox = Box::new(move |message| {
            if let Message::Second(second) = message {
                all.borrow_mut().merge(&second);
            }
            None
        });
        let mut protocol = Volt::new(Login::new("", "")).with_depth(self.depth);
        if self.affinity {
            protocol = protocol.with_topology(server::topology());
        }
        let shard =
            Shard::new(self.plan(), protocol, net, clock.clone(), sessions, outbox, stop).unwrap();
        let mut end = shard.run(|| clock.now_ns()).unwrap();
        end.rest.merge(&seconds.borrow());
        let ledger = end.rest.ledger;
        assert_eq!(ledger.balance(), Ok(()));
        let server = Rc::try_unwrap(server).ok().unwrap().into_inner();
        let tally = VoterTally::of_shards(&counted);
        Outcome { tally, now: voting.look(), end, ledger, server, voting }
    }

    fn plan(&self) -> ShardPlan {
        let target = |port| Target {
            host: "simulated".to_owned(),
            port,
            addresses: vec![SocketAddr::from(([127, 0, 0, 1], port))],
        };
        ShardPlan {
            limits: Limits { duration_ns: 30 * SECOND_NS, requests: Some(self.calls) },
            connections: 4,
            targets: Arc::new(vec![target(21_212), target(21_213)]),
            preconnect: true,
            ..closed_plan(self.clients, 30 * SECOND_NS)
        }
    }
}

impl Outcome {
    /// The check of the writes.
    fn check(&self) -> WriteCheck {
        WriteCheck::of(0, self.server.rows(), self.tally.accepted, self.tally.unknown)
    }

    /// What the tally, the ledger and the live counters say is the same.
    fn expect_same(&self, seed: u64) {
        let (tally, ledger) = (&self.tally, &self.ledger);
        assert_eq!(tally.sent, ledger.sent, "seed {seed}");
        assert_eq!(tally.answered(), ledger.ok, "seed {seed}");
        let not_ok = ledger.failed.total() + ledger.unfinished;
        assert_eq!(tally.unknown + tally.errors_total(), not_ok, "seed {seed}");
        assert_eq!(tally.server.count(), tally.answered(), "seed {seed}");
        let now = self.now;
        assert_eq!((now.sent, now.answered()), (tally.sent, tally.answered()), "seed {seed}");
        assert_eq!((now.accepted, now.unknown), (tally.accepted, tally.unknown), "seed {seed}");
    }
}

#[test]
fn every_vote_is_counted_and_every_row_is_there() {
    let outcome = Scene::new(1, Faults::default()).run();
    outcome.expect_same(1);
    let tally = &outcome.tally;
    assert_eq!((outcome.ledger.ok, tally.unknown, tally.errors_total()), (3000, 0, 0));
    assert!(tally.rejected.contestant > 5 && tally.rejected.limit > 5, "{:?}", tally.rejected);
    assert_eq!(tally.accepted, outcome.server.rows());
    assert_eq!(outcome.check(), WriteCheck::Ok);
    // Ours is longer by the line; the server says whole milliseconds, at most five.
    assert!(tally.server.max_ns() <= 5_010_000 && outcome.now.server_max_ms == 5);
    assert!(outcome.now.client_max_ns >= 5_040_000);
    assert!(outcome.server.by_contestant[&1] > outcome.server.by_contestant[&2]);
}

#[test]
fn the_check_is_right_whatever_the_database_does() {
    let mut unknown = 0;
    for seed in 0..250 {
        let share = |at: u64| if seed & (1 << at) == 0 { 0 } else { 4 + seed % 9 };
        let faults = Faults {
            cut: share(0),
            silent: share(1),
            unknown: share(2),
            failed: share(3),
            connections: (seed % 5 == 0).then_some(8),
            ..Faults::default()
        };
        let mut scene = Scene::new(seed, faults);
        scene.stop_ns = (seed % 7 == 0).then_some(100 * MILLISECOND_NS);
        let outcome = scene.run();
        outcome.expect_same(seed);
        let tally = &outcome.tally;
        assert_eq!(outcome.check(), WriteCheck::Ok, "seed {seed}: {:?}", outcome.ledger);
        if share(0) + share(1) + share(2) == 0 && outcome.ledger.unfinished == 0 {
            assert_eq!(tally.accepted, outcome.server.rows(), "seed {seed}");
        }
        unknown += tally.unknown;
    }
    assert!(unknown > 5000, "the interval was hardly needed: {unknown}");
}

#[test]
fn a_database_that_lies_is_found_out() {
    let outcome = Scene::new(3, Faults { lies: 3, ..Faults::default() }).run();
    assert!(outcome.server.lied > 0);
    assert_eq!(outcome.check(), WriteCheck::Missing(outcome.server.lied));
    let outcome = Scene::new(4, Faults { twice: 3, ..Faults::default() }).run();
    assert!(outcome.server.doubled > 0);
    assert_eq!(outcome.check(), WriteCheck::Surplus(outcome.server.doubled));
}

#[test]
fn statuses_are_told_in_the_servers_own_words() {
    let outcome = Scene::new(5, Faults { failed: 50, ..Faults::default() }).run();
    let failed = outcome.ledger.failed;
    assert!(failed.app > 100 && failed.app == failed.total());
    let told = &outcome.tally.errors["graceful failure: CONSTRAINT VIOLATION"];
    assert_eq!(*told, failed.app);
}

#[test]
fn a_refused_login_ends_the_run_with_the_servers_words() {
    let outcome = Scene::new(6, Faults { refuses: true, ..Faults::default() }).run();
    assert!(
        outcome.end.refused.is_some_and(|why| why.contains("login")),
        "{:?}",
        outcome.end.refused
    );
    assert_eq!((outcome.server.calls, outcome.tally.accepted, outcome.tally.unknown), (0, 0, 0));
    let took_ns = outcome.end.measured_ns.1 - outcome.end.measured_ns.0;
    assert!(took_ns < SECOND_NS, "{took_ns}");
}

#[test]
fn votes_go_to_the_leaders_of_their_partitions() {
    let mut scene = Scene::new(9, Faults::default());
    let (own, other) = scene.run().server.at_leader;
    // Two hosts, and nobody knows which: half of them, within five standard deviations.
    assert!(own.abs_diff(other) < 5 * 55, "{own} {other}");
    scene.affinity = true;
    let outcome = scene.run();
    assert_eq!((outcome.server.at_leader, outcome.ledger.ok), ((3000, 0), 3000));
    // A leader whose connections are all busy is not waited for.
    (scene.depth, scene.clients) = (10, 30);
    let (own, other) = scene.run().server.at_leader;
    assert!(own > 2 * other && other > 0 && own + other == 3000, "{own} {other}");
}

#[test]
fn a_hello_looks_at_every_row() {
    let mut scene = Scene::new(7, Faults::default());
    scene.hello = true;
    let outcome = scene.run();
    let ledger = outcome.ledger;
    assert_eq!((ledger.ok + ledger.failed.check, ledger.sent), (3000, 3000));
    assert!((20..120).contains(&ledger.failed.check), "{ledger:?}");
    outcome.expect_same(7);
}

#[test]
fn a_limit_is_kept_by_as_many_calls_as_it_allows() {
    for latency in [TunedLatency::Client, TunedLatency::Server] {
        let mut scene = Scene::new(8, Faults::default());
        let goal: TuneGoal = "p90=9ms".parse().unwrap();
        scene.settings.tune = Some(goal.of(latency));
        scene.settings.under_way_max = 100;
        (scene.clients, scene.depth, scene.calls) = (100, 100, 90_000);
        let outcome = scene.run();
        outcome.expect_same(8);
        // This server is never slower under load: all that is allowed is used.
        let tuned = outcome.voting.tuned(&outcome.tally).unwrap();
        assert_eq!((tuned.best_under_way, outcome.now.allowed), (Some(100.0), 100));
        assert!(tuned.best_rate_per_s.unwrap() > 20_000.0, "{:?}", tuned.best_rate_per_s);
        assert!(tuned.goal == "p90=9ms" && tuned.latency == latency.name());
        // And one that is too slow whatever is asked of it is asked for one at a time.
        (scene.service_max_ms, scene.calls) = (30, 2000);
        let outcome = scene.run();
        let tuned = outcome.voting.tuned(&outcome.tally).unwrap();
        assert!(outcome.now.allowed < 5, "{}", outcome.now.allowed);
        assert!(
            tuned.windows_held * 2 < tuned.windows.max(1),
            "{} of {}",
            tuned.windows_held,
            tuned.windows
        );
        assert_eq!(outcome.check(), WriteCheck::Ok);
    }
}
