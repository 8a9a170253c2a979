//! The store by itself, against a model in memory.

use super::*;
use plimsoll_documents::operation::{Change as FieldChange, Edit};
use plimsoll_documents::value::Value;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

fn schemas() -> Arc<Schemas> {
    Arc::new(Schemas::built_in("plimsoll"))
}

fn disk() -> Arc<dyn plimsoll_disk::Disk> {
    Arc::new(plimsoll_disk::Real)
}

/// A store with its writing thread, and nobody who indexes.
struct Running {
    store: Store,
    writes: SyncSender<WriterMessage>,
    writer: Option<JoinHandle<Result<(), StoreError>>>,
    index: Option<JoinHandle<()>>,
}

impl Running {
    fn open(path: &std::path::Path, durability: Durability) -> Self {
        let store = Store::open(&disk(), path, durability, schemas()).unwrap();
        let (writes, queue) = sync_channel(64);
        let (index, changes) = sync_channel(64);
        let writing = store.clone();
        let writer = std::thread::spawn(move || writing.write_until_stopped(&queue, &index));
        let index = std::thread::spawn(move || while changes.recv().is_ok() {});
        Self { store, writes, writer: Some(writer), index: Some(index) }
    }

    fn write(&self, id: &str, operation: Operation, test: Test) -> Result<Written, WriteError> {
        let (done, answer) = oneshot::channel();
        let write = Write {
            key: key::key(&DocumentId::parse(id).unwrap()),
            operation,
            test,
            create: false,
            sent_ns: now_ns(),
            done,
            _place: None,
            _body: None,
        };
        self.writes.send(WriterMessage::Write(Box::new(write))).unwrap();
        answer.blocking_recv().unwrap()
    }

    fn everything(&self) -> Vec<(String, bool, u64)> {
        let mut all = Vec::new();
        let complete = self.store.scan(&[0..=u64::MAX], Start::At(0), |_, found| {
            all.push((found.id.to_owned(), found.removed, found.timestamp_us));
            Ok::<_, StoreError>(true)
        });
        assert!(complete.unwrap());
        all
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.writes.send(WriterMessage::Stop);
        let _ = self.writer.take().unwrap().join();
        let _ = self.index.take().unwrap().join();
    }
}

fn titled(title: u8) -> Values {
    let mut values = Values::default();
    values.set(0, Some(Value::String(format!("title {title}"))));
    values
}

fn put(title: u8) -> Operation {
    let values = titled(title);
    Operation::Put { record: Record::new(&values, &schemas()), values }
}

fn update(title: u8) -> Operation {
    let change = FieldChange::Assign(Some(Value::String(format!("title {title}"))));
    let edit = Edit { field: 0, path: Vec::new(), change, make_missing: false };
    Operation::Update { document_type: 0, edits: vec![edit].into() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_a_map(
        steps in proptest::collection::vec((0u8..4, 0u8..12, any::<u8>()), 1..80),
        restart_at in 0usize..80,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("documents.redb");
        let mut running = Running::open(&path, Durability::None);
        let mut model: BTreeMap<String, Option<u8>> = BTreeMap::new();
        for (number, (kind, name, title)) in steps.into_iter().enumerate() {
            if number == restart_at {
                drop(running);
                running = Running::open(&path, Durability::Async);
            }
            let id = format!("id:a:doc::{name}");
            let alive = matches!(model.get(&id), Some(Some(_)));
            let (operation, expected) = match kind {
                0 | 1 => (put(title), Written::Changed),
                2 => (update(title), if alive { Written::Changed } else { Written::Missing }),
                _ => (Operation::Remove, if alive { Written::Changed } else { Written::Missing }),
            };
            prop_assert_eq!(running.write(&id, operation, Test::default()).unwrap(), expected);
            if expected == Written::Changed {
                model.insert(id, (kind < 3).then_some(title));
            }
        }
        let mut times = Vec::new();
        let mut seen = BTreeMap::new();
        for (id, removed, timestamp_us) in running.everything() {
            times.push(timestamp_us);
            seen.insert(id, removed);
        }
        let expected: BTreeMap<String, bool> =
            model.iter().map(|(id, title)| (id.clone(), title.is_none())).collect();
        prop_assert_eq!(seen, expected);
        times.sort_unstable();
        prop_assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "times are told apart");
        for (id, title) in &model {
            let document = running.store.get(&DocumentId::parse(id).unwrap()).unwrap();
            prop_assert_eq!(document.map(|found| found.values), title.map(titled));
        }
        let progress = &running.store.progress;
        let alive = model.values().flatten().count() as u64;
        prop_assert_eq!(progress.documents.load(Ordering::Relaxed), alive);
        let gone = model.len() as u64 - alive;
        prop_assert_eq!(progress.tombstones.load(Ordering::Relaxed), gone);
        // The documents by number are the documents.
        let mut by_number = 0;
        running.store.every_document(|change| {
            let found = running.store.fetch(&[change.lid], |lid| *lid)?;
            let (_, _, content) = found.iter().next().unwrap();
            let values = Values::decode(&running.store.schemas, content)?;
            assert_eq!(Some(&values), change.values.as_ref());
            by_number += 1;
            Ok::<_, StoreError>(())
        }).unwrap();
        prop_assert_eq!(by_number, alive);
    }

    #[test]
    fn scans_give_what_lies_in_their_ranges(
        numbers in proptest::collection::btree_set(any::<u64>(), 0..60),
        mut cuts in proptest::collection::btree_set(any::<u64>(), 0..9),
        whole in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let running = Running::open(&folder.path().join("documents.redb"), Durability::None);
        for number in &numbers {
            // The number is the location, so that the place is known.
            let id = format!("id:a:doc:n={}:x", number.reverse_bits());
            running.write(&id, put(1), Test::default()).unwrap();
        }
        cuts.insert(u64::MAX);
        let mut ranges = Vec::new();
        let mut start = 0;
        for (number, cut) in cuts.iter().enumerate() {
            if whole || number % 2 == 0 {
                ranges.push(start..=*cut);
            }
            start = cut.saturating_add(1);
        }
        let mut found = Vec::new();
        running.store.scan(&ranges, Start::At(*ranges[0].start()), |range, record| {
            let place = u64::from_be_bytes(record.key[..8].try_into().unwrap());
            assert!(ranges[range].contains(&place));
            found.push(place);
            Ok::<_, StoreError>(true)
        }).unwrap();
        let expected: Vec<u64> = numbers
            .iter()
            .copied()
            .filter(|number| ranges.iter().any(|range| range.contains(number)))
            .collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_test_of_time_fails_when_somebody_was_faster() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::open(&folder.path().join("documents.redb"), Durability::Sync);
    let id = "id:a:doc::x";
    running.write(id, put(1), Test::default()).unwrap();
    let seen = running.everything()[0].2;
    let at = |timestamp_us| Test { condition: None, timestamp_us: Some(timestamp_us) };
    assert_eq!(running.write(id, update(2), at(seen)).unwrap(), Written::Changed);
    let slow = running.write(id, Operation::Remove, at(seen));
    assert_eq!(slow.unwrap_err(), WriteError::Condition);
    let seen = running.everything()[0].2;
    assert_eq!(running.write(id, Operation::Remove, at(seen)).unwrap(), Written::Changed);
    assert_eq!(running.write(id, put(3), at(seen)).unwrap_err(), WriteError::Condition);
}

#[test]
fn old_changes_and_removals_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::open(&folder.path().join("documents.redb"), Durability::None);
    for name in 0..20 {
        running.write(&format!("id:a:doc::{name}"), put(1), Test::default()).unwrap();
    }
    let after = |sequence| {
        let mut all = Vec::new();
        running
            .store
            .changes_after(sequence, |change| {
                all.push(change.sequence);
                Ok::<_, StoreError>(())
            })
            .unwrap();
        all
    };
    assert_eq!(after(0), (1..=20).collect::<Vec<_>>());
    assert_eq!(after(13), (14..=20).collect::<Vec<_>>());
    running.store.progress.indexed.store(15, Ordering::Release);
    running.write("id:a:doc::1", Operation::Remove, Test::default()).unwrap();
    assert_eq!(running.store.pruned().unwrap(), 15);
    assert_eq!(after(15), (16..=21).collect::<Vec<_>>());
    // The removals, as if they were many.
    for name in 2..10 {
        running.write(&format!("id:a:doc::{name}"), Operation::Remove, Test::default()).unwrap();
    }
    let transaction = running.store.db.begin_write().unwrap();
    let pruned = {
        let mut tombstones = transaction.open_table(TOMBSTONES).unwrap();
        let mut records = transaction.open_table(RECORDS).unwrap();
        prune::tombstones(&mut tombstones, &mut records, 1_000_004).unwrap()
    };
    transaction.commit().unwrap();
    assert_eq!(pruned, 4);
    let left: Vec<_> =
        running.everything().into_iter().filter(|(_, removed, _)| *removed).collect();
    assert_eq!(left.len(), 5);
    assert!(left.iter().all(|(id, ..)| !["1", "2", "3", "4"].contains(&&id[11..])), "{left:?}");
}
