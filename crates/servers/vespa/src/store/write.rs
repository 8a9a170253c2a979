//! The writing thread: many writes, one commit.

use super::{
    CHANGES, Change, DecodeError, Durability, EvaluationError, Filter, Header, IndexMessage, KEYS,
    LAST_SEQUENCE, LAST_TIMESTAMP, META, NEXT_LID, PRUNED, RECORDS, Record, Store, StoreError,
    TOMBSTONES, Values, prune,
};
use plimsoll_core::clock::{now_ns, wall_us};
use plimsoll_documents::operation::{Edit, apply};
use plimsoll_documents::schema::Schemas;
use plimsoll_front::Held;
use plimsoll_front::Place;
use redb::{ReadableTable, Table, WriteTransaction};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;
use tokio::sync::oneshot;

/// The most writes in one commit.
const MAX_BATCH: usize = 4096;
/// A commit is not begun with another write when its records have this many bytes: an update of few bytes may make a long one.
const BATCH_BYTES: usize = 64 << 20;
/// Longest time that acknowledged writes may wait for the disk, by durability.
const ASYNC_NS: u64 = 100_000_000;
const NONE_NS: u64 = 10_000_000_000;

/// The effect of a write on its document.
pub(crate) enum Operation {
    /// The record is that of the values.
    Put {
        record: Record,
        values: Values,
    },
    /// Changes fields of a document; all documents of a selection share one list of edits.
    Update {
        /// The number of the type.
        document_type: u16,
        edits: Arc<[Edit]>,
    },
    Remove,
}

/// The condition of a write.
#[derive(Default)]
pub(crate) struct Test {
    pub(crate) condition: Option<Arc<Filter>>,
    /// The document must still be the one of this time.
    pub(crate) timestamp_us: Option<u64>,
}

/// A write on its way to the disk. The answer comes when it is acknowledged.
pub(crate) struct Write {
    pub(crate) key: Vec<u8>,
    pub(crate) operation: Operation,
    pub(crate) test: Test,
    /// Make the document when it is missing; a condition does not count then.
    pub(crate) create: bool,
    /// Time at which it was ready for the writing thread.
    pub(crate) sent_ns: u64,
    pub(crate) done: oneshot::Sender<Result<Written, WriteError>>,
    /// The slot that the write occupies until it is answered.
    pub(crate) _place: Option<Place>,
    pub(crate) _body: Option<Held>,
}

/// The effect of an accepted write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It changed the document.
    Changed,
    /// There was no document to change.
    Missing,
}

/// Reason why a write was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The document is not as the condition wants it.
    #[error("ReturnCode(TEST_AND_SET_CONDITION_FAILED, Condition did not match document)")]
    Condition,
    /// The condition has no answer for this document.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// There is a condition and no document.
    #[error("ReturnCode(TEST_AND_SET_CONDITION_FAILED, Document does not exist)")]
    ConditionMissing,
}

/// A message to the writing thread.
pub(crate) enum WriterMessage {
    Write(Box<Write>),
    /// Commit what is in the queue, then end.
    Stop,
}

type Answer = Result<Written, WriteError>;

/// The tables and counters of a commit in the making.
struct Pending<'t> {
    schemas: &'t Schemas,
    records: Table<'t, &'static [u8], &'static [u8]>,
    keys: Table<'t, u64, &'static [u8]>,
    tombstones: Table<'t, u64, &'static [u8]>,
    next_lid: u64,
    sequence: u64,
    timestamp_us: u64,
    changes: Vec<Change>,
    /// Bytes of the records.
    bytes: usize,
    added: u64,
    removed: u64,
    tombs_added: u64,
    tombs_removed: u64,
}

impl Store {
    /// Commits writes until a stop is requested. Runs on a thread of its own.
    ///
    /// # Errors
    /// When acknowledged writes are not on the disk at the end.
    pub(crate) fn write_until_stopped(
        &self,
        queue: &Receiver<WriterMessage>,
        index: &SyncSender<IndexMessage>,
    ) -> Result<(), StoreError> {
        let mut failed: Option<StoreError> = None;
        // When the oldest write that is acknowledged and not on the disk was committed.
        let mut unsynced_ns: Option<u64> = None;
        // The error of the first commit that failed: after it, redb says only that there was one.
        let mut first: Option<StoreError> = None;
        let mut batch = Vec::new();
        let mut stop = false;
        loop {
            // Of a batch with long records, some writes are left for the next commit.
            if batch.is_empty() {
                stop = collect(queue, &mut batch, self.sync_due(unsynced_ns));
            }
            if let Some(error) = &failed {
                refuse(&mut batch, error);
            }
            let is_due = stop || self.sync_due(unsynced_ns).is_some_and(|wait| wait.is_zero());
            if batch.is_empty() && !is_due {
                continue;
            }
            let oldest_ns = batch.iter().map(|write| write.sent_ns).min().unwrap_or(0);
            self.progress.oldest_ns.store(oldest_ns, Ordering::Relaxed);
            let sync = is_due || self.durability == Durability::Sync;
            let result = self.commit(&mut batch, sync);
            self.progress.oldest_ns.store(0, Ordering::Relaxed);
            match result {
                Ok((answers, changes)) => {
                    unsynced_ns = if sync { None } else { unsynced_ns.or_else(|| Some(now_ns())) };
                    // These changes are made; when the index is gone, what comes after is refused.
                    failed = failed.take().or(self.publish(changes, index).err());
                    for (write, answer) in batch.drain(..answers.len()).zip(answers) {
                        // Nobody waits any more when the client has gone away.
                        let _ = write.done.send(answer);
                    }
                }
                Err(error) => {
                    refuse(&mut batch, &error);
                    // Writes before these were acknowledged: their sync is tried again after the same time.
                    if sync && unsynced_ns.is_some() {
                        unsynced_ns = Some(now_ns());
                    }
                    first.get_or_insert(error);
                }
            }
            if stop && batch.is_empty() {
                if unsynced_ns.is_none() {
                    return Ok(());
                }
                let synced = self.commit(&mut batch, true).map(drop);
                return synced.map_err(|error| first.unwrap_or(error));
            }
        }
    }

    /// Longest time that acknowledged writes may still wait for the disk; nothing when none does.
    fn sync_due(&self, unsynced_ns: Option<u64>) -> Option<Duration> {
        let limit_ns = match self.durability {
            Durability::Sync => return None,
            Durability::Async => ASYNC_NS,
            Durability::None => NONE_NS,
        };
        let due_ns = unsynced_ns?.saturating_add(limit_ns);
        Some(Duration::from_nanos(due_ns.saturating_sub(now_ns())))
    }

    /// Hands changes to the index, then shows that they are made.
    fn publish(
        &self,
        changes: Vec<Change>,
        index: &SyncSender<IndexMessage>,
    ) -> Result<(), StoreError> {
        let Some(last) = changes.last().map(|change| change.sequence) else { return Ok(()) };
        let mut sent = Ok(());
        for change in changes {
            let waiting = self.backlog.enter(change.bytes);
            if index.send(IndexMessage::Change(change, waiting)).is_err() {
                sent = Err(StoreError::Failed("the index has stopped".to_owned()));
                break;
            }
        }
        self.progress.committed.store(last, Ordering::Release);
        sent
    }

    /// Commits as many of these writes as have room in one commit, and returns their answers.
    pub(super) fn commit(
        &self,
        batch: &mut [Write],
        sync: bool,
    ) -> Result<(Vec<Answer>, Vec<Change>), StoreError> {
        let mut transaction = self.db.begin_write()?;
        let durability = if sync { redb::Durability::Immediate } else { redb::Durability::None };
        transaction
            .set_durability(durability)
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        let mut answers = Vec::with_capacity(batch.len());
        let counts = {
            let mut pending = Pending::open(&transaction, &self.schemas)?;
            for write in batch.iter_mut() {
                if pending.bytes >= BATCH_BYTES {
                    break;
                }
                let answer = pending.apply(write);
                if let Err(WriteError::Store(error)) = &answer {
                    return Err(error.clone());
                }
                answers.push(answer);
            }
            pending.prune(&self.progress)?;
            let Pending { added, removed, tombs_added, tombs_removed, .. } = pending;
            let changes = pending.close(&transaction, &self.progress)?;
            (added, removed, tombs_added, tombs_removed, changes)
        };
        let (added, removed, tombs_added, tombs_removed, changes) = counts;
        transaction.commit()?;
        let progress = &self.progress;
        progress.commits.fetch_add(1, Ordering::Relaxed);
        // Only this thread changes these two.
        let documents = progress.documents.load(Ordering::Relaxed);
        progress.documents.store(documents + added - removed, Ordering::Relaxed);
        let tombstones = progress.tombstones.load(Ordering::Relaxed);
        progress.tombstones.store(tombstones + tombs_added - tombs_removed, Ordering::Relaxed);
        Ok((answers, changes))
    }
}

/// Answers writes that are not made.
fn refuse(batch: &mut Vec<Write>, error: &StoreError) {
    for write in batch.drain(..) {
        // The client may have gone away.
        let _ = write.done.send(Err(error.clone().into()));
    }
}

/// Takes what is in the queue, or waits for something. Gives whether to stop.
fn collect(
    queue: &Receiver<WriterMessage>,
    batch: &mut Vec<Write>,
    wait: Option<Duration>,
) -> bool {
    let first = match wait {
        None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(wait) => queue.recv_timeout(wait),
    };
    match first {
        Ok(WriterMessage::Write(write)) => batch.push(*write),
        Err(RecvTimeoutError::Timeout) => return false,
        Ok(WriterMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return true,
    }
    while batch.len() < MAX_BATCH {
        match queue.try_recv() {
            Ok(WriterMessage::Write(write)) => batch.push(*write),
            Ok(WriterMessage::Stop) => return true,
            Err(_) => break,
        }
    }
    false
}

impl<'t> Pending<'t> {
    fn open(transaction: &'t WriteTransaction, schemas: &'t Schemas) -> Result<Self, StoreError> {
        let meta = transaction.open_table(META)?;
        let number = |name| -> Result<u64, StoreError> {
            Ok(meta.get(name)?.map_or(0, |value| value.value()))
        };
        Ok(Self {
            schemas,
            records: transaction.open_table(RECORDS)?,
            keys: transaction.open_table(KEYS)?,
            tombstones: transaction.open_table(TOMBSTONES)?,
            next_lid: number(NEXT_LID)?.max(1),
            sequence: number(LAST_SEQUENCE)?,
            timestamp_us: number(LAST_TIMESTAMP)?,
            changes: Vec::new(),
            bytes: 0,
            added: 0,
            removed: 0,
            tombs_added: 0,
            tombs_removed: 0,
        })
    }

    fn apply(&mut self, write: &mut Write) -> Answer {
        let needs_content =
            write.test.condition.is_some() || matches!(write.operation, Operation::Update { .. });
        let mut old = None;
        if let Some(record) = self.records.get(write.key.as_slice()).map_err(StoreError::from)? {
            let (header, content) = Header::read(record.value()).map_err(StoreError::from)?;
            let values = match needs_content && !header.removed {
                true => Some(Values::decode(self.schemas, content).map_err(StoreError::from)?),
                false => None,
            };
            old = Some((header, values));
        }
        let (header, values) = match old {
            Some((header, values)) => (Some(header), values),
            None => (None, None),
        };
        let alive = header.filter(|header| !header.removed);
        check(&write.test, alive, values.as_ref(), &write.key, write.create, self.schemas)?;
        let (mut record, values) = match &mut write.operation {
            Operation::Remove => {
                return match alive {
                    None => Ok(Written::Missing),
                    Some(header) => self.remove(&write.key, header),
                };
            }
            Operation::Put { record, values } => (std::mem::take(record), std::mem::take(values)),
            Operation::Update { document_type, edits } => {
                let Some(schema) = self.schemas.get(*document_type) else {
                    return Ok(Written::Missing);
                };
                let mut values = match values {
                    Some(values) => values,
                    None if write.create => Values::new(schema),
                    None => return Ok(Written::Missing),
                };
                apply(&mut values, schema, edits);
                (Record::new(&values, self.schemas), values)
            }
        };
        self.store(&write.key, header, &mut record, values)
    }

    fn store(
        &mut self,
        key: &[u8],
        old: Option<Header>,
        record: &mut Record,
        values: Values,
    ) -> Answer {
        let (timestamp_us, sequence) = self.tick();
        let alive = old.filter(|old| !old.removed);
        let lid = match (alive, old) {
            (Some(old), _) => old.lid,
            (None, tombstone) => {
                let lid = self.next_lid;
                self.next_lid += 1;
                self.keys.insert(lid, key).map_err(StoreError::from)?;
                self.added += 1;
                if let Some(tombstone) = tombstone {
                    let gone = self.tombstones.remove(tombstone.timestamp_us);
                    self.tombs_removed += u64::from(gone.map_err(StoreError::from)?.is_some());
                }
                lid
            }
        };
        let record = record.stamped(lid, timestamp_us);
        self.records.insert(key, record).map_err(StoreError::from)?;
        let replaces = alive.is_some();
        let bytes = record.len();
        self.bytes += bytes;
        self.changes.push(Change { sequence, lid, replaces, values: Some(values), bytes });
        Ok(Written::Changed)
    }

    fn remove(&mut self, key: &[u8], old: Header) -> Answer {
        let (timestamp_us, sequence) = self.tick();
        let tombstone = Header::tombstone(old.lid, timestamp_us);
        self.records.insert(key, tombstone.as_slice()).map_err(StoreError::from)?;
        self.keys.remove(old.lid).map_err(StoreError::from)?;
        self.tombstones.insert(timestamp_us, key).map_err(StoreError::from)?;
        self.removed += 1;
        self.tombs_added += 1;
        let lid = old.lid;
        self.changes.push(Change { sequence, lid, replaces: true, values: None, bytes: 0 });
        Ok(Written::Changed)
    }

    /// The time and the number of the next change. Both only grow, whatever the clock does.
    fn tick(&mut self) -> (u64, u64) {
        self.timestamp_us = wall_us().max(self.timestamp_us + 1);
        self.sequence += 1;
        (self.timestamp_us, self.sequence)
    }

    fn prune(&mut self, progress: &super::Progress) -> Result<(), StoreError> {
        let count =
            progress.tombstones.load(Ordering::Relaxed) + self.tombs_added - self.tombs_removed;
        let pruned = prune::tombstones(&mut self.tombstones, &mut self.records, count)?;
        self.tombs_removed += pruned;
        Ok(())
    }

    /// Writes down the counters and which documents changed.
    fn close(
        self,
        transaction: &WriteTransaction,
        progress: &super::Progress,
    ) -> Result<Vec<Change>, StoreError> {
        let Some(first) = self.changes.first() else { return Ok(self.changes) };
        let mut meta = transaction.open_table(META)?;
        meta.insert(NEXT_LID, self.next_lid)?;
        meta.insert(LAST_SEQUENCE, self.sequence)?;
        meta.insert(LAST_TIMESTAMP, self.timestamp_us)?;
        let mut changes = transaction.open_table(CHANGES)?;
        let lids: Vec<u8> =
            self.changes.iter().flat_map(|change| change.lid.to_le_bytes()).collect();
        changes.insert(first.sequence, lids.as_slice())?;
        let indexed = progress.indexed.load(Ordering::Acquire);
        if let Some(pruned) = prune::changes(&mut changes, indexed)? {
            meta.insert(PRUNED, pruned)?;
        }
        Ok(self.changes)
    }
}

/// Returns true if a write may take place.
fn check(
    test: &Test,
    alive: Option<Header>,
    values: Option<&Values>,
    key: &[u8],
    create: bool,
    schemas: &Schemas,
) -> Result<(), WriteError> {
    if let Some(timestamp_us) = test.timestamp_us
        && alive.is_none_or(|header| header.timestamp_us != timestamp_us)
    {
        return Err(WriteError::Condition);
    }
    let Some(condition) = &test.condition else { return Ok(()) };
    if alive.is_none() {
        return if create { Ok(()) } else { Err(WriteError::ConditionMissing) };
    }
    let (_, id) = super::key::parts(key).ok_or(StoreError::from(DecodeError::Damaged))?;
    if condition.matches(schemas, id, values)? { Ok(()) } else { Err(WriteError::Condition) }
}
