//! Room for bulk requests. A line of a few bytes becomes an operation of about 2 kB with its result and its part of the reply, and a
//! list of digits many times as much as its text, so that lines and values of all requests in progress are bounded besides their bytes.

use super::error::ElasticError;
use plimsoll_front::{indexed_bytes, tree_bytes};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The most lines of a bulk request, and of all that are carried out at a time.
const LINES_MAX: usize = 200_000;

/// Memory for the values of all requests, in steps, and the most that one of them takes: the values of a larger request are read when
/// it is their turn.
const VALUES_STEPS: usize = 192;
const STEP_BYTES: usize = 1 << 20;
const STEPS_MAX: usize = 64;

/// Longest time that a request waits for room.
const PATIENCE: Duration = Duration::from_secs(60);

/// The lines and values for which there is room.
pub(crate) struct BulkRoom {
    lines: Arc<Semaphore>,
    values: Arc<Semaphore>,
}

/// The share of one request; returned when the last holder drops it.
pub(crate) type Room = Arc<[OwnedSemaphorePermit; 2]>;

impl Default for BulkRoom {
    fn default() -> Self {
        let room = |permits| Arc::new(Semaphore::new(permits));
        Self { lines: room(LINES_MAX), values: room(VALUES_STEPS) }
    }
}

/// Memory of the values of a body, in steps. An update becomes a tree before it becomes a document.
fn steps(body: &[u8]) -> usize {
    let updates = memchr::memmem::find(body, b"\"update\"").is_some();
    let bytes = if updates { tree_bytes(body) } else { indexed_bytes(body) };
    bytes / STEP_BYTES
}

impl BulkRoom {
    /// Waits until the lines and the values of a body have room. The first request that came is the first to have room. Returns
    /// true with it if its values have to be read when it is their turn.
    ///
    /// # Errors
    /// When the body has too many lines at all, or others leave no room for a long time.
    pub(crate) async fn enter(&self, body: &[u8]) -> Result<(Room, bool), ElasticError> {
        let lines = memchr::memchr_iter(b'\n', body).count();
        if lines > LINES_MAX {
            let reason = format!(
                "a bulk request can have at most {LINES_MAX} lines, and this one has {lines}; send it in several requests"
            );
            return Err(ElasticError::too_long(reason));
        }
        let steps = steps(body);
        let permits = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let entering = async {
            let lines = Arc::clone(&self.lines).acquire_many_owned(permits(lines)).await?;
            let values = Arc::clone(&self.values).acquire_many_owned(permits(steps.min(STEPS_MAX)));
            Ok::<_, AcquireError>([lines, values.await?])
        };
        match tokio::time::timeout(PATIENCE, entering).await {
            Ok(Ok(room)) => Ok((Arc::new(room), steps > STEPS_MAX)),
            _ => Err(ElasticError::rejected(format!(
                "rejected execution of a bulk request of {lines} lines: others leave no room for them; send it again"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    fn lines(count: usize) -> Vec<u8> {
        vec![b'\n'; count]
    }

    #[tokio::test]
    async fn a_request_waits_until_those_before_it_have_left_room() {
        let room = BulkRoom::default();
        let first = room.enter(&lines(LINES_MAX - 10)).await;
        let (first, later) = first.unwrap_or_else(|_| panic!("no room"));
        assert!(!later);
        let small = room.enter(&lines(10)).await;
        assert!(small.is_ok());
        let mut waiting = Box::pin(room.enter(b"{}\n"));
        assert!(matches!(look(&mut waiting).await, Poll::Pending));
        // A thread that still works for the request holds a share too.
        let at_work = Arc::clone(&first);
        drop(first);
        assert!(matches!(look(&mut waiting).await, Poll::Pending));
        drop(at_work);
        assert!(matches!(look(&mut waiting).await, Poll::Ready(Ok(_))));
    }

    #[tokio::test]
    async fn a_request_that_never_fits_is_refused_at_once() {
        let error = BulkRoom::default().enter(&lines(LINES_MAX + 1)).await.err().unwrap();
        assert_eq!(error.status.as_u16(), 413);
        assert!(error.reason.contains("200001; send it in several"), "{}", error.reason);
        assert!(BulkRoom::default().enter(&lines(LINES_MAX)).await.is_ok());
    }

    #[tokio::test]
    async fn values_of_large_requests_are_read_later_and_take_a_third_of_the_room() {
        let room = BulkRoom::default();
        let digits =
            |count: usize| format!("{{\"index\":{{}}}}\n{{\"n\":[{}1]}}\n", "1,".repeat(count));
        let mut entered = Vec::new();
        for _ in 0..3 {
            let (share, later) = room.enter(digits(2_000_000).as_bytes()).await.ok().unwrap();
            assert!(later);
            entered.push(share);
        }
        let (few, many) = (digits(1_000), digits(100_000));
        let (_share, later) = room.enter(few.as_bytes()).await.ok().unwrap();
        assert!(!later);
        let mut waiting = Box::pin(room.enter(many.as_bytes()));
        assert!(matches!(look(&mut waiting).await, Poll::Pending));
        entered.pop();
        assert!(matches!(look(&mut waiting).await, Poll::Ready(Ok((_, false)))));
        // An update becomes a tree first.
        let update = digits(600_000).replace("index", "update");
        assert!(steps(update.as_bytes()) > 2 * steps(digits(600_000).as_bytes()));
    }

    /// One look at a future.
    async fn look<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        std::future::poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut *future).poll(context)))
            .await
    }
}
