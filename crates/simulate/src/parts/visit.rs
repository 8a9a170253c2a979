//! A visit of a corpus in slices: each document is written once, or the visit names the slice that is not complete.

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
use crate::truth::{Fate, Log};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::outcome::Failure;
use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_core::schedule::{Limits, LoadModel, Think};
use plimsoll_visit::{
    Destination, DocumentFormat, IdDigest, Packing, Visit, VisitForm, VisitSessions, Written,
    lines_between,
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

/// Faults of the cluster, but for those that no client can see: a body that is cut where nothing is missing, a second
/// answer in the place of that to the next request, and another bit in a document.
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

/// Failures of a slice in a row after which it is given up.
const FAILURES_MAX: u32 = 30;

/// A cluster with its documents, in buckets.
#[derive(Debug)]
struct Corpus {
    buckets: Vec<Vec<String>>,
    /// True if it knows JSON lines.
    lines: bool,
    /// Of a thousand replies, how many end with a message.
    messages: u64,
}

/// The part of the corpus that a request is about.
struct Wanted {
    from: usize,
    slice: usize,
    slices: usize,
    streams: bool,
    /// Documents after which the reply ends.
    documents: usize,
}

impl Corpus {
    fn draw(rng: &mut Rng) -> Self {
        let mut buckets = vec![Vec::new(); 1 + rng.below(40) as usize];
        for number in 0..rng.below(250) {
            let bucket = rng.below(buckets.len() as u64) as usize;
            buckets[bucket].push(format!("id:t:doc::{number} \u{e6}\"{{"));
        }
        Self { buckets, lines: rng.below(2) == 0, messages: rng.below(2) * rng.below(80) }
    }

    fn wanted(request: &Request, rng: &mut Rng) -> Wanted {
        let text = String::from_utf8_lossy(&request.text).into_owned();
        let query = text.split([' ', '?']).nth(2).unwrap_or_default();
        let query: BTreeMap<&str, &str> =
            query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        let number = |name: &str, without: usize| {
            query.get(name).and_then(|value| value.parse().ok()).unwrap_or(without)
        };
        let token = query.get("continuation").and_then(|token| token.strip_prefix('T'));
        Wanted {
            from: token.and_then(|token| token.parse().ok()).unwrap_or(0),
            slice: number("sliceId", 0),
            slices: number("slices", 1).max(1),
            streams: query.get("stream").is_some_and(|stream| *stream == "true"),
            documents: 1 + rng.below(30) as usize,
        }
    }

    fn buckets_of(&self, wanted: &Wanted) -> Vec<usize> {
        let all = wanted.from..self.buckets.len();
        all.filter(|bucket| bucket % wanted.slices == wanted.slice).collect()
    }

    fn object(&self, wanted: &Wanted, fails: bool, rng: &mut Rng) -> String {
        let (mut documents, mut next) = (Vec::new(), None);
        for bucket in self.buckets_of(wanted) {
            if documents.len() >= wanted.documents || (fails && rng.below(3) == 0) {
                next = Some(bucket);
                break;
            }
            documents.extend(self.buckets[bucket].iter().map(|id| {
                let id = serde_json::Value::from(id.as_str());
                format!(r#"{{"id":{id},"fields":{{"a":[1,{{"b":"]"}}]}}}}"#)
            }));
        }
        let count = documents.len();
        let documents = documents.join(",");
        let mut text = format!(
            r#"{{"pathId":"/document/v1/","documents":[{documents}],"documentCount":{count}"#
        );
        text += &match (fails, next) {
            (true, _) => r#","message":"a node has gone"}"#.to_owned(),
            (false, Some(bucket)) => format!(r#","continuation":"T{bucket}"}}"#),
            (false, None) => "}".to_owned(),
        };
        text
    }

    /// Documents of the next bucket come before the token that covers the last.
    fn json_lines(&self, wanted: &Wanted, fails: bool, rng: &mut Rng) -> String {
        let own = self.buckets_of(wanted);
        let (mut text, mut count, mut next) = (String::new(), 0, None);
        let mut covered: Option<usize> = None;
        for (place, bucket) in own.iter().enumerate() {
            if count >= wanted.documents || (fails && rng.below(3) == 0) {
                next = Some(*bucket);
                break;
            }
            for (index, id) in self.buckets[*bucket].iter().enumerate() {
                let id = serde_json::Value::from(id.as_str());
                text += &format!("{{\"put\":{id},\"fields\":{{\"t\":\"}}\"}}}}\n");
                count += 1;
                if let Some(token) = covered.take_if(|_| index == 0) {
                    text += &format!(
                        "{{\"continuation\":{{\"token\":\"T{token}\",\"percentFinished\":50.0}}}}\n"
                    );
                }
            }
            covered = own.get(place + 1).copied();
        }
        text += &format!("{{\"sessionStats\":{{\"documentCount\":{count}}}}}\n");
        if fails {
            text += "{\"message\":{\"text\":\"a node has gone\",\"severity\":\"error\"}}\n";
        }
        text += &match next {
            Some(bucket) => {
                format!(
                    "{{\"continuation\":{{\"token\":\"T{bucket}\",\"percentFinished\":50.0}}}}\n"
                )
            }
            None => "{\"continuation\":{\"percentFinished\":100.0}}\n".to_owned(),
        };
        text
    }
}

impl Application for Corpus {
    fn reply(
        &mut self,
        request: &Request,
        refuses: bool,
        is_empty: bool,
        rng: &mut Rng,
    ) -> Content {
        let headers = Vec::new();
        if refuses {
            let status = [429, 503, 500, 408][rng.below(4) as usize];
            let body = br#"{"message":"too much"}"#.to_vec();
            return Content { status, headers, body, fate: Fate::No(Failure::Status) };
        }
        if is_empty {
            let fate = Fate::No(Failure::Check);
            return Content { status: 200, headers, body: b"{}".to_vec(), fate };
        }
        let wanted = Self::wanted(request, rng);
        let fails = rng.below(1000) < self.messages;
        let body = match self.lines && wanted.streams {
            true => self.json_lines(&wanted, fails, rng),
            false => self.object(&wanted, fails, rng),
        };
        let fate = if fails { Fate::No(Failure::App) } else { Fate::Right };
        Content { status: 200, headers, body: body.into_bytes(), fate }
    }

    fn stranger(&mut self, _: &Request, _: &mut Rng) -> Content {
        let body = r#"{"pathId":"/document/v1/a/b/docid/","documents":[],"documentCount":0}"#;
        let fate = Fate::No(Failure::Check);
        Content { status: 200, headers: Vec::new(), body: body.as_bytes().to_vec(), fate }
    }
}

fn form(slices: u32) -> VisitForm {
    VisitForm {
        path: "/document/v1/".to_owned(),
        cluster: None,
        selection: None,
        field_set: None,
        from_us: None,
        to_us: None,
        include_removes: false,
        bucket_spaces: vec![String::new()],
        slices,
        slice_id: None,
        part: plimsoll_core::schedule::Slice::WHOLE,
        gzip: false,
        stream: true,
        concurrency: None,
        wanted: None,
        timeout_s: 20,
    }
}

/// A client for each slice, as fast as the target answers.
fn scene(rng: &mut Rng, seed: u64, slices: u32) -> Scene {
    let mut scene = Scene::draw(seed, "visit", Model::Any, FAULTS);
    scene.plan.model = LoadModel::Closed { clients: slices, think: Think::None, cycle_ns: 0 };
    scene.plan.limits = Limits::after(100_000 * SECOND_NS);
    scene.plan.connections = 1 + rng.below(10) as u32;
    (scene.plan.warmup_ns, scene.plan.ignore_first, scene.plan.classes) = (0, 0, 1);
    (scene.plan.admission, scene.plan.batching) = (AdmissionModel::Direct, false);
    (scene.source, scene.pause_ns, scene.gather_ns) = (None, 0, 1_000_000);
    scene
}

pub(super) fn run(order: Order) -> Outcome {
    let mut rng = Rng::new(derive_seed(order.seed, "visit-of"));
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary folder: {error}"));
    let application = Corpus::draw(&mut rng);
    let mut ids: Vec<String> = application.buckets.iter().flatten().cloned().collect();
    ids.sort_unstable();
    if rng.below(2) == 0 {
        let (http, speaker) = (Http::One(Http1::default()), Http1Speaker { application });
        return visit(order, rng, folder.path(), http, speaker, &ids);
    }
    let http = Http::Two(Http2 { streams_max: 1 + rng.below(60) as u32, ..Http2::default() });
    visit(order, rng, folder.path(), http, Http2Speaker { application, windows_zero: 0 }, &ids)
}

fn visit<K: Speaker + 'static>(
    order: Order,
    mut rng: Rng,
    folder: &Path,
    http: Http,
    speaker: K,
    ids: &[String],
) -> Outcome {
    let fail = |what: &str| -> ! { panic!("the visit cannot be set up: {what}") };
    let slices = 1 + rng.below(9) as u32;
    let scene = scene(&mut rng, order.seed, slices);
    let path = folder.join("dump");
    let destination = Destination::File(path.clone());
    let (format, packing) = (DocumentFormat::Documents, Packing::Plain);
    let visit = Visit::begin(form(slices), Written { destination, format, packing }, FAILURES_MAX);
    let visit = Arc::new(visit.unwrap_or_else(|error| fail(&error.to_string())));
    let authority = Authority { host: "127.0.0.1".to_owned(), port: 80, tls: false };
    let own = HttpForm::new(&authority, &visit.form().headers(), false);
    let own = own.unwrap_or_else(|error| fail(&error));
    let forms = Arc::new(vec![own; scene.plan.targets.len()]);
    let (sender, _counted) = std::sync::mpsc::channel();
    let sessions = VisitSessions::new(visit.clone(), forms, 0, 1, sender);
    let peer = Rc::new(RefCell::new(Station::new(speaker, scene.script.clone())));
    let cast = Cast { protocol: http, sessions, diary: Diary::shared(), peer };
    let (played, log, mut findings) = perform(order, &scene, cast, stamp);
    findings.expect(visit.flush().is_ok(), || "the documents are not written".to_owned());
    let written = check(&visit, &path, ids, (&log, scene.stop_ns.is_some()), &mut findings);
    let mut outcome = outcome(order, &scene, (&played, &log, findings));
    if order.wants_record {
        outcome.record += &format!(" {written:?}");
    }
    if order.wants_trace {
        outcome.trace += &format!("{:?}\n", visit.totals());
    }
    outcome
}

/// Holds what was written against the corpus; returns the ids in the order of the file.
fn check(
    visit: &Visit,
    path: &Path,
    ids: &[String],
    (log, may_stop): (&Log, bool),
    findings: &mut Findings,
) -> Vec<String> {
    let totals = visit.totals();
    let (mut written, mut digest) = (Vec::new(), IdDigest::default());
    let mut each = |line: &[u8]| {
        let line: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
        let id = line["id"].as_str().unwrap_or_default().to_owned();
        digest.add(IdDigest::of(&id));
        written.push(id);
    };
    let read = lines_between(path, Packing::Plain, 0, u64::MAX, &mut each);
    findings.expect(read.is_ok(), || format!("the documents cannot be read: {:?}", read.err()));
    findings.same("documents counted and written", totals.documents, written.len() as u64);
    findings.expect(totals.digest == digest, || {
        "the digest is another than that of the file".to_owned()
    });
    let mut sorted = written.clone();
    sorted.sort_unstable();
    let once = sorted.windows(2).all(|two| two[0] != two[1]);
    findings.expect(once, || "a document was written twice".to_owned());
    let known = sorted.iter().all(|id| ids.binary_search(id).is_ok());
    findings.expect(known, || "a document was written that the corpus does not have".to_owned());
    if totals.is_complete() {
        findings.expect(sorted == ids, || {
            format!("a complete visit has {} documents of {}", sorted.len(), ids.len())
        });
        return written;
    }
    let has_reasons = totals.unfinished.iter().all(|slice| !slice.reason.is_empty());
    // A corrupted reply that a client can read may claim another number of documents than it has: the counts say why.
    let is_corrupted = log.attempts.iter().any(|attempt| attempt.fate == Fate::Doubtful)
        && totals.inconsistent > 0;
    findings.expect(has_reasons && (!totals.unfinished.is_empty() || is_corrupted), || {
        format!("incomplete, and no slice says why: {totals:?}")
    });
    let is_given_up = totals.unfinished.iter().any(|slice| slice.reason != "it was stopped");
    findings.expect(may_stop || is_given_up || is_corrupted || visit.trouble().is_some(), || {
        format!("the visit was not stopped, and it is not complete: {totals:?}")
    });
    written
}
