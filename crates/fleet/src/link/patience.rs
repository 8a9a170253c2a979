//! Wait for an acknowledgement, from the round trips so far (RFC 6298).
//!
//! A coordinator of thousands of agents takes a part of a second for the messages of all. If each agent sent its own again after a
//! fixed time, there would be twice as many.

use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};

/// Shortest wait, ns, and that before anything is known.
const LEAST_NS: u64 = 250 * MILLISECOND_NS;
/// Longest wait, ns.
const MOST_NS: u64 = 2 * SECOND_NS;

/// Round trips of one link.
#[derive(Debug)]
pub(super) struct Patience {
    /// Mean and variation of the round trips, ns, once there is one.
    known: Option<(u64, u64)>,
    wait_ns: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { known: None, wait_ns: LEAST_NS }
    }
}

impl Patience {
    /// Wait for the acknowledgement of a packet that is sent now, ns.
    pub fn wait_ns(&self) -> u64 {
        self.wait_ns
    }

    /// A packet that was sent once was acknowledged after this time.
    pub fn answered(&mut self, round_trip_ns: u64) {
        let (mean_ns, variation_ns) = match self.known {
            None => (round_trip_ns, round_trip_ns / 2),
            Some((mean_ns, variation_ns)) => {
                let variation_ns = (3 * variation_ns + mean_ns.abs_diff(round_trip_ns)) / 4;
                ((7 * mean_ns + round_trip_ns) / 8, variation_ns)
            }
        };
        self.known = Some((mean_ns, variation_ns));
        self.wait_ns = (mean_ns + 4 * variation_ns).clamp(LEAST_NS, MOST_NS);
    }

    /// A packet has to be sent again: the next ones wait longer, until a round trip says how long it takes.
    pub fn missed(&mut self) {
        self.wait_ns = (2 * self.wait_ns).min(MOST_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_follows_the_round_trips_between_its_bounds() {
        let mut patience = Patience::default();
        assert_eq!(patience.wait_ns(), LEAST_NS);
        patience.answered(MILLISECOND_NS);
        assert_eq!(patience.wait_ns(), LEAST_NS);
        for _ in 0..40 {
            patience.answered(600 * MILLISECOND_NS);
        }
        let wait_ns = patience.wait_ns();
        assert!((600..700).contains(&(wait_ns / MILLISECOND_NS)), "{wait_ns}");
        (0..9).for_each(|_| patience.missed());
        assert_eq!(patience.wait_ns(), MOST_NS);
    }

    /// The first second of a large fleet: all packets are late, so none has a round trip that counts.
    #[test]
    fn the_wait_stays_long_until_a_packet_that_was_sent_once_is_acknowledged() {
        let mut patience = Patience::default();
        patience.missed();
        patience.missed();
        assert_eq!(patience.wait_ns(), 4 * LEAST_NS);
        patience.answered(700 * MILLISECOND_NS);
        assert_eq!(patience.wait_ns(), MOST_NS);
    }
}
