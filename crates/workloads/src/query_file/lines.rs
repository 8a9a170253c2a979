//! Lines of a byte stream in the original's four spellings of a line end.

use std::io::{self, Read};

/// Length at which the end of a line is no longer looked for, bytes: a file of 2^40 bytes without a line end, of which the disk may
/// have none, is not read to its end.
const LINE_GIVEN_UP_BYTES: u64 = 256 << 20;

/// Bytes read from the source at once.
const BUFFER_BYTES: usize = 128 * 1024;

/// One line, as [`LineReader::next_line`] found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineInfo {
    /// Position of the line's first byte in the stream.
    pub offset: u64,
    /// Number of the line, from 1.
    pub number: u64,
    /// The first byte, unless the line is empty. It is known even of a line that is too long.
    pub first: Option<u8>,
    /// The line has `max_bytes` bytes or more; what was kept of it must not be used.
    pub too_long: bool,
}

/// Splits a stream at `\n`, `\r`, `\r\n` and `\n\r`, in memory that does not grow with the stream.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    offset: u64,
    number: u64,
    /// The second half of a two-byte line end, if it comes next. It is looked for only when the
    /// next line is asked for, so that a terminal's line is delivered before the next is typed.
    pair: Option<u8>,
    max_bytes: usize,
}

impl<R: Read> LineReader<R> {
    /// Reads lines shorter than `max_bytes` from a stream whose first byte has position `offset`.
    pub fn new(source: R, offset: u64, max_bytes: usize) -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        Self { source, buffer, at: 0, end: 0, offset, number: 0, pair: None, max_bytes }
    }

    /// Fills the empty buffer; false at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        loop {
            match self.source.read(&mut self.buffer) {
                Ok(count) => {
                    self.at = 0;
                    self.end = count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn skip_pair(&mut self) -> io::Result<()> {
        if let Some(second) = self.pair.take()
            && (self.at < self.end || self.fill()?)
            && self.buffer[self.at] == second
        {
            self.at += 1;
            self.offset += 1;
        }
        Ok(())
    }

    /// Puts the next line, without its end, into `line`. `None` at the end of the stream; what
    /// follows the last line end is a line only if it is not empty.
    pub fn next_line(&mut self, line: &mut Vec<u8>) -> io::Result<Option<LineInfo>> {
        self.next_line_within(self.max_bytes, line)
    }

    /// As [`LineReader::next_line`], with another limit for this line alone.
    pub fn next_line_within(
        &mut self,
        max_bytes: usize,
        line: &mut Vec<u8>,
    ) -> io::Result<Option<LineInfo>> {
        line.clear();
        self.skip_pair()?;
        let start = self.offset;
        let (mut length, mut first) = (0u64, None);
        loop {
            if self.at == self.end && !self.fill()? {
                if length == 0 {
                    return Ok(None);
                }
                break;
            }
            let chunk = &self.buffer[self.at..self.end];
            let stop = memchr::memchr2(b'\n', b'\r', chunk);
            let piece = &chunk[..stop.unwrap_or(chunk.len())];
            if first.is_none() {
                first = piece.first().copied();
            }
            length += piece.len() as u64;
            if length > LINE_GIVEN_UP_BYTES {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a line is longer than {} MiB", LINE_GIVEN_UP_BYTES >> 20),
                ));
            }
            let room = max_bytes.saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            self.at += piece.len();
            if stop.is_some() {
                self.pair = Some(if self.buffer[self.at] == b'\n' { b'\r' } else { b'\n' });
                self.at += 1;
                self.offset = start + length + 1;
                break;
            }
            self.offset = start + length;
        }
        self.number += 1;
        let too_long = length >= max_bytes as u64;
        Ok(Some(LineInfo { offset: start, number: self.number, first, too_long }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], max_bytes: usize) -> Vec<(Vec<u8>, u64, bool)> {
        let mut reader = LineReader::new(text, 0, max_bytes);
        let (mut line, mut found) = (Vec::new(), Vec::new());
        while let Some(info) = reader.next_line(&mut line).unwrap() {
            found.push((line.clone(), info.offset, info.too_long));
        }
        found
    }

    #[test]
    fn a_line_that_does_not_end_is_given_up() {
        let mut reader = LineReader::new(std::io::repeat(0), 0, 100);
        let error = reader.next_line(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("longer than 256 MiB"), "{error}");
    }

    #[test]
    fn all_four_line_ends_part_lines() {
        let found = lines(b"a\nb\rc\r\nd\n\re", 100);
        let texts: Vec<&[u8]> = found.iter().map(|(text, ..)| text.as_slice()).collect();
        assert_eq!(texts, [b"a", b"b", b"c", b"d", b"e"]);
        assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), [0, 2, 4, 7, 10]);
    }

    #[test]
    fn equal_line_ends_in_a_row_are_empty_lines() {
        assert_eq!(lines(b"a\n\nb\r\n\r\nc", 9).len(), 5);
        assert_eq!(lines(b"", 9), []);
        assert_eq!(lines(b"\n", 9), [(vec![], 0, false)]);
    }

    #[test]
    fn a_long_line_is_marked_and_the_next_is_whole() {
        let mut text = vec![b'x'; 300_000];
        text.extend_from_slice(b"\nabc\nabcd\n");
        let found = lines(&text, 4);
        assert_eq!(found.iter().map(|f| f.2).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(found[1], (b"abc".to_vec(), 300_001, false));
    }

    #[test]
    fn a_pair_across_two_reads_is_one_line_end() {
        struct OneByte<'a>(&'a [u8]);
        impl Read for OneByte<'_> {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                let count = self.0.len().min(1);
                out[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let mut reader = LineReader::new(OneByte(b"a\r\nb"), 0, 10);
        let mut line = Vec::new();
        reader.next_line(&mut line).unwrap();
        let second = reader.next_line(&mut line).unwrap().unwrap();
        assert_eq!((line.as_slice(), second.offset), (b"b".as_slice(), 3));
    }
}
