//! Documents as they are stored, beside each other.

use super::record::Header;
use super::{KEYS, RECORDS, Store, StoreError, key};
use plimsoll_documents::encoding::DecodeError;
use redb::ReadableDatabase;

/// Documents that were found, each with what it was asked for. No value of them is made.
#[derive(Debug)]
pub(crate) struct Fetched<T> {
    ids: String,
    contents: Vec<u8>,
    /// The things asked for, with the ends of id and content.
    found: Vec<(T, usize, usize)>,
}

impl<T: Copy> Fetched<T> {
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns what each document was asked for, its id, and its content.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (T, &str, &[u8])> {
        let (mut id_start, mut start) = (0, 0);
        self.found.iter().map(move |(asked, id_end, end)| {
            let id = &self.ids[std::mem::replace(&mut id_start, *id_end)..*id_end];
            let content = &self.contents[std::mem::replace(&mut start, *end)..*end];
            (*asked, id, content)
        })
    }
}

impl Store {
    /// Reads documents by their numbers, leaving out those that are gone.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn fetch<T: Copy>(
        &self,
        wanted: &[T],
        lid: impl Fn(&T) -> u64,
    ) -> Result<Fetched<T>, StoreError> {
        let found = Vec::with_capacity(wanted.len());
        let mut fetched = Fetched { ids: String::new(), contents: Vec::new(), found };
        if wanted.is_empty() {
            return Ok(fetched);
        }
        let transaction = self.db.begin_read()?;
        let keys = transaction.open_table(KEYS)?;
        let records = transaction.open_table(RECORDS)?;
        for item in wanted {
            let Some(key) = keys.get(lid(item))? else { continue };
            let Some(record) = records.get(key.value())? else { continue };
            let (_, id) = key::parts(key.value()).ok_or(DecodeError::Damaged)?;
            let (header, content) = Header::read(record.value())?;
            if header.removed {
                continue;
            }
            fetched.ids.push_str(id);
            fetched.contents.extend_from_slice(content);
            fetched.found.push((*item, fetched.ids.len(), fetched.contents.len()));
        }
        Ok(fetched)
    }
}
