//! The hub: it listens on a socket, and passes what is published by one connection to the subscriptions of all.

use super::frame::{Frame, delivered};
use super::outbox::Outbox;
use crate::bus::Message;
use crate::in_process::{InProcess, Leaving};
use crate::queue::{Bounds, Receiver};
use std::collections::HashMap;
use std::fs::Permissions;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most connections at one time.
const CONNECTIONS_MAX: usize = 1024;
/// Most subscriptions of a connection.
const SUBSCRIPTIONS_MAX: usize = 65_536;
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(20);

/// A bus between this process and others of the same machine, over a Unix socket. Every process that can open the socket can use the
/// bus, so its folder has to be the user's own. Dropping the hub ends all connections.
pub struct Hub {
    path: PathBuf,
    bus: InProcess,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// The connections, and whether there will be more.
#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    peers: Mutex<Vec<Peer>>,
}

struct Peer {
    stream: UnixStream,
    outbox: Arc<Outbox>,
    thread: JoinHandle<()>,
}

impl Hub {
    /// Listens on a socket at this path. `bounds.bytes` is the limit of what waits for a connection that does not read; what does
    /// not fit is lost for it, and counted.
    ///
    /// # Errors
    /// When there is no socket to be made at this path.
    pub fn listen(path: &Path, bounds: Bounds) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        let bus = InProcess::with_bounds(bounds);
        let shared = Arc::new(Shared::default());
        let (own, own_bus) = (shared.clone(), bus.clone());
        let accept = move || own.accept(&listener, &own_bus, bounds);
        let acceptor = std::thread::Builder::new().name("bus".to_owned()).spawn(accept)?;
        Ok(Self { path: path.to_owned(), bus, shared, acceptor: Some(acceptor) })
    }

    /// A connection of this process, which needs no socket.
    #[must_use]
    pub fn connection(&self) -> InProcess {
        self.bus.clone()
    }

    /// Number of connections of other processes.
    #[cfg(test)]
    pub(super) fn peers(&self) -> usize {
        self.shared.peers().iter().filter(|peer| !peer.thread.is_finished()).count()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let is_woken = UnixStream::connect(&self.path).is_ok();
        let _ = std::fs::remove_file(&self.path);
        if let Some(acceptor) = self.acceptor.take()
            && is_woken
        {
            let _ = acceptor.join();
        }
        let peers = std::mem::take(&mut *self.shared.peers());
        for peer in &peers {
            // The thread that writes goes on to the last frame, and then the reader of the other side finds the end.
            peer.outbox.close();
            let _ = peer.stream.shutdown(Shutdown::Read);
        }
        for peer in peers {
            let _ = peer.thread.join();
        }
    }
}

impl Shared {
    fn peers(&self) -> std::sync::MutexGuard<'_, Vec<Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(&self, listener: &UnixListener, bus: &InProcess, bounds: Bounds) {
        for stream in listener.incoming() {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let mut peers = self.peers();
            peers.retain(|peer| !peer.thread.is_finished());
            // One that cannot be served is closed, and finds that out.
            let peer = match stream {
                Ok(stream) if peers.len() < CONNECTIONS_MAX => serve(stream, bus, bounds),
                Ok(_) => continue,
                Err(error) => Err(error),
            };
            match peer {
                Ok(peer) => peers.push(peer),
                Err(_) => {
                    drop(peers);
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }
}

/// Starts the threads of a connection: one reads, one writes.
fn serve(stream: UnixStream, bus: &InProcess, bounds: Bounds) -> io::Result<Peer> {
    let outbox = Outbox::new(bounds.bytes);
    let (for_reader, for_writer) = (stream.try_clone()?, stream.try_clone()?);
    let (own, bus) = (outbox.clone(), bus.clone());
    let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
    let for_thread = outbox.clone();
    let writer = named("bus-out").spawn(move || for_thread.write_to(&for_writer))?;
    let thread = named("bus-in").spawn(move || {
        // Bytes that are no frame end the connection, as its end does.
        let _ = read_from(&for_reader, &bus, &own);
        own.close();
        let _ = for_reader.shutdown(Shutdown::Read);
        let _ = writer.join();
    })?;
    Ok(Peer { stream, outbox, thread })
}

/// Carries out what a client wants, until it is gone or sends something invalid.
fn read_from(stream: &UnixStream, bus: &InProcess, outbox: &Arc<Outbox>) -> io::Result<()> {
    let wrong = |_| io::Error::from(io::ErrorKind::InvalidData);
    let mut subscriptions: HashMap<u64, Leaving> = HashMap::new();
    let mut reader = BufReader::with_capacity(64 * 1024, stream);
    while let Some(frame) = Frame::read(&mut reader)? {
        match frame {
            Frame::Publish(message) => {
                crate::bus::Bus::publish(bus, &message.subject, &message.payload).map_err(wrong)?;
            }
            Frame::Subscribe { id, subject } if subscriptions.len() < SUBSCRIPTIONS_MAX => {
                let remote = Remote { id, outbox: outbox.clone() };
                let end = bus.attach(&subject, Arc::new(remote)).map_err(wrong)?;
                subscriptions.insert(id, end);
            }
            Frame::Unsubscribe { id } => {
                subscriptions.remove(&id);
                outbox.forget(id);
            }
            Frame::Flush { number } => outbox.answer(number),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Ok(())
}

/// A subscription of another process.
struct Remote {
    id: u64,
    outbox: Arc<Outbox>,
}

impl Receiver for Remote {
    fn take(&self, message: &Message) {
        self.outbox.offer(self.id, delivered(self.id, message));
    }
}
