//! Browsers that follow the run, and what waits for each.

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

/// Most events that wait for one reader; a reader that has missed more is disconnected, and reconnects.
pub const WAITING_MAX: usize = 32;
/// Most readers at once.
pub const READERS_MAX: usize = 256;

/// One reader.
struct Reader {
    /// Unique among readers.
    id: u64,
    /// Number of the last event that it was sent.
    seen: u64,
    events: Sender<Bytes>,
    /// Ends its connection, also when its peer takes nothing any more.
    connection: AbortHandle,
}

/// All readers.
#[derive(Default)]
pub struct Readers {
    all: Vec<Reader>,
    added: u64,
    /// Bodies that are being sent.
    open: Arc<AtomicUsize>,
}

/// The body of one reader: events as they come.
struct Events {
    first: Option<Bytes>,
    events: Receiver<Bytes>,
    open: Arc<AtomicUsize>,
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        self.events.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Readers {
    /// Adds a reader, which is sent `first`, with all up to number `seen`, and then everything that is published; `None` if
    /// there are too many.
    pub fn add(
        &mut self,
        first: Bytes,
        seen: u64,
        connection: AbortHandle,
    ) -> Option<BoxBody<Bytes, Infallible>> {
        self.all.retain(|reader| !reader.events.is_closed());
        if self.all.len() >= READERS_MAX {
            return None;
        }
        let (sender, events) = channel(WAITING_MAX);
        self.added += 1;
        self.all.push(Reader { id: self.added, seen, events: sender, connection });
        self.open.fetch_add(1, Ordering::SeqCst);
        Some(BoxBody::new(Events { first: Some(first), events, open: self.open.clone() }))
    }

    /// The readers that are there now.
    pub fn ids(&self) -> Vec<u64> {
        self.all.iter().map(|reader| reader.id).collect()
    }

    /// Sends an event to a reader that has not been sent it. One that has not taken the earlier ones is disconnected.
    pub fn send(&mut self, id: u64, number: u64, event: &Bytes) {
        let Some(at) = self.all.iter().position(|reader| reader.id == id) else { return };
        let reader = &mut self.all[at];
        if reader.seen >= number {
            return;
        }
        reader.seen = number;
        if reader.events.try_send(event.clone()).is_err() {
            reader.connection.abort();
            self.all.remove(at);
        }
    }

    /// Number of readers.
    pub fn count(&self) -> usize {
        self.all.iter().filter(|reader| !reader.events.is_closed()).count()
    }

    /// Lets the bodies end after what they have been sent, and returns the number of those that have not.
    pub fn close(&mut self) -> Arc<AtomicUsize> {
        self.all.clear();
        self.open.clone()
    }
}
