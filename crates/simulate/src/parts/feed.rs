//! A feed of documents: each document's operations arrive in their order, and operations that are not accepted are written down.

use super::{Cast, Order, Outcome, outcome, perform};
use crate::diary::Diary;
use crate::faults::Fault;
use crate::judge::Findings;
use crate::scene::{Model, Scene};
use crate::speakers::application::{Application, Content, stamp};
use crate::speakers::http1::Http1Speaker;
use crate::speakers::http2::Http2Speaker;
use crate::speakers::{Request, Speaker};
use crate::station::Station;
use crate::truth::Fate;
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::outcome::{Failure, Outcome as End};
use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_core::schedule::{Limits, LoadModel, Think};
use plimsoll_feed::{
    FailedOperations, Feed, FeedForm, FeedSessions, InflightChoice, Input, Packed, Parameters,
    Reader, Settings, Source, Tally,
};
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::Http1;
use plimsoll_wire::http2::Http2;
use plimsoll_workloads::authority::Authority;
use plimsoll_workloads::render::HttpForm;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Faults of the server, but for those that no client can see: a body that is cut where nothing is missing, and a second answer in
/// the place of that to the next request.
const FAULTS: &[Fault] = &[
    Fault::Stalled,
    Fault::Late,
    Fault::Reset,
    Fault::Closed,
    Fault::HalfClosed,
    Fault::ResetInside,
    Fault::CutInside,
    Fault::Garbage,
    Fault::Stranger,
    Fault::TooLong,
    Fault::Refusal,
    Fault::Empty,
    Fault::IdleClosed,
];

/// A document store that remembers the order in which it was asked.
#[derive(Debug, Default)]
struct Documents {
    /// Of a thousand replies, how many leave something out.
    ignores: u64,
    /// By document, when each operation was sent, ns, and its number.
    asked: BTreeMap<String, Vec<(u64, u64)>>,
    /// By document, the operation that was done last.
    done: BTreeMap<String, u64>,
}

/// The path of a request, and the number of its operation.
fn operation(request: &Request) -> (String, u64) {
    let text = String::from_utf8_lossy(&request.text);
    let target = text.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let number = query.split('=').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
    (path.to_owned(), number)
}

impl Application for Documents {
    fn begun(&mut self, request: &Request) {
        let (path, number) = operation(request);
        self.asked.entry(path).or_default().push((request.sent_ns, number));
    }

    fn reply(
        &mut self,
        request: &Request,
        refuses: bool,
        is_empty: bool,
        rng: &mut Rng,
    ) -> Content {
        let (path, number) = operation(request);
        let named = |more: &str| format!("{{\"pathId\":\"{path}\"{more}}}").into_bytes();
        let headers = vec![("content-type", "application/json".to_owned())];
        if refuses {
            let status = [429, 429, 503, 500, 502, 408, 400, 412][rng.below(8) as usize];
            let body = named(",\"message\":\"not now\"");
            return Content { status, headers, body, fate: Fate::No(Failure::Status) };
        }
        if is_empty {
            let body = b"{\"ok\":true}".to_vec();
            return Content { status: 200, headers, body, fate: Fate::No(Failure::Check) };
        }
        if rng.below(1000) < self.ignores {
            let what =
                ["x-vespa-ignored-fields", "x-vespa-ignored-operation"][rng.below(2) as usize];
            let headers = vec![(what, "true".to_owned())];
            return Content { status: 200, headers, body: named(""), fate: Fate::No(Failure::App) };
        }
        self.done.insert(path.clone(), number);
        Content { status: 200, headers, body: named(""), fate: Fate::Right }
    }

    fn stranger(&mut self, _: &Request, _: &mut Rng) -> Content {
        let body = b"{\"pathId\":\"/document/v1/n/t/docid/of-somebody-else\"}".to_vec();
        Content { status: 200, headers: Vec::new(), body, fate: Fate::No(Failure::Check) }
    }

    fn forsaken(&mut self, request: &Request, rng: &mut Rng) {
        // Nobody learns whether it was done.
        if rng.below(2) == 0 {
            let (path, number) = operation(request);
            self.done.insert(path, number);
        }
    }
}

/// Operations on a few documents. Each one's number is its condition, so that the server can tell.
fn input(rng: &mut Rng) -> (String, u64) {
    let (count, documents) = (1 + rng.below(200), 1 + rng.below(60));
    let mut text = String::new();
    for number in 1..=count {
        let id = format!("id:n:t::{}", rng.below(documents));
        text += &match rng.below(5) {
            0 => format!("{{\"remove\":\"{id}\",\"condition\":\"{number}\"}}\n"),
            1 => format!("{{\"update\":\"{id}\",\"fields\":{{}},\"condition\":\"{number}\"}}\n"),
            _ => {
                format!("{{\"put\":\"{id}\",\"condition\":\"{number}\",\"fields\":{{\"a\":1}}}}\n")
            }
        };
    }
    (text, count)
}

fn settings(rng: &mut Rng, seed: u64) -> Settings {
    let most = 1 + rng.below(60) as u32;
    Settings {
        inflight: match rng.below(2) {
            0 => InflightChoice::Adaptive(most),
            _ => InflightChoice::Fixed(most),
        },
        retries: [0, 10, 1000][rng.below(3) as usize],
        timeout_ns: (2 + rng.below(30)) * SECOND_NS,
        allowed: Vec::new(),
        pace: None,
        may_end_early: false,
        parameters: Parameters::default(),
        seed,
        slice: plimsoll_core::schedule::Slice::WHOLE,
    }
}

/// A client for each operation that may be in flight, as fast as the target takes them.
fn scene(rng: &mut Rng, seed: u64, settings: &Settings) -> Scene {
    let mut scene = Scene::draw(seed, "feed", Model::Any, FAULTS);
    let clients = settings.inflight.limit() + 1;
    scene.plan.model = LoadModel::Closed { clients, think: Think::None, cycle_ns: 0 };
    scene.plan.limits = Limits::after(100_000 * SECOND_NS);
    scene.plan.connections = 1 + rng.below(40) as u32;
    (scene.plan.warmup_ns, scene.plan.ignore_first, scene.plan.classes) = (0, 0, 1);
    (scene.plan.admission, scene.plan.batching) = (AdmissionModel::Direct, false);
    (scene.source, scene.pause_ns) = (None, 0);
    scene
}

pub(super) fn run(order: Order) -> Outcome {
    let mut rng = Rng::new(derive_seed(order.seed, "feed-of"));
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary folder: {error}"));
    let application = Documents { ignores: rng.below(2) * rng.below(40), ..Documents::default() };
    if rng.below(2) == 0 {
        let (http, speaker) = (Http::One(Http1::default()), Http1Speaker { application });
        return feed(order, rng, folder.path(), http, speaker);
    }
    let windows_zero = rng.below(2) * rng.below(100);
    let http = Http::Two(Http2 { streams_max: 1 + rng.below(60) as u32, ..Http2::default() });
    let speaker = Http2Speaker { application, windows_zero };
    feed(order, rng, folder.path(), http, speaker)
}

/// A speaker whose documents can be looked at.
trait Store: Speaker {
    fn documents(&self) -> &Documents;
}

impl Store for Http1Speaker<Documents> {
    fn documents(&self) -> &Documents {
        &self.application
    }
}

impl Store for Http2Speaker<Documents> {
    fn documents(&self) -> &Documents {
        &self.application
    }
}

fn feed<K: Store + 'static>(
    order: Order,
    mut rng: Rng,
    folder: &Path,
    http: Http,
    speaker: K,
) -> Outcome {
    let fail = |what: &str| -> ! { panic!("the feed cannot be set up: {what}") };
    let (text, count) = input(&mut rng);
    let settings = settings(&mut rng, order.seed);
    let scene = scene(&mut rng, order.seed, &settings);
    let (input_path, failed_path) = (folder.join("input"), folder.join("failed"));
    std::fs::write(&input_path, &text).unwrap_or_else(|error| fail(&error.to_string()));
    let source = Source::open(&input_path).unwrap_or_else(|error| fail(&error.to_string()));
    let failed = FailedOperations::file(&failed_path);
    let failed = failed.unwrap_or_else(|error| fail(&error.to_string()));
    let sources = vec![source];
    let feed = Arc::new(Feed::new(settings, Input::new(&sources, 1), failed, 1));
    Reader::new(&feed.input, &feed.failed, &Parameters::default(), 0).read(sources);
    let authority = Authority { host: "127.0.0.1".to_owned(), port: 80, tls: false };
    let form = HttpForm::new(&authority, &[], false).unwrap_or_else(|error| fail(&error));
    let is_two = matches!(http, Http::Two(_));
    let forms = scene.plan.targets.iter().map(|_| FeedForm::new(&form, is_two, Packed::Never));
    let forms = Arc::new(forms.collect::<Vec<_>>());
    let (sender, counted) = std::sync::mpsc::channel();
    let sessions = FeedSessions::new(feed.clone(), forms, 0, 1, sender);
    let (diary, peer) = (Diary::shared(), Station::new(speaker, scene.script.clone()));
    let peer = Rc::new(RefCell::new(peer));
    let cast = Cast { protocol: http, sessions, diary, peer: peer.clone() };
    let (played, log, mut findings) = perform(order, &scene, cast, stamp);
    findings.expect(feed.failed.finish().is_ok(), || {
        "the failed operations are not written".to_owned()
    });
    let end = Ended {
        tally: Tally::of_shards(&counted),
        failed: std::fs::read_to_string(&failed_path).unwrap_or_default(),
        ok: played.diary.asked.iter().filter(|asked| is_ok(asked.end)).count() as u64,
        is_whole: scene.stop_ns.is_none() && feed.trouble().is_none(),
    };
    let peer = peer.borrow();
    check(&text, count, &end, peer.speaker.documents(), &mut findings);
    let mut outcome = outcome(order, &scene, (&played, &log, findings));
    if order.wants_record {
        outcome.record += &format!(" {:?} {}", end.tally.retries, end.failed);
    }
    if order.wants_trace {
        outcome.trace += &format!("{:?}\ntrouble: {:?}\n", end.tally.retries, feed.trouble());
    }
    outcome
}

/// The number of an operation that failed; 0 if it has none.
fn condition(line: &str) -> u64 {
    let behind = line.split("\"condition\":\"").nth(1).and_then(|rest| rest.split('"').next());
    behind.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn is_ok(end: Option<crate::diary::End>) -> bool {
    end.is_some_and(|end| end.outcome == End::Ok)
}

/// End of a feed.
struct Ended {
    tally: Tally,
    /// The file of what was not accepted.
    failed: String,
    /// Requests that were counted as successes.
    ok: u64,
    /// True if it was not stopped, and did not give up.
    is_whole: bool,
}

fn check(text: &str, count: u64, end: &Ended, documents: &Documents, findings: &mut Findings) {
    let tally = &end.tally;
    let ignored = tally.ignored_fields + tally.ignored_operations;
    let settled = tally.accepted + tally.refused + ignored;
    findings.same("operations settled and not", settled + tally.unsettled + tally.left, count);
    findings.same("operations accepted and successes in the diary", tally.accepted, end.ok);
    findings.same(
        "operations that can be fed again",
        end.failed.lines().count() as u64,
        count - tally.accepted,
    );
    findings.expect(!end.is_whole || tally.unsettled == 0, || {
        format!("{} operations are unsettled in a feed that went to its end", tally.unsettled)
    });
    for (path, asked) in &documents.asked {
        // A request on a connection that broke then may come behind one that was sent later.
        let mut asked = asked.clone();
        asked.sort_by_key(|(sent_ns, _)| *sent_ns);
        let is_ordered = asked.is_sorted_by_key(|(_, number)| *number);
        findings.expect(is_ordered, || format!("{path} was asked in the order {asked:?}"));
    }
    // Each operation has its number, and fails once at most.
    let mut failed: Vec<u64> = end.failed.lines().map(condition).collect();
    failed.sort_unstable();
    let known = failed.iter().all(|number| (1..=count).contains(number));
    findings.expect(known && failed.windows(2).all(|two| two[0] < two[1]), || {
        format!("not each operation that failed is one of the input, once: {failed:?}")
    });
    if tally.accepted < count {
        return;
    }
    let mut last = BTreeMap::new();
    for (number, line) in (1u64..).zip(text.lines()) {
        let name = line.split("::").nth(1).and_then(|rest| rest.split('"').next());
        last.insert(format!("/document/v1/n/t/docid/{}", name.unwrap_or_default()), number);
    }
    findings.expect(documents.done == last, || {
        format!("the last operation done is not the last one asked: {:?}, {last:?}", documents.done)
    });
}
