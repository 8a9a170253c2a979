//! The documents of record: a redb file, written by one thread that commits many writes at once.
//!
//! A write is acknowledged after its commit was synchronised to the disk. Each commit also notes
//! the documents it changed in a table of changes, from which the index catches up after a crash;
//! the notes go away once a commit of the index has covered them.

use super::document::{Damaged, Document, Values};
use super::edit::{Edit, apply};
use plimsoll_core::clock::wall_us;
use redb::{
    Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition,
    WriteTransaction,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use tokio::sync::oneshot;

/// Document number -> document.
const DOCUMENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("documents");
/// Document id -> document number. Numbers are never used twice.
const IDS: TableDefinition<&str, u64> = TableDefinition::new("ids");
/// Sequence number of a write -> number of the document that it changed.
const CHANGES: TableDefinition<u64, u64> = TableDefinition::new("changes");
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

const STORE_ID: &str = "store_id";
const NEXT_LID: &str = "next_lid";
const LAST_SEQUENCE: &str = "last_sequence";
/// All changes up to this sequence number are gone from [`CHANGES`].
const PRUNED: &str = "pruned";

/// How much of the file redb keeps in memory.
const CACHE_BYTES: usize = 256 << 20;
/// The most writes in one commit.
const MAX_BATCH: usize = 1024;
/// The most old changes that one commit removes, so that none takes long.
const MAX_PRUNED: usize = 8192;

/// The store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreError {
    /// No space is left on the disk.
    #[error("the document store is full: {0}")]
    Full(String),
    /// Anything else that the file or its content refused.
    #[error("the document store failed: {0}")]
    Failed(String),
}

impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(error: E) -> Self {
        let error = error.into();
        match &error {
            redb::Error::Io(io) if io.kind() == io::ErrorKind::StorageFull => {
                Self::Full(error.to_string())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<Damaged> for StoreError {
    fn from(error: Damaged) -> Self {
        Self::Failed(error.to_string())
    }
}

/// What a write does to its document.
#[derive(Debug)]
pub(crate) enum Operation {
    Put(Values),
    Update { edits: Vec<Edit>, create: bool },
    Remove,
}

/// A write on its way to the disk. The answer comes after the commit.
pub(crate) struct Write {
    pub(crate) id: String,
    pub(crate) operation: Operation,
    pub(crate) done: oneshot::Sender<Result<(), StoreError>>,
}

/// A message to the writing thread.
pub(crate) enum WriterMessage {
    Write(Write),
    /// Commit what is in the queue, then end.
    Stop,
}

/// A committed change, for the index.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) sequence: u64,
    pub(crate) lid: u64,
    /// The index may hold an older form of the document.
    pub(crate) replaces: bool,
    /// The new content, or none when the document is gone.
    pub(crate) values: Option<Values>,
}

/// Counters that the threads share.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The last write that is on the disk and known to the index's queue.
    pub(crate) committed: AtomicU64,
    /// The last write that a commit of the index covers.
    pub(crate) indexed: AtomicU64,
    pub(crate) documents: AtomicU64,
    pub(crate) commits: AtomicU64,
}

/// The open file. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    db: Arc<Database>,
    pub(crate) progress: Arc<Progress>,
    /// Tells this file from any other, so that an index of another one is not trusted.
    pub(crate) id: u64,
}

impl Store {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// When the file is in use, damaged or cannot be written.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let db = Database::builder().set_cache_size(CACHE_BYTES).create(path)?;
        let transaction = db.begin_write()?;
        let progress = Progress::default();
        let id = {
            let documents = transaction.open_table(DOCUMENTS)?;
            transaction.open_table(IDS)?;
            transaction.open_table(CHANGES)?;
            progress.documents.store(documents.len()?, Ordering::Relaxed);
            let mut meta = transaction.open_table(META)?;
            let known = meta.get(STORE_ID)?.map(|id| id.value());
            let id = known.unwrap_or_else(wall_us);
            meta.insert(STORE_ID, id)?;
            let last = meta.get(LAST_SEQUENCE)?.map_or(0, |last| last.value());
            progress.committed.store(last, Ordering::Relaxed);
            id
        };
        transaction.commit()?;
        Ok(Self { db: Arc::new(db), progress: Arc::new(progress), id })
    }

    /// Reads a document by its id.
    pub(crate) fn get(&self, id: &str) -> Result<Option<Document>, StoreError> {
        let transaction = self.db.begin_read()?;
        let ids = transaction.open_table(IDS)?;
        let Some(lid) = ids.get(id)?.map(|lid| lid.value()) else { return Ok(None) };
        let documents = transaction.open_table(DOCUMENTS)?;
        let Some(bytes) = documents.get(lid)? else { return Ok(None) };
        Ok(Some(Document::decode(bytes.value())?))
    }

    /// Reads documents by their numbers, leaving out those that are gone.
    pub(crate) fn fetch<T>(
        &self,
        wanted: &[T],
        lid: impl Fn(&T) -> u64,
    ) -> Result<Vec<(T, Document)>, StoreError>
    where
        T: Copy,
    {
        let mut found = Vec::with_capacity(wanted.len());
        if wanted.is_empty() {
            return Ok(found);
        }
        let transaction = self.db.begin_read()?;
        let documents = transaction.open_table(DOCUMENTS)?;
        for item in wanted {
            if let Some(bytes) = documents.get(lid(item))? {
                found.push((*item, Document::decode(bytes.value())?));
            }
        }
        Ok(found)
    }

    /// The sequence number up to which the changes are gone.
    pub(crate) fn pruned(&self) -> Result<u64, StoreError> {
        let transaction = self.db.begin_read()?;
        let meta = transaction.open_table(META)?;
        Ok(meta.get(PRUNED)?.map_or(0, |pruned| pruned.value()))
    }

    /// Calls `visit` with the changes after a sequence number, in their order.
    pub(crate) fn changes_after<E: From<StoreError>>(
        &self,
        sequence: u64,
        mut visit: impl FnMut(Change) -> Result<(), E>,
    ) -> Result<(), E> {
        let store = |error: redb::Error| StoreError::from(error);
        let transaction = self.db.begin_read().map_err(|e| store(e.into()))?;
        let changes = transaction.open_table(CHANGES).map_err(|e| store(e.into()))?;
        let documents = transaction.open_table(DOCUMENTS).map_err(|e| store(e.into()))?;
        let range = changes.range(sequence.saturating_add(1)..).map_err(|e| store(e.into()))?;
        for entry in range {
            let (sequence, lid) = entry.map_err(|e| store(e.into()))?;
            let (sequence, lid) = (sequence.value(), lid.value());
            let bytes = documents.get(lid).map_err(|e| store(e.into()))?;
            let values = bytes.map(|bytes| Document::decode(bytes.value())).transpose();
            let values = values.map_err(StoreError::from)?.map(|document| document.values);
            visit(Change { sequence, lid, replaces: true, values })?;
        }
        Ok(())
    }

    /// Calls `visit` with every document, as if each had just been written.
    pub(crate) fn every_document<E: From<StoreError>>(
        &self,
        mut visit: impl FnMut(Change) -> Result<(), E>,
    ) -> Result<(), E> {
        let store = |error: redb::Error| StoreError::from(error);
        let sequence = self.progress.committed.load(Ordering::Relaxed);
        let transaction = self.db.begin_read().map_err(|e| store(e.into()))?;
        let documents = transaction.open_table(DOCUMENTS).map_err(|e| store(e.into()))?;
        for entry in documents.range(0u64..).map_err(|e| store(e.into()))? {
            let (lid, bytes) = entry.map_err(|e| store(e.into()))?;
            let document = Document::decode(bytes.value()).map_err(StoreError::from)?;
            let values = Some(document.values);
            visit(Change { sequence, lid: lid.value(), replaces: false, values })?;
        }
        Ok(())
    }

    /// Commits writes until it is told to stop. Runs on a thread of its own.
    pub(crate) fn write_until_stopped(
        &self,
        queue: &Receiver<WriterMessage>,
        index: &SyncSender<super::index::IndexMessage>,
    ) {
        let mut failed = None;
        while let Ok(WriterMessage::Write(first)) = queue.recv() {
            let mut batch = vec![first];
            let mut stop = false;
            while batch.len() < MAX_BATCH {
                match queue.try_recv() {
                    Ok(WriterMessage::Write(write)) => batch.push(write),
                    Ok(WriterMessage::Stop) => {
                        stop = true;
                        break;
                    }
                    Err(_) => break,
                }
            }
            let result = match &failed {
                None => self.commit(&mut batch),
                Some(error) => Err(StoreError::clone(error)),
            };
            let result = result.map(|changes| {
                // Those changes are on the disk; what comes after them is refused.
                failed = failed.take().or(self.publish(changes, index).err());
            });
            for write in batch {
                // Nobody waits any more when the client has gone away.
                let _ = write.done.send(result.clone());
            }
            if stop {
                break;
            }
        }
    }

    /// Hands committed changes to the index; they are durable whatever happens here.
    fn publish(
        &self,
        changes: Vec<Change>,
        index: &SyncSender<super::index::IndexMessage>,
    ) -> Result<(), StoreError> {
        for change in changes {
            let sequence = change.sequence;
            index.send(super::index::IndexMessage::Change(change)).map_err(|_| {
                let message = "the index has stopped; restart the server to catch up";
                StoreError::Failed(message.to_owned())
            })?;
            self.progress.committed.store(sequence, Ordering::Release);
        }
        Ok(())
    }

    fn commit(&self, batch: &mut [Write]) -> Result<Vec<Change>, StoreError> {
        let transaction = self.db.begin_write()?;
        let changes = self.apply(&transaction, batch)?;
        if changes.is_empty() {
            transaction.abort()?;
            return Ok(changes);
        }
        transaction.commit()?;
        self.progress.commits.fetch_add(1, Ordering::Relaxed);
        let (mut added, mut removed) = (0, 0);
        for change in &changes {
            added += u64::from(change.values.is_some() && !change.replaces);
            removed += u64::from(change.values.is_none());
        }
        let documents = self.progress.documents.load(Ordering::Relaxed);
        self.progress.documents.store(documents + added - removed, Ordering::Relaxed);
        Ok(changes)
    }

    fn apply(
        &self,
        transaction: &WriteTransaction,
        batch: &mut [Write],
    ) -> Result<Vec<Change>, StoreError> {
        let mut ids = transaction.open_table(IDS)?;
        let mut documents = transaction.open_table(DOCUMENTS)?;
        let mut notes = transaction.open_table(CHANGES)?;
        let mut meta = transaction.open_table(META)?;
        let mut next_lid = meta.get(NEXT_LID)?.map_or(1, |next| next.value());
        let mut sequence = meta.get(LAST_SEQUENCE)?.map_or(0, |last| last.value());
        let mut changes = Vec::with_capacity(batch.len());
        for write in batch {
            let known = ids.get(write.id.as_str())?.map(|lid| lid.value());
            let old = match (known, &write.operation) {
                (Some(lid), Operation::Update { .. }) => match documents.get(lid)? {
                    Some(bytes) => Some(Document::decode(bytes.value())?.values),
                    None => None,
                },
                _ => None,
            };
            let Some(values) = changed(&mut write.operation, known.is_some(), old) else {
                continue;
            };
            let lid = known.unwrap_or(next_lid);
            let values = match values {
                Some(values) => {
                    if known.is_none() {
                        ids.insert(write.id.as_str(), lid)?;
                        next_lid += 1;
                    }
                    let document = Document { id: std::mem::take(&mut write.id), values };
                    documents.insert(lid, document.encode().as_slice())?;
                    Some(document.values)
                }
                None => {
                    ids.remove(write.id.as_str())?;
                    documents.remove(lid)?;
                    None
                }
            };
            sequence += 1;
            notes.insert(sequence, lid)?;
            changes.push(Change { sequence, lid, replaces: known.is_some(), values });
        }
        if changes.is_empty() {
            return Ok(changes);
        }
        meta.insert(NEXT_LID, next_lid)?;
        meta.insert(LAST_SEQUENCE, sequence)?;
        let indexed = self.progress.indexed.load(Ordering::Acquire);
        if let Some(pruned) = prune(&mut notes, indexed)? {
            meta.insert(PRUNED, pruned)?;
        }
        Ok(changes)
    }
}

/// The new content of a document: `None` when the operation changes nothing, `Some(None)` when the
/// document goes away.
fn changed(operation: &mut Operation, exists: bool, old: Option<Values>) -> Option<Option<Values>> {
    match operation {
        Operation::Put(values) => Some(Some(std::mem::take(values))),
        Operation::Remove => exists.then_some(None),
        Operation::Update { edits, create } => {
            let mut values = match old {
                Some(values) => values,
                None if *create => Values::default(),
                None => return None,
            };
            apply(&mut values, edits);
            Some(Some(values))
        }
    }
}

/// Removes the oldest changes up to a sequence number; gives the last one removed.
fn prune(notes: &mut redb::Table<'_, u64, u64>, indexed: u64) -> Result<Option<u64>, StoreError> {
    let mut last = None;
    for _ in 0..MAX_PRUNED {
        let first = notes.first()?.map(|(sequence, _)| sequence.value());
        let Some(first) = first.filter(|sequence| *sequence <= indexed) else { break };
        notes.remove(first)?;
        last = Some(first);
    }
    Ok(last)
}
