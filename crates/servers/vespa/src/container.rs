//! The application as one port serves it, as a Vespa application has several containers.

use crate::App;
use plimsoll_front::{Place, Port};
use std::sync::Arc;

/// State that the handlers of one port share.
#[derive(Clone)]
pub(crate) struct Container {
    pub(crate) app: Arc<App>,
    pub(crate) port: Arc<Port>,
}

impl Container {
    pub(crate) fn new(app: &Arc<App>, port: &Arc<Port>) -> Self {
        Self { app: Arc::clone(app), port: Arc::clone(port) }
    }

    /// Takes a place for an operation. When the store is busy with as many as it takes and the
    /// queue behind them is full, says why there is none.
    pub(crate) fn admit(&self) -> Result<Place, String> {
        let Some(place) = self.port.enter(self.app.config.operations()) else {
            return Err(self.refused());
        };
        if let Some(age_ns) = self.app.store.progress.too_old() {
            let seconds = age_ns as f64 / 1e9;
            self.port.count_rejected();
            return Err(format!(
                "Rejecting execution due to overload: {seconds:.1} seconds worth of work enqueued"
            ));
        }
        Ok(place)
    }

    /// The text for an operation that finds the queue full; counts it.
    pub(crate) fn refused(&self) -> String {
        self.port.count_rejected();
        let limit = self.app.config.max_throttled;
        format!("Rejecting execution due to overload: {limit} requests already enqueued")
    }
}
