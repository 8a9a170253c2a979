//! Documents that are written and not yet in the index. An index that is slower than the writes would have thousands of them in
//! memory: beyond a number of bytes the writing thread waits.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Bytes of all records that wait. In memory, their values take two to three times as much.
const BACKLOG_BYTES: usize = 64 << 20;

/// The bytes that wait.
#[derive(Default)]
pub(crate) struct Backlog {
    bytes: Mutex<usize>,
    shrunk: Condvar,
}

/// A document that waits, until it is dropped.
pub(crate) struct Waiting {
    backlog: Arc<Backlog>,
    bytes: usize,
}

impl Backlog {
    /// Waits until there is room for a document. A document that is larger than all room has it alone.
    pub(crate) fn enter(self: &Arc<Self>, bytes: usize) -> Waiting {
        let mut held = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        while *held > 0 && *held + bytes > BACKLOG_BYTES {
            held = self.shrunk.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        *held += bytes;
        Waiting { backlog: Arc::clone(self), bytes }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut held = self.backlog.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *held -= self.bytes;
        drop(held);
        self.backlog.shrunk.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn documents_wait_until_those_before_them_have_left_room() {
        let backlog = Arc::new(Backlog::default());
        let large = backlog.enter(2 * BACKLOG_BYTES);
        let (entered, enters) = channel();
        let other = Arc::clone(&backlog);
        let thread = std::thread::spawn(move || {
            for bytes in [BACKLOG_BYTES / 2, BACKLOG_BYTES / 2, 1] {
                entered.send(other.enter(bytes)).unwrap();
            }
        });
        let soon = Duration::from_millis(50);
        assert!(enters.recv_timeout(soon).is_err());
        drop(large);
        let _first = enters.recv().unwrap();
        let second = enters.recv().unwrap();
        assert!(enters.recv_timeout(soon).is_err());
        drop(second);
        let _third = enters.recv().unwrap();
        thread.join().unwrap();
    }
}
