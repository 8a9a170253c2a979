//! One of several doors to the same data, as a Vespa application has several containers: a port with connections, counters
//! and a queue of its own.

use crate::metrics::Metrics;
use plimsoll_serving::room::Room;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Time that the reply to the request to stop has to leave before everything is cut.
const LAST_WORDS: Duration = Duration::from_millis(20);

/// State that the handlers of one port share.
pub struct Port {
    /// From 0, in the order of the ports.
    pub number: usize,
    /// Counts of its replies.
    pub metrics: Metrics,
    /// Room for connections.
    pub(crate) room: Arc<Room>,
    /// Operations that were accepted and not answered yet.
    under_way: Arc<AtomicUsize>,
    cut: watch::Sender<bool>,
}

/// The slot of an operation in flight; returned when it is dropped.
pub struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Port {
    /// A port with room for this many connections.
    #[must_use]
    pub fn new(number: usize, max_connections: usize) -> Arc<Self> {
        Arc::new(Self {
            number,
            metrics: Metrics::default(),
            room: Room::new(max_connections),
            under_way: Arc::default(),
            cut: watch::Sender::new(false),
        })
    }

    /// Takes a slot for an operation, unless `limit` of them are in flight.
    #[must_use]
    pub fn enter(&self, limit: usize) -> Option<Place> {
        let place = Place(Arc::clone(&self.under_way));
        (self.under_way.fetch_add(1, Ordering::Relaxed) < limit).then_some(place)
    }

    /// Counts a request that a full queue refused.
    pub fn count_rejected(&self) {
        self.metrics.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Operations that were accepted and not answered yet.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Closes the port and cuts all connections, in a moment.
    pub fn cut_soon(self: &Arc<Self>) {
        let port = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(LAST_WORDS).await;
            port.cut.send_replace(true);
        });
    }

    /// Returns when the port was cut.
    pub(crate) async fn cut(&self) {
        let mut cut = self.cut.subscribe();
        // The sender lives as long as the port.
        let _ = cut.wait_for(|cut| *cut).await;
    }
}
