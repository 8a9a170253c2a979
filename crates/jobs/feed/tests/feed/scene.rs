//! A feed on a virtual clock, and what came of it.

use super::server::{Faults, Server};
use plimsoll_core::clock::{Clock, MILLISECOND_NS, SECOND_NS, VirtualClock};
use plimsoll_core::interval::Interval;
use plimsoll_engine::shard::{Message, Shard, ShardPlan};
use plimsoll_engine::sim::{Link, SimNet, closed_plan};
use plimsoll_feed::{
    FailedOperations, Feed, FeedForm, FeedSessions, InflightChoice, Input, Packed, Parameters,
    Reader, Settings, Source, Tally,
};
use plimsoll_wire::http1::Http1;
use plimsoll_workloads::authority::Authority;
use plimsoll_workloads::render::HttpForm;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How a feed is set up.
pub struct Scene {
    pub settings: Settings,
    pub connections: u32,
    pub stop_ns: Option<u64>,
    pub faults: Faults,
    pub service_ns: u64,
    pub seed: u64,
}

impl Scene {
    pub fn new(seed: u64, faults: Faults) -> Self {
        let settings = Settings {
            inflight: InflightChoice::Adaptive(256),
            retries: 10,
            timeout_ns: 100 * SECOND_NS,
            allowed: Vec::new(),
            pace: None,
            may_end_early: false,
            parameters: Parameters::default(),
            seed,
            slice: plimsoll_core::schedule::Slice::WHOLE,
        };
        let service_ns = 2 * MILLISECOND_NS;
        Self { settings, connections: 256, stop_ns: None, faults, service_ns, seed }
    }

    /// Feeds the text and gives back what came of it.
    pub fn run(&self, input: &str, folder: &Path) -> Outcome {
        let path = folder.join("input");
        std::fs::write(&path, input).unwrap();
        let sources = vec![Source::open(&path).unwrap()];
        let failed_path = folder.join("failed");
        let failed = FailedOperations::file(&failed_path).unwrap();
        let feed = Feed::new(self.settings.clone(), Input::new(&sources, 1), failed, 1);
        let feed = Arc::new(feed);
        let parameters = Parameters::default();
        // All of it fits into the queue.
        Reader::new(&feed.input, &feed.failed, &parameters, 0).read(sources);
        let authority = Authority { host: "127.0.0.1".to_owned(), port: 80, tls: false };
        let http = HttpForm::new(&authority, &[], false).unwrap();
        let forms = Arc::new(vec![FeedForm::new(&http, false, Packed::Never)]);
        let (sender, counted) = std::sync::mpsc::channel();
        let sessions = FeedSessions::new(feed.clone(), forms, 0, 1, sender);
        let server = Server::new(self.seed, self.faults);
        server.borrow_mut().service_ns = self.service_ns;
        let clock = VirtualClock::new();
        clock.advance_to(SECOND_NS);
        let stop = Arc::new(AtomicBool::new(false));
        let mut net = SimNet::new(clock.clone(), server.clone(), Link::default(), self.seed);
        if let Some(stop_ns) = self.stop_ns {
            let stop = stop.clone();
            let set = move || stop.store(true, std::sync::atomic::Ordering::Relaxed);
            net.at(stop_ns, set);
        }
        let seconds = Rc::new(RefCell::new(Interval::new(1)));
        let all = seconds.clone();
        let outbox = Box::new(move |message| {
            if let Message::Second(second) = message {
                all.borrow_mut().merge(&second);
            }
            None
        });
        let (plan, sessions) = (self.plan(), Box::new(sessions));
        let shard = Shard::new(plan, Http1::default(), net, clock.clone(), sessions, outbox, stop);
        let mut end = shard.unwrap().run(|| 0).unwrap();
        end.rest.merge(&seconds.borrow());
        assert!(end.rest.ledger.balance().is_ok());
        feed.failed.finish().unwrap();
        let server = Rc::try_unwrap(server).ok().unwrap().into_inner();
        Outcome {
            tally: Tally::of_shards(&counted),
            trouble: feed.trouble(),
            failed: std::fs::read_to_string(&failed_path).unwrap(),
            reasons: std::fs::read_to_string(folder.join("failed.reasons")).unwrap(),
            server,
            took_ns: clock.now_ns() - SECOND_NS,
            totals: end.rest,
        }
    }

    pub fn plan(&self) -> ShardPlan {
        let clients = self.settings.inflight.limit() + 1;
        ShardPlan { connections: self.connections, ..closed_plan(clients, 100_000 * SECOND_NS) }
    }
}

pub struct Outcome {
    pub tally: Tally,
    pub trouble: Option<String>,
    pub failed: String,
    pub reasons: String,
    pub server: Server,
    pub took_ns: u64,
    pub totals: Interval,
}

impl Outcome {
    pub fn statuses(&self) -> BTreeMap<u16, usize> {
        let mut statuses = BTreeMap::new();
        for seen in &self.server.seen {
            *statuses.entry(seen.status).or_default() += 1;
        }
        statuses
    }

    /// Every document was asked to do its operations one after the other.
    pub fn expect_order(&self, seed: u64) {
        for (document, numbers) in &self.server.asked {
            let sorted = numbers.is_sorted();
            assert!(sorted, "seed {seed}: {document} was asked in the order {numbers:?}");
        }
    }
}
