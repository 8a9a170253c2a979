//! Header blocks read.

use super::table::{STATIC, Table};
use super::{BadBlock, TABLE_BYTES, huffman, integer};

/// The meaning of a field for the reader of a reply. Found once for a field that enters the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http2) enum Meaning {
    /// Nothing that matters to the codec.
    Plain,
    /// `:status`.
    Status,
    /// `content-length`.
    Length,
    /// `content-encoding`.
    Encoding,
    /// A field about the connection, which HTTP/2 does not know; passed over.
    Hop,
    /// Another field whose name begins with a colon, which no reply may have.
    Pseudo,
    /// Bytes that no name or no value may hold, such as capital letters and line ends.
    Malformed,
}

impl Meaning {
    const ALL: [Meaning; 7] = [
        Meaning::Plain,
        Meaning::Status,
        Meaning::Length,
        Meaning::Encoding,
        Meaning::Hop,
        Meaning::Pseudo,
        Meaning::Malformed,
    ];

    /// From the note of a table.
    #[inline]
    fn noted(note: u64) -> Self {
        Self::ALL.get(note as usize).copied().unwrap_or(Meaning::Malformed)
    }

    fn of(name: &[u8], value: &[u8]) -> Self {
        if !value.iter().all(|&byte| VALUE[usize::from(byte)]) {
            return Meaning::Malformed;
        }
        Self::of_name(name)
    }

    fn of_name(name: &[u8]) -> Self {
        match name {
            b":status" => Meaning::Status,
            b"content-length" => Meaning::Length,
            b"content-encoding" => Meaning::Encoding,
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => Meaning::Hop,
            [] => Meaning::Malformed,
            [b':', ..] => Meaning::Pseudo,
            _ if name.iter().all(|&byte| NAME[usize::from(byte)]) => Meaning::Plain,
            _ => Meaning::Malformed,
        }
    }
}

/// Bytes that may stand in a name: those of a token (RFC 9110 5.6.2) but no capital letters.
static NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let letter = byte as u8;
        table[byte] = letter.is_ascii_lowercase()
            || letter.is_ascii_digit()
            || matches!(
                letter,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        byte += 1;
    }
    table
};

/// Bytes that may stand in a value: all but those that would end a line.
static VALUE: [bool; 256] = {
    let mut table = [true; 256];
    table[0] = false;
    table[b'\r' as usize] = false;
    table[b'\n' as usize] = false;
    table
};

/// The meanings of the entries of the fixed table; the notes of a table, in its order.
static STATIC_MEANING: [Meaning; 61] = {
    let mut meaning = [Meaning::Plain; 61];
    let mut index = 0;
    while index < 61 {
        meaning[index] = match index + 1 {
            8..=14 => Meaning::Status,
            1..=7 => Meaning::Pseudo,
            26 => Meaning::Encoding,
            28 => Meaning::Length,
            57 => Meaning::Hop,
            _ => Meaning::Plain,
        };
        index += 1;
    }
    meaning
};

/// The reading end of one direction of a connection.
#[derive(Debug)]
pub(in crate::http2) struct Decoder {
    table: Table,
    /// The largest size that we have allowed the peer.
    limit: usize,
    /// Strings that had to be copied: the name, then the value.
    scratch: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::with_limit(TABLE_BYTES)
    }
}

/// A string of a block.
#[derive(Clone, Copy)]
enum Text<'a> {
    /// As it lies in the block, or in the fixed table.
    Raw(&'a [u8]),
    /// In the scratch, to there from the end of the string before.
    Scratch(usize),
}

impl Decoder {
    pub(super) const fn with_limit(limit: usize) -> Self {
        Decoder { table: Table::new(limit), limit, scratch: Vec::new() }
    }

    pub(super) const fn table_bytes(&self) -> usize {
        self.table.size()
    }

    /// Reads a whole block and gives each field to `take`. The memory used is bounded by the block's length.
    ///
    /// # Errors
    /// See [`BadBlock`].
    pub(in crate::http2) fn decode(
        &mut self,
        block: &[u8],
        mut take: impl FnMut(Meaning, &[u8], &[u8]),
    ) -> Result<(), BadBlock> {
        let mut at = 0;
        let mut fields = false;
        while let Some(&first) = block.get(at) {
            if first & 0xe0 == 0x20 {
                if fields {
                    return Err(BadBlock("a table size update stands behind a header field"));
                }
                self.resize(integer::get(block, &mut at, 5)?)?;
                continue;
            }
            fields = true;
            if first & 0x80 != 0 {
                let index = integer::get(block, &mut at, 7)?;
                let (meaning, name, value) = self.indexed(index)?;
                take(meaning, name, value);
            } else if first & 0x40 != 0 {
                self.literal(block, &mut at, 6, true, &mut take)?;
            } else {
                self.literal(block, &mut at, 4, false, &mut take)?;
            }
        }
        Ok(())
    }

    fn resize(&mut self, limit: u32) -> Result<(), BadBlock> {
        if limit as usize > self.limit {
            return Err(BadBlock("a table size update exceeds what was allowed"));
        }
        self.table.set_limit(limit as usize);
        Ok(())
    }

    #[inline]
    fn indexed(&self, index: u32) -> Result<(Meaning, &[u8], &[u8]), BadBlock> {
        let index = index as usize;
        if let Some(meaning) = STATIC_MEANING.get(index.wrapping_sub(1)) {
            let (name, value) = STATIC[index - 1];
            return Ok((*meaning, name.as_bytes(), value.as_bytes()));
        }
        let entry = index.checked_sub(STATIC.len() + 1).and_then(|dynamic| self.table.get(dynamic));
        let (note, name, value) =
            entry.ok_or(BadBlock("a header block names a field that is not in the table"))?;
        Ok((Meaning::noted(note), name, value))
    }

    /// Reads a field whose value is in the block, and perhaps its name.
    fn literal(
        &mut self,
        block: &[u8],
        at: &mut usize,
        prefix_bits: u8,
        keep: bool,
        take: &mut impl FnMut(Meaning, &[u8], &[u8]),
    ) -> Result<(), BadBlock> {
        self.scratch.clear();
        let name = match integer::get(block, at, prefix_bits)? {
            0 => self.string(block, at)?,
            index if index as usize <= STATIC.len() => {
                Text::Raw(STATIC[index as usize - 1].0.as_bytes())
            }
            index => {
                let entry = self.table.get(index as usize - STATIC.len() - 1);
                let (_, name, _) = entry
                    .ok_or(BadBlock("a header block names a field that is not in the table"))?;
                // What it is copied from may be evicted by the very field that uses it.
                self.scratch.extend_from_slice(name);
                Text::Scratch(self.scratch.len())
            }
        };
        let value = self.string(block, at)?;
        let split = if let Text::Scratch(end) = name { end } else { 0 };
        let name = match name {
            Text::Raw(bytes) => bytes,
            Text::Scratch(end) => &self.scratch[..end],
        };
        let value = match value {
            Text::Raw(bytes) => bytes,
            Text::Scratch(end) => &self.scratch[split..end],
        };
        let meaning = Meaning::of(name, value);
        if keep {
            self.table.insert(meaning as u64, name, value);
        }
        take(meaning, name, value);
        Ok(())
    }

    /// Reads a string literal (RFC 7541 5.2).
    #[inline]
    fn string<'a>(&mut self, block: &'a [u8], at: &mut usize) -> Result<Text<'a>, BadBlock> {
        let huffman = block.get(*at).is_some_and(|&first| first & 0x80 != 0);
        let length = integer::get(block, at, 7)? as usize;
        let bytes =
            block.get(*at..*at + length).ok_or(BadBlock("a header block ends inside a string"))?;
        *at += length;
        if !huffman {
            return Ok(Text::Raw(bytes));
        }
        huffman::decode(bytes, &mut self.scratch)?;
        Ok(Text::Scratch(self.scratch.len()))
    }

    /// Gives back a scratch that one long string has made large.
    pub(in crate::http2) fn shrink(&mut self, retained_bytes: usize) {
        if self.scratch.capacity() > retained_bytes {
            self.scratch = Vec::new();
        }
    }
}
