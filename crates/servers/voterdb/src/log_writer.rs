//! The thread that writes the log.

use super::log::{Folder, LOG_MAGIC, Log, Part, Taken};
use super::message::Errand;
use super::shared::Shared;
use plimsoll_core::clock::now_ns;
use plimsoll_disk::{DiskFile, Mode};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Longest time that written records of an asynchronous log may wait for the disk.
const SYNC_NS: u64 = 100_000_000;
/// Zeros written ahead at a time.
const FILL_BYTES: usize = 1 << 20;
/// Time to wait for the next calls of callers that were just answered.
const GATHER_NS: u64 = 1_000_000;
/// Number of writes after which no wait is tried, once the callers did not come.
const IMPATIENT_WRITES: u32 = 32;
/// Time that the thread sleeps when there is nothing to do.
const IDLE: Duration = Duration::from_secs(60);
/// A buffer that was longer is given back.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// The state of the thread.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: Arc<Log>,
    pub(crate) folder: Arc<Folder>,
    /// The number of the first file.
    pub(crate) number: u64,
    /// Bytes of the logs since the last snapshot, those of earlier runs too.
    pub(crate) bytes: u64,
    /// Length of the log above which a snapshot is requested.
    pub(crate) bytes_max: u64,
}

/// The file of a log. A synchronous one is filled with zeros ahead of what is written: to put bytes in the place of others
/// on the disk is about twice as fast as to make the file longer each time.
struct LogFile {
    file: Box<dyn DiskFile>,
    /// Position of the next record.
    end: u64,
    /// Length of the file.
    length: u64,
    is_filled: bool,
}

impl LogFile {
    fn begin(folder: &Folder, number: u64, is_filled: bool) -> io::Result<Self> {
        let file = folder.open_file(&folder.file(Part::Log, number), Mode::Create)?;
        let mut made = Self { file, end: 0, length: 0, is_filled };
        made.write(LOG_MAGIC)?;
        made.file.sync_all()?;
        folder.sync()?;
        Ok(made)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let end = self.end + bytes.len() as u64;
        if self.is_filled && end > self.length {
            let zeros = vec![0; FILL_BYTES.max(bytes.len())];
            self.file.write_all_at(&zeros, self.length)?;
            self.length += zeros.len() as u64;
            self.file.sync_data()?;
        }
        self.file.write_all_at(bytes, self.end)?;
        self.end = end;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Fails the log at the end of the writing, after a panic too: no thread may wait for room in it any more.
impl Drop for Writer {
    fn drop(&mut self) {
        self.log.fail();
    }
}

impl Writer {
    /// Writes until nothing more will come.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is acknowledged any more.
    pub(crate) fn run(mut self) -> io::Result<()> {
        self.write_all()
    }

    fn write_all(&mut self) -> io::Result<()> {
        let mut file = LogFile::begin(&self.folder, self.number, self.log.is_sync)?;
        let mut taken = Taken::default();
        // Since when there is something that is not on the disk.
        let mut unsynced_ns = None;
        let mut ask_above = self.bytes_max;
        let mut impatience = 0u32;
        while !taken.is_last {
            let wait = if unsynced_ns.is_some() { Duration::from_nanos(SYNC_NS) } else { IDLE };
            self.log.take(&mut taken, wait);
            let length = taken.records.len();
            let (before, after) = taken.records.split_at(taken.cut.unwrap_or(length));
            if !before.is_empty() {
                file.write(before)?;
                unsynced_ns.get_or_insert_with(now_ns);
            }
            if taken.cut.is_some() {
                file.sync()?;
                self.number += 1;
                file = LogFile::begin(&self.folder, self.number, self.log.is_sync)?;
                file.write(after)?;
                self.bytes = 0;
                ask_above = self.bytes_max;
                unsynced_ns = (!after.is_empty()).then(now_ns);
            }
            self.bytes += length as u64;
            let is_due = unsynced_ns.is_some_and(|since_ns| {
                self.log.is_sync || taken.is_last || now_ns().saturating_sub(since_ns) >= SYNC_NS
            });
            let began_ns = now_ns();
            if is_due {
                file.sync()?;
                unsynced_ns = None;
            }
            let took_ns = now_ns().saturating_sub(began_ns);
            for batch in taken.batches.drain(..) {
                self.shared.inboxes[batch.network].put(batch);
            }
            if self.log.is_sync && is_due && !taken.is_last {
                let most_ns = if impatience == 0 { GATHER_NS } else { GATHER_NS.min(took_ns / 2) };
                let have_come = self.log.gather(taken.calls, Duration::from_nanos(most_ns));
                impatience = if have_come || impatience > 0 {
                    impatience.saturating_sub(1)
                } else {
                    IMPATIENT_WRITES
                };
            }
            taken.records.clear();
            if taken.records.capacity() > KEPT_BYTES_MAX {
                taken.records = Vec::new();
            }
            if self.bytes > ask_above {
                // Once more after as much again, should this one come to nothing.
                ask_above = self.bytes + self.bytes_max;
                self.shared.transactions.put(Errand::Snapshot);
            }
        }
        Ok(())
    }
}
