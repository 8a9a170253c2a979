//! The record of a document in the store, or of one that was removed.

use plimsoll_documents::document::Values;
use plimsoll_documents::encoding::DecodeError;
use plimsoll_documents::schema::Schemas;

/// The form of records whose content follows [`Header`].
const DOCUMENT: u8 = 2;
/// The form of records of removed documents: a header alone.
const TOMBSTONE: u8 = 3;
const HEADER_BYTES: usize = 17;

/// The header before the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) removed: bool,
    /// The number of the document, by which the index refers to it.
    pub(crate) lid: u64,
    /// Time at which it was written, in microseconds since 1970. No two writes have the same.
    pub(crate) timestamp_us: u64,
}

impl Header {
    /// Reads a record's header; gives the content behind it.
    pub(crate) fn read(record: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let (form, rest) = record.split_first().ok_or(DecodeError::Damaged)?;
        let (lid, rest) = rest.split_first_chunk().ok_or(DecodeError::Damaged)?;
        let (timestamp, content) = rest.split_first_chunk().ok_or(DecodeError::Damaged)?;
        let removed = match *form {
            DOCUMENT => false,
            TOMBSTONE => true,
            _ => return Err(DecodeError::Damaged),
        };
        let header = Self {
            removed,
            lid: u64::from_le_bytes(*lid),
            timestamp_us: u64::from_le_bytes(*timestamp),
        };
        Ok((header, content))
    }

    fn bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = if self.removed { TOMBSTONE } else { DOCUMENT };
        bytes[1..9].copy_from_slice(&self.lid.to_le_bytes());
        bytes[9..].copy_from_slice(&self.timestamp_us.to_le_bytes());
        bytes
    }

    /// The record of a removed document.
    pub(crate) fn tombstone(lid: u64, timestamp_us: u64) -> [u8; HEADER_BYTES] {
        Self { removed: true, lid, timestamp_us }.bytes()
    }
}

/// Reads a record, and writes what was read; for fuzzing.
///
/// # Panics
/// When what was written is read as another document.
pub(crate) fn read_and_write(bytes: &[u8], schemas: &Schemas) {
    let Ok((header, content)) = Header::read(bytes) else { return };
    assert_eq!(header.bytes()[..], bytes[..HEADER_BYTES]);
    let Ok(values) = Values::decode(schemas, content) else { return };
    let mut record = Record::new(&values, schemas);
    let written = record.stamped(header.lid, header.timestamp_us).to_vec();
    let again = Header::read(&written).and_then(|(_, content)| Values::decode(schemas, content));
    // Numbers that are none differ from themselves: the bytes are compared.
    let mut record = again.map(|values| Record::new(&values, schemas)).unwrap_or_default();
    assert_eq!(record.stamped(header.lid, header.timestamp_us), written);
}

/// A record that only lacks what the writing thread decides. Made before, so that the thread does
/// not have to.
#[derive(Debug, Default)]
pub(crate) struct Record {
    bytes: Vec<u8>,
}

impl Record {
    pub(crate) fn new(values: &Values, schemas: &Schemas) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        values.encode(schemas, &mut bytes);
        Self { bytes }
    }

    /// The bytes to keep.
    pub(crate) fn stamped(&mut self, lid: u64, timestamp_us: u64) -> &[u8] {
        let header = Header { removed: false, lid, timestamp_us };
        self.bytes[..HEADER_BYTES].copy_from_slice(&header.bytes());
        &self.bytes
    }
}
