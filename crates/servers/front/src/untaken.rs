//! Memory for replies that clients have not taken. A client of HTTP/2 that never opens its window asks for a thousand long
//! replies on each connection and takes none: all replies together are bounded, and the connection that holds most of them is
//! closed when they are too many.

use crate::reply::{self, Reply, ReplyBody};
use hyper::body::Bytes;
use hyper::{StatusCode, Version};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Notify;

/// Bytes of untaken replies above which the connection that holds most of them is closed.
pub const UNTAKEN_BYTES_MAX: usize = 256 << 20;
/// Replies of fewer bytes over HTTP/1.1 are not counted: the system takes them at once, one after the other.
const FREE_BYTES: usize = 4 << 10;
/// Memory of a stream of HTTP/2 whose reply waits for its window: its state, its head and its task.
const STREAM_BYTES: usize = 8 << 10;

/// Untaken replies of all connections.
#[derive(Default)]
pub struct Untaken {
    bytes: AtomicUsize,
    readers: Mutex<Vec<Weak<Reader>>>,
}

/// Untaken replies of one connection.
#[derive(Default)]
pub struct Reader {
    bytes: AtomicUsize,
    must_go: AtomicBool,
    going: Notify,
}

impl Reader {
    /// Returns when the connection has to go.
    pub async fn sent_away(&self) {
        while !self.must_go.load(Ordering::Acquire) {
            self.going.notified().await;
        }
    }
}

/// The bytes of a reply, counted until the last of them is dropped.
struct Counted {
    bytes: Bytes,
    /// The bytes, and the memory of their stream.
    memory: usize,
    reader: Arc<Reader>,
    all: Arc<Untaken>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.reader.bytes.fetch_sub(self.memory, Ordering::AcqRel);
        self.all.bytes.fetch_sub(self.memory, Ordering::AcqRel);
    }
}

impl Untaken {
    /// A new connection.
    pub fn reader(&self) -> Arc<Reader> {
        let reader = Arc::new(Reader::default());
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() == readers.capacity() {
            readers.retain(|one| one.strong_count() > 0);
        }
        readers.push(Arc::downgrade(&reader));
        reader
    }

    /// Counts a reply until its connection has taken it. If there are far too many bytes already, it becomes a short one.
    pub fn count(self: &Arc<Self>, reply: &mut Reply, reader: &Arc<Reader>, version: Version) {
        let ReplyBody::Whole(Some(bytes)) = reply.body_mut() else { return };
        let is_stream = version == Version::HTTP_2;
        if bytes.is_empty() || (bytes.len() < FREE_BYTES && !is_stream) {
            return;
        }
        let memory = bytes.len() + if is_stream { STREAM_BYTES } else { 0 };
        let before = self.bytes.fetch_add(memory, Ordering::AcqRel);
        reader.bytes.fetch_add(memory, Ordering::AcqRel);
        let bytes = std::mem::take(bytes);
        let counted = Counted { bytes, memory, reader: Arc::clone(reader), all: Arc::clone(self) };
        if before + memory > UNTAKEN_BYTES_MAX {
            self.send_largest_away();
        }
        if before + memory > 2 * UNTAKEN_BYTES_MAX {
            let text =
                "too many replies wait for clients that do not read them\n".as_bytes().to_vec();
            *reply = reply::json(StatusCode::SERVICE_UNAVAILABLE, "text/plain", text);
        } else {
            *reply.body_mut() = ReplyBody::Whole(Some(Bytes::from_owner(counted)));
        }
    }

    fn send_largest_away(&self) {
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let held = |one: &Arc<Reader>| one.bytes.load(Ordering::Acquire);
        let (going, open): (Vec<_>, Vec<_>) = readers
            .iter()
            .filter_map(Weak::upgrade)
            .partition(|one| one.must_go.load(Ordering::Acquire));
        // Those that go return their memory in a moment; nobody else has to go for it.
        let returning: usize = going.iter().map(held).sum();
        if self.bytes.load(Ordering::Acquire).saturating_sub(returning) <= UNTAKEN_BYTES_MAX {
            return;
        }
        if let Some(largest) = open.into_iter().max_by_key(held) {
            largest.must_go.store(true, Ordering::Release);
            largest.going.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(bytes: usize) -> Reply {
        reply::json(StatusCode::OK, "text/plain", vec![b'x'; bytes])
    }

    fn goes(reader: &Reader) -> bool {
        reader.must_go.load(Ordering::Acquire)
    }

    #[test]
    fn the_connection_with_most_untaken_bytes_goes_and_the_others_stay() {
        let all = Arc::new(Untaken::default());
        let (greedy, honest) = (all.reader(), all.reader());
        let mut kept = Vec::new();
        for _ in 0..4 {
            let mut reply = long(UNTAKEN_BYTES_MAX / 4);
            all.count(&mut reply, &greedy, Version::HTTP_11);
            kept.push(reply);
        }
        assert!(!goes(&greedy));
        let mut reply = long(100_000);
        all.count(&mut reply, &honest, Version::HTTP_11);
        assert_eq!(reply.status(), StatusCode::OK);
        assert!(goes(&greedy) && !goes(&honest));
        // Its connection is closed, and everything it held with it.
        drop(kept);
        assert_eq!(all.bytes.load(Ordering::Acquire), 100_000);
        drop(reply);
        assert_eq!(all.bytes.load(Ordering::Acquire), 0);
    }

    #[test]
    fn short_replies_count_over_http2_only_with_their_streams() {
        let all = Arc::new(Untaken::default());
        let (one, other) = (all.reader(), all.reader());
        let mut reply = long(100);
        all.count(&mut reply, &one, Version::HTTP_11);
        assert_eq!(all.bytes.load(Ordering::Acquire), 0);
        let mut kept = Vec::new();
        let streams = UNTAKEN_BYTES_MAX / (STREAM_BYTES + 100);
        for _ in 0..=streams {
            let mut reply = long(100);
            all.count(&mut reply, &one, Version::HTTP_2);
            kept.push(reply);
        }
        assert!(goes(&one));
        // Memory that comes back soon is no reason to close further connections.
        let mut reply = long(100);
        all.count(&mut reply, &other, Version::HTTP_2);
        assert!(!goes(&other));
        drop((kept, reply));
        assert_eq!(all.bytes.load(Ordering::Acquire), 0);
    }

    #[test]
    fn far_above_the_limit_replies_are_short() {
        let all = Arc::new(Untaken::default());
        let reader = all.reader();
        let mut kept = Vec::new();
        let mut statuses = Vec::new();
        for _ in 0..5 {
            let mut reply = long(UNTAKEN_BYTES_MAX / 2);
            all.count(&mut reply, &reader, Version::HTTP_11);
            statuses.push(reply.status().as_u16());
            kept.push(reply);
        }
        assert_eq!(statuses, [200, 200, 200, 200, 503]);
        assert_eq!(all.bytes.load(Ordering::Acquire), 2 * UNTAKEN_BYTES_MAX);
    }

    #[test]
    fn connections_that_are_gone_are_forgotten() {
        let all = Untaken::default();
        for _ in 0..1_000 {
            drop(all.reader());
        }
        assert!(all.readers.lock().unwrap().capacity() <= 8);
    }
}
