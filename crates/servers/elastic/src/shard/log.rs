//! The log of a shard: every version of every document, in the order of the writes. It is the truth
//! from which the text index is made, and where sources are read.
//!
//! A record is its length and a checksum (4 bytes each), then kind (1), version, sequence number
//! and row (8 each), the lengths of id and routing value (2 each), id, routing value and source.

use plimsoll_core::clock::wall_us;
use plimsoll_disk::{Contents, Disk, DiskFile, Mode};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

const MAGIC: &[u8; 8] = b"plimslog";
/// Position of the first record.
pub(crate) const START: u64 = 16;
const LENGTHS: usize = 8;
const HEAD: usize = 1 + 8 * 3 + 2 * 2;
/// Bytes of the file that are mapped in one step.
const MAP_STEP: u64 = 64 << 20;
/// Bytes that are written at a time when a log is copied.
const COPY_BYTES: usize = 1 << 20;

/// The content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// The document is gone.
    pub(crate) removed: bool,
    pub(crate) version: u64,
    pub(crate) sequence: u64,
    /// Versions of documents that were written before, over the whole log.
    pub(crate) row: u64,
    pub(crate) id: &'a str,
    /// Empty when the request had none.
    pub(crate) routing: &'a str,
    pub(crate) source: &'a [u8],
}

impl<'a> Record<'a> {
    /// Appends the record to a buffer.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; LENGTHS]);
        out.push(u8::from(self.removed));
        for number in [self.version, self.sequence, self.row] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        // Ids and routing values have at most 512 bytes.
        for text in [self.id, self.routing] {
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
        }
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(self.routing.as_bytes());
        out.extend_from_slice(self.source);
        let body = start + LENGTHS;
        let length = (out.len() - body) as u32; // Requests are far smaller than 4 GB.
        let sum = crc32fast::hash(&out[body..]);
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        out[start + 4..body].copy_from_slice(&sum.to_le_bytes());
    }

    /// Bytes that it takes in a log.
    pub(crate) fn bytes(&self) -> u32 {
        // Requests are far smaller than 4 GB.
        (LENGTHS + HEAD + self.id.len() + self.routing.len() + self.source.len()) as u32
    }

    /// Reads the record without its length and checksum.
    fn parse(body: &'a [u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?));
        let length = |at: usize| {
            Some(usize::from(u16::from_le_bytes(body.get(at..at + 2)?.try_into().ok()?)))
        };
        let id_end = HEAD + length(25)?;
        let routing_end = id_end + length(27)?;
        Some(Self {
            removed: *body.first()? == 1,
            version: number(1)?,
            sequence: number(9)?,
            row: number(17)?,
            id: std::str::from_utf8(body.get(HEAD..id_end)?).ok()?,
            routing: std::str::from_utf8(body.get(id_end..routing_end)?).ok()?,
            source: body.get(routing_end..)?,
        })
    }
}

/// The record at a position of a buffer of records.
pub(crate) fn buffered(records: &[u8], at: usize) -> Option<Record<'_>> {
    let body = at + LENGTHS;
    let lengths: &[u8; LENGTHS] = records.get(at..body)?.try_into().ok()?;
    Record::parse(records.get(body..body + length(lengths))?)
}

/// Reads records, one behind the other, and writes each again; for fuzzing. Checksums are passed over.
///
/// # Panics
/// When a record is written so that it reads as another.
pub(crate) fn read_and_write(bytes: &[u8]) {
    let (mut at, mut written) = (0, Vec::new());
    while let Some(record) = buffered(bytes, at) {
        written.clear();
        record.write(&mut written);
        assert_eq!(buffered(&written, 0), Some(record));
        assert_eq!(record.bytes() as usize, written.len());
        at += written.len();
    }
}

/// The part of the file that is mapped.
type Mapped = RwLock<Option<Arc<Contents>>>;

/// An open log. Any thread reads; one thread appends.
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// Tells this log from any other, so that an index of another one is not trusted.
    pub(crate) id: u64,
    length: AtomicU64,
    /// By how much logs before this one, in the same process, were longer.
    moved: u64,
    mapped: Mapped,
}

/// Bytes of a record, wherever they are.
pub(crate) enum Bytes {
    Mapped(Arc<Contents>, usize, usize),
    Owned(Vec<u8>),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Self::Mapped(map, start, end) => &map[*start..*end],
            Self::Owned(bytes) => bytes,
        }
    }

    /// The record in these bytes.
    pub(crate) fn record(&self) -> Option<Record<'_>> {
        Record::parse(self.get())
    }
}

impl Log {
    /// Opens the log, or makes it.
    ///
    /// # Errors
    /// When the file cannot be used or is something else.
    pub(crate) fn open(disk: &Arc<dyn Disk>, path: &Path) -> io::Result<Self> {
        Self::open_at(disk, path, wall_us())
    }

    /// The same with the number that a new log gets.
    fn open_at(disk: &Arc<dyn Disk>, path: &Path, new_id: u64) -> io::Result<Self> {
        // Left behind by a process that ended before it could take the place of the log.
        let _ = disk.remove_file(&beside(path));
        let file = disk.open(path, Mode::Keep)?;
        let mut length = file.length()?;
        let mut id = new_id;
        if length < START {
            // Nothing was acknowledged before the head was there.
            file.set_length(0)?;
            let mut head = MAGIC.to_vec();
            head.extend_from_slice(&id.to_le_bytes());
            file.write_all_at(&head, 0)?;
            file.sync_all()?;
            length = START;
        } else {
            let mut head = [0; START as usize];
            file.read_exact_at(&mut head, 0)?;
            let (magic, number) = head.split_at(8);
            if magic != MAGIC {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "not a log of documents"));
            }
            id = u64::from_le_bytes(number.try_into().unwrap_or_default());
        }
        Ok(Self {
            disk: Arc::clone(disk),
            path: path.to_owned(),
            file,
            id,
            length: AtomicU64::new(length),
            moved: 0,
            mapped: RwLock::default(),
        })
    }

    /// Position of the next record.
    pub(crate) fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    /// Written length, as a count that never falls: that a log was made shorter does not show.
    pub(crate) fn end(&self) -> u64 {
        self.moved + self.length()
    }

    /// Writes a log of those records that `keep` accepts, on the disk and in place of this one. `moved` receives the old and
    /// the new position of each. This one can still be read. Nothing comes back if the new one cannot be written; then this log
    /// stays what it is.
    ///
    /// # Errors
    /// When it is not known which of the two a start will find: no more may be written to either.
    pub(crate) fn compacted(
        &self,
        keep: impl Fn(u64, &Record<'_>) -> bool,
        mut moved: impl FnMut(&Record<'_>, u64),
    ) -> io::Result<Option<Self>> {
        let path = beside(&self.path);
        let Ok(mut made) = Self::open_at(&self.disk, &path, self.id.wrapping_add(1)) else {
            return Ok(None);
        };
        let mut buffer = Vec::with_capacity(COPY_BYTES);
        let copied = self.replay(self.length(), |at, record| {
            if keep(at, record) {
                moved(record, made.length() + buffer.len() as u64);
                record.write(&mut buffer);
                if buffer.len() >= COPY_BYTES {
                    made.append(&buffer, false)?;
                    buffer.clear();
                }
            }
            Ok(())
        });
        let copied = copied.and_then(|()| made.append(&buffer, false));
        let copied = copied.and_then(|()| made.file.sync_all());
        // From here on the new log is the one that a start finds.
        if copied.and_then(|()| self.disk.rename(&path, &self.path)).is_err() {
            let _ = self.disk.remove_file(&path);
            return Ok(None);
        }
        if let Some(folder) = self.path.parent() {
            self.disk.sync_folder(folder)?;
        }
        self.path.clone_into(&mut made.path);
        made.moved = self.end() - made.length();
        Ok(Some(made))
    }

    /// Appends whole records. On an error nothing has been appended.
    ///
    /// # Errors
    /// When the file cannot be written, or not be brought to the disk where that was asked for.
    pub(crate) fn append(&self, records: &[u8], sync: bool) -> io::Result<()> {
        let length = self.length();
        let written = self.file.write_all_at(records, length);
        let written = written.and_then(|()| if sync { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // What stands behind the end is overwritten or cut off, whichever comes first.
            let _ = self.file.set_length(length);
            return Err(error);
        }
        self.length.store(length + records.len() as u64, Ordering::Release);
        Ok(())
    }

    /// Brings everything from a position on to the disk that an earlier process has written. It may have been killed before its sync, or the
    /// sync may have failed: then the system shows bytes that it will never write. Written once more, they are.
    ///
    /// # Errors
    /// When the system says so.
    pub(crate) fn settle(&self, from: u64) -> io::Result<()> {
        let (mut at, length) = (from, self.length());
        let mut bytes = vec![0; COPY_BYTES.min(length.saturating_sub(from) as usize)];
        while at < length {
            let count = bytes.len().min((length - at) as usize);
            self.file.read_exact_at(&mut bytes[..count], at)?;
            self.file.write_all_at(&bytes[..count], at)?;
            at += count as u64;
        }
        self.file.sync_data()
    }

    /// Brings everything to the disk.
    ///
    /// # Errors
    /// When the system says so.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The record at a position.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn read(&self, at: u64) -> io::Result<Bytes> {
        if let Some(map) = self.map(at + LENGTHS as u64)?
            && let Some(bytes) = in_map(&map, at)
        {
            return Ok(bytes);
        }
        let mut lengths = [0; LENGTHS];
        self.file.read_exact_at(&mut lengths, at)?;
        let mut body = vec![0; length(&lengths)];
        self.file.read_exact_at(&mut body, at + LENGTHS as u64)?;
        Ok(Bytes::Owned(body))
    }

    /// A map that reaches to a position, if the file has grown enough to be worth one.
    fn map(&self, to: u64) -> io::Result<Option<Arc<Contents>>> {
        let current = self.mapped.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mapped = current.as_ref().map_or(0, |map| map.len() as u64);
        let length = self.length();
        if to <= mapped {
            return Ok(current);
        }
        // A small file is mapped as it is; a growing one not with each write.
        let step = (mapped / 2).clamp(64 << 10, MAP_STEP);
        if length < mapped + step {
            return Ok(None);
        }
        // The file is written and cut off by this process only, and never cut off before a position that `length` has covered;
        // a second server is kept away by the store's lock.
        let map = Arc::new(self.file.contents()?);
        *self.mapped.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&map));
        Ok(Some(map).filter(|map| map.len() as u64 >= to))
    }

    /// Calls `visit` with every record and its position, from the first on. A record that does not
    /// hold together ends the log if it stands behind `known`: it was being written in a crash.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged before `known`.
    pub(crate) fn replay(
        &self,
        known: u64,
        mut visit: impl FnMut(u64, &Record<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let length = self.length();
        if length == START {
            return Ok(());
        }
        // As in `map`; nobody writes while the log is replayed.
        let map = self.file.contents()?;
        let mut at = START;
        while at < length {
            let found = checked(&map, at);
            let Some((record, next)) = found else {
                if at < known {
                    let text = format!(
                        "{} is damaged at byte {at}; restore the file, or remove the folder of its index",
                        self.path.display()
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
                self.file.set_length(at)?;
                self.length.store(at, Ordering::Release);
                return Ok(());
            };
            visit(at, &record)?;
            at = next;
        }
        Ok(())
    }
}

/// Path of a log that will replace another.
fn beside(path: &Path) -> PathBuf {
    path.with_extension("log.new")
}

fn length(lengths: &[u8; LENGTHS]) -> usize {
    let [a, b, c, d, ..] = *lengths;
    u32::from_le_bytes([a, b, c, d]) as usize
}

fn in_map(map: &Arc<Contents>, at: u64) -> Option<Bytes> {
    let start = usize::try_from(at).ok()?;
    let body = start + LENGTHS;
    let lengths: &[u8; LENGTHS] = map.get(start..body)?.try_into().ok()?;
    let end = body + length(lengths);
    (end <= map.len()).then(|| Bytes::Mapped(Arc::clone(map), body, end))
}

/// The record at a position and where the next one begins, if it holds together.
fn checked(map: &[u8], at: u64) -> Option<(Record<'_>, u64)> {
    let start = usize::try_from(at).ok()?;
    let body = start + LENGTHS;
    let lengths: &[u8; LENGTHS] = map.get(start..body)?.try_into().ok()?;
    let sum = u32::from_le_bytes(lengths[4..].try_into().ok()?);
    let bytes = map.get(body..body + length(lengths))?;
    if crc32fast::hash(bytes) != sum {
        return None;
    }
    Some((Record::parse(bytes)?, (body + bytes.len()) as u64))
}

#[cfg(test)]
mod tests;
