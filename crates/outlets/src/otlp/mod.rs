//! OTLP over HTTP in JSON: bodies, addresses, and the sender.

mod body;
mod endpoint;
mod post;
mod shape;

pub use body::{Exports, encode};
pub use endpoint::{Endpoint, EndpointError};

use crate::facts::Facts;
use crate::queue::{Queue, Tally};
use crate::series::Series;
use post::Post;
use std::time::Duration;

/// Most exports that wait for a slow receiver.
pub const WAITING_MAX: usize = 16;
/// Longest wait for one export while the run goes on.
pub const EXPORT_WAIT: Duration = Duration::from_secs(3);
/// Longest wait for the last export, after the end of the run.
pub const LAST_WAIT: Duration = Duration::from_millis(1_500);

/// Sends the sums of a run each second.
#[derive(Debug)]
pub struct Exporter {
    queue: Queue,
    shown: String,
}

impl Exporter {
    /// An exporter with its thread; nothing is sent yet.
    ///
    /// # Errors
    /// When the system has no thread left, or its certificates cannot be read for `https`.
    pub fn start(
        endpoint: &Endpoint,
        headers: &[(String, String)],
        version: &str,
    ) -> Result<Self, String> {
        let post = Post::new(endpoint, headers, version)?;
        let queue = Queue::start("otlp", WAITING_MAX, post).map_err(|error| {
            format!("no thread for --otlp ({error}); lower the number of threads")
        })?;
        Ok(Self { queue, shown: endpoint.shown().to_owned() })
    }

    /// Exports the sums as they are now. Never waits for the receiver.
    pub fn export(&self, facts: &Facts, series: &Series, now_us: u64) {
        let exports = Exports { lost: self.queue.dropped() };
        self.queue.put(encode(facts, series, exports, now_us));
    }

    /// Waits for the last export, at most [`LAST_WAIT`], and returns the address and the fate of all exports.
    #[must_use]
    pub fn finish(self) -> (String, Tally) {
        (self.shown, self.queue.finish(LAST_WAIT))
    }
}

/// Reads the body of a receiver's reply with a good status; for fuzzing.
///
/// # Errors
/// One line for a reply that accepts only some of the points.
pub fn fuzz_reply(text: &str) -> Result<(), String> {
    post::accepted(text)
}
