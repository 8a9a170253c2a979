//! Sources of connections: the listener, or another thread that accepts for this one.

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// Inbox of connections that another thread has accepted for this one.
#[derive(Debug)]
pub struct Inbox {
    connections: Mutex<Vec<OwnedFd>>,
    /// Readable while connections wait.
    pub wake: OwnedFd,
}

impl Inbox {
    /// An empty inbox.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { connections: Mutex::new(Vec::new()), wake })
    }

    /// Hands over a connection and wakes the thread.
    pub fn push(&self, connection: OwnedFd) {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        // A full counter is readable already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Takes all connections that wait.
    pub fn take(&self) -> Vec<OwnedFd> {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        std::mem::take(&mut *self.connections.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Source of a loop's connections.
#[derive(Debug)]
pub enum Intake {
    /// It accepts, keeps its share and hands the others theirs in turn.
    Listener {
        /// Sockets on which clients connect.
        listener: TcpListener,
        /// The inboxes of the other loops.
        others: Vec<Arc<Inbox>>,
    },
    /// Another loop accepts for it.
    Inbox(Arc<Inbox>),
}

/// Raises the soft limit of open files to the hard one, since each connection is one.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Without the right to do so the old limit stays, and accepting copes with reaching it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
