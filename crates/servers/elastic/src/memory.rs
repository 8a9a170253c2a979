//! Limits for memory that requests of few bytes can take: long replies, trees of stored sources, drafts of many indices.

use super::error::ElasticError;
use plimsoll_front::{READ_BYTES_MAX, tree_bytes};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Longest reply that has more than one document.
const REPLY_BYTES_MAX: usize = 100 << 20;
/// Shorter replies are not counted while they are made.
const FREE_REPLY_BYTES: usize = 1 << 20;
/// Most memory of all longer ones while they are made and shaped.
const REPLIES_BYTES_MAX: usize = 256 << 20;
/// Longest source of a document.
const SOURCE_BYTES_MAX: usize = 100 << 20;
/// Most memory that the tree of a source takes.
const SOURCE_TREE_BYTES_MAX: usize = 2 * READ_BYTES_MAX;
/// No byte of a text adds more than this to its tree.
const BYTES_PER_BYTE: usize = 1024;
/// Of sources from this length on, one at a time becomes a tree.
const ALONE_FROM_BYTES: usize = 256 << 10;

/// Checks the length of a reply that has grown by another document.
///
/// # Errors
/// When it is too long. One document is never too long.
fn check_reply(bytes: usize, documents: usize) -> Result<(), ElasticError> {
    if bytes <= REPLY_BYTES_MAX || documents < 2 {
        return Ok(());
    }
    Err(ElasticError::argument(format!(
        "the reply would be longer than [{REPLY_BYTES_MAX}] bytes: ask for fewer documents at a time, or for less of their source"
    )))
}

/// Bytes of the long replies that are made or shaped now.
#[derive(Debug, Default)]
pub(crate) struct Replies(AtomicUsize);

/// A reply among them that grows; counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Growing {
    all: Arc<Replies>,
    bytes: usize,
}

impl Growing {
    /// An empty reply.
    pub(crate) fn new(all: &Arc<Replies>) -> Self {
        Self { all: Arc::clone(all), bytes: 0 }
    }

    /// The reply has this many bytes now, and this many documents.
    ///
    /// # Errors
    /// When it is too long, or takes too much memory with the others.
    pub(crate) fn check(&mut self, bytes: usize, documents: usize) -> Result<(), ElasticError> {
        check_reply(bytes, documents)?;
        if bytes < FREE_REPLY_BYTES {
            return Ok(());
        }
        let more = bytes.saturating_sub(self.bytes);
        self.bytes += more;
        let all = self.all.0.fetch_add(more, Ordering::AcqRel) + more;
        if all > REPLIES_BYTES_MAX && all > self.bytes {
            return Err(ElasticError::new(
                429,
                "circuit_breaking_exception",
                format!(
                    "the replies of the requests in progress would take [{all}] bytes, and the limit is [{REPLIES_BYTES_MAX}]; send it again"
                ),
            ));
        }
        Ok(())
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// Checks the source of a document, which requests may ask to be read as a tree.
///
/// # Errors
/// When it is too long, or has too many values.
pub(crate) fn check_source(source: &[u8]) -> Result<(), ElasticError> {
    // Whatever they are, so few bytes do not become too many values.
    if source.len() < SOURCE_TREE_BYTES_MAX / BYTES_PER_BYTE {
        return Ok(());
    }
    if source.len() > SOURCE_BYTES_MAX {
        return Err(ElasticError::too_long(format!(
            "the document has [{}] bytes, and the limit is [{SOURCE_BYTES_MAX}]",
            source.len()
        )));
    }
    let mib = tree_bytes(source) >> 20;
    let most = SOURCE_TREE_BYTES_MAX >> 20;
    if mib > most {
        return Err(ElasticError::too_long(format!(
            "the values of the document take up to {mib} MiB of memory, and the limit is {most} MiB; make several documents of it"
        )));
    }
    Ok(())
}

/// Checks a reply that has to be read as a tree to be shown in another shape.
///
/// # Errors
/// When its tree takes too much memory.
pub(crate) fn check_shaped(reply: &[u8]) -> Result<(), ElasticError> {
    if tree_bytes(reply) <= SOURCE_TREE_BYTES_MAX {
        return Ok(());
    }
    Err(ElasticError::argument(
        "the reply is too long for [filter_path] and [pretty]: ask for fewer documents at a time, or without them",
    ))
}

/// Waits until no other thread has the tree of a long text in memory.
pub(crate) fn alone(text_bytes: usize) -> Option<MutexGuard<'static, ()>> {
    static LARGE: Mutex<()> = Mutex::new(());
    (text_bytes >= ALONE_FROM_BYTES).then(|| LARGE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Memory for the unfinished segments of all indices. Beyond it each one is finished at once; from half of it on, those that do not
/// grow are.
const DRAFTS_BYTES_MAX: usize = 384 << 20;

/// Bytes of the unfinished segments of all indices.
#[derive(Debug, Default)]
pub(crate) struct Drafts(AtomicUsize);

/// The unfinished segment of one shard among them.
pub(crate) struct DraftShare {
    all: Arc<Drafts>,
    bytes: usize,
    own_max: usize,
}

impl DraftShare {
    /// The share of a segment that may have this many bytes.
    pub(crate) fn new(all: &Arc<Drafts>, own_max: usize) -> Self {
        Self { all: Arc::clone(all), bytes: 0, own_max }
    }

    /// Bytes that the segment may have.
    pub(crate) fn own_max(&self) -> usize {
        self.own_max
    }

    /// The segment has this many bytes now. Returns true if it has to be finished.
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        let before = self.all.0.fetch_add(bytes, Ordering::AcqRel);
        self.all.0.fetch_sub(self.bytes, Ordering::AcqRel);
        let all = before.saturating_add(bytes).saturating_sub(self.bytes);
        self.bytes = bytes;
        bytes >= self.own_max || all > DRAFTS_BYTES_MAX
    }

    /// Returns true if the segment has to be finished because it does not grow.
    pub(crate) fn is_in_the_way(&self) -> bool {
        self.bytes > 0 && self.all.0.load(Ordering::Acquire) > DRAFTS_BYTES_MAX / 2
    }
}

impl Drop for DraftShare {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_may_be_as_long_as_its_one_document() {
        assert!(check_reply(REPLY_BYTES_MAX, 50).is_ok() && check_reply(usize::MAX, 1).is_ok());
        let error = check_reply(REPLY_BYTES_MAX + 1, 2).unwrap_err();
        assert!(error.status.as_u16() == 400 && error.reason.contains("fewer documents"));
    }

    #[test]
    fn replies_are_bounded_together_while_they_are_made() {
        let all = Arc::default();
        let mut replies: Vec<Growing> = (0..4).map(|_| Growing::new(&all)).collect();
        for reply in &mut replies[..2] {
            assert!(reply.check(50 << 20, 1).is_ok() && reply.check(100 << 20, 2).is_ok());
        }
        let error = replies[2].check(60 << 20, 2).unwrap_err();
        assert!(error.status.as_u16() == 429 && error.reason.ends_with("send it again"));
        assert!(replies[3].check(FREE_REPLY_BYTES - 1, 100).is_ok(), "short ones are not counted");
        replies.drain(..3);
        assert_eq!(all.0.load(Ordering::Acquire), 0);
        assert!(replies[0].check(300 << 20, 1).is_ok(), "one alone may be as long as its document");
    }

    #[test]
    fn sources_are_bounded_by_length_and_by_values() {
        assert!(check_source(&vec![b'a'; SOURCE_BYTES_MAX]).is_ok());
        for (source, reason) in [
            (vec![b'a'; SOURCE_BYTES_MAX + 1], "bytes"),
            (vec![b','; 2_000_000], "several documents"),
        ] {
            let error = check_source(&source).unwrap_err();
            assert!(error.status.as_u16() == 413 && error.reason.contains(reason), "{error:?}");
        }
        let short = vec![b'{'; SOURCE_TREE_BYTES_MAX / BYTES_PER_BYTE];
        assert!(tree_bytes(&short) < SOURCE_TREE_BYTES_MAX && check_source(&short).is_ok());
        assert!(check_shaped(&vec![b','; 2_000_000]).is_err() && check_shaped(b"{}").is_ok());
    }

    #[test]
    fn drafts_of_many_shards_are_finished_early() {
        let all = Arc::new(Drafts::default());
        let quarter = DRAFTS_BYTES_MAX / 4;
        let mut shares: Vec<_> = (0..5).map(|_| DraftShare::new(&all, quarter + 1)).collect();
        assert!(shares[0].set(quarter + 1) && !shares[0].set(quarter));
        assert!(!shares[1].set(quarter) && !shares[1].is_in_the_way());
        assert!(!shares[2].set(quarter) && shares[0].is_in_the_way());
        assert!(!shares[3].set(quarter) && shares[4].set(1));
        assert!(!shares[4].set(0) && !shares[4].is_in_the_way());
        drop(shares);
        assert_eq!(all.0.load(Ordering::Acquire), 0);
    }

    #[test]
    fn short_texts_wait_for_nobody() {
        let _long = alone(ALONE_FROM_BYTES);
        assert!(alone(ALONE_FROM_BYTES - 1).is_none());
    }
}
