//! One of several front ends over one store, as a Vespa application has several containers: a port
//! with connections, metrics and a queue of its own.

use super::App;
use super::metrics::Metrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// How long the reply to the request to stop has to leave before everything is cut.
const LAST_WORDS: Duration = Duration::from_millis(20);

/// What the handlers of one port share.
pub(crate) struct Container {
    pub(crate) app: Arc<App>,
    /// From 0, in the order of the ports.
    pub(crate) number: usize,
    pub(crate) metrics: Metrics,
    /// Room for connections.
    pub(crate) slots: Arc<Semaphore>,
    /// Operations that were accepted and not answered yet.
    under_way: Arc<AtomicUsize>,
    cut: watch::Sender<bool>,
}

/// The place of an operation among those under way; given back when it is dropped.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Container {
    pub(crate) fn new(app: Arc<App>, number: usize) -> Arc<Self> {
        let slots = Arc::new(Semaphore::new(app.config.max_connections));
        Arc::new(Self {
            app,
            number,
            metrics: Metrics::default(),
            slots,
            under_way: Arc::default(),
            cut: watch::Sender::new(false),
        })
    }

    /// Takes a place for an operation. When the store is busy with as many as it takes and the
    /// queue behind them is full, says why there is none.
    pub(crate) fn admit(&self) -> Result<Place, String> {
        let config = &self.app.config;
        let limit = config.operations_under_way + config.max_throttled;
        let place = Place(Arc::clone(&self.under_way));
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= limit {
            return Err(self.refused());
        }
        if let Some(age_ns) = self.app.store.progress.too_old() {
            let seconds = age_ns as f64 / 1e9;
            self.metrics.rejected.fetch_add(1, Ordering::Relaxed);
            return Err(format!(
                "Rejecting execution due to overload: {seconds:.1} seconds worth of work enqueued"
            ));
        }
        Ok(place)
    }

    /// The text for an operation that finds the queue full; counts it.
    pub(crate) fn refused(&self) -> String {
        self.metrics.rejected.fetch_add(1, Ordering::Relaxed);
        let limit = self.app.config.max_throttled;
        format!("Rejecting execution due to overload: {limit} requests already enqueued")
    }

    /// Operations that were accepted and not answered yet.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Closes the port and cuts all connections, in a moment.
    pub(crate) fn cut_soon(self: &Arc<Self>) {
        let container = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(LAST_WORDS).await;
            container.cut.send_replace(true);
        });
    }

    /// Returns when the container was cut.
    pub(crate) async fn cut(&self) {
        let mut cut = self.cut.subscribe();
        // The sender lives as long as the container.
        let _ = cut.wait_for(|cut| *cut).await;
    }
}
