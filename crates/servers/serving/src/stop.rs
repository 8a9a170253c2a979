//! The one way to ask an embedded target to stop.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop, shared between whoever asks and whoever serves.
///
/// A target that waits in `epoll` registers [`Stop::as_fd`], which becomes readable once and stays
/// readable; a target that polls asks [`Stop::is_requested`].
#[derive(Clone, Debug)]
pub struct Stop {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    requested: AtomicBool,
    wake: OwnedFd,
}

impl Stop {
    /// Makes a handle that has not been used yet.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { inner: Arc::new(Inner { requested: AtomicBool::new(false), wake }) })
    }

    /// Asks the target to stop. Safe to call from any thread, any number of times.
    pub fn request(&self) {
        self.inner.requested.store(true, Ordering::Release);
        // The counter cannot overflow in practice, and a full counter is already readable.
        let _ = rustix::io::write(&self.inner.wake, &1u64.to_ne_bytes());
    }

    /// Returns true if a stop was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.inner.requested.load(Ordering::Acquire)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.wake.as_fd()
    }
}
