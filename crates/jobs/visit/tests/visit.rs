//! Visits of a made-up cluster that answers in either form, cuts replies, refuses, repeats and fails: whatever it
//! does, and whenever the visit is killed, what is written in the end is the corpus, each document once.
#![allow(clippy::unwrap_used)]

use plimsoll_core::outcome::Failure;
use plimsoll_core::recorder::Times;
use plimsoll_core::rng::Rng;
use plimsoll_core::schedule::Slice;
use plimsoll_visit::{
    Destination, DocumentFormat, IdDigest, Packing, Visit, VisitForm, VisitSessions, Written,
    lines_between,
};
use plimsoll_wire::http1::{Encoding, Http1, Reply, Request};
use plimsoll_wire::vespa::{Bucket, DocumentId, ProgressToken};
use plimsoll_wire::{Sessions, Turn};
use plimsoll_workloads::authority::Authority;
use plimsoll_workloads::render::HttpForm;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BITS: u8 = 6;
const BUCKETS: usize = 1 << BITS;

/// A cluster with faults.
struct Cluster {
    rng: Rng,
    buckets: Vec<Vec<String>>,
    /// Of a thousand replies, how many go wrong.
    faults_per_mille: u64,
    /// Whether it knows JSON lines.
    lines: bool,
    /// Whether its tokens are Vespa's.
    vespa: bool,
    /// Whether its counts are one too high once in a while.
    lies: bool,
}

/// What becomes of a request.
enum Answer {
    Whole(u16, Vec<u8>),
    /// The body up to where the connection broke.
    Cut(Vec<u8>),
}

/// Which part of the corpus a request is about.
#[derive(Clone, Copy)]
struct Part {
    from: usize,
    slice: usize,
    slices: usize,
    /// Documents after which the reply ends.
    wanted: usize,
}

impl Part {
    fn buckets(self) -> Vec<usize> {
        (self.from..BUCKETS).filter(|bucket| bucket % self.slices == self.slice).collect()
    }
}

impl Cluster {
    fn new(seed: u64, documents: usize) -> Self {
        let mut rng = Rng::new(seed);
        let mut buckets = vec![Vec::new(); BUCKETS];
        for number in 0..documents {
            let id = format!("id:t:doc::{number} \u{e6}\"{{");
            let location = DocumentId::parse(&id).unwrap().location();
            let bucket = Bucket::of_location(location, BITS).position();
            buckets[bucket as usize].push(id);
        }
        let (lines, vespa) = (rng.below(2) == 0, rng.below(2) == 0);
        Self { rng, buckets, faults_per_mille: 250, lines, vespa, lies: false }
    }

    /// Where a visit goes on that is to see this bucket next.
    fn token(&self, bucket: usize) -> String {
        if !self.vespa {
            return format!("T{bucket}");
        }
        let mut token = ProgressToken::start(BITS, 1, 0).unwrap();
        for _ in 0..bucket {
            let step = token.next_bucket().unwrap();
            assert!(token.finish_bucket(step.bucket));
        }
        token.encode()
    }

    fn bucket(token: &str) -> usize {
        let token = token.replace("%3D", "=").replace("%2D", "-").replace("%5F", "_");
        match token.strip_prefix('T') {
            Some(bucket) => bucket.parse().unwrap(),
            None => ProgressToken::decode(token).unwrap().cursor() as usize,
        }
    }

    fn digest(&self) -> IdDigest {
        let mut all = IdDigest::default();
        self.buckets.iter().flatten().for_each(|id| all.add(IdDigest::of(id)));
        all
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let text = std::str::from_utf8(&request.bytes).unwrap();
        let query = text.split([' ', '?']).nth(2).unwrap();
        let query: BTreeMap<&str, &str> =
            query.split('&').map(|pair| pair.split_once('=').unwrap()).collect();
        let number = |name: &str, without: usize| {
            query.get(name).map_or(without, |value| value.parse().unwrap())
        };
        let part = Part {
            from: query.get("continuation").map_or(0, |token| Self::bucket(token)),
            slice: number("sliceId", 0),
            slices: number("slices", 1),
            wanted: 1 + self.rng.below(30) as usize,
        };
        let fault = self.rng.below(1000) < self.faults_per_mille;
        let fault = if fault { 1 + self.rng.below(7) } else { 0 };
        match fault {
            1 => return Answer::Whole(429, br#"{"message":"too much"}"#.to_vec()),
            2 => return Answer::Whole(503, b"<html>".to_vec()),
            // Somebody else answers, who knows nothing of documents; or somebody who was asked something else.
            6 => return Answer::Whole(200, b"{}".to_vec()),
            7 => {
                let other =
                    r#"{"pathId":"/document/v1/a/b/docid/","documents":[],"documentCount":0}"#;
                return Answer::Whole(200, other.as_bytes().to_vec());
            }
            _ => {}
        }
        let streams = query.get("stream").is_some_and(|stream| *stream == "true");
        let mut body = match self.lines && streams {
            true => self.lines(part, fault == 3),
            false => self.object(part, fault == 3),
        };
        if fault < 4 {
            return Answer::Whole(200, body);
        }
        body.truncate(self.rng.below(body.len() as u64) as usize);
        // A reply that ends where the connection does looks whole to HTTP.
        if fault == 4 { Answer::Cut(body) } else { Answer::Whole(200, body) }
    }

    fn object(&mut self, part: Part, fails: bool) -> Vec<u8> {
        let (mut documents, mut next) = (Vec::new(), None);
        for bucket in part.buckets() {
            if documents.len() >= part.wanted || (fails && self.rng.below(3) == 0) {
                next = Some(bucket);
                break;
            }
            documents.extend(self.buckets[bucket].iter().map(|id| {
                let id = serde_json::Value::from(id.as_str());
                format!(r#"{{"id":{id},"fields":{{"a":[1,{{"b":"]"}}]}}}}"#)
            }));
        }
        let lie = u64::from(self.lies && self.rng.below(3) == 0);
        let count = documents.len() as u64 + lie;
        let mut text = format!(
            r#"{{"pathId":"/document/v1/","documents":[{}],"documentCount":{count}"#,
            documents.join(",")
        );
        match (fails, next) {
            (true, _) => text.push_str(r#","message":"a node has gone"}"#),
            (false, Some(bucket)) => {
                text.push_str(&format!(r#","continuation":"{}"}}"#, self.token(bucket)));
            }
            (false, None) => text.push('}'),
        }
        text.into_bytes()
    }

    /// Two buckets are under way at a time, so that documents of the next one come before the token that covers
    /// the last.
    fn lines(&mut self, part: Part, fails: bool) -> Vec<u8> {
        let own = part.buckets();
        let (mut text, mut count, mut next) = (String::new(), 0, None);
        let mut covered: Option<usize> = None;
        for (place, bucket) in own.iter().enumerate() {
            if count >= part.wanted {
                next = Some(*bucket);
                break;
            }
            for (index, id) in self.buckets[*bucket].iter().enumerate() {
                let id = serde_json::Value::from(id.as_str());
                text.push_str(&format!("{{\"put\":{id},\"fields\":{{\"t\":\"}}\"}}}}\n"));
                count += 1;
                if index == 0
                    && let Some(token) = covered.take()
                {
                    text.push_str(&format!(
                        "{{\"continuation\":{{\"token\":\"{}\",\"percentFinished\":{}}}}}\n",
                        self.token(token),
                        100.0 * token as f64 / BUCKETS as f64
                    ));
                }
            }
            covered = own.get(place + 1).copied();
            if fails && self.rng.below(3) == 0 {
                next = Some(*bucket);
                break;
            }
        }
        text.push_str(&format!("{{\"sessionStats\":{{\"documentCount\":{count}}}}}\n"));
        if fails {
            text.push_str("{\"message\":{\"text\":\"a node has gone\",\"severity\":\"error\"}}\n");
        }
        let end = match next {
            Some(bucket) => {
                format!("{{\"token\":\"{}\",\"percentFinished\":50.0}}", self.token(bucket))
            }
            None => "{\"percentFinished\":100.0}".to_owned(),
        };
        text.push_str(&format!("{{\"continuation\":{end}}}\n"));
        text.into_bytes()
    }
}

/// Lets the sessions ask until nothing is left, or until `steps` requests have been answered.
fn drive(visit: &Arc<Visit>, cluster: &mut Cluster, steps: u64, save_to: Option<&Path>) {
    let authority = Authority { host: "127.0.0.1".to_owned(), port: 80, tls: false };
    let http = HttpForm::new(&authority, &visit.form().headers(), false).unwrap();
    let (sender, _counted) = std::sync::mpsc::channel();
    let mut sessions = VisitSessions::new(visit.clone(), Arc::new(vec![http]), 0, 1, sender);
    let sessions: &mut dyn Sessions<Http1> = &mut sessions;
    let mut left: Vec<u32> = (0..visit.form().visited().len() as u32).collect();
    let mut now_ns = 1;
    for _ in 0..steps {
        if left.is_empty() {
            return;
        }
        let place = cluster.rng.below(left.len() as u64) as usize;
        let client = left[place];
        let mut request = Request::default();
        let what = match sessions.next(client, 0, &mut request) {
            Turn::Ask(what) => what,
            Turn::Rest { until_ns } => {
                assert!(until_ns < now_ns + 11_000_000_000);
                now_ns = until_ns.max(now_ns);
                continue;
            }
            Turn::Exhausted => {
                left.swap_remove(place);
                continue;
            }
        };
        let sent_ns = now_ns;
        now_ns += 1_000_000;
        let times = Times { intended_ns: sent_ns, sent_ns, done_ns: now_ns };
        let answer = cluster.answer(&request);
        let (status, body) = match &answer {
            Answer::Cut(body) => (200, body),
            Answer::Whole(status, body) => (*status, body),
        };
        let mut rest = if status == 200 { &body[..] } else { b"" };
        while !rest.is_empty() {
            let length = 1 + cluster.rng.below(rest.len() as u64) as usize;
            sessions.part(client, &what, &rest[..length], times);
            rest = &rest[length..];
        }
        if let Answer::Cut(_) = answer {
            sessions.lost(client, &what, Failure::Short, times);
        } else {
            let reply = Reply {
                status,
                head: b"",
                body: if status == 200 { b"" } else { body },
                encoding: Encoding::Identity,
                body_bytes: body.len() as u64,
                truncated: false,
            };
            sessions.judge(client, &what, &reply, times);
        }
        if let Some(path) = save_to
            && cluster.rng.below(4) == 0
        {
            visit.save(path).unwrap();
        }
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
        part: Slice::WHOLE,
        gzip: false,
        stream: true,
        concurrency: None,
        wanted: None,
        timeout_s: 20,
    }
}

fn begin(form: VisitForm, destination: Destination, failures_max: u32) -> Arc<Visit> {
    let (format, packing) = (DocumentFormat::Documents, Packing::Plain);
    let to = Written { destination, format, packing };
    Arc::new(Visit::begin(form, to, failures_max).unwrap())
}

fn ids(paths: &[PathBuf], packing: Packing) -> Vec<String> {
    let mut ids = Vec::new();
    for path in paths {
        let mut each = |line: &[u8]| {
            let line: serde_json::Value = serde_json::from_slice(line).unwrap();
            assert!(line["fields"].is_object());
            ids.push(line["id"].as_str().unwrap().to_owned());
        };
        lines_between(path, packing, 0, u64::MAX, &mut each).unwrap();
    }
    ids.sort_unstable();
    ids
}

fn expected(cluster: &Cluster) -> Vec<String> {
    let mut ids: Vec<_> = cluster.buckets.iter().flatten().cloned().collect();
    ids.sort_unstable();
    ids
}

#[test]
fn every_document_comes_once_whatever_the_cluster_does() {
    for seed in 0..150 {
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Cluster::new(seed, 300);
        let path = folder.path().join("dump");
        let visit = begin(form(1 + (seed % 9) as u32), Destination::File(path.clone()), 50);
        drive(&visit, &mut cluster, u64::MAX, None);
        visit.flush().unwrap();
        let totals = visit.totals();
        assert!(totals.is_complete(), "seed {seed}: {totals:?}");
        assert_eq!((totals.documents, totals.digest), (300, cluster.digest()), "seed {seed}");
        assert!((totals.percent - 100.0).abs() < 1e-9);
        assert!(ids(&[path], Packing::Plain) == expected(&cluster), "seed {seed}");
    }
}

#[test]
fn nothing_is_missing_after_any_number_of_kills() {
    let mut duplicates = 0;
    for seed in 0..120 {
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Cluster::new(seed, 400);
        let slices = 1 + (seed % 5) as u32;
        let packing = [Packing::Plain, Packing::Gzip, Packing::Zstd][(seed % 3) as usize];
        let one = folder.path().join("dump");
        let apart = seed % 2 == 0;
        let destination =
            if apart { Destination::Folder(one.clone()) } else { Destination::File(one.clone()) };
        let state = folder.path().join("state");
        let format = DocumentFormat::Documents;
        let to = Written { destination, format, packing };
        let first = Visit::begin(form(slices), to.clone(), 50).unwrap();
        first.save(&state).unwrap();
        let mut visit = Arc::new(first);
        for _ in 0..12 {
            drive(&visit, &mut cluster, 12, Some(&state));
            // What was written after the last save may be in the file or not.
            if cluster.rng.below(2) == 0 {
                visit.flush().unwrap();
            }
            drop(visit);
            visit = Arc::new(Visit::resume(&state, form(slices), to.clone(), 50).unwrap());
        }
        drive(&visit, &mut cluster, u64::MAX, Some(&state));
        visit.flush().unwrap();
        let totals = visit.totals();
        assert!(totals.is_complete(), "seed {seed}: {totals:?}");
        duplicates += totals.duplicates;
        let paths: Vec<_> = match apart {
            true => std::fs::read_dir(&one).unwrap().map(|entry| entry.unwrap().path()).collect(),
            false => vec![one],
        };
        assert_eq!((totals.documents, totals.digest), (400, cluster.digest()), "seed {seed}");
        assert!(ids(&paths, packing) == expected(&cluster), "seed {seed}");
    }
    assert!(duplicates > 100, "{duplicates}: hardly anything was ever sent twice");
}

#[test]
fn the_parts_of_a_visit_write_each_document_once_also_after_kills() {
    for seed in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Cluster::new(seed, 300);
        let of = 1 + (seed % 5) as u32;
        let slices = of + (seed % 7) as u32;
        let (mut digest, mut paths, mut visited) = (IdDigest::default(), Vec::new(), Vec::new());
        for index in 0..of {
            let form = VisitForm { part: Slice { index, of }, ..form(slices) };
            let path = folder.path().join(format!("dump-{index}"));
            let state = folder.path().join(format!("state-{index}"));
            let (format, packing) = (DocumentFormat::Documents, Packing::Plain);
            let to = Written { destination: Destination::File(path.clone()), format, packing };
            let mut visit = Arc::new(Visit::begin(form.clone(), to.clone(), 50).unwrap());
            visit.save(&state).unwrap();
            for _ in 0..4 {
                drive(&visit, &mut cluster, 12, Some(&state));
                drop(visit);
                visit = Arc::new(Visit::resume(&state, form.clone(), to.clone(), 50).unwrap());
            }
            drive(&visit, &mut cluster, u64::MAX, Some(&state));
            visit.flush().unwrap();
            let totals = visit.totals();
            assert!(totals.is_complete(), "seed {seed}: {totals:?}");
            assert_eq!(totals.slices as usize, form.visited().len());
            digest.add(totals.digest);
            paths.push(path);
            visited.extend(form.visited());
        }
        visited.sort_unstable();
        assert_eq!(visited, (0..slices).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(digest, cluster.digest(), "seed {seed}");
        assert!(ids(&paths, Packing::Plain) == expected(&cluster), "seed {seed}");
    }
}

#[test]
fn a_client_has_the_slice_that_it_has_in_one_process() {
    for (parts, threads, slices) in [(1, 3, 9), (2, 2, 11), (3, 2, 8), (5, 1, 13)] {
        for client in 0..slices {
            let whole = VisitForm { part: Slice::WHOLE, ..form(slices) };
            let shards = parts * threads;
            // The client of one process, and that client's place in its part, as the engine shares them out.
            let (shard, place) = (client % shards, client / shards);
            let part = Slice { index: shard % parts, of: parts };
            let own = VisitForm { part, ..whole.clone() };
            let index = place * threads + shard / parts;
            assert_eq!(own.slice_at(index), whole.slice_at(client));
            assert_eq!(own.index_of(client.into()), Some(index as usize));
        }
    }
}

#[test]
fn a_count_that_is_wrong_is_called_out() {
    let mut cluster = Cluster::new(3, 300);
    (cluster.lies, cluster.lines, cluster.faults_per_mille) = (true, false, 0);
    let visit = begin(form(2), Destination::Nowhere, 5);
    drive(&visit, &mut cluster, u64::MAX, None);
    let totals = visit.totals();
    assert!(!totals.is_complete() && totals.inconsistent > 0, "{totals:?}");
    assert_eq!(totals.claimed - totals.received, totals.inconsistent);
}

#[test]
fn a_cluster_that_never_answers_is_given_up() {
    let mut cluster = Cluster::new(4, 100);
    cluster.faults_per_mille = 1000;
    let visit = begin(form(3), Destination::Nowhere, 2);
    drive(&visit, &mut cluster, u64::MAX, None);
    let totals = visit.totals();
    assert!(!totals.is_complete());
    assert!(totals.unfinished.iter().all(|slice| !slice.reason.is_empty()), "{totals:?}");
}

#[test]
fn the_state_of_another_visit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let destination = Destination::File(folder.path().join("dump"));
    begin(form(2), destination.clone(), 5).save(&state).unwrap();
    let resume = |form: VisitForm, format: DocumentFormat| {
        let to = Written { destination: destination.clone(), format, packing: Packing::Plain };
        let visit = Visit::resume(&state, form, to, 5);
        visit.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let documents = DocumentFormat::Documents;
    assert_eq!(resume(form(2), documents), "");
    let slices = resume(form(3), documents);
    assert!(slices.contains("another number of slices"), "{slices}");
    let other = VisitForm { selection: Some("x".to_owned()), ..form(2) };
    assert!(resume(other, documents).contains("another selection"));
    assert!(resume(form(2), DocumentFormat::VespaFeed).contains("another format"));
    std::fs::write(&state, "{").unwrap();
    assert!(resume(form(2), documents).contains("does not hold a visit's state"));
}
