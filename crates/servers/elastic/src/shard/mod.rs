//! One partition of an index: a log of its documents, a text index that follows it, and a thread
//! that writes both.

pub(crate) mod ids;
pub(crate) mod log;
mod operation;
mod replaced;
mod rules;
mod segment;
mod text_index;
mod writer;

pub(crate) use operation::{Batch, Condition, Done, Item, Operation, Partial, Values, Written};

use super::state::State;
use ids::{Entry, Ids};
use log::Bytes;
pub(crate) use log::Log;
use plimsoll_core::clock::now_ns;
use plimsoll_disk::durable;
use plimsoll_front::Durability;
use plimsoll_index::lids::Lids;
use plimsoll_index::row_text::RowText;
use plimsoll_index::scan::{self, ScanQueue, ShardScan};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use tantivy::{IndexReader, Searcher};
use text_index::TextIndex;
use tokio::sync::watch;
pub(crate) use writer::COMPACT_FROM_BYTES;
use writer::Writer;

/// Batches of writes that may wait for a shard; more are refused.
const QUEUE: usize = 1024;
/// Time that a request waits for a refresh, or for a write to be taken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Time without a search after which a shard is not refreshed any more, ns.
const UNSEEN_NS: u64 = 30_000_000_000;

/// The way a shard keeps what it is given.
#[derive(Clone, Debug)]
pub(crate) struct Keeping {
    pub(crate) durability: Durability,
    /// Shards of the index, which share the memory for segments in the making.
    pub(crate) shards: usize,
    /// Queue of scans of the text, if the server does them.
    pub(crate) scans: Option<Arc<ScanQueue>>,
    /// Shorter logs are not rewritten, bytes.
    pub(crate) compact_from: u64,
}

/// A message to a shard's thread.
pub(crate) enum Message {
    Write(Batch),
    /// Make everything searchable now.
    Refresh,
    /// Bring everything to the disk, and say so.
    Flush(tokio::sync::oneshot::Sender<()>),
    /// Merge into one segment, and say so.
    Merge(tokio::sync::oneshot::Sender<()>),
    Stop,
}

/// Counters of a shard.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Documents that are there.
    pub(crate) documents: AtomicU64,
    pub(crate) removed: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) searches: AtomicU64,
    pub(crate) next_sequence: AtomicU64,
}

/// The searches of a shard that is refreshed only for them.
#[derive(Debug, Default)]
struct Looks {
    /// Time of the last search; 0: never.
    last_ns: AtomicU64,
    /// Position of the log at the first search after a while: searches wait until it is searchable.
    wanted: AtomicU64,
}

struct Searching {
    reader: IndexReader,
    lids: Arc<Lids>,
    /// Blocks of columns of the text index.
    blocks: usize,
    /// Log of the positions that the index gives.
    log: Arc<Log>,
}

/// The documents: what was written, and where each of them is in it.
struct Truth {
    ids: Ids,
    log: Arc<Log>,
}

/// One partition.
pub(crate) struct Shard {
    pub(crate) number: usize,
    truth: RwLock<Truth>,
    searching: RwLock<Searching>,
    queue: SyncSender<Message>,
    /// End of the searchable documents, as [`Log::end`] counts.
    searchable: watch::Receiver<u64>,
    pub(crate) counters: Counters,
    looks: Looks,
    failure: Mutex<Option<String>>,
    /// Acknowledged writes did not come to the disk.
    has_lost: AtomicBool,
    /// A long batch ends at the next opportunity.
    is_stopping: AtomicBool,
    pub(crate) scan: Option<ShardScan>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The queue of a shard is full, or its thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

impl Shard {
    /// Opens the shard in a folder, or makes it; catches up with its log after a crash.
    ///
    /// # Errors
    /// When a file cannot be used, or the system has no thread to give.
    pub(crate) fn open(
        folder: &Path,
        number: usize,
        keeping: Keeping,
        state: &Arc<State>,
    ) -> io::Result<Arc<Self>> {
        durable::create_folders(&*state.disk, folder)?;
        let log = Arc::new(Log::open(&state.disk, &folder.join("documents.log"))?);
        state.disk.sync_folder(folder)?;
        let (text, covered) =
            TextIndex::open(&folder.join("text"), log.id, log.length(), state, keeping.shards)
                .map_err(io::Error::other)?;
        let (scan, rows) = match &keeping.scans {
            Some(queue) => {
                let (scan, rows) = scan::open(Arc::clone(queue));
                (Some(scan), Some(Box::new(rows) as Box<dyn RowText>))
            }
            None => (None, None),
        };
        let text = text.with_rows(rows);
        let (queue, messages) = sync_channel(QUEUE);
        let (searchable_sender, searchable) = watch::channel(0);
        let shard = Arc::new(Self {
            number,
            searching: RwLock::new(Searching {
                reader: text.reader(),
                lids: Arc::default(),
                blocks: text.blocks(),
                log: Arc::clone(&log),
            }),
            truth: RwLock::new(Truth { ids: Ids::default(), log }),
            queue,
            searchable,
            counters: Counters::default(),
            looks: Looks::default(),
            failure: Mutex::default(),
            has_lost: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            scan,
            thread: Mutex::default(),
        });
        let mut writer =
            Writer::new(Arc::clone(&shard), Arc::clone(state), text, keeping, searchable_sender);
        writer.catch_up(covered)?;
        writer.compact(writer::START_FACTOR)?;
        Self::start(&shard, writer, messages)?;
        Ok(shard)
    }

    fn start(shard: &Arc<Self>, mut writer: Writer, messages: Receiver<Message>) -> io::Result<()> {
        let failed = Arc::clone(shard);
        let name = format!("elastic-{}", shard.number);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            // Writes after a panic get this reason, and not that too many wait.
            let panicked = |_| Err(io::Error::other("its thread has panicked"));
            let worked = catch_unwind(AssertUnwindSafe(|| writer.run(&messages)));
            let worked = worked.unwrap_or_else(panicked);
            // Where the text index has failed, the log may still be whole.
            if let Err(error) = worked.and(writer.settle()) {
                failed.fail(error.to_string());
            }
        })?;
        *shard.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    fn set_lost(&self) {
        self.has_lost.store(true, Ordering::Relaxed);
    }

    fn fail(&self, reason: String) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    /// Reason why the shard takes no writes any more.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Hands a message to the shard's thread, or refuses it at once.
    pub(crate) fn send(&self, message: Message) -> Result<(), Refused> {
        self.queue.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) | TrySendError::Disconnected(_) => Refused,
        })
    }

    /// Returns the position of a document.
    pub(crate) fn entry(&self, id: &str) -> Option<Entry> {
        self.truth().ids.get(id)
    }

    fn truth(&self) -> RwLockReadGuard<'_, Truth> {
        self.truth.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn truth_mut(&self) -> RwLockWriteGuard<'_, Truth> {
        self.truth.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log as it is now.
    fn log(&self) -> Arc<Log> {
        Arc::clone(&self.truth().log)
    }

    /// The record of the present version of a document.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) fn get(&self, id: &str) -> io::Result<Option<Bytes>> {
        // A position is one in the log that was there with it.
        let (entry, log) = {
            let truth = self.truth();
            (truth.ids.get(id), Arc::clone(&truth.log))
        };
        match entry {
            Some(entry) if !entry.removed => log.read(entry.at).map(Some),
            _ => Ok(None),
        }
    }

    /// A snapshot for searching, what tells its documents, how many blocks of columns it has, and the log that its
    /// positions are of.
    pub(crate) fn searcher(&self) -> (Searcher, Arc<Lids>, usize, Arc<Log>) {
        let searching = self.searching.read().unwrap_or_else(PoisonError::into_inner);
        let (lids, log) = (Arc::clone(&searching.lids), Arc::clone(&searching.log));
        (searching.reader.searcher(), lids, searching.blocks, log)
    }

    /// Documents that a search can find now.
    pub(crate) fn searchable_documents(&self) -> u64 {
        self.searcher().0.num_docs()
    }

    fn show(&self, text: &TextIndex) {
        let (reader, blocks) = (text.reader(), text.blocks());
        // Another reader counts its generations anew.
        let shown = Searching { reader, lids: Arc::default(), blocks, log: self.log() };
        *self.searching.write().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    /// Returns true if there was a search lately.
    fn is_looked_at(&self) -> bool {
        let last_ns = self.looks.last_ns.load(Ordering::Relaxed);
        last_ns > 0 && now_ns().saturating_sub(last_ns) < UNSEEN_NS
    }

    /// Marks the shard as searched. Returns whether there are earlier writes that are not searchable.
    pub(crate) fn is_behind_when_looked_at(&self) -> bool {
        if !self.is_looked_at() {
            self.looks.wanted.fetch_max(self.log().end(), Ordering::AcqRel);
        }
        self.looks.last_ns.store(now_ns(), Ordering::Relaxed);
        *self.searchable.borrow() < self.looks.wanted.load(Ordering::Acquire)
    }

    /// Waits until earlier writes can be found.
    pub(crate) async fn caught_up(&self) {
        let wanted = self.looks.wanted.load(Ordering::Acquire);
        let mut searchable = self.searchable.clone();
        let waiting = searchable.wait_for(|covered| *covered >= wanted);
        // Whoever looks into a shard that has failed sees what was there before.
        let _ = tokio::time::timeout(PATIENCE, waiting).await;
    }

    /// Waits until what was written up to now can be found; asks for it unless a refresh is to come
    /// by itself. Tells whether it came to that.
    pub(crate) async fn refreshed(&self, ask: bool) -> bool {
        let target = self.log().end();
        if *self.searchable.borrow() >= target {
            return true;
        }
        if ask {
            // When the queue is full, the batches in it will be followed by a refresh in time.
            let _ = self.send(Message::Refresh);
        }
        let mut searchable = self.searchable.clone();
        let waiting = searchable.wait_for(|covered| *covered >= target);
        matches!(tokio::time::timeout(PATIENCE, waiting).await, Ok(Ok(_)))
    }

    /// Has the thread break off a long batch, whose other operations fail.
    pub(crate) fn begin_stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Ends the thread; everything acknowledged is on the disk and in the index then.
    ///
    /// # Errors
    /// When something acknowledged is not on the disk.
    pub(crate) fn stop(&self) -> io::Result<()> {
        self.begin_stop();
        let _ = self.queue.send(Message::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        match self.failure().filter(|_| self.has_lost.load(Ordering::Relaxed)) {
            Some(reason) => Err(io::Error::other(format!("shard {}: {reason}", self.number))),
            None => Ok(()),
        }
    }

    /// Documents that are there, searchable or not.
    pub(crate) fn documents(&self) -> u64 {
        self.counters.documents.load(Ordering::Relaxed)
    }
}
