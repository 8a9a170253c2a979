//! Time that the generator itself kept requests and replies waiting.
//!
//! Each part is a distribution over the requests of a stretch. Times below [`NOTICED_NS`] are not recorded: on a
//! machine that is fit for measuring almost all of them are, and a histogram that stays empty costs nothing.

use crate::histogram::{DecodeError, Histogram, add_some, encode_some};
use serde::{Deserialize, Serialize};

/// Shortest delay that is worth a place in a histogram, ns.
pub const NOTICED_NS: u64 = 10_000;

/// Delays that are not the target's, beside the lag of sending ([`crate::interval::Interval::lag`]).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delays {
    /// Time for which a reply may have waited in the kernel for this process to read it, ns: from the first moment at
    /// which it can have been there, to its judgement.
    pub receive: Histogram,
    /// Time from the reading of the clock that is a request's start until the network had it, ns.
    pub send: Histogram,
    /// Time for which a reply may have waited because the thread had no processor, ns: each request that
    /// ended in a stretch in which the thread waited noticeably counts with all of that waiting.
    pub starved: Histogram,
    /// Time for which requests that were due waited for a free connection, ns.
    pub connection: Histogram,
    /// Requests sent in the aftermath of a stall of the generator, when what had been held up went out at once:
    /// the target was then asked more than the schedule says.
    pub disturbed: u64,
}

impl Delays {
    /// Adds another part: histograms by cells, counts by sum.
    pub fn merge(&mut self, other: &Self) {
        self.receive.merge(&other.receive);
        self.send.merge(&other.send);
        self.starved.merge(&other.starved);
        self.connection.merge(&other.connection);
        self.disturbed += other.disturbed;
    }

    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.receive.clear();
        self.send.clear();
        self.starved.clear();
        self.connection.clear();
        self.disturbed = 0;
    }

    /// Returns whether nothing was noticed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.receive.is_empty()
            && self.send.is_empty()
            && self.starved.is_empty()
            && self.connection.is_empty()
            && self.disturbed == 0
    }
}

/// [`Delays`] as a line of the journal holds them; what is empty is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DelaysLine {
    /// [`Delays::receive`], encoded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub receive: String,
    /// [`Delays::send`], encoded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub send: String,
    /// [`Delays::starved`], encoded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub starved: String,
    /// [`Delays::connection`], encoded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub connection: String,
    /// [`Delays::disturbed`].
    #[serde(skip_serializing_if = "is_zero")]
    pub disturbed: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands out references.
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl DelaysLine {
    /// Returns whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&Delays> for DelaysLine {
    fn from(delays: &Delays) -> Self {
        Self {
            receive: encode_some(&delays.receive),
            send: encode_some(&delays.send),
            starved: encode_some(&delays.starved),
            connection: encode_some(&delays.connection),
            disturbed: delays.disturbed,
        }
    }
}

impl Delays {
    /// Adds what a line holds to delays that are empty.
    ///
    /// # Errors
    /// When a histogram cannot be read.
    pub(crate) fn refill(&mut self, line: &DelaysLine) -> Result<(), DecodeError> {
        add_some(&mut self.receive, &line.receive)?;
        add_some(&mut self.send, &line.send)?;
        add_some(&mut self.starved, &line.starved)?;
        add_some(&mut self.connection, &line.connection)?;
        self.disturbed = line.disturbed;
        Ok(())
    }
}

impl TryFrom<&DelaysLine> for Delays {
    type Error = DecodeError;

    fn try_from(line: &DelaysLine) -> Result<Self, DecodeError> {
        let mut delays = Self::default();
        delays.refill(line)?;
        Ok(delays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_and_an_empty_one_is_not_written() {
        let mut delays = Delays::default();
        assert!(DelaysLine::from(&delays).is_empty());
        delays.receive.record_many(2_000_000, 3);
        delays.disturbed = 4;
        let text = serde_json::to_string(&DelaysLine::from(&delays)).unwrap();
        let line: DelaysLine = serde_json::from_str(&text).unwrap();
        let back = Delays::try_from(&line).unwrap();
        assert_eq!((back.receive.count(), back.disturbed, back.starved.count()), (3, 4, 0));
        delays.merge(&back);
        assert_eq!((delays.receive.count(), delays.disturbed), (6, 8));
        delays.clear();
        assert!(delays.is_empty());
    }
}
