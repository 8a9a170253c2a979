//! Indices on a disk that loses what was not synced, and fails.

use crate::index::{Defaults, Index};
use crate::indices::Indices;
use crate::mapping::Mapping;
use crate::settings::Settings;
use crate::shard::{Batch, Condition, Item, Message, Operation, Values};
use plimsoll_disk::Disk;
use plimsoll_disk::simulated::{Fault, Forgets, Plan, Simulated};
use plimsoll_disk::sweep::{self, Start, Store};
use plimsoll_front::Durability;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

/// Bytes of a log above which it may be rewritten.
const COMPACT_FROM: u64 = 600;

/// Indices.
struct Elastic(Durability);

/// A document: the number in it as it was answered last, none if it was removed, and as it was asked for since.
#[derive(Default)]
struct Fate {
    answered: Option<u64>,
    asked: Vec<Option<u64>>,
}

/// What was asked, and what was answered.
#[derive(Default)]
struct Acknowledged {
    documents: BTreeMap<String, Fate>,
    /// The index `kept` was made.
    kept: bool,
    gone: Gone,
}

/// The index `gone`: it is made, gets a document and is removed.
#[derive(Clone, Copy, Default)]
struct Gone {
    is_made: bool,
    has_document: bool,
    removal_asked: bool,
    is_removed: bool,
}

fn open(disk: &Simulated) -> std::io::Result<Indices> {
    open_with(disk, Durability::Sync)
}

fn open_with(disk: &Simulated, durability: Durability) -> std::io::Result<Indices> {
    let disk = Arc::new(disk.clone());
    let drafts = Arc::default();
    let defaults = Defaults { disk, durability, scans: None, compact_from: COMPACT_FROM, drafts };
    Indices::open(PathBuf::from("/home/data/elastic"), defaults)
}

/// Writes a document, or removes it. Returns true if that is answered.
fn write(index: &Index, id: &str, number: Option<u64>) -> bool {
    let operation = match number {
        None => Operation::Delete,
        Some(number) => {
            let source = format!("{{\"number\": {number}, \"text\": \"a document\"}}");
            let Ok(document) = index.state.read_document(source.as_bytes(), id) else {
                return false;
            };
            Operation::Index(source.into_bytes().into(), Values::Read(Box::new(document)))
        }
    };
    let (routing, condition) = (String::new(), Condition::default());
    let items = vec![Item { number: 0, id: id.to_owned(), routing, operation, condition }];
    let (reply, answer) = oneshot::channel();
    let sent =
        index.shard(id, "").send(Message::Write(Batch { items, reply, held: None, room: None }));
    sent.is_ok() && answer.blocking_recv().is_ok_and(|done| done[0].result.is_ok())
}

/// Makes everything searchable.
fn flush(index: &Index) -> bool {
    let (done, waits) = oneshot::channel();
    index.shards[0].send(Message::Flush(done)).is_ok() && waits.blocking_recv().is_ok()
}

impl Acknowledged {
    /// Anything that was asked for may be there, or nothing.
    fn nothing_is_promised(&mut self) {
        let asked_removal = self.gone.removal_asked;
        *self = Self {
            gone: Gone { removal_asked: asked_removal, ..Gone::default() },
            ..Self::default()
        };
    }

    fn write(&mut self, index: &Index, id: &str, number: Option<u64>) {
        let fate = self.documents.entry(id.to_owned()).or_default();
        fate.asked.push(number);
        if write(index, id, number) {
            *fate = Fate { answered: number, asked: Vec::new() };
        }
    }
}

/// Ends the threads of the indices, and returns true if everything acknowledged is on the disk. A panic of a thread is a defect.
fn close(indices: &Indices, disk: &Simulated, is_clean: bool) -> bool {
    if !is_clean {
        disk.switch_off();
    }
    let stopped = indices.stop();
    for index in indices.all() {
        let failure = index.shards[0].failure().unwrap_or_default();
        assert!(!failure.contains("panicked"), "{failure}");
    }
    stopped.is_ok()
}

impl Store for Elastic {
    type Acknowledged = Acknowledged;

    fn name(&self) -> &'static str {
        match self.0 {
            Durability::Sync => "logs, segments and state of Elasticsearch's API",
            Durability::Async => "Elasticsearch's API with `--durability async`",
            Durability::None => "Elasticsearch's API with `--durability none`",
        }
    }

    fn work(&self, disk: &Simulated) -> Acknowledged {
        let mut done = Acknowledged::default();
        let Ok(indices) = open_with(disk, self.0) else { return done };
        if let Ok(index) = indices.create("kept", Settings::default(), Mapping::default()) {
            done.kept = true;
            (0..2).for_each(|number| done.write(&index, &number.to_string(), Some(number)));
            done.write(&index, "0", None);
            // The log is rewritten.
            (0..10).for_each(|number| done.write(&index, "1", Some(10 + number)));
            flush(&index);
            done.write(&index, "2", Some(2));
        }
        if let Ok(index) = indices.create("gone", Settings::default(), Mapping::default()) {
            let has_document = write(&index, "0", Some(0));
            let is_removed = indices.remove(&index).is_ok();
            done.gone = Gone { is_made: true, has_document, removal_asked: true, is_removed };
        }
        // Answers that do not wait for the disk promise nothing until the indices were closed without an error.
        let waits = self.0 == Durability::Sync;
        if !close(&indices, disk, true) {
            done.nothing_is_promised();
        }
        let Ok(indices) = open_with(disk, self.0) else { return done };
        if let Some(index) = indices.get("kept") {
            let mut passing = Acknowledged::default();
            let later = if waits { &mut done } else { &mut passing };
            later.write(&index, "3", Some(3));
            flush(&index);
            later.write(&index, "4", Some(4));
        }
        close(&indices, disk, false);
        done
    }

    fn start(&self, disk: &Simulated, done: &Acknowledged) -> Start {
        let indices = match open_with(disk, self.0) {
            Ok(indices) => indices,
            Err(error) => return Start::Said(error.to_string()),
        };
        let judged = judge(&indices, done);
        close(&indices, disk, false);
        judged
    }
}

fn judge(indices: &Indices, done: &Acknowledged) -> Start {
    let wrong = |what: String| Start::Wrong(what);
    let gone = done.gone;
    match indices.get("gone") {
        Some(_) if gone.is_removed => return wrong("an index that was removed is back".to_owned()),
        Some(index) if gone.has_document && index.documents() == 0 => {
            return wrong("an index that was not removed has lost its document".to_owned());
        }
        None if gone.is_made && !gone.removal_asked => return wrong("an index is gone".to_owned()),
        _ => {}
    }
    let Some(index) = indices.get("kept") else {
        return if done.kept { wrong("an index is gone".to_owned()) } else { Start::Whole };
    };
    let shard = &index.shards[0];
    for (id, fate) in &done.documents {
        let found = match shard.get(id) {
            Ok(found) => found,
            Err(error) => return Start::Said(error.to_string()),
        };
        let number = found.map(|bytes| {
            let source = bytes.record().map(|record| record.source.to_vec()).unwrap_or_default();
            let source: serde_json::Value = serde_json::from_slice(&source).unwrap_or_default();
            source["number"].as_u64().unwrap_or(u64::MAX)
        });
        if fate.answered != number && !fate.asked.contains(&number) {
            return wrong(format!("document {id} is {number:?}, and was {:?}", fate.answered));
        }
    }
    if !flush(&index) {
        let reason = shard.failure().unwrap_or_else(|| "it takes no writes".to_owned());
        return Start::Said(reason);
    }
    let (found, there) = (shard.searchable_documents(), shard.documents());
    if found != there {
        return wrong(format!("{there} documents are there, and {found} are found"));
    }
    let written = shard.counters.written.load(Ordering::Relaxed);
    if written == 0 { Start::Whole } else { wrong("a start writes documents".to_owned()) }
}

#[test]
fn answered_writes_are_there_whatever_the_disk_does() {
    sweep::must_pass(&Elastic(Durability::Sync), 19);
}

#[test]
fn a_clean_stop_is_kept_whatever_the_durability_and_the_disk() {
    for durability in [Durability::Async, Durability::None] {
        sweep::must_pass(&Elastic(durability), 29);
        let finding = sweep::first_finding(&Elastic(durability), Forgets::Files);
        assert!(finding.is_some(), "{durability:?}: the sweep does not see a lost sync");
    }
}

#[test]
fn a_last_sync_that_fails_is_an_error_of_the_stop() {
    let disk = Simulated::new();
    let indices = open_with(&disk, Durability::None).unwrap();
    let index = indices.create("kept", Settings::default(), Mapping::default()).unwrap();
    assert!(write(&index, "0", Some(0)));
    disk.plan(Plan { at: 0, fault: Fault::IoFromThen }, 0);
    let error = indices.stop().unwrap_err().to_string();
    assert!(error.contains("index [kept], shard 0: "), "{error}");
    assert!(error.ends_with("repeat the last writes"), "{error}");
}

#[test]
fn answers_before_the_sync_are_found() {
    for forgets in [Forgets::Files, Forgets::Folders] {
        let finding = sweep::first_finding(&Elastic(Durability::Sync), forgets);
        assert!(finding.is_some(), "{forgets:?}: the sweep does not see it");
    }
}

#[test]
fn settings_stay_as_they_were_when_the_disk_is_full() {
    let disk = Simulated::new();
    let indices = open(&disk).unwrap();
    let index = indices.create("kept", Settings::default(), Mapping::default()).unwrap();
    disk.plan(Plan { at: 0, fault: Fault::FullFromThen }, 0);
    let change = json!({"refresh_interval": "5s", "number_of_replicas": 3});
    let error = index.state.change_settings(|settings| settings.change(&change)).unwrap_err();
    assert_eq!(error.status.as_u16(), 500);
    assert!(error.reason.starts_with("cannot keep the settings of [kept]: "), "{}", error.reason);
    assert_eq!(index.state.settings(), Settings::default());
    let killed = disk.after_kill();
    close(&indices, &disk, false);
    let indices = open(&killed).unwrap();
    assert_eq!(indices.get("kept").unwrap().state.settings(), Settings::default());
    close(&indices, &killed, false);
}

#[test]
fn a_tail_that_was_not_synced_is_written_once_more() {
    let disk = Simulated::new();
    let indices = open(&disk).unwrap();
    let index = indices.create("kept", Settings::default(), Mapping::default()).unwrap();
    assert!(write(&index, "0", Some(0)));
    // The next write comes into the log, and is not synced.
    disk.plan(Plan { at: 1, fault: Fault::PowerCut }, 0);
    assert!(!write(&index, "1", Some(1)));
    close(&indices, &disk, false);
    let killed = disk.after_kill();
    let indices = open(&killed).unwrap();
    assert_eq!(indices.get("kept").unwrap().shards[0].searchable_documents(), 2);
    close(&indices, &killed, false);
    for seed in 0..50 {
        let cut = killed.after_power_cut(seed);
        let indices = open(&cut).unwrap();
        assert_eq!(indices.get("kept").unwrap().documents(), 2, "seed {seed}");
        close(&indices, &cut, false);
    }
}

/// tantivy does not sync the name of its list of segments before it removes segments that are not in it any more. After a power cut the old list
/// may be there without a part of them.
#[test]
fn a_text_index_without_some_of_its_files_is_made_anew() {
    let disk = Simulated::new();
    let indices = open(&disk).unwrap();
    let index = indices.create("kept", Settings::default(), Mapping::default()).unwrap();
    assert!((0..3).all(|number| write(&index, &number.to_string(), Some(number))));
    assert!(flush(&index));
    let text = index.state.folder.join("0/text");
    assert!(write(&index, "0", Some(10)) && write(&index, "2", None));
    close(&indices, &disk, false);
    for ending in ["pos", "idx", "term", "store", "fast", "fieldnorm"] {
        let left = disk.after_kill();
        for path in left.list(&text).unwrap() {
            if path.extension().is_some_and(|own| own == ending) {
                left.remove_file(&path).unwrap();
            }
        }
        let indices = open(&left).unwrap_or_else(|error| panic!("{ending}: {error}"));
        let index = indices.get("kept").unwrap();
        assert!(flush(&index), "{ending}");
        let shard = &index.shards[0];
        assert_eq!((shard.documents(), shard.searchable_documents()), (2, 2), "{ending}");
        close(&indices, &left, false);
    }
}
