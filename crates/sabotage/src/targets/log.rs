//! A server's own log: when each request had come, and when its answer was handed to the kernel.

use super::closed_form::quantile;
use std::sync::{Arc, Mutex, PoisonError};

/// One request as the server saw it, ns on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Its last byte had come.
    pub came_ns: u64,
    /// Its answer was handed over.
    pub answered_ns: u64,
    /// True if it was a good answer.
    pub ok: bool,
}

/// A log that a server's threads share.
#[derive(Clone, Debug, Default)]
pub struct Log {
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    /// True if nothing is written down.
    is_blank: bool,
}

impl Log {
    /// A log that stays empty: a server that runs for hours would fill the memory with it.
    #[must_use]
    pub fn blank() -> Self {
        Self { is_blank: true, ..Self::default() }
    }

    /// Writes one exchange down.
    pub fn keep(&self, exchange: Exchange) {
        if self.is_blank {
            return;
        }
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    }

    /// Everything so far.
    #[must_use]
    pub fn all(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Quantiles of the time that the server took for good answers, ms.
    #[must_use]
    pub fn held_ms<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
        let good = self.all().into_iter().filter(|exchange| exchange.ok);
        let mut held: Vec<u64> = good.map(|e| e.answered_ns - e.came_ns).collect();
        held.sort_unstable();
        shares.map(|share| quantile(&held, share) as f64 / 1e6)
    }
}
