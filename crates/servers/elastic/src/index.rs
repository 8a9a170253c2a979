//! An index: its settings, its mapping and its shards, kept in a folder of its own.

use super::mapping::Mapping;
use super::memory::Drafts;
use super::routing;
use super::settings::Settings;
use super::shard::{Keeping, Shard};
use super::state::{META, State};
use plimsoll_core::clock::wall_us;
use plimsoll_disk::{Disk, durable};
use plimsoll_front::Durability;
use plimsoll_index::scan::ScanQueue;
use serde_json::Value as Json;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

/// One index.
pub(crate) struct Index {
    pub(crate) state: Arc<State>,
    pub(crate) shards: Vec<Arc<Shard>>,
}

/// The way new indices keep what they are given.
#[derive(Clone, Debug)]
pub(crate) struct Defaults {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) durability: Durability,
    /// Queue of scans of the text, if the server does them.
    pub(crate) scans: Option<Arc<ScanQueue>>,
    /// Shorter logs are not rewritten, bytes.
    pub(crate) compact_from: u64,
    /// The memory of unfinished segments.
    pub(crate) drafts: Arc<Drafts>,
}

impl Index {
    /// Makes an index in a folder of its own under `root`.
    ///
    /// # Errors
    /// When a file cannot be written, or a thread not be had.
    pub(crate) fn create(
        root: &Path,
        name: &str,
        uuid: String,
        settings: Settings,
        mapping: Mapping,
        defaults: Defaults,
    ) -> io::Result<Self> {
        let folder = root.join(&uuid);
        durable::create_folders(&*defaults.disk, &folder)?;
        let state = State {
            disk: Arc::clone(&defaults.disk),
            name: name.to_owned(),
            uuid,
            created_ms: wall_us() / 1000,
            settings: RwLock::new(settings),
            folder,
            mapping: RwLock::new(Arc::new(mapping)),
            changing: Mutex::default(),
            is_forgotten: AtomicBool::new(false),
            drafts: Arc::clone(&defaults.drafts),
        };
        let index = Self::with(Arc::new(state), defaults)?;
        // Without this file the folder is not one of an index.
        let kept = index.state.keep(&index.state.mapping());
        // What is written into the index must not be lost with its name.
        if let Err(error) = kept.and_then(|()| index.state.disk.sync_folder(root)) {
            let _ = index.state.forget();
            index.remove();
            return Err(error);
        }
        Ok(index)
    }

    fn with(state: Arc<State>, defaults: Defaults) -> io::Result<Self> {
        let shards = state.settings().shards;
        let Defaults { durability, scans, compact_from, .. } = defaults;
        let keeping = Keeping { durability, shards, scans, compact_from };
        let open = |number: usize| {
            Shard::open(&state.folder.join(number.to_string()), number, keeping.clone(), &state)
        };
        let shards = (0..shards).map(open).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { state, shards })
    }

    /// Opens an index that was made before; nothing when the folder is not one of an index.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub(crate) fn open(folder: &Path, defaults: Defaults) -> io::Result<Option<Self>> {
        let disk = Arc::clone(&defaults.disk);
        let bytes = match plimsoll_disk::read(&*disk, &folder.join(META)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let failed = |what: &str| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", folder.display()))
        };
        let meta: Json = serde_json::from_slice(&bytes)?;
        let text = |key: &str| meta[key].as_str().map(ToOwned::to_owned);
        let columns: Vec<(String, String)> = serde_json::from_value(meta["columns"].clone())?;
        let mapping = Mapping::restore(&columns, &meta["mapping"]);
        let mapping = mapping.map_err(|error| failed(&error.reason))?;
        let settings =
            Settings::restore(&meta["settings"]).map_err(|error| failed(&error.reason))?;
        let state = State {
            disk,
            name: text("name").ok_or_else(|| failed("no name"))?,
            uuid: text("uuid").ok_or_else(|| failed("no uuid"))?,
            created_ms: meta["created_ms"].as_u64().unwrap_or(0),
            settings: RwLock::new(settings),
            folder: folder.to_owned(),
            mapping: RwLock::new(Arc::new(mapping)),
            changing: Mutex::default(),
            is_forgotten: AtomicBool::new(false),
            drafts: Arc::clone(&defaults.drafts),
        };
        Self::with(Arc::new(state), defaults).map(Some)
    }

    pub(crate) fn name(&self) -> &str {
        &self.state.name
    }

    /// The shard of a document.
    pub(crate) fn shard(&self, id: &str, routing: &str) -> &Arc<Shard> {
        let by = if routing.is_empty() { id } else { routing };
        &self.shards[routing::shard(by, self.shards.len())]
    }

    /// Has the shards' threads break off long batches.
    pub(crate) fn begin_stop(&self) {
        for shard in &self.shards {
            shard.begin_stop();
        }
    }

    /// Ends the shards' threads.
    ///
    /// # Errors
    /// When something acknowledged is not on the disk.
    pub(crate) fn stop(&self) -> io::Result<()> {
        self.begin_stop();
        let stopped: Vec<io::Result<()>> = self.shards.iter().map(|shard| shard.stop()).collect();
        stopped.into_iter().collect()
    }

    /// Ends the threads and takes the files away, those of an index that was forgotten. The next start takes the rest away.
    pub(crate) fn remove(&self) {
        let _ = self.stop();
        let _ = self.state.disk.remove_folder(&self.state.folder);
    }

    pub(crate) fn documents(&self) -> u64 {
        self.shards.iter().map(|shard| shard.documents()).sum()
    }

    /// Marks the index as searched: pending writes are made searchable first.
    pub(crate) async fn looked_at(&self) {
        if !self.state.refreshes_when_looked_at() {
            return;
        }
        let behind: Vec<&Arc<Shard>> =
            self.shards.iter().filter(|shard| shard.is_behind_when_looked_at()).collect();
        for shard in &behind {
            // When the queue is full, the batches in it will be followed by a refresh in time.
            let _ = shard.send(super::shard::Message::Refresh);
        }
        for shard in behind {
            shard.caught_up().await;
        }
    }

    /// Makes what was written searchable, on all shards. Tells whether it came to that.
    pub(crate) async fn refreshed(&self, ask: bool) -> bool {
        let mut all = true;
        if ask {
            for shard in &self.shards {
                let _ = shard.send(super::shard::Message::Refresh);
            }
        }
        // Without an interval nobody else would refresh, and not for certain where somebody must look first.
        let by_itself = self.state.refresh().is_some() && !self.state.refreshes_when_looked_at();
        let ask = ask || !by_itself;
        for shard in &self.shards {
            all &= shard.refreshed(ask).await;
        }
        all
    }

    /// Bytes of the index on the disk.
    pub(crate) fn bytes(&self) -> u64 {
        folder_bytes(&self.state.folder)
    }
}

fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => folder_bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
