//! Lines into a file or a pipe.

use crate::queue::Carrier;
use plimsoll_core::system_error::words;
use std::io::Write;
use std::time::Duration;

/// Writes lines whole, each at once.
pub(super) struct Lines {
    to: Box<dyn Write + Send>,
    /// True if a line may have been written in part.
    is_torn: bool,
}

impl Lines {
    pub fn new(to: Box<dyn Write + Send>) -> Self {
        Self { to, is_torn: false }
    }
}

impl Carrier for Lines {
    /// A pipe whose reader has stopped keeps this thread, and no other.
    fn carry(&mut self, line: &[u8], _limit_ns: u64) -> Result<(), String> {
        if self.is_torn {
            self.to.write_all(b"\n").map_err(|error| words(&error))?;
        }
        self.is_torn = true;
        self.to.write_all(line).and_then(|()| self.to.flush()).map_err(|error| words(&error))?;
        self.is_torn = false;
        Ok(())
    }

    fn patience(&self) -> Duration {
        Duration::MAX
    }

    fn is_cumulative(&self) -> bool {
        false
    }
}
