//! Accepting connections in the targets that run on tokio, within a limit.

use crate::room::{Room, Seat};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// The pause after a failure to accept a connection, such as too many open files.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Waits for a client, then for room. The room is free again when the seat is dropped.
///
/// # Errors
/// When the system gives no connection, such as with too many open files.
pub async fn accept(listener: &TcpListener, room: &Arc<Room>) -> io::Result<(TcpStream, Seat)> {
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, room.seat().await))
}
