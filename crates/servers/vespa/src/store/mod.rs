//! The documents of record: a redb file in the order of buckets, written by one thread that
//! commits many writes at once.
//!
//! [`Durability`] chooses the time of acknowledgement of a write, and so what survives a crash.
//! Each commit also notes the documents it changed in a table of changes, from which the index
//! catches up after a crash; the notes go away once a commit of the index has covered them.

mod backend;
mod backlog;
mod fetched;
pub(crate) mod key;
#[cfg(test)]
mod lying_disk;
mod prune;
mod record;
mod scan;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use backlog::{Backlog, Waiting};
pub(crate) use fetched::Fetched;
pub(crate) use record::{Record, read_and_write};
pub(crate) use scan::{Found, Start};
pub(crate) use write::{Operation, Test, Write, WriteError, WriterMessage, Written};

use plimsoll_core::clock::{now_ns, wall_us};
use plimsoll_disk::{Disk, durable};
use plimsoll_documents::document::{Document, Values};
use plimsoll_documents::encoding::DecodeError;
use plimsoll_documents::filter::Filter;
use plimsoll_documents::schema::Schemas;
use plimsoll_documents::selection::EvaluationError;
use plimsoll_front::Durability;
use plimsoll_wire::vespa::DocumentId;
use record::Header;
use redb::{
    Database, ReadOnlyTable, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    TableDefinition,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Key in bucket order -> record.
const RECORDS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("records");
/// Document number -> key. Numbers are never used twice.
const KEYS: TableDefinition<u64, &[u8]> = TableDefinition::new("keys");
/// Sequence number of the first write of a commit -> numbers of the documents that it changed.
const CHANGES: TableDefinition<u64, &[u8]> = TableDefinition::new("changed");
/// Timestamp of a removal -> key of the document that is gone.
const TOMBSTONES: TableDefinition<u64, &[u8]> = TableDefinition::new("tombstones");
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// A table that only the layout before this one had.
const FORMER: TableDefinition<&str, u64> = TableDefinition::new("ids");

const STORE_ID: &str = "store_id";
const NEXT_LID: &str = "next_lid";
const LAST_SEQUENCE: &str = "last_sequence";
const LAST_TIMESTAMP: &str = "last_timestamp";
/// All changes up to this sequence number are gone from [`CHANGES`].
const PRUNED: &str = "pruned";

/// Bytes of the file that redb keeps in memory.
const CACHE_BYTES: usize = 256 << 20;
/// Work that is older than this when it is taken up means that the store is overloaded.
const MAX_AGE_NS: u64 = 3_000_000_000;

/// The store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreError {
    /// No space is left on the disk.
    #[error("the document store is full: {0}")]
    Full(String),
    /// The file is of an earlier version.
    #[error(
        "the documents were written by an earlier version of plimsoll, whose layout is not read any \
         more; feed them again into a new folder, or remove this one"
    )]
    Former,
    /// Anything else that the file or its content refused.
    #[error("the document store failed: {0}")]
    Failed(String),
}

impl From<redb::Error> for StoreError {
    fn from(error: redb::Error) -> Self {
        match &error {
            redb::Error::Io(io) if io.kind() == io::ErrorKind::StorageFull => {
                Self::Full(error.to_string())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Each of redb's errors is an error of the store.
macro_rules! errors_of_redb {
    ($($error:ident),*) => {
        $(impl From<redb::$error> for StoreError {
            fn from(error: redb::$error) -> Self {
                redb::Error::from(error).into()
            }
        })*
    };
}

errors_of_redb!(
    CommitError,
    DatabaseError,
    SetDurabilityError,
    StorageError,
    TableError,
    TransactionError
);

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        redb::Error::Io(error).into()
    }
}

impl From<DecodeError> for StoreError {
    fn from(error: DecodeError) -> Self {
        Self::Failed(error.to_string())
    }
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
    /// Length of the record.
    pub(crate) bytes: usize,
}

/// A message to the index thread.
pub(crate) enum IndexMessage {
    Change(Change, Waiting),
    /// Make everything searchable now.
    Refresh,
    /// Commit, then end.
    Stop,
}

/// Counters that the threads share.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The last write that can be read and is known to the index's queue.
    pub(crate) committed: AtomicU64,
    /// The last write that a commit of the index covers.
    pub(crate) indexed: AtomicU64,
    pub(crate) documents: AtomicU64,
    pub(crate) tombstones: AtomicU64,
    pub(crate) commits: AtomicU64,
    /// Time at which the oldest write of the current commit was sent; 0 without one.
    oldest_ns: AtomicU64,
}

impl Progress {
    /// The age of the oldest uncommitted write, in nanoseconds, if it is too old.
    pub(crate) fn too_old(&self) -> Option<u64> {
        let oldest_ns = self.oldest_ns.load(Ordering::Relaxed);
        if oldest_ns == 0 {
            return None;
        }
        Some(now_ns().saturating_sub(oldest_ns)).filter(|age| *age > MAX_AGE_NS)
    }
}

/// The open file. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    db: Arc<Database>,
    pub(crate) disk: Arc<dyn Disk>,
    durability: Durability,
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) progress: Arc<Progress>,
    /// Documents on their way into the index.
    pub(crate) backlog: Arc<Backlog>,
    /// Tells this file from any other, so that an index of another one is not trusted.
    pub(crate) id: u64,
}

type RecordTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

fn document(
    schemas: &Schemas,
    id: &str,
    record: &[u8],
) -> Result<Option<(Header, Document)>, StoreError> {
    let (header, content) = Header::read(record)?;
    if header.removed {
        return Ok(None);
    }
    let values = Values::decode(schemas, content)?;
    Ok(Some((header, Document { id: id.to_owned(), values })))
}

/// Makes the file, beside its place: redb takes no file that it has made by half. When it returns, the file is on the disk, name and
/// all.
fn make(disk: &Arc<dyn Disk>, path: &Path) -> Result<(), StoreError> {
    let unfinished = path.with_extension("redb.new");
    if backend::exists(&**disk, &unfinished)? {
        disk.remove_file(&unfinished)?;
    }
    let db = backend::database(disk, &unfinished)?;
    db.begin_write()?.commit()?;
    drop(db);
    disk.rename(&unfinished, path)?;
    Ok(durable::sync_name(&**disk, path)?)
}

impl Store {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// When the file is in use, damaged, of an earlier version, or cannot be written.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        path: &Path,
        durability: Durability,
        schemas: Arc<Schemas>,
    ) -> Result<Self, StoreError> {
        if !backend::exists(&**disk, path)? {
            make(disk, path)?;
        }
        let db = backend::database(disk, path)?;
        let reading = db.begin_read()?;
        let former = reading
            .list_tables()?
            .any(|table| redb::TableHandle::name(&table) == redb::TableHandle::name(&FORMER));
        if former {
            return Err(StoreError::Former);
        }
        drop(reading);
        let transaction = db.begin_write()?;
        let progress = Progress::default();
        let id = {
            transaction.open_table(RECORDS)?;
            transaction.open_table(CHANGES)?;
            let keys = transaction.open_table(KEYS)?;
            progress.documents.store(keys.len()?, Ordering::Relaxed);
            let tombstones = transaction.open_table(TOMBSTONES)?;
            progress.tombstones.store(tombstones.len()?, Ordering::Relaxed);
            let mut meta = transaction.open_table(META)?;
            let known = meta.get(STORE_ID)?.map(|id| id.value());
            let id = known.unwrap_or_else(wall_us);
            meta.insert(STORE_ID, id)?;
            let last = meta.get(LAST_SEQUENCE)?.map_or(0, |last| last.value());
            progress.committed.store(last, Ordering::Relaxed);
            id
        };
        transaction.commit()?;
        let disk = Arc::clone(disk);
        let (db, progress, backlog) = (Arc::new(db), Arc::new(progress), Arc::default());
        Ok(Self { db, disk, durability, schemas, progress, backlog, id })
    }

    fn records(&self) -> Result<RecordTable, StoreError> {
        Ok(self.db.begin_read()?.open_table(RECORDS)?)
    }

    /// Reads a document by its id.
    pub(crate) fn get(&self, id: &DocumentId) -> Result<Option<Document>, StoreError> {
        let Some(record) = self.records()?.get(key::key(id).as_slice())? else { return Ok(None) };
        Ok(document(&self.schemas, id.as_str(), record.value())?.map(|(_, document)| document))
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
        let keys = transaction.open_table(KEYS).map_err(|e| store(e.into()))?;
        let records = transaction.open_table(RECORDS).map_err(|e| store(e.into()))?;
        // A commit covers the numbers from its own to the next one's: the one before counts too.
        let before = changes.range(..=sequence).map_err(|e| store(e.into()))?.next_back();
        let start = before.transpose().map_err(|e| store(e.into()))?.map_or(0, |(k, _)| k.value());
        for entry in changes.range(start..).map_err(|e| store(e.into()))? {
            let (first, lids) = entry.map_err(|e| store(e.into()))?;
            let (numbered, _) = lids.value().as_chunks::<8>();
            for (number, lid) in (first.value()..).zip(numbered) {
                if number <= sequence {
                    continue;
                }
                let lid = u64::from_le_bytes(*lid);
                let (values, bytes) = self.by_lid(&keys, &records, lid)?.unzip();
                let bytes = bytes.unwrap_or(0);
                visit(Change { sequence: number, lid, replaces: true, values, bytes })?;
            }
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
        let records = self.records()?;
        for entry in records.range::<&[u8]>(..).map_err(|e| store(e.into()))? {
            let (_, record) = entry.map_err(|e| store(e.into()))?;
            let (header, content) = Header::read(record.value()).map_err(StoreError::from)?;
            if header.removed {
                continue;
            }
            let values = Some(Values::decode(&self.schemas, content).map_err(StoreError::from)?);
            let (lid, bytes) = (header.lid, content.len());
            visit(Change { sequence, lid, replaces: false, values, bytes })?;
        }
        Ok(())
    }

    fn by_lid(
        &self,
        keys: &impl ReadableTable<u64, &'static [u8]>,
        records: &RecordTable,
        lid: u64,
    ) -> Result<Option<(Values, usize)>, StoreError> {
        let Some(key) = keys.get(lid)? else { return Ok(None) };
        let Some(record) = records.get(key.value())? else { return Ok(None) };
        let (_, id) = key::parts(key.value()).ok_or(DecodeError::Damaged)?;
        let (record, schemas) = (record.value(), &self.schemas);
        Ok(document(schemas, id, record)?.map(|(_, document)| (document.values, record.len())))
    }
}

#[cfg(test)]
impl Store {
    /// Keeps the writing thread from its next commit until the guard is dropped.
    pub(crate) fn block_writes(&self) -> redb::WriteTransaction {
        self.db.begin_write().unwrap()
    }
}
