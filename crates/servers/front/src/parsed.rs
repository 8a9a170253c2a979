//! Memory for what is read from the bodies of requests. A list of digits in JSON, of two bytes each, becomes many times as much when
//! it is read, so that what is read is bounded besides the bodies themselves.

use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes for what is read from large bodies, and for what is read from the others: a client with small requests is not refused
/// because others send large ones.
const LARGE_BYTES: usize = 128 << 20;
const SMALL_BYTES: usize = 192 << 20;
/// The values of a large body take more than this.
const LARGE_FROM: usize = 256 << 10;
/// Most that is read from one body.
pub const READ_BYTES_MAX: usize = 128 << 20;
/// Steps in which room is taken: what takes less than one is free.
const STEP_BYTES: usize = 4096;

/// Bytes of a member of an object besides its value: its name, its hash, its slot.
const MEMBER_BYTES: usize = 40;
/// Lists and objects grow by doubling, from four elements on.
const FIRST: usize = 4;
/// Bytes of a value of a document that is read for an index, its list included.
const INDEXED_BYTES: usize = 40;

/// Most bytes that the tree of a JSON text takes. Commas in texts count as well: a text of letters has few of them.
///
/// ```
/// use plimsoll_front::tree_bytes;
///
/// assert!(tree_bytes(b"[1,1,1,1,1,1,1,1]") >= 8 * std::mem::size_of::<serde_json::Value>());
/// ```
#[must_use]
pub fn tree_bytes(json: &[u8]) -> usize {
    let value = size_of::<Value>();
    let lists = count(json, b'[') * (FIRST * value + 16);
    let objects = count(json, b'{') * (FIRST * (value + MEMBER_BYTES) + 96);
    lists + objects + count(json, b',') * 2 * value + count(json, b':') * 2 * MEMBER_BYTES
}

/// Most bytes that the values of a document take on their way into an index, besides its text.
#[must_use]
pub fn indexed_bytes(json: &[u8]) -> usize {
    (count(json, b'[') + count(json, b'{') + count(json, b',')) * INDEXED_BYTES
}

/// One needle at a time, which the compiler turns into vector instructions.
fn count(bytes: &[u8], needle: u8) -> usize {
    bytes
        .chunks(192)
        .map(|chunk| usize::from(chunk.iter().map(|b| u8::from(*b == needle)).sum::<u8>()))
        .sum()
}

/// Reason why something is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// It takes more than is ever read from one body.
    TooMuch(usize),
    /// Others leave no room for it.
    Busy(usize),
}

impl std::fmt::Display for NoRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: usize| bytes.div_ceil(1 << 20);
        match *self {
            Self::TooMuch(bytes) => write!(
                f,
                "the values of this request take up to {} MiB of memory, and the limit is {} MiB; send it in several requests",
                mib(bytes),
                mib(READ_BYTES_MAX)
            ),
            Self::Busy(bytes) => write!(
                f,
                "the values of this request take up to {} MiB of memory, which the requests in progress do not leave; send it again",
                mib(bytes)
            ),
        }
    }
}

/// The memory of all ports together.
pub struct ParsedRoom {
    large: Arc<Semaphore>,
    small: Arc<Semaphore>,
}

impl Default for ParsedRoom {
    fn default() -> Self {
        let room = |bytes: usize| Arc::new(Semaphore::new(bytes / STEP_BYTES));
        Self { large: room(LARGE_BYTES), small: room(SMALL_BYTES) }
    }
}

impl ParsedRoom {
    /// Room for this many bytes, until the share is dropped; `None` where they are few.
    ///
    /// # Errors
    /// When there is none now, or never.
    pub fn take(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, NoRoom> {
        if bytes > READ_BYTES_MAX {
            return Err(NoRoom::TooMuch(bytes));
        }
        let steps = bytes / STEP_BYTES;
        if steps == 0 {
            return Ok(None);
        }
        let room = if bytes > LARGE_FROM { &self.large } else { &self.small };
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let share = Arc::clone(room).try_acquire_many_owned(steps);
        share.map(Some).map_err(|_| NoRoom::Busy(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Bytes of a tree: its values, names, and the room that its lists and objects have taken.
    fn measured(value: &Value) -> usize {
        match value {
            Value::Array(list) => {
                list.capacity() * size_of::<Value>() + list.iter().map(measured).sum::<usize>()
            }
            Value::Object(object) => {
                let members = object.len().next_power_of_two().max(FIRST);
                let inner: usize = object.values().map(measured).sum();
                members * (size_of::<Value>() + MEMBER_BYTES) + inner
            }
            _ => 0,
        }
    }

    #[test]
    fn no_tree_takes_more_than_its_estimate() {
        let wide: serde_json::Map<String, Value> =
            (0..1_000).map(|n| (format!("m{n}"), json!(n))).collect();
        for text in [
            format!("[{}1]", "1,".repeat(10_000)),
            format!("[{}1]", "[1],".repeat(10_000)),
            format!("[{}1]", "[],".repeat(10_000)),
            format!("[{}1]", "{\"\":1},".repeat(10_000)),
            "[".repeat(100) + &"]".repeat(100),
            json!(wide).to_string(),
            json!({"a": {"b": [1, 2, 3], "c": "x,y"}, "d": null}).to_string(),
        ] {
            let tree: Value = serde_json::from_str(&text).unwrap();
            let (most, really) = (tree_bytes(text.as_bytes()), measured(&tree));
            assert!(most >= really, "{most} < {really}: {}", &text[..20]);
            assert!(most <= 8 * really + 1_000, "{most} for {really}: {}", &text[..20]);
        }
    }

    #[test]
    fn the_documented_figures_are_those_of_the_estimate() {
        // docs/elasticsearch.md, docs/search-target.md
        assert_eq!([tree_bytes(b","), tree_bytes(b"["), tree_bytes(b"{")], [144, 304, 544]);
    }

    #[test]
    fn needles_are_counted_over_any_length() {
        for length in [0, 1, 191, 192, 193, 100_000] {
            assert_eq!(count(&vec![b','; length], b','), length);
            assert_eq!(count(&vec![b'a'; length], b','), 0);
        }
        assert_eq!(indexed_bytes(b"{\"n\":[1,2]}"), 3 * INDEXED_BYTES);
    }

    #[test]
    fn large_requests_leave_room_for_small_ones() {
        let room = ParsedRoom::default();
        assert_eq!(room.take(READ_BYTES_MAX + 1).unwrap_err(), NoRoom::TooMuch(READ_BYTES_MAX + 1));
        let large = room.take(READ_BYTES_MAX).unwrap();
        assert_eq!(room.take(READ_BYTES_MAX).unwrap_err(), NoRoom::Busy(READ_BYTES_MAX));
        assert!(room.take(LARGE_FROM).unwrap().is_some());
        assert!(room.take(STEP_BYTES - 1).unwrap().is_none());
        drop(large);
        assert!(room.take(READ_BYTES_MAX).is_ok());
    }

    #[test]
    fn the_reasons_say_how_much_and_what_to_do() {
        let (never, now) = (NoRoom::TooMuch(300 << 20).to_string(), NoRoom::Busy(1).to_string());
        assert!(never.contains("300 MiB") && never.ends_with("in several requests"), "{never}");
        assert!(now.contains("1 MiB") && now.ends_with("send it again"), "{now}");
    }
}
