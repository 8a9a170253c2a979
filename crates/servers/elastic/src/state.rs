//! State that the requests and the shards of an index share: its settings and its mapping, kept in its folder.

use super::document;
use super::error::ElasticError;
use super::mapping::{Mapping, Missing};
use super::memory::Drafts;
use super::settings::Settings;
use plimsoll_disk::{Disk, durable};
use serde_json::json;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tantivy::TantivyDocument;

/// The file of an index's settings and mapping.
pub(crate) const META: &str = "index.json";
/// Number of times that a document may be read again because fields came to the mapping.
const MAX_READS: usize = 4;

/// State that requests and shards of an index share.
pub(crate) struct State {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) name: String,
    pub(crate) uuid: String,
    pub(crate) created_ms: u64,
    pub(crate) settings: RwLock<Settings>,
    pub(crate) folder: PathBuf,
    pub(crate) mapping: RwLock<Arc<Mapping>>,
    /// Held while the mapping or the settings change.
    pub(crate) changing: Mutex<()>,
    /// The file of settings and mapping is gone, for good.
    pub(crate) is_forgotten: AtomicBool,
    /// The memory of unfinished segments of all indices.
    pub(crate) drafts: Arc<Drafts>,
}

impl State {
    /// The present mapping.
    pub(crate) fn mapping(&self) -> Arc<Mapping> {
        Arc::clone(&self.mapping.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The present settings.
    pub(crate) fn settings(&self) -> Settings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Largest sum of from and size of a search.
    pub(crate) fn window(&self) -> usize {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).window
    }

    /// Pause between two commits of the text index; nothing when only requests ask for them.
    pub(crate) fn refresh(&self) -> Option<Duration> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).refresh
    }

    /// Returns true if the index is refreshed only after a search.
    pub(crate) fn refreshes_when_looked_at(&self) -> bool {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).refreshes_when_looked_at
    }

    /// Changes settings; when it comes back the change is on the disk.
    ///
    /// # Errors
    /// The error of the change, or that the folder cannot be written.
    pub(crate) fn change_settings(
        &self,
        change: impl FnOnce(&mut Settings) -> Result<(), ElasticError>,
    ) -> Result<(), ElasticError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.settings();
        let mut settings = before.clone();
        change(&mut settings)?;
        let set = |settings| {
            *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
        };
        set(settings);
        self.keep(&self.mapping()).map_err(|error| {
            set(before);
            ElasticError::internal(format!("cannot keep the settings of [{}]: {error}", self.name))
        })
    }

    /// Changes the mapping; when it comes back the change is on the disk.
    ///
    /// # Errors
    /// The error of the change, or that the folder cannot be written.
    pub(crate) fn change_mapping(
        &self,
        change: impl FnOnce(&mut Mapping) -> Result<(), ElasticError>,
    ) -> Result<(), ElasticError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut mapping = Mapping::clone(&self.mapping());
        change(&mut mapping)?;
        self.keep(&mapping).map_err(|error| {
            ElasticError::internal(format!("cannot keep the mapping of [{}]: {error}", self.name))
        })?;
        *self.mapping.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(mapping);
        Ok(())
    }

    /// The text index's form of a source; fields that it brings go into the mapping first.
    ///
    /// # Errors
    /// When the source does not go with the mapping.
    pub(crate) fn read_document(
        &self,
        source: &[u8],
        id: &str,
    ) -> Result<TantivyDocument, ElasticError> {
        let add = |mapping: &mut Mapping, missing: &[Missing]| {
            missing.iter().try_for_each(|one| mapping.add_dynamic(one))
        };
        let mut missing = Vec::new();
        for _ in 0..MAX_READS {
            let mapping = self.mapping();
            let read = document::read(&mapping, source, id)?;
            if read.missing.is_empty() {
                return Ok(read.document);
            }
            missing = read.missing;
            // What a document brings stays only if the document does.
            let mut tried = Mapping::clone(&mapping);
            add(&mut tried, &missing)?;
            document::read(&tried, source, id)?;
            self.change_mapping(|mapping| add(mapping, &missing))?;
        }
        let path = missing.first().map_or("", |one| one.path.as_str());
        Err(ElasticError::mapper(format!("Could not dynamically add mapping for field [{path}].")))
    }

    /// Removes the file without which the folder is not one of an index. When it returns, the index is gone after a power cut too: its
    /// name must not come back without its documents.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(crate) fn forget(&self) -> io::Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.disk.remove_file(&self.folder.join(META)) {
            // An attempt before this one came so far.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
        self.disk.sync_folder(&self.folder)?;
        self.is_forgotten.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn keep(&self, mapping: &Mapping) -> io::Result<()> {
        if self.is_forgotten.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the index is removed"));
        }
        let meta = json!({
            "name": self.name,
            "uuid": self.uuid,
            "created_ms": self.created_ms,
            "settings": self.settings().shown,
            "mapping": mapping.to_json(),
            "columns": mapping.columns(),
        });
        let path = self.folder.join(META);
        let draft = self.folder.join("index.json.new");
        durable::replace(&*self.disk, &draft, &path, meta.to_string().as_bytes())
    }
}
