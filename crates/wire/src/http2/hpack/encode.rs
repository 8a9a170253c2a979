//! Header blocks written.
//!
//! Each field decides whether its value enters the table. The fields that all requests of a run have in
//! common enter it at once; of any other name the first value does, and later a value that comes twice in
//! a row. So a path or an id that differs from request to request never drives out repeated values. A value that
//! enters the table is Huffman coded if that is shorter; a value that is sent only once is not, because that costs both
//! sides more time than the bytes are worth.

use super::table::Table;
use super::{TABLE_BYTES, huffman, integer};

/// Number of names that are watched for values that repeat.
const WATCHED: usize = 32;

/// The writing end of one direction of a connection.
#[derive(Debug)]
pub(in crate::http2) struct Encoder {
    table: Table,
    /// The size that the table has now.
    limit: usize,
    /// The smallest size since the last block, and whether the peer must be informed.
    least: usize,
    resized: bool,
    /// The last value of each watched name; hashes, 0 where none is watched.
    watched: [(u32, u32); WATCHED],
    /// Counts what changed the meaning of indices.
    changes: u64,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder {
            table: Table::new(TABLE_BYTES),
            limit: TABLE_BYTES,
            least: TABLE_BYTES,
            resized: false,
            watched: [(0, 0); WATCHED],
            changes: 0,
        }
    }
}

/// The treatment of a field that is in no table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Index,
    Pass,
}

impl Encoder {
    pub(super) const fn table_bytes(&self) -> usize {
        self.table.size()
    }

    /// Number of times that the meaning of indices has changed: bytes written before and after are interchangeable only
    /// while it stays the same.
    pub(in crate::http2) const fn changes(&self) -> u64 {
        self.changes
    }

    /// The peer has announced how large a table it keeps, bytes.
    pub(in crate::http2) fn peer_limit(&mut self, bytes: u32) {
        let limit = TABLE_BYTES.min(bytes as usize);
        if limit != self.limit {
            self.limit = limit;
            self.least = self.least.min(limit);
            self.table.set_limit(limit);
            self.resized = true;
            self.changes += 1;
        }
    }

    /// Begins a block: says first what became of the table's size (RFC 7541 4.2).
    #[inline]
    pub(in crate::http2) fn begin(&mut self, out: &mut Vec<u8>) {
        if self.resized {
            self.tell_size(out);
        }
    }

    #[cold]
    fn tell_size(&mut self, out: &mut Vec<u8>) {
        if self.least < self.limit {
            integer::put(self.least as u32, 5, 0x20, out);
        }
        integer::put(self.limit as u32, 5, 0x20, out);
        self.least = self.limit;
        self.resized = false;
    }

    /// Appends one field; `name` in lower case.
    pub(in crate::http2) fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let (fixed_name, fixed_field) = fixed(name, value);
        if fixed_field != 0 {
            return out.push(0x80 | fixed_field);
        }
        let hashes = (hash(name), hash(value));
        let note = u64::from(hashes.0) << 32 | u64::from(hashes.1);
        if let Some(index) = self.table.find(note, |n, v| n == name && v == value) {
            return integer::put(index as u32 + 62, 7, 0x80, out);
        }
        let index = if fixed_name != 0 {
            u32::from(fixed_name)
        } else {
            self.table.find_name(name).map_or(0, |index| index as u32 + 62)
        };
        match self.policy(name, hashes) {
            Policy::Index => {
                integer::put(index, 6, 0x40, out);
                if index == 0 {
                    text_short(name, out);
                }
                text_short(value, out);
                self.table.insert(note, name, value);
                self.changes += 1;
            }
            Policy::Pass => {
                integer::put(index, 4, 0, out);
                if index == 0 {
                    text(name, out);
                }
                text(value, out);
            }
        }
    }

    /// Decides about a field that is in no table, and remembers its value where that matters.
    fn policy(&mut self, name: &[u8], hashes: (u32, u32)) -> Policy {
        match name {
            b":authority" | b":method" | b"accept" | b"accept-encoding" | b"authorization"
            | b"cache-control" | b"content-type" | b"content-encoding" | b"user-agent" => {
                return Policy::Index;
            }
            b"content-length" => return Policy::Pass,
            _ => {}
        }
        let slot = &mut self.watched[hashes.0 as usize % WATCHED];
        let before = std::mem::replace(slot, hashes);
        let first = before == (0, 0) && name != b":path";
        if first || before == hashes { Policy::Index } else { Policy::Pass }
    }
}

/// The index of this name in the fixed table, and that of the field, 0 where there is none. Only names that
/// requests have.
#[inline]
fn fixed(name: &[u8], value: &[u8]) -> (u8, u8) {
    let whole = |field: u8, wanted: &[u8]| if value == wanted { field } else { 0 };
    match name {
        b":authority" => (1, 0),
        b":method" => (2, whole(2, b"GET") | whole(3, b"POST")),
        b":path" => (4, whole(4, b"/") | whole(5, b"/index.html")),
        b":scheme" => (6, whole(6, b"http") | whole(7, b"https")),
        b"accept-charset" => (15, 0),
        b"accept-encoding" => (16, whole(16, b"gzip, deflate")),
        b"accept-language" => (17, 0),
        b"accept" => (19, 0),
        b"authorization" => (23, 0),
        b"cache-control" => (24, 0),
        b"content-encoding" => (26, 0),
        b"content-length" => (28, 0),
        b"content-type" => (31, 0),
        b"cookie" => (32, 0),
        b"date" => (33, 0),
        b"expect" => (35, 0),
        b"if-match" => (39, 0),
        b"if-modified-since" => (40, 0),
        b"if-none-match" => (41, 0),
        b"range" => (50, 0),
        b"referer" => (51, 0),
        b"user-agent" => (58, 0),
        b"via" => (60, 0),
        _ => (0, 0),
    }
}

/// Appends a string as it is.
#[inline]
fn text(bytes: &[u8], out: &mut Vec<u8>) {
    integer::put(bytes.len() as u32, 7, 0, out);
    out.extend_from_slice(bytes);
}

/// Appends a string in Huffman code, unless that is longer.
fn text_short(bytes: &[u8], out: &mut Vec<u8>) {
    let length = huffman::encoded_len(bytes);
    if length > bytes.len() {
        return text(bytes, out);
    }
    integer::put(length as u32, 7, 0x80, out);
    huffman::encode(bytes, out);
}

/// Spreads what differs; never 0. The multiplier is that of Fowler, Noll and Vo for 64 bits, eight bytes at once.
#[inline]
fn hash(bytes: &[u8]) -> u32 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut state = 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    let mut rest = bytes;
    while let Some((eight, behind)) = rest.split_first_chunk::<8>() {
        state = (state ^ u64::from_le_bytes(*eight)).wrapping_mul(PRIME).rotate_left(29);
        rest = behind;
    }
    for &byte in rest {
        state = (state ^ u64::from(byte)).wrapping_mul(PRIME);
    }
    ((state ^ (state >> 32)) as u32).max(1)
}
