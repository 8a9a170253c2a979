//! Saves how far a visit has come, once that is safe on the disk.

use super::error::VisitError;
use super::state::State;
use super::synced;
use plimsoll_workloads::id_digest::IdDigest;
use plimsoll_workloads::output::Reached;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A state on its way to its file.
pub(super) struct Saving {
    /// The state, but for how far the output has come.
    pub state: State,
    /// The state's file.
    pub path: PathBuf,
    /// The files of the output.
    pub paths: Vec<PathBuf>,
    /// Lengths of them that a state has claimed.
    pub saved_bytes: Arc<Vec<AtomicU64>>,
    /// Number of this state among all states of its visit.
    pub number: u64,
    /// Number of the latest state whose saving was carried out.
    pub last: Arc<Mutex<u64>>,
}

impl Saving {
    /// Has the output synced to the disk and then claims it: a token is saved only after its documents are safe.
    ///
    /// # Errors
    /// The file that cannot be synced or written.
    pub fn carry_out(mut self, reached: Reached, digest: IdDigest) -> Result<(), VisitError> {
        let last = self.last.clone();
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if self.number < *last {
            // A later one was quicker, and claims more.
            return Ok(());
        }
        *last = self.number;
        for (index, (file, length)) in reached.files.iter().zip(&reached.lengths).enumerate() {
            let saved =
                self.saved_bytes.get(index).map_or(0, |saved| saved.load(Ordering::Relaxed));
            if saved == *length {
                continue;
            }
            let Some((file, path)) = file.as_deref().zip(self.paths.get(index)) else { continue };
            let synced = synced::file(file).and_then(|()| match saved {
                0 => synced::folder(path),
                _ => Ok(()),
            });
            synced.map_err(|error| VisitError::File { path: path.clone(), error })?;
        }
        self.state.bytes = reached.lengths;
        self.state.digest.add(digest);
        self.state.write(&self.path)?;
        for (saved, bytes) in self.saved_bytes.iter().zip(&self.state.bytes) {
            saved.store(*bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Runs `work` on a thread of its own, so that a disk that is slow to sync does not hold up what is written meanwhile; here
/// and now where the system gives no thread.
pub(super) fn on_its_own(work: impl FnOnce() + Send + 'static) {
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let own = work.clone();
    let body = move || {
        if let Some(work) = take(&own) {
            work();
        }
    };
    let started = std::thread::Builder::new().name("saver".to_owned()).spawn(body);
    if started.is_err()
        && let Some(work) = take(&work)
    {
        work();
    }
}
