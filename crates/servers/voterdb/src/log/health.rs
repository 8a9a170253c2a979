//! The way the writing of snapshots goes, for those who ask and for whoever runs the server.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Receives one line about a condition that needs attention.
pub(crate) type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// The state of the snapshots that replace a long log.
pub(crate) struct SnapshotHealth {
    tell: Tell,
    last: Mutex<Last>,
}

/// The result of the last one.
#[derive(Default)]
enum Last {
    #[default]
    None,
    Written,
    Failed(String),
}

impl SnapshotHealth {
    pub(crate) fn new(tell: Tell) -> Self {
        Self { tell, last: Mutex::default() }
    }

    /// Records the end of a snapshot. Reports the first failure, and the first success after failures.
    pub(crate) fn ended(&self, number: u64, ended: &io::Result<()>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let had_failed = matches!(*last, Last::Failed(_));
        let line = match ended {
            Ok(()) => {
                *last = Last::Written;
                had_failed.then(|| "snapshots are written again".to_owned())
            }
            Err(error) => {
                *last = Last::Failed(error.to_string());
                (!had_failed).then(|| {
                    format!(
                        "snapshot {number} cannot be written: {error}; nothing acknowledged is lost, but the command \
                         log grows until one can be: look at --data"
                    )
                })
            }
        };
        drop(last);
        line.iter().for_each(|line| (self.tell)(line));
    }
}

impl fmt::Display for SnapshotHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.last.lock().unwrap_or_else(PoisonError::into_inner) {
            Last::None => f.write_str("none needed"),
            Last::Written => f.write_str("written"),
            Last::Failed(why) => write!(f, "failing: {why}"),
        }
    }
}
