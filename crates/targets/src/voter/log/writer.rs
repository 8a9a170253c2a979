//! The thread that writes the log.

use super::folder::{Folder, Part};
use super::replay::LOG_MAGIC;
use super::{Log, Taken};
use crate::stop::Stop;
use crate::voter::shared::{Errand, Shared};
use plimsoll_core::clock::now_ns;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// How long written records of an asynchronous log may wait for the disk.
const SYNC_NS: u64 = 100_000_000;
/// How long the thread sleeps when there is nothing to do.
const IDLE: Duration = Duration::from_secs(60);
/// A buffer that was longer is given back.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// What the thread has.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: Arc<Log>,
    pub(crate) folder: Arc<Folder>,
    /// Asked for when the log cannot be written.
    pub(crate) stop: Stop,
    /// The number of the first file.
    pub(crate) number: u64,
    /// Bytes of the logs since the last snapshot, those of earlier runs too.
    pub(crate) bytes: u64,
    /// Above so many a snapshot is asked for.
    pub(crate) bytes_max: u64,
}

/// Makes the file of a log.
fn begin(folder: &Folder, number: u64) -> io::Result<File> {
    let mut file = File::create(folder.file(Part::Log, number))?;
    file.write_all(LOG_MAGIC)?;
    file.sync_all()?;
    folder.sync()?;
    Ok(file)
}

impl Writer {
    /// Writes until nothing more will come.
    ///
    /// # Errors
    /// When the file cannot be written; then a stop was asked for, and nothing is acknowledged any more.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let done = self.write_all();
        if done.is_err() {
            self.log.fail();
            self.stop.request();
        }
        done
    }

    fn write_all(&mut self) -> io::Result<()> {
        let mut file = begin(&self.folder, self.number)?;
        let mut taken = Taken::default();
        // Since when there is something that is not on the disk.
        let mut unsynced_ns = None;
        let mut ask_above = self.bytes_max;
        while !taken.is_last {
            let wait = if unsynced_ns.is_some() { Duration::from_nanos(SYNC_NS) } else { IDLE };
            self.log.take(&mut taken, wait);
            let length = taken.records.len();
            let (before, after) = taken.records.split_at(taken.cut.unwrap_or(length));
            if !before.is_empty() {
                file.write_all(before)?;
                unsynced_ns.get_or_insert_with(now_ns);
            }
            if taken.cut.is_some() {
                file.sync_data()?;
                self.number += 1;
                file = begin(&self.folder, self.number)?;
                file.write_all(after)?;
                self.bytes = 0;
                ask_above = self.bytes_max;
                unsynced_ns = (!after.is_empty()).then(now_ns);
            }
            self.bytes += length as u64;
            let is_due = unsynced_ns.is_some_and(|since_ns| {
                self.log.is_sync || taken.is_last || now_ns().saturating_sub(since_ns) >= SYNC_NS
            });
            if is_due {
                file.sync_data()?;
                unsynced_ns = None;
            }
            for batch in taken.batches.drain(..) {
                self.shared.inboxes[batch.network].put(batch);
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
