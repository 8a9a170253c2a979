//! A socket of one side: bytes that are all there, and then the end. Bytes that are sent are dropped.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes that a peer sends.
pub struct Wire {
    bytes: Vec<u8>,
    at: usize,
}

impl Wire {
    /// A peer that sends these bytes and closes its side.
    pub fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), at: 0 }
    }

    fn take(&mut self, most: usize) -> &[u8] {
        let end = self.bytes.len().min(self.at + most);
        let piece = &self.bytes[self.at..end];
        self.at = end;
        piece
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = out.remaining();
        out.put_slice(self.take(room));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut out: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let room = out.remaining();
        out.put_slice(self.take(room));
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Polls until nothing more comes of it: everything that it waits for is there.
pub fn settle<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    let mut context = Context::from_waker(std::task::Waker::noop());
    for _ in 0..64 {
        if let Poll::Ready(result) = poll(&mut context) {
            return Some(result);
        }
    }
    None
}
