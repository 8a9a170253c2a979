//! The text index of a shard.

use super::super::document;
use super::super::mapping::columns;
use super::super::memory::DraftShare;
use super::super::state::State;
use super::log::Record;
use super::replaced::Replaced;
use super::segment::Draft;
use plimsoll_disk::Disk;
use plimsoll_index::directory;
use plimsoll_index::row_text::RowText;
use plimsoll_index::text::register_tokenizers;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tantivy::index::{IndexSettings, SegmentId};
use tantivy::indexer::IndexWriterOptions;
use tantivy::schema::{Document, Field, OwnedValue, Value};
use tantivy::{
    Index, IndexReader, IndexWriter, ReloadPolicy, SegmentReader, TantivyDocument, TantivyError,
};

/// Memory for the unfinished segments of one index, all shards together, and
/// per shard at least.
const DRAFTS_BYTES: usize = 192 << 20;
const MIN_DRAFT_BYTES: usize = 24 << 20;
/// Memory that tantivy's writer is allowed, and never takes: it receives segments, not documents.
const WRITER_BYTES: usize = 15_000_000;
/// The format of the files: an index of another one is rebuilt.
const FORM: u64 = 3;
/// Larger indexes are not merged into one segment without being asked.
const MAX_SETTLED_DOCUMENTS: u64 = 2_000_000;

/// The document type of a writer that receives segments. tantivy keeps room for 10,000 batches of four documents for each open
/// index; of its usual type that is 2 MB an index.
enum NoDocument {}

impl Document for NoDocument {
    type Value<'a> = &'a OwnedValue;
    type FieldsValuesIter<'a> = std::iter::Empty<(Field, &'a OwnedValue)>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        match *self {}
    }
}

/// An open text index and its writer.
pub(crate) struct TextIndex {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// The log that it is of.
    log: u64,
    blocks: usize,
    /// Documents that are in no segment yet, and what they may take up in memory.
    draft: Draft,
    share: DraftShare,
    /// The versions to remove from the segments.
    replaced: Replaced,
    writer: IndexWriter<NoDocument>,
    reader: IndexReader,
    /// The segments whose merge was asked for last.
    merging: Vec<SegmentId>,
    /// Further receiver of the text.
    rows: Option<Box<dyn RowText>>,
}

impl TextIndex {
    /// Opens the index with the position in the log up to which it covers it; rebuilds it if it
    /// is of another log, of too few columns, or incomplete.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn open(
        folder: &Path,
        log: u64,
        log_length: u64,
        state: &State,
        shards: usize,
    ) -> Result<(Self, u64), TantivyError> {
        let blocks = state.mapping().blocks();
        let draft_bytes = (DRAFTS_BYTES / shards.max(1)).max(MIN_DRAFT_BYTES);
        let folder = folder.to_owned();
        if let Some((index, covered)) = existing(&state.disk, &folder, log, log_length, blocks) {
            match Self::with(
                Arc::clone(&state.disk),
                folder.clone(),
                log,
                blocks,
                DraftShare::new(&state.drafts, draft_bytes),
                &index,
            ) {
                Ok(opened) => return Ok((opened, covered)),
                // Somebody else works in the folder: it is not ours to take away.
                Err(error @ TantivyError::LockFailure(..)) => return Err(error),
                // A process that ended while it took the folder away leaves a list of segments that are gone.
                Err(_) => {}
            }
        }
        let disk = Arc::clone(&state.disk);
        let share = DraftShare::new(&state.drafts, draft_bytes);
        Ok((Self::fresh(disk, folder, log, blocks, share)?, super::log::START))
    }

    fn fresh(
        disk: Arc<dyn Disk>,
        folder: PathBuf,
        log: u64,
        blocks: usize,
        share: DraftShare,
    ) -> Result<Self, TantivyError> {
        directory::emptied(&*disk, &folder)?;
        let index = open(&disk, &folder, blocks)?;
        Self::with(disk, folder, log, blocks, share, &index)
    }

    fn with(
        disk: Arc<dyn Disk>,
        folder: PathBuf,
        log: u64,
        blocks: usize,
        share: DraftShare,
        index: &Index,
    ) -> Result<Self, TantivyError> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(1)
            .memory_budget_per_thread(WRITER_BYTES)
            .build();
        let writer = index.writer_with_options(options)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let (draft, replaced) = (Draft::new(index.schema()), Replaced::default());
        let (merging, rows) = (Vec::new(), None);
        Ok(Self {
            disk,
            folder,
            log,
            blocks,
            draft,
            share,
            replaced,
            writer,
            reader,
            merging,
            rows,
        })
    }

    /// The same with a place for the text besides.
    pub(crate) fn with_rows(self, rows: Option<Box<dyn RowText>>) -> Self {
        Self { rows, ..self }
    }

    pub(crate) fn reader(&self) -> IndexReader {
        self.reader.clone()
    }

    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// An empty index in the place of this one: of another log, or with more columns.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn renewed(self, log: u64, blocks: usize) -> Result<Self, TantivyError> {
        let Self { disk, folder, mut share, writer, rows, .. } = self;
        share.set(0);
        // A merge that still writes would put files into the folder while it is removed. Whether it ends well is of no
        // matter any more. The lock of the folder goes with the writer.
        let _ = writer.wait_merging_threads();
        let renewed = Self::fresh(disk, folder, log, blocks, share)?;
        Ok(Self { rows, ..renewed })
    }

    /// Adds a version of a document.
    ///
    /// # Errors
    /// When the index has failed.
    pub(crate) fn add(
        &mut self,
        id: &str,
        (at, row): (u64, u64),
        document: &TantivyDocument,
        state: &State,
    ) -> Result<(), TantivyError> {
        self.put_text(row, document, state)?;
        self.draft.add(id, at, row, document);
        if self.share.set(self.draft.size()) { self.flush() } else { Ok(()) }
    }

    /// Makes a segment of the documents that are in none, if memory is short. For an index that has not been written for a while.
    ///
    /// # Errors
    /// When the index has failed.
    pub(crate) fn make_way(&mut self) -> Result<(), TantivyError> {
        if self.share.is_in_the_way() { self.flush() } else { Ok(()) }
    }

    /// Makes a segment of the documents that are in none.
    fn flush(&mut self) -> Result<(), TantivyError> {
        let index = self.writer.index();
        let draft = std::mem::replace(&mut self.draft, Draft::new(index.schema()));
        let mut segment = index.new_segment();
        let documents = draft.write(&mut segment)?;
        self.share.set(0);
        if documents > 0 {
            let meta = segment.with_max_doc(documents).meta().clone();
            meta.untrack_temp_docstore();
            self.writer.add_segment(meta)?;
        }
        Ok(())
    }

    /// Adds what a record says, as it is read after a crash.
    ///
    /// # Errors
    /// When the index has failed.
    pub(crate) fn add_record(
        &mut self,
        at: u64,
        record: &Record<'_>,
        state: &State,
    ) -> Result<(), TantivyError> {
        self.add_source(record.id, (at, record.row), record.source, state)
    }

    /// Adds the values of a source that were read before.
    ///
    /// # Errors
    /// When the index has failed.
    pub(crate) fn add_source(
        &mut self,
        id: &str,
        place: (u64, u64),
        source: &[u8],
        state: &State,
    ) -> Result<(), TantivyError> {
        match document::read_again(&state.mapping(), source, id) {
            Ok(read) => self.add(id, place, &read.document, state),
            Err(error) => Err(TantivyError::InternalError(error.reason)),
        }
    }

    /// The text of a record that the index covers goes where text goes besides.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) fn put_record_text(
        &mut self,
        record: &Record<'_>,
        state: &State,
    ) -> Result<(), TantivyError> {
        if self.rows.is_none() || record.removed {
            return Ok(());
        }
        match document::read_again(&state.mapping(), record.source, record.id) {
            Ok(read) => self.put_text(record.row, &read.document, state),
            Err(error) => Err(TantivyError::InternalError(error.reason)),
        }
    }

    fn put_text(
        &mut self,
        row: u64,
        document: &TantivyDocument,
        state: &State,
    ) -> Result<(), TantivyError> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        let mapping = state.mapping();
        for field in mapping.fields.iter().filter(|f| f.mapped.listed.is_some()) {
            for value in document.get_all(field.mapped.field) {
                if let Some(text) = value.as_str() {
                    rows.put(row, &field.path, text)?;
                }
            }
        }
        Ok(())
    }

    /// Takes away all versions of a document before a row.
    ///
    /// # Errors
    /// When the index has failed.
    pub(crate) fn remove(&mut self, id: &str, before: u64) -> Result<(), TantivyError> {
        if self.draft.remove(id) {
            // What was there before it was taken away when it came.
            return Ok(());
        }
        self.replaced.push(id, before);
        if self.replaced.size() >= self.share.own_max() { self.hide_replaced() } else { Ok(()) }
    }

    /// Has the index take away what was replaced, with the next commit.
    fn hide_replaced(&mut self) -> Result<(), TantivyError> {
        if !self.replaced.is_empty() {
            self.writer.delete_query(Box::new(self.replaced.take_query()))?;
        }
        Ok(())
    }

    /// Makes everything searchable that was written up to a position of the log.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn commit(&mut self, covered: u64) -> Result<(), TantivyError> {
        self.flush()?;
        self.hide_replaced()?;
        let mut commit = self.writer.prepare_commit()?;
        commit.set_payload(&format!("{}:{covered}:{}:{FORM}", self.log, self.blocks));
        commit.commit()?;
        self.reader.reload()
    }

    /// Shows what merges have changed, and asks for the merge into one segment.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub(crate) fn settle(&mut self) -> Result<(), TantivyError> {
        let ids = self.show_merged()?;
        let searcher = self.reader.searcher();
        let settled =
            ids.len() < 2 && !searcher.segment_readers().iter().any(SegmentReader::has_deletes);
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

    fn show_merged(&mut self) -> Result<Vec<SegmentId>, TantivyError> {
        let ids = self.writer.index().searchable_segment_ids()?;
        let searcher = self.reader.searcher();
        let shown = searcher.generation().segments();
        if shown.len() != ids.len() || !ids.iter().all(|id| shown.contains_key(id)) {
            self.reader.reload()?;
        }
        Ok(ids)
    }

    /// Merges into one segment and waits for it.
    ///
    /// # Errors
    /// When the merge fails.
    pub(crate) fn merge(&mut self) -> Result<(), TantivyError> {
        let ids = self.show_merged()?;
        let searcher = self.reader.searcher();
        if ids.len() > 1 || searcher.segment_readers().iter().any(SegmentReader::has_deletes) {
            // A merge of these segments may be under way: then there is nothing more to do.
            let _ = self.writer.merge(&ids).wait();
            self.reader.reload()?;
        }
        Ok(())
    }
}

/// The index, if it is of this log and has the columns.
fn existing(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    log: u64,
    length: u64,
    blocks: usize,
) -> Option<(Index, u64)> {
    let directory = directory::open(disk, folder).ok()?;
    if !Index::exists(&*directory).ok()? {
        return None;
    }
    let index = open(disk, folder, blocks).ok()?;
    let payload = index.load_metas().ok()?.payload?;
    let mut parts = payload.split(':').map(str::parse::<u64>);
    let (of, covered) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let (had, form) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let whole = of == log && covered <= length && had == blocks as u64 && form == FORM;
    whole.then_some((index, covered))
}

fn open(disk: &Arc<dyn Disk>, folder: &Path, blocks: usize) -> Result<Index, TantivyError> {
    let directory = directory::open(disk, folder)?;
    let settings =
        IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() };
    let builder = Index::builder().schema(columns(blocks)).settings(settings);
    let mut index = builder.open_or_create(directory)?;
    register_tokenizers(&mut index);
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::NoDocument;

    /// Room for 40,000 of them belongs to each index.
    #[test]
    fn the_writer_of_a_text_index_has_no_room_for_documents() {
        assert_eq!(size_of::<NoDocument>(), 0);
    }
}
