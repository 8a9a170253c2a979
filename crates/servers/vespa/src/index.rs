//! The text index: one thread that follows the store and makes its changes searchable.

use super::mapping::IndexSchema;
use super::store::{Change, IndexMessage, Store, StoreError, Waiting};
use plimsoll_core::clock::now_ns;
use plimsoll_disk::{Disk, durable};
use plimsoll_index::directory;
use plimsoll_index::text::register_tokenizers;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tantivy::index::SegmentId;
use tantivy::indexer::IndexWriterOptions;
use tantivy::schema::Document;
use tantivy::{
    Index, IndexReader, IndexWriter, ReloadPolicy, SegmentReader, TantivyDocument, TantivyError,
    Term,
};
use tokio::sync::watch;

/// Memory for a segment that is being made.
const WRITER_BYTES: usize = 64 << 20;
/// After this long without writes the index is merged into one segment, so that searches are as
/// fast, and as evenly fast, as they can be.
const IDLE: Duration = Duration::from_secs(1);
/// The format of the files: an index of another one is rebuilt.
const FORM: u64 = 2;
/// Larger indexes are left as they are: the merge would take minutes.
const MAX_SETTLED_DOCUMENTS: u64 = 2_000_000;

/// The index could not be opened or brought up to date.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IndexError {
    #[error("the index failed: {0}")]
    Tantivy(#[from] TantivyError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot use the index folder {path}: {error}")]
    Folder { path: String, error: std::io::Error },
}

/// A document in the queue of the writer's own thread, which may be long.
struct Counted {
    document: TantivyDocument,
    _waiting: Waiting,
}

impl Document for Counted {
    type Value<'a> = <TantivyDocument as Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.document.iter_fields_and_values()
    }
}

/// The index thread's state.
pub(crate) struct Indexer {
    schema: IndexSchema,
    store: Store,
    writer: IndexWriter<Counted>,
    reader: IndexReader,
    searchable: watch::Sender<u64>,
    interval: Duration,
    /// The last change that was handed to the writer.
    sequence: u64,
    last_commit: Duration,
    /// The segments whose merge was asked for last.
    merging: Vec<SegmentId>,
}

impl Indexer {
    /// Opens the index and catches up with the store: after a crash by the changes that it missed,
    /// or from the first document when the index is not one of this store.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub(crate) fn open(
        folder: &Path,
        store: &Store,
        interval: Duration,
    ) -> Result<Self, IndexError> {
        let schema = IndexSchema::new(Arc::clone(&store.schemas));
        let folder_error = |error| IndexError::Folder { path: folder.display().to_string(), error };
        durable::create_folders(&*store.disk, folder).map_err(folder_error)?;
        let (index, covered) = match open_existing(folder, &schema, store) {
            Some((index, covered)) => (index, Some(covered)),
            None => {
                directory::emptied(&*store.disk, folder).map_err(folder_error)?;
                (open_index(&store.disk, folder, &schema)?, None)
            }
        };
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(1)
            .memory_budget_per_thread(WRITER_BYTES)
            .build();
        let writer: IndexWriter<Counted> = index.writer_with_options(options)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let mut indexer = Self {
            schema,
            store: store.clone(),
            writer,
            reader,
            searchable: watch::Sender::new(0),
            interval,
            sequence: covered.unwrap_or(0),
            last_commit: Duration::ZERO,
            merging: Vec::new(),
        };
        indexer.catch_up(covered)?;
        Ok(indexer)
    }

    fn catch_up(&mut self, covered: Option<u64>) -> Result<(), IndexError> {
        let store = self.store.clone();
        match covered {
            Some(covered) => store.changes_after(covered, |change| self.catch_up_with(change))?,
            None => store.every_document(|change| self.catch_up_with(change))?,
        }
        self.sequence = store.progress.committed.load(Ordering::Acquire);
        self.commit()
    }

    fn catch_up_with(&mut self, change: Change) -> Result<(), IndexError> {
        let waiting = self.store.backlog.enter(change.bytes);
        self.apply(change, waiting)
    }

    /// Reader with the snapshots for searching.
    pub(crate) fn reader(&self) -> IndexReader {
        self.reader.clone()
    }

    /// The last change that can be found.
    pub(crate) fn searchable(&self) -> watch::Receiver<u64> {
        self.searchable.subscribe()
    }

    /// Follows the store until a stop is requested, then commits.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn follow(mut self, changes: &Receiver<IndexMessage>) -> Result<(), IndexError> {
        let mut due_ns: Option<u64> = None;
        loop {
            let wait =
                due_ns.map_or(IDLE, |due| Duration::from_nanos(due.saturating_sub(now_ns())));
            match changes.recv_timeout(wait) {
                Ok(IndexMessage::Change(change, waiting)) => {
                    self.apply(change, waiting)?;
                    due_ns = due_ns.or_else(|| Some(now_ns() + as_ns(self.pause())));
                    if due_ns.is_some_and(|due| now_ns() < due) {
                        continue;
                    }
                }
                Ok(IndexMessage::Refresh) => {}
                Err(RecvTimeoutError::Timeout) => {
                    if due_ns.is_none() {
                        self.settle()?;
                        continue;
                    }
                }
                Ok(IndexMessage::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
            if due_ns.take().is_some() {
                self.commit()?;
            }
        }
        if due_ns.is_some() {
            self.commit()?;
        }
        Ok(())
    }

    /// Shows what merges have changed, and asks for the merge into one segment.
    fn settle(&mut self) -> Result<(), IndexError> {
        let ids = self.writer.index().searchable_segment_ids()?;
        let searcher = self.reader.searcher();
        let shown = searcher.generation().segments();
        if shown.len() != ids.len() || !ids.iter().all(|id| shown.contains_key(id)) {
            self.reader.reload()?;
        }
        let readers = searcher.segment_readers();
        let settled = ids.len() < 2 && !readers.iter().any(SegmentReader::has_deletes);
        let large = searcher.num_docs() > MAX_SETTLED_DOCUMENTS;
        if ids.is_empty() || settled || large || ids == self.merging {
            return Ok(());
        }
        // The merge runs on a thread of its own; a later call shows its result. When it cannot be
        // done the segments stay, which is slower and just as right.
        drop(self.writer.merge(&ids));
        self.merging = ids;
        Ok(())
    }

    /// Time between two commits: commits may take up a third of the thread's time at most.
    fn pause(&self) -> Duration {
        self.interval.max(self.last_commit * 2)
    }

    fn apply(&mut self, change: Change, waiting: Waiting) -> Result<(), IndexError> {
        if change.replaces {
            self.writer.delete_term(Term::from_field_u64(self.schema.lid, change.lid));
        }
        if let Some(values) = change.values {
            let document = self.schema.document(change.lid, &values);
            self.writer.add_document(Counted { document, _waiting: waiting })?;
        }
        self.sequence = change.sequence;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), IndexError> {
        let start_ns = now_ns();
        let mut commit = self.writer.prepare_commit()?;
        commit.set_payload(&payload(self.store.id, self.sequence));
        commit.commit()?;
        self.reader.reload()?;
        self.store.progress.indexed.store(self.sequence, Ordering::Release);
        self.searchable.send_replace(self.sequence);
        self.last_commit = Duration::from_nanos(now_ns() - start_ns);
        Ok(())
    }
}

fn as_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}

/// The state that a commit of the index covers: the store, the last change, and the format.
fn payload(store: u64, sequence: u64) -> String {
    format!("{store}:{sequence}:{FORM}")
}

/// The index, if it is one of this store that the store's changes can bring up to date.
fn open_existing(folder: &Path, schema: &IndexSchema, store: &Store) -> Option<(Index, u64)> {
    let index = open_index(&store.disk, folder, schema).ok()?;
    let metas = index.load_metas().ok()?;
    let mut parts = metas.payload.as_deref()?.split(':').map(str::parse::<u64>);
    let (id, sequence, form) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let ours = id == store.id && form == FORM;
    let pruned = store.pruned().ok()?;
    let committed = store.progress.committed.load(Ordering::Acquire);
    (ours && pruned <= sequence && sequence <= committed).then_some((index, sequence))
}

fn open_index(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    schema: &IndexSchema,
) -> Result<Index, TantivyError> {
    let directory = directory::open(disk, folder)?;
    let mut index = Index::open_or_create(directory, schema.columns.clone())?;
    register_tokenizers(&mut index);
    Ok(index)
}
