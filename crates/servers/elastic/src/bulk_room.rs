//! Room for bulk requests. A line of a few bytes becomes an operation of about 2 kB with its result and its part of the reply, so that
//! the lines of all requests in progress are bounded besides their bytes.

use super::error::ElasticError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most lines of a bulk request, and of all that are carried out at a time.
const LINES_MAX: usize = 200_000;

/// Longest time that a request waits for room.
const PATIENCE: Duration = Duration::from_secs(60);

/// The lines for which there is room.
pub(crate) struct BulkRoom(Arc<Semaphore>);

/// The share of one request; returned when the last holder drops it.
pub(crate) type Room = Arc<OwnedSemaphorePermit>;

impl Default for BulkRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LINES_MAX)))
    }
}

impl BulkRoom {
    /// Waits until the lines of a body have room. The first request that came is the first to have room.
    ///
    /// # Errors
    /// When the body has too many lines at all, or others leave no room for a long time.
    pub(crate) async fn enter(&self, body: &[u8]) -> Result<Room, ElasticError> {
        let lines = memchr::memchr_iter(b'\n', body).count();
        if lines > LINES_MAX {
            let reason = format!(
                "a bulk request can have at most {LINES_MAX} lines, and this one has {lines}; send it in several requests"
            );
            return Err(ElasticError::new(413, "content_too_long_exception", reason));
        }
        let permits = u32::try_from(lines).unwrap_or(u32::MAX);
        let entering = Arc::clone(&self.0).acquire_many_owned(permits);
        match tokio::time::timeout(PATIENCE, entering).await {
            Ok(Ok(room)) => Ok(Arc::new(room)),
            _ => Err(ElasticError::rejected(format!(
                "rejected execution of a bulk request of {lines} lines: {LINES_MAX} lines are in progress"
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
        let first = room.enter(&lines(LINES_MAX - 10)).await.unwrap_or_else(|_| panic!("no room"));
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

    /// One look at a future.
    async fn look<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        std::future::poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut *future).poll(context)))
            .await
    }
}
