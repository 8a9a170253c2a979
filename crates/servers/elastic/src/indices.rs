//! All indices of the server.

use super::error::ElasticError;
use super::index::{Defaults, Index};
use super::mapping::Mapping;
use super::names;
use super::settings::Settings;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plimsoll_core::clock::wall_us;
use plimsoll_disk::durable;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The most indices of one server.
const MAX_INDICES: usize = 1000;

/// The indices by name.
pub(crate) struct Indices {
    root: PathBuf,
    defaults: Defaults,
    by_name: RwLock<BTreeMap<String, Arc<Index>>>,
    /// Held while an index is made or removed.
    changing: Mutex<()>,
    /// Makes new ids different.
    counter: AtomicU64,
}

impl Indices {
    /// Opens the indices of a folder.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub(crate) fn open(root: PathBuf, defaults: Defaults) -> io::Result<Self> {
        let disk = Arc::clone(&defaults.disk);
        durable::create_folders(&*disk, &root)?;
        let mut by_name = BTreeMap::new();
        for path in disk.list(&root)? {
            match Index::open(&path, defaults.clone())? {
                Some(index) => {
                    by_name.insert(index.name().to_owned(), Arc::new(index));
                }
                // It was being made or removed when the server ended.
                None => disk.remove_folder(&path)?,
            }
        }
        Ok(Self {
            root,
            defaults,
            by_name: RwLock::new(by_name),
            changing: Mutex::default(),
            counter: AtomicU64::new(wall_us()),
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Index>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Index>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The indices that a list of names and patterns stands for, each once.
    ///
    /// # Errors
    /// When a plain name is not known, unless that is to be ignored.
    pub(crate) fn resolve(
        &self,
        list: &str,
        ignore_missing: bool,
    ) -> Result<Vec<Arc<Index>>, ElasticError> {
        let mut found: Vec<Arc<Index>> = Vec::new();
        let mut add = |index: Arc<Index>| {
            if !found.iter().any(|known| Arc::ptr_eq(known, &index)) {
                found.push(index);
            }
        };
        for name in list.split(',').filter(|name| !name.is_empty()) {
            if name == "_all" || name.contains('*') {
                let pattern = if name == "_all" { "*" } else { name };
                let all = self.all().into_iter();
                all.filter(|index| names::matches(pattern, index.name())).for_each(&mut add);
            } else if let Some(index) = self.get(name) {
                add(index);
            } else if !ignore_missing {
                return Err(ElasticError::no_index(name));
            }
        }
        Ok(found)
    }

    /// Makes an index.
    ///
    /// # Errors
    /// When there is one of the name, the name is none, or files cannot be written.
    pub(crate) fn create(
        &self,
        name: &str,
        settings: Settings,
        mapping: Mapping,
    ) -> Result<Arc<Index>, ElasticError> {
        names::check(name)?;
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = self.get(name) {
            let uuid = &index.state.uuid;
            let reason = format!("index [{name}/{uuid}] already exists");
            let error = ElasticError::new(400, "resource_already_exists_exception", reason);
            let error = error.with("index_uuid", uuid.clone().into());
            return Err(error.with("index", name.into()));
        }
        if self.by_name.read().unwrap_or_else(PoisonError::into_inner).len() >= MAX_INDICES {
            return Err(ElasticError::argument(format!("at most {MAX_INDICES} indices")));
        }
        let uuid = self.new_id();
        let index = Index::create(&self.root, name, uuid, settings, mapping, self.defaults.clone());
        let index = index.map_err(|error| {
            ElasticError::internal(format!("cannot make the index [{name}]: {error}"))
        })?;
        let index = Arc::new(index);
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        by_name.insert(name.to_owned(), Arc::clone(&index));
        Ok(index)
    }

    /// The index of a name; made when it is missing.
    ///
    /// # Errors
    /// As [`Indices::create`].
    pub(crate) fn get_or_create(&self, name: &str) -> Result<Arc<Index>, ElasticError> {
        if let Some(index) = self.get(name) {
            return Ok(index);
        }
        match self.create(name, Settings::default(), Mapping::default()) {
            // Somebody else was faster.
            Err(error) if error.kind == "resource_already_exists_exception" => {
                self.get(name).ok_or(error)
            }
            made => made,
        }
    }

    /// Removes an index with everything in it. When it returns, the index is gone after a power cut too.
    ///
    /// # Errors
    /// When its files cannot be removed.
    pub(crate) fn remove(&self, index: &Arc<Index>) -> Result<(), ElasticError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.get(index.name()).is_some_and(|known| Arc::ptr_eq(&known, index)) {
            return Ok(());
        }
        // An index that would come back at the next start stays as it is.
        index.state.forget().map_err(|error| {
            ElasticError::internal(format!("cannot remove the index [{}]: {error}", index.name()))
        })?;
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        by_name.remove(index.name());
        drop(by_name);
        index.remove();
        Ok(())
    }

    /// Ends all threads.
    ///
    /// # Errors
    /// When something acknowledged is not on the disk, and what to do then.
    pub(crate) fn stop(&self) -> io::Result<()> {
        let all = self.all();
        for index in &all {
            index.begin_stop();
        }
        let stop = |index: &Arc<Index>| {
            index.stop().map_err(|error| {
                io::Error::other(format!(
                    "acknowledged writes may be missing on the disk: index [{}], {error}; check the \
                     disk of {}, start the server again and repeat the last writes",
                    index.name(),
                    self.root.display()
                ))
            })
        };
        let stopped: Vec<io::Result<()>> = all.iter().map(stop).collect();
        stopped.into_iter().collect()
    }

    /// An id that no document has: the time, a counter and the process.
    pub(crate) fn new_id(&self) -> String {
        let count = self.counter.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [0; 15];
        bytes[..8].copy_from_slice(&wall_us().to_be_bytes());
        // The counter begins at the time of the start, so that two servers differ as well.
        let mixed = count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bytes[8..].copy_from_slice(&mixed.to_be_bytes()[..7]);
        URL_SAFE_NO_PAD.encode(bytes)
    }
}
