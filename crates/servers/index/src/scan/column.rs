//! The raw text of fields, in memory, in the order of rows.

use plimsoll_scan::{Corpus, letters};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Size at which a chunk is full. A longer value has its own chunk.
const CHUNK_BYTES: usize = 4 << 20;

/// The text of each field of one index partition. Memory: a byte for each character, 16 bytes for each value,
/// and the original of each value that has characters beyond Latin-1. Old versions of documents stay until the
/// partition is rebuilt.
#[derive(Default)]
pub(super) struct Columns {
    fields: RwLock<HashMap<String, Column>>,
}

impl Columns {
    /// Appends a value. Rows must not fall; a row may have several values.
    pub(super) fn put(&self, row: u64, field: &str, text: &str) {
        let mut fields = self.fields.write().unwrap_or_else(PoisonError::into_inner);
        match fields.get_mut(field) {
            Some(column) => column.put(row, text),
            None => fields.entry(field.to_owned()).or_default().put(row, text),
        }
    }

    /// The chunks of a field as they are now: later values are not among them.
    pub(super) fn snapshot(&self, field: &str) -> Vec<Arc<Chunk>> {
        let fields = self.fields.read().unwrap_or_else(PoisonError::into_inner);
        fields.get(field).map(|column| column.chunks.clone()).unwrap_or_default()
    }
}

/// The values of one field. Only the last chunk grows; one that a search still reads is copied first.
#[derive(Default)]
pub(super) struct Column {
    chunks: Vec<Arc<Chunk>>,
}

/// Some values, one behind the other.
#[derive(Clone, Default)]
pub(super) struct Chunk {
    /// One byte for each character.
    text: Vec<u8>,
    /// End of each value in the text.
    ends: Vec<u64>,
    /// The row of each value, in rising order.
    rows: Vec<u64>,
    /// The values with characters that share their byte with others, by number.
    originals: HashMap<usize, Box<str>>,
}

impl Column {
    fn put(&mut self, row: u64, text: &str) {
        let full = |chunk: &Arc<Chunk>| {
            !chunk.text.is_empty() && chunk.text.len() + text.len() > CHUNK_BYTES
        };
        if self.chunks.last().is_none_or(full) {
            self.chunks.push(Arc::default());
        }
        let Some(chunk) = self.chunks.last_mut() else { return };
        let chunk = Arc::make_mut(chunk);
        if letters::append(text, &mut chunk.text) {
            chunk.originals.insert(chunk.ends.len(), text.into());
        }
        chunk.ends.push(chunk.text.len() as u64);
        chunk.rows.push(row);
    }
}

impl Chunk {
    /// The values as the documents of a corpus.
    pub(super) fn corpus(&self) -> Option<Corpus<'_>> {
        Corpus::new(&self.text, &self.ends).ok()
    }

    /// The row of a value.
    pub(super) fn row(&self, value: usize) -> u64 {
        self.rows[value]
    }

    /// The value as it was written, where bytes alone do not tell.
    pub(super) fn original(&self, value: usize) -> Option<&str> {
        self.originals.get(&value).map(AsRef::as_ref)
    }
}
