//! A connection whose writes have a limit of time, for servers that have none of their own.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Longest time that a client may take nothing at all of what it asked for before its connection is closed.
pub const WRITE: Duration = Duration::from_secs(10);

/// A connection that breaks when its other side takes no byte for a while.
pub struct WriteLimited<S> {
    stream: S,
    limit: Duration,
    /// Runs out at the limit; set again whenever the other side has taken something.
    patience: Pin<Box<Sleep>>,
    /// True if a write waits.
    waits: bool,
}

impl<S> WriteLimited<S> {
    /// Wraps a stream whose writes may wait `limit`.
    pub fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, patience: Box::pin(sleep(limit)), waits: false }
    }

    /// Returns the result of a write, or a timeout.
    fn limited<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        if !std::mem::replace(&mut self.waits, true) {
            self.patience.set(sleep(self.limit));
        }
        ready!(self.patience.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteLimited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteLimited<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.limited(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.limited(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limited(ended, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::clock::now_ns;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[test]
    fn only_a_reader_that_takes_nothing_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let limit = Duration::from_millis(150);
            let (near, mut far) = duplex(4);
            let mut slow = WriteLimited::new(near, limit);
            let read = async {
                let mut got = 0;
                while got < 12 {
                    // Slow, but never as slow as the limit.
                    sleep(Duration::from_millis(60)).await;
                    got += far.read(&mut [0; 4]).await.unwrap();
                }
                far
            };
            let (written, far) = tokio::join!(slow.write_all(&[7; 16]), read);
            written.unwrap();
            // Four bytes are on their way and nobody takes them.
            let began_ns = now_ns();
            let error = slow.write_all(&[7; 4]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(now_ns() - began_ns >= limit.as_nanos() as u64);
            drop(far);
        });
    }
}
