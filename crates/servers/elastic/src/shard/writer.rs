//! The thread of a shard: takes batches, appends them to the log together, and brings them into the
//! text index.

mod renewing;

use super::super::error::ElasticError;
use super::super::memory::{alone, check_source};
use super::super::state::State;
use super::ids::{Entry, key};
use super::log::{Log, Record};
use super::operation::{Batch, Done, Item, Operation, Outcome, Partial, Values, Written};
use super::rules::{check, merge, object_bytes};
use super::text_index::TextIndex;
use super::{Keeping, Message, Shard};
use hyper::body::Bytes;
use plimsoll_core::clock::now_ns;
use plimsoll_front::Durability;
pub(crate) use renewing::COMPACT_FROM_BYTES;
use renewing::FACTOR;
pub(super) use renewing::START_FACTOR;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tantivy::TantivyDocument;
use tokio::sync::{oneshot, watch};

/// After this long without writes the text index is merged into one segment.
const IDLE: Duration = Duration::from_secs(1);
/// Largest number of operations of one write to the log.
const MAX_GROUP: usize = 64;
const MAX_GROUP_BYTES: usize = 16 << 20;
/// Bytes of the log after which the text index is committed.
const COMMIT_BYTES: u64 = 512 << 20;
/// Time at which what was acknowledged early is brought to the disk.
const ASYNC_NS: u64 = 100_000_000;
const LAZY_NS: u64 = 10_000_000_000;
/// A change for the text index.
struct Change {
    id: String,
    at: u64,
    /// Versions before this row are replaced.
    row: u64,
    /// There may be an older version.
    replaces: bool,
    content: Content,
}

/// The content of a new version.
enum Content {
    Values(Box<TantivyDocument>),
    /// A source whose values are not read yet.
    Source(Bytes),
    Removed,
}

/// The thread's state.
pub(crate) struct Writer {
    shard: Arc<Shard>,
    state: Arc<State>,
    /// `None` only while it is rebuilt.
    text: Option<TextIndex>,
    keeping: Keeping,
    searchable: watch::Sender<u64>,
    records: Vec<u8>,
    /// Entries that are not in the log yet.
    fresh: HashMap<u128, Entry>,
    changes: Vec<Change>,
    next_row: u64,
    next_sequence: u64,
    sync_due_ns: Option<u64>,
    last_commit: Duration,
    /// A shorter log than this is not looked at: the last attempt to shorten it has failed.
    compact_from: u64,
}

impl Writer {
    pub(crate) fn new(
        shard: Arc<Shard>,
        state: Arc<State>,
        text: TextIndex,
        keeping: Keeping,
        searchable: watch::Sender<u64>,
    ) -> Self {
        let compact_from = keeping.compact_from;
        Self {
            shard,
            state,
            text: Some(text),
            keeping,
            searchable,
            records: Vec::new(),
            fresh: HashMap::new(),
            changes: Vec::new(),
            next_row: 0,
            next_sequence: 0,
            sync_due_ns: None,
            last_commit: Duration::ZERO,
            compact_from,
        }
    }

    fn text(&mut self) -> io::Result<&mut TextIndex> {
        self.text.as_mut().ok_or_else(|| io::Error::other("the text index is gone"))
    }

    /// Works until a stop is requested, then commits everything to the disk and the index.
    ///
    /// # Errors
    /// When the log or the text index fails.
    pub(crate) fn run(&mut self, messages: &Receiver<Message>) -> io::Result<()> {
        let mut due_ns: Option<u64> = None;
        loop {
            let next = [due_ns, self.sync_due_ns].into_iter().flatten().min();
            let wait = next.map_or(IDLE, |due| Duration::from_nanos(due.saturating_sub(now_ns())));
            let refresh = match messages.recv_timeout(wait) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(message) => {
                    let (refresh, stop) = self.take(message, messages)?;
                    if stop {
                        break;
                    }
                    refresh
                }
                Err(RecvTimeoutError::Timeout) => {
                    if due_ns.is_none() && self.sync_due_ns.is_none() {
                        self.text()?.make_way().map_err(io::Error::other)?;
                        self.text()?.settle().map_err(io::Error::other)?;
                        continue;
                    }
                    false
                }
            };
            if self.sync_due_ns.is_some_and(|due| now_ns() >= due) {
                self.sync()?;
            }
            if *self.searchable.borrow() < self.shard.log().end() {
                let pause = self.pause().map(|pause| now_ns().saturating_add(pause));
                due_ns = due_ns.or(pause);
            }
            if refresh || due_ns.is_some_and(|due| now_ns() >= due) {
                due_ns = None;
                self.commit()?;
                self.compact(FACTOR)?;
            }
        }
        self.sync()?;
        self.commit()
    }

    /// Brings acknowledged writes to the disk that are not there yet.
    ///
    /// # Errors
    /// When the log cannot be synced.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        if self.sync_due_ns.is_some() { self.sync() } else { Ok(()) }
    }

    /// Brings the log to the disk.
    fn sync(&mut self) -> io::Result<()> {
        let synced = self.shard.log().sync();
        match synced {
            Ok(()) => self.sync_due_ns = None,
            // A later sync may succeed without the bytes of this one.
            Err(_) if self.sync_due_ns.is_some() => self.shard.set_lost(),
            Err(_) => {}
        }
        synced
    }

    /// Time between two commits, in nanoseconds: they may take up to a third of the thread's time. `None` while no search
    /// would see it, unless reading its bytes again after a crash would take long.
    fn pause(&self) -> Option<u64> {
        let unseen = self.state.refreshes_when_looked_at() && !self.shard.is_looked_at();
        let behind = self.shard.log().end() - *self.searchable.borrow();
        if unseen && behind < COMMIT_BYTES {
            return None;
        }
        let pause = self.state.refresh()?.max(self.last_commit * 2);
        Some(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX / 2))
    }

    /// Takes a message with those that wait behind it. Tells whether to refresh, and to stop.
    fn take(&mut self, first: Message, more: &Receiver<Message>) -> io::Result<(bool, bool)> {
        let mut replies = Vec::new();
        let (mut refresh, mut stop) = (false, false);
        let mut others = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Write(batch) => replies.push(self.batch(batch)?),
                Message::Refresh => refresh = true,
                Message::Stop => stop = true,
                other => others.push(other),
            }
            let full = replies.len() >= MAX_GROUP || self.records.len() >= MAX_GROUP_BYTES;
            next = if stop || full { None } else { more.try_recv().ok() };
        }
        self.write(replies)?;
        for message in others {
            self.other(message)?;
        }
        Ok((refresh, stop))
    }

    fn other(&mut self, message: Message) -> io::Result<()> {
        let done: oneshot::Sender<()> = match message {
            Message::Flush(done) => {
                self.sync()?;
                self.commit()?;
                done
            }
            Message::Merge(done) => {
                self.commit()?;
                self.text()?.merge().map_err(io::Error::other)?;
                done
            }
            Message::Write(_) | Message::Refresh | Message::Stop => return Ok(()),
        };
        // Whoever asked may have gone away.
        let _ = done.send(());
        Ok(())
    }

    /// Decides what comes of each operation; what is written goes into the buffer, and into the log where the buffer is full.
    fn batch(&mut self, batch: Batch) -> io::Result<(oneshot::Sender<Vec<Done>>, Vec<Done>)> {
        let Batch { items, reply, held: _held, room } = batch;
        let mut done = Vec::with_capacity(items.len());
        let mut ends_early = false;
        for item in items {
            let (number, id) = (item.number, item.id.clone());
            let mut result = if ends_early {
                Err(ElasticError::new(503, "node_closed_exception", "the server stops"))
            } else {
                self.item(item)
            };
            if let (Ok(written), Some(_)) = (&mut result, &room) {
                // The reply to a bulk request shows none.
                written.source = None;
            }
            done.push(Done { number, id, result });
            // Each of many updates may write a document that is much larger than itself.
            if self.records.len() >= MAX_GROUP_BYTES {
                self.write(Vec::new())?;
                ends_early = self.shard.is_stopping.load(Ordering::Relaxed);
            }
        }
        Ok((reply, done))
    }

    fn item(&mut self, item: Item) -> Result<Written, ElasticError> {
        let key = key(&item.id);
        let known = match self.fresh.get(&key) {
            Some(entry) => Some(*entry),
            None => self.shard.truth().ids.by_key(key),
        };
        let present = known.filter(|entry| !entry.removed);
        let version = check(&item, known, present)?;
        match item.operation {
            Operation::Index(source, values) | Operation::Create(source, values) => {
                let outcome = if present.is_some() { Outcome::Updated } else { Outcome::Created };
                let (id, routing) = (item.id, &item.routing);
                let content = match values {
                    Values::Read(document) => Content::Values(document),
                    Values::Later => Content::Source(source.clone()),
                };
                let sequence =
                    self.put(key, id, routing, version, &source, content, known.is_some());
                Ok(Written { outcome, version, sequence, source: None })
            }
            Operation::Update(partial) => {
                self.update(key, item.id, &item.routing, &partial, (present, known), version)
            }
            Operation::UpdateLater(body) => {
                let partial = Partial::read(&body)?;
                self.update(key, item.id, &item.routing, &partial, (present, known), version)
            }
            Operation::Delete => {
                let outcome = if present.is_some() { Outcome::Deleted } else { Outcome::NotFound };
                let sequence = self.delete(key, item.id, &item.routing, version);
                Ok(Written { outcome, version, sequence, source: None })
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "they are the members of a record")]
    fn put(
        &mut self,
        key: u128,
        id: String,
        routing: &str,
        version: u64,
        source: &[u8],
        content: Content,
        replaces: bool,
    ) -> u64 {
        let row = self.next_row;
        self.next_row += 1;
        let (at, sequence) = self.record(key, &id, routing, version, Some(source));
        self.changes.push(Change { id, at, row, replaces, content });
        sequence
    }

    fn delete(&mut self, key: u128, id: String, routing: &str, version: u64) -> u64 {
        let (at, sequence) = self.record(key, &id, routing, version, None);
        let row = self.next_row;
        self.changes.push(Change { id, at, row, replaces: true, content: Content::Removed });
        sequence
    }

    /// Appends a record to the buffer; gives its position and sequence number.
    fn record(
        &mut self,
        key: u128,
        id: &str,
        routing: &str,
        version: u64,
        source: Option<&[u8]>,
    ) -> (u64, u64) {
        let at = self.shard.log().length() + self.records.len() as u64;
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let removed = source.is_none();
        let row = if removed { self.next_row } else { self.next_row - 1 };
        let source = source.unwrap_or_default();
        let record = Record { removed, version, sequence, row, id, routing, source };
        record.write(&mut self.records);
        let bytes = record.bytes();
        self.fresh.insert(key, Entry { at, sequence, version, bytes, removed });
        (at, sequence)
    }

    fn update(
        &mut self,
        key: u128,
        id: String,
        routing: &str,
        partial: &Partial,
        (present, known): (Option<Entry>, Option<Entry>),
        version: u64,
    ) -> Result<Written, ElasticError> {
        let _alone = alone(present.map_or(0, |entry| entry.bytes as usize));
        let old = present.map(|entry| self.source(entry)).transpose()?;
        let merged = match (old, &partial.upsert) {
            (Some(mut old), _) => {
                let changed = merge(&mut old, &partial.document);
                if !changed && partial.detect_noop {
                    let entry = present.or(known);
                    let (version, sequence) =
                        entry.map_or((1, 0), |entry| (entry.version, entry.sequence));
                    let source = partial.wants_source.then(|| object_bytes(&old));
                    return Ok(Written { outcome: Outcome::Noop, version, sequence, source });
                }
                Json::Object(old)
            }
            (None, Some(upsert)) => upsert.clone(),
            (None, None) => {
                let reason = format!("[_doc][{id}]: document missing");
                return Err(ElasticError::new(404, "document_missing_exception", reason));
            }
        };
        let source = merged.to_string().into_bytes();
        drop(merged);
        check_source(&source)?;
        let document = self.state.read_document(&source, &id)?;
        let outcome = if present.is_some() { Outcome::Updated } else { Outcome::Created };
        let replaces = known.is_some();
        let content = Content::Values(Box::new(document));
        let sequence = self.put(key, id, routing, version, &source, content, replaces);
        let source = partial.wants_source.then_some(source);
        Ok(Written { outcome, version, sequence, source })
    }

    /// The present source of a document, from the log or from what is about to be in it.
    fn source(&self, entry: Entry) -> Result<serde_json::Map<String, Json>, ElasticError> {
        let failed = |error: &dyn std::fmt::Display| ElasticError::internal(error.to_string());
        let log = self.shard.log();
        let length = log.length();
        let read = |source: &[u8]| match serde_json::from_slice(source) {
            Ok(Json::Object(source)) => Ok(source),
            _ => Err(ElasticError::internal("the source cannot be read")),
        };
        if entry.at >= length {
            let at = (entry.at - length) as usize;
            let source = super::log::buffered(&self.records, at);
            return read(source.ok_or_else(|| failed(&"the source is not in the buffer"))?.source);
        }
        let bytes = log.read(entry.at).map_err(|error| failed(&error))?;
        read(bytes.record().ok_or_else(|| failed(&"the record cannot be read"))?.source)
    }

    /// Brings the buffer to the log, answers, and brings the changes into the text index.
    fn write(&mut self, replies: Vec<(oneshot::Sender<Vec<Done>>, Vec<Done>)>) -> io::Result<()> {
        if !self.records.is_empty() {
            let sync = self.keeping.durability == Durability::Sync;
            if let Err(error) = self.shard.log().append(&self.records, sync) {
                let error = io::Error::new(error.kind(), format!("the log failed: {error}"));
                // Nothing was acknowledged. The reason must be known before the requests see that their answer was lost.
                self.shard.fail(error.to_string());
                return Err(error);
            }
            let delay_ns = match self.keeping.durability {
                Durability::Sync => None,
                Durability::Async => Some(ASYNC_NS),
                Durability::None => Some(LAZY_NS),
            };
            self.sync_due_ns = self.sync_due_ns.or(delay_ns.map(|delay| now_ns() + delay));
            self.records.clear();
            self.publish();
        }
        for (reply, done) in replies {
            // Whoever asked may have gone away.
            let _ = reply.send(done);
        }
        self.follow()?;
        // Where nothing is refreshed by itself the log must not grow for ever, either.
        self.compact(2 * FACTOR)
    }

    fn publish(&mut self) {
        let counters = &self.shard.counters;
        counters.written.fetch_add(self.changes.len() as u64, Ordering::Relaxed);
        counters.next_sequence.store(self.next_sequence, Ordering::Relaxed);
        let mut truth = self.shard.truth_mut();
        let (mut came, mut went) = (0, 0);
        for (key, entry) in self.fresh.drain() {
            let was = truth.ids.insert(key, entry).is_some_and(|old| !old.removed);
            came += u64::from(!was && !entry.removed);
            went += u64::from(was && entry.removed);
        }
        counters.documents.fetch_add(came, Ordering::Relaxed);
        counters.documents.fetch_sub(went, Ordering::Relaxed);
        counters.removed.fetch_add(went, Ordering::Relaxed);
    }

    fn follow(&mut self) -> io::Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let blocks = self.state.mapping().blocks();
        if blocks > self.text()?.blocks() {
            self.changes.clear();
            return self.renew(blocks);
        }
        let state = Arc::clone(&self.state);
        let mut changes = std::mem::take(&mut self.changes);
        let text = self.text()?;
        for change in changes.drain(..) {
            if change.replaces {
                text.remove(&change.id, change.row).map_err(io::Error::other)?;
            }
            let place = (change.at, change.row);
            let added = match change.content {
                Content::Values(document) => text.add(&change.id, place, &document, &state),
                Content::Source(source) => text.add_source(&change.id, place, &source, &state),
                Content::Removed => Ok(()),
            };
            added.map_err(io::Error::other)?;
        }
        self.changes = changes;
        Ok(())
    }

    fn commit(&mut self) -> io::Result<()> {
        let log = self.shard.log();
        if *self.searchable.borrow() == log.end() {
            return Ok(());
        }
        self.show(&log)
    }

    /// Makes everything searchable that is in the log.
    fn show(&mut self, log: &Log) -> io::Result<()> {
        let start_ns = now_ns();
        // The text index, which is brought to the disk, must not know of more than there is in the log after a
        // power cut: such a log counts as damaged.
        self.settle()?;
        let shard = Arc::clone(&self.shard);
        let text = self.text()?;
        text.commit(log.length()).map_err(io::Error::other)?;
        shard.show(text);
        self.searchable.send_replace(log.end());
        self.last_commit = Duration::from_nanos(now_ns() - start_ns);
        Ok(())
    }
}
