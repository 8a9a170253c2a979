//! Rebuilding from the log: the index of ids at the start, the text index if it lacks documents, and the log itself
//! if most of it is obsolete.

use super::super::Truth;
use super::super::ids::{Entry, Ids, key};
use super::super::log::START;
use super::Writer;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Ratio of the log to its live content at which it is rewritten: at the start, and later.
pub(in super::super) const START_FACTOR: u64 = 2;
pub(super) const FACTOR: u64 = 4;
/// Shorter logs stay as they are, bytes.
pub(crate) const COMPACT_FROM_BYTES: u64 = 16 << 20;

impl Writer {
    /// Reads the log; brings what stands behind a position into the text index. An index that does not hold together, of which a power
    /// cut has left a part, is rebuilt.
    ///
    /// # Errors
    /// When the log is damaged or the text index fails.
    pub(crate) fn catch_up(&mut self, covered: u64) -> io::Result<()> {
        match self.read_log(covered, covered) {
            // Errors of the log have kinds of their own.
            Err(error) if error.kind() == io::ErrorKind::Other && covered > START => {
                let old = self.text.take().ok_or(error)?;
                let (log, blocks) = (self.shard.log().id, old.blocks());
                self.text = Some(old.renewed(log, blocks).map_err(io::Error::other)?);
                self.read_log(covered, START)
            }
            done => done,
        }
    }

    /// Reads the log, which was whole up to `known`; brings what stands behind `covered` into the text index.
    fn read_log(&mut self, known: u64, covered: u64) -> io::Result<()> {
        let shard = Arc::clone(&self.shard);
        let state = Arc::clone(&self.state);
        let log = shard.log();
        log.replay(known, |at, record| {
            self.enter(key(record.id), Entry::of(at, record));
            self.next_row = self.next_row.max(record.row + u64::from(!record.removed));
            self.next_sequence = self.next_sequence.max(record.sequence + 1);
            if at >= covered {
                let text = self.text()?;
                text.remove(record.id, record.row).map_err(io::Error::other)?;
                if !record.removed {
                    text.add_record(at, record, &state).map_err(io::Error::other)?;
                }
            } else {
                let text = self.text()?;
                text.put_record_text(record, &state).map_err(io::Error::other)?;
            }
            Ok(())
        })?;
        shard.counters.next_sequence.store(self.next_sequence, Ordering::Relaxed);
        if log.length() > covered {
            // The text index must not know of more than there is in the log after a power cut.
            log.settle(known)?;
            self.commit()?;
        }
        self.searchable.send_replace(log.end());
        Ok(())
    }

    fn enter(&self, key: u128, entry: Entry) {
        let mut truth = self.shard.truth_mut();
        let counters = &self.shard.counters;
        let was = truth.ids.insert(key, entry).is_some_and(|old| !old.removed);
        match (was, entry.removed) {
            (false, false) => {
                counters.documents.fetch_add(1, Ordering::Relaxed);
            }
            (true, true) => {
                counters.documents.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Rebuilds the text index from the log, with this many columns.
    pub(super) fn renew(&mut self, blocks: usize) -> io::Result<()> {
        let old = self.text.take().ok_or_else(|| io::Error::other("the text index is gone"))?;
        let (shard, state) = (Arc::clone(&self.shard), Arc::clone(&self.state));
        let log = shard.log();
        let mut text = old.renewed(log.id, blocks).map_err(io::Error::other)?;
        log.replay(log.length(), |at, record| {
            let present = shard.entry(record.id).is_some_and(|entry| entry.at == at);
            if present && !record.removed {
                text.add_record(at, record, &state).map_err(io::Error::other)?;
            }
            Ok(())
        })?;
        self.text = Some(text);
        self.show(&log)
    }

    /// Rewrites the log without replaced and removed documents, if it is `factor` times as long as its live
    /// content, and the text index after it. Searches continue in the old ones.
    ///
    /// # Errors
    /// When the text index fails, or it is not known which log is in place. One that cannot be rewritten is kept.
    pub(crate) fn compact(&mut self, factor: u64) -> io::Result<()> {
        let shard = Arc::clone(&self.shard);
        let (log, live) = (shard.log(), shard.truth().ids.live_bytes());
        let pending = !self.records.is_empty() || !self.changes.is_empty();
        if pending || log.length() < self.compact_from.max(live.saturating_mul(factor)) {
            return Ok(());
        }
        // The last sequence number is not given a second time.
        let last = self.next_sequence.saturating_sub(1);
        let mut ids = Ids::default();
        let made = log.compacted(
            |at, record| {
                let present = shard.entry(record.id).is_some_and(|entry| entry.at == at);
                present && (!record.removed || record.sequence == last)
            },
            |record, at| {
                ids.insert(key(record.id), Entry::of(at, record));
            },
        );
        let Some(made) = made? else {
            // There may be no room for it now. It is tried again when there is more to be won.
            self.compact_from = log.length().saturating_mul(2);
            return Ok(());
        };
        self.compact_from = self.keeping.compact_from;
        *shard.truth_mut() = Truth { ids, log: Arc::new(made) };
        self.sync_due_ns = None;
        let blocks = self.text()?.blocks();
        self.renew(blocks)
    }
}
