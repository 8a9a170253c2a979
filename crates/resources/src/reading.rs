//! Reads the files of the kernel, a small one with one `open` and one `read`, into memory that is used again.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, Result, read};
use std::path::Path;

/// Largest file that is read whole, bytes. A file of the kernel that is longer is cut.
const BYTES_MAX: usize = 1 << 20;

/// Memory for the text of one file.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { bytes: vec![0; 4096] }
    }
}

impl Buffer {
    /// Reads a file that the kernel gives in one piece, such as those of a process or a control group.
    ///
    /// # Errors
    /// Those of the system; text that is not UTF-8 is `EILSEQ`.
    pub fn read(&mut self, path: &Path) -> Result<&str> {
        let length = self.read_bytes(path, false)?;
        std::str::from_utf8(&self.bytes[..length]).map_err(|_| Errno::ILSEQ)
    }

    /// Reads a table, which the kernel gives in pieces: sockets, interfaces, disks, mounts.
    ///
    /// # Errors
    /// As [`Buffer::read`].
    pub fn read_table(&mut self, path: &Path) -> Result<&str> {
        let length = self.read_bytes(path, true)?;
        std::str::from_utf8(&self.bytes[..length]).map_err(|_| Errno::ILSEQ)
    }

    /// Reads a file whose bytes may be any, with others in the place of those that are not UTF-8.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read_any(&mut self, path: &Path) -> Result<String> {
        let length = self.read_bytes(path, false)?;
        Ok(String::from_utf8_lossy(&self.bytes[..length]).into_owned())
    }

    fn read_bytes(&mut self, path: &Path, in_pieces: bool) -> Result<usize> {
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut length = 0;
        loop {
            let got = read(&file, &mut self.bytes[length..])?;
            length += got;
            let is_full = length == self.bytes.len();
            if got == 0 || length >= BYTES_MAX || !(is_full || in_pieces) {
                return Ok(length);
            }
            if is_full {
                self.bytes.resize(2 * length, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_longer_than_the_memory_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        let text: String = (0..5000).map(|number| format!("{number}\n")).collect();
        std::fs::write(&path, &text).unwrap();
        let mut buffer = Buffer::default();
        assert_eq!(buffer.read(&path).unwrap(), text);
        assert_eq!(Buffer::default().read_table(&path).unwrap(), text);
        std::fs::write(&path, [b'a', 0xff]).unwrap();
        assert_eq!(buffer.read(&path), Err(Errno::ILSEQ));
        assert_eq!(buffer.read_any(&path).unwrap(), "a\u{fffd}");
        assert_eq!(buffer.read(&dir.path().join("no")), Err(Errno::NOENT));
    }
}
