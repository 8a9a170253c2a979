//! A file as a stream.

use crate::DiskFile;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// An open file with a position, from which it is read and written.
#[derive(Debug)]
pub struct Stream {
    file: Box<dyn DiskFile>,
    at: u64,
}

impl Stream {
    /// At the beginning of a file.
    #[must_use]
    pub fn new(file: Box<dyn DiskFile>) -> Self {
        Self { file, at: 0 }
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &dyn DiskFile {
        &*self.file
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Stream {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.file.length()?.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
