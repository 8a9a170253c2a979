//! Accepting connections in the targets that run on tokio, within a limit.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The pause after a failure to accept a connection, such as too many open files.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Waits for room, then for a client. The room is free again when the permit is dropped.
pub async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, slot))
}
