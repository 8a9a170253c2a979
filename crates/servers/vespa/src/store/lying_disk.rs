//! The store and the index behind it on a disk that loses what was not synced, and fails.

use super::*;
use crate::index::Indexer;
use plimsoll_disk::simulated::{Fault, Forgets, Plan, Simulated};
use plimsoll_disk::sweep::{self, Start};
use plimsoll_documents::value::Value;
use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tantivy::IndexReader;
use tokio::sync::oneshot;

/// A store.
struct Vespa(Durability);

/// A document: its title as it was answered last, none if it was removed, and as it was asked for since.
#[derive(Default)]
struct Fate {
    answered: Option<u8>,
    asked: Vec<Option<u8>>,
}

impl Fate {
    /// Anything that was asked for may be there, or nothing.
    fn nothing_is_promised(&mut self) {
        self.asked.extend([self.answered, None]);
        (1..=3).for_each(|title| self.asked.push(Some(title)));
    }
}

type Fates = BTreeMap<String, Fate>;

/// The open store with its threads.
struct Running {
    store: Store,
    writes: SyncSender<WriterMessage>,
    index: SyncSender<IndexMessage>,
    reader: IndexReader,
    writer: JoinHandle<Result<(), StoreError>>,
    indexing: JoinHandle<()>,
}

impl Running {
    fn open(disk: &Simulated, durability: Durability) -> Result<Self, String> {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        let folder = Path::new("/home/data");
        durable::create_folders(&*disk, folder).map_err(|error| error.to_string())?;
        let schemas = Arc::new(Schemas::built_in("plimsoll"));
        let store = Store::open(&disk, &folder.join("documents.redb"), durability, schemas)
            .map_err(|error| error.to_string())?;
        let indexer = Indexer::open(&folder.join("index"), &store, Duration::from_secs(60))
            .map_err(|error| error.to_string())?;
        let reader = indexer.reader();
        let (writes, queue) = sync_channel(64);
        let (index, changes) = sync_channel(64);
        let (writing, to_index) = (store.clone(), index.clone());
        let writer = std::thread::spawn(move || writing.write_until_stopped(&queue, &to_index));
        // Writes that come after the index has failed are refused.
        let indexing = std::thread::spawn(move || drop(indexer.follow(&changes)));
        Ok(Self { store, writes, index, reader, writer, indexing })
    }

    fn write(&self, id: &str, title: Option<u8>, fates: &mut Fates) {
        let fate = fates.entry(id.to_owned()).or_default();
        fate.asked.push(title);
        let operation = match title {
            None => Operation::Remove,
            Some(title) => {
                let values = titled(title);
                Operation::Put { record: Record::new(&values, &self.store.schemas), values }
            }
        };
        let (done, answer) = oneshot::channel();
        let write = Write {
            key: key::key(&document_id(id)),
            operation,
            test: Test::default(),
            create: false,
            sent_ns: now_ns(),
            done,
            _place: None,
            _body: None,
        };
        let sent = self.writes.send(WriterMessage::Write(Box::new(write)));
        if sent.is_ok() && matches!(answer.blocking_recv(), Ok(Ok(_))) {
            *fate = Fate { answered: title, asked: Vec::new() };
        }
    }

    /// Ends the threads, and returns what the writing one says. A panic of one of them is a defect.
    fn close(self, disk: &Simulated, is_clean: bool) -> Result<(), StoreError> {
        if !is_clean {
            disk.switch_off();
        }
        let _ = self.writes.send(WriterMessage::Stop);
        let written = self.writer.join().expect("the writing thread panicked");
        let _ = self.index.send(IndexMessage::Stop);
        self.indexing.join().expect("the index thread panicked");
        written
    }
}

fn document_id(name: &str) -> DocumentId {
    DocumentId::parse(&format!("id:a:doc::{name}")).unwrap()
}

fn titled(title: u8) -> Values {
    let mut values = Values::default();
    values.set(0, Some(Value::String(format!("title {title}"))));
    values
}

impl sweep::Store for Vespa {
    type Acknowledged = Fates;

    fn name(&self) -> &'static str {
        match self.0 {
            Durability::Sync => "document store and index of Vespa's API",
            Durability::Async => "Vespa's API with `--durability async`",
            Durability::None => "Vespa's API with `--durability none`",
        }
    }

    fn work(&self, disk: &Simulated) -> Fates {
        let mut fates = Fates::new();
        let Ok(running) = Running::open(disk, self.0) else { return fates };
        running.write("one", Some(1), &mut fates);
        running.write("two", Some(2), &mut fates);
        running.write("one", None, &mut fates);
        running.write("two", Some(3), &mut fates);
        // Answers that do not wait for the disk promise nothing until the store was closed without an error.
        let waits = self.0 == Durability::Sync;
        if running.close(disk, true).is_err() {
            fates.values_mut().for_each(Fate::nothing_is_promised);
        }
        let Ok(running) = Running::open(disk, self.0) else { return fates };
        for (id, title) in [("three", 4), ("one", 5)] {
            let before = fates.get(id).and_then(|fate| fate.answered);
            running.write(id, Some(title), &mut fates);
            if !waits && let Some(fate) = fates.get_mut(id) {
                *fate = Fate { answered: before, asked: vec![Some(title)] };
            }
        }
        let _ = running.close(disk, false);
        fates
    }

    fn start(&self, disk: &Simulated, fates: &Fates) -> Start {
        match Running::open(disk, self.0) {
            Err(error) => Start::Said(error),
            Ok(running) => {
                let judged = judge(&running, fates);
                let _ = running.close(disk, false);
                judged
            }
        }
    }
}

fn judge(running: &Running, fates: &Fates) -> Start {
    for (id, fate) in fates {
        let found = match running.store.get(&document_id(id)) {
            Ok(found) => found.map(|document| document.values),
            Err(error) => return Start::Said(error.to_string()),
        };
        if found != fate.answered.map(titled)
            && !fate.asked.iter().any(|one| found == one.map(titled))
        {
            return Start::Wrong(format!("{id} is {found:?}, and was {:?}", fate.answered));
        }
    }
    let found = running.reader.searcher().num_docs();
    let there = running.store.progress.documents.load(Ordering::Relaxed);
    match found == there {
        true => Start::Whole,
        false => Start::Wrong(format!("{there} documents are there, and {found} are found")),
    }
}

#[test]
fn answered_writes_are_there_whatever_the_disk_does() {
    sweep::must_pass(&Vespa(Durability::Sync), 7);
}

#[test]
fn a_clean_stop_is_kept_whatever_the_durability_and_the_disk() {
    for durability in [Durability::Async, Durability::None] {
        sweep::must_pass(&Vespa(durability), 11);
        let finding = sweep::first_finding(&Vespa(durability), Forgets::Files);
        assert!(finding.is_some(), "{durability:?}: the sweep does not see a lost sync");
    }
}

/// Returns true if a document is there after a power cut.
fn is_kept(disk: &Simulated, id: &str) -> bool {
    let cut: Arc<dyn Disk> = Arc::new(disk.after_power_cut(1));
    let (path, schemas) = ("/home/data/documents.redb", Arc::new(Schemas::built_in("plimsoll")));
    let store = Store::open(&cut, Path::new(path), Durability::Sync, schemas);
    store.and_then(|store| store.get(&document_id(id))).is_ok_and(|found| found.is_some())
}

#[test]
fn acknowledged_writes_come_to_the_disk_in_time_although_the_index_has_failed() {
    let disk = Simulated::new();
    let running = Running::open(&disk, Durability::Async).unwrap();
    running.index.send(IndexMessage::Stop).unwrap();
    while !running.indexing.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut fates = Fates::new();
    running.write("one", Some(1), &mut fates);
    assert_eq!(fates["one"].answered, Some(1));
    let until_ns = now_ns() + 20_000_000_000;
    while !is_kept(&disk, "one") {
        assert!(now_ns() < until_ns, "it is never synced");
        std::thread::sleep(Duration::from_millis(20));
    }
    running.close(&disk, true).unwrap();
}

#[test]
fn a_last_commit_that_fails_is_an_error_of_the_stop() {
    let disk = Simulated::new();
    let running = Running::open(&disk, Durability::None).unwrap();
    let mut fates = Fates::new();
    running.write("one", Some(1), &mut fates);
    assert_eq!(fates["one"].answered, Some(1));
    disk.plan(Plan { at: 0, fault: Fault::FullFromThen }, 0);
    let error = running.close(&disk, true).unwrap_err();
    assert!(matches!(error, StoreError::Full(_)), "the cause, and not its repetition: {error}");
}

#[test]
fn answers_before_the_sync_are_found() {
    let finding = sweep::first_finding(&Vespa(Durability::Sync), Forgets::Files);
    assert!(finding.is_some(), "the sweep does not see it");
}
