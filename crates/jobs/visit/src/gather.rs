//! Time to let more of a reply gather before it is read.
//!
//! A server that sends its documents in pieces of a few kilobytes costs a wake-up and a read for each. Once a reply has
//! begun, no one waits for one of its pieces: a short pause makes few large reads of many small ones.

/// The pause to begin with, ns.
const NAP_MIN_NS: u64 = 50_000;
/// The longest, ns: how much later the end of a reply may be seen.
const NAP_MAX_NS: u64 = 800_000;
/// Reads of fewer bytes are small: the next pause is longer.
const SMALL_BYTES: usize = 16 << 10;
/// Reads of more bytes may be all that fits into one: the next pause is shorter, so that the sender never waits.
const LARGE_BYTES: usize = 40 << 10;

/// The length of the next pause, from what the reads have brought.
#[derive(Debug, Default)]
pub struct Gather {
    nap_ns: u64,
    /// Time at which the read at hand took place, ns, and what it has brought.
    read_ns: u64,
    read_bytes: usize,
    paused: bool,
}

impl Gather {
    /// A piece has come; pieces of the same time came with the same read.
    pub fn received(&mut self, bytes: usize, now_ns: u64) {
        self.paused = false;
        if now_ns == self.read_ns {
            self.read_bytes += bytes;
            return;
        }
        match self.read_bytes {
            0 => {}
            1..SMALL_BYTES => self.nap_ns = (self.nap_ns * 2).clamp(NAP_MIN_NS, NAP_MAX_NS),
            LARGE_BYTES.. => {
                self.nap_ns = if self.nap_ns > NAP_MIN_NS { self.nap_ns / 2 } else { 0 }
            }
            _ => {}
        }
        (self.read_ns, self.read_bytes) = (now_ns, bytes);
    }

    /// A reply has ended: until another piece comes nothing gathers.
    pub fn pause(&mut self) {
        (self.paused, self.read_ns, self.read_bytes) = (true, 0, 0);
    }

    /// Returns how long to wait before the next read, ns.
    pub fn nap_ns(&self) -> u64 {
        if self.paused { 0 } else { self.nap_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of a sender of this many bytes a second, in pieces, each after a pause; the mean bytes of a read.
    fn reads(bytes_per_s: f64, piece: usize) -> usize {
        let (mut gather, mut now_ns, mut all, mut count) = (Gather::default(), 0u64, 0, 0);
        for round in 0..2000 {
            let piece_ns = (piece as f64 / bytes_per_s * 1e9) as u64;
            let waited_ns = gather.nap_ns().max(piece_ns);
            now_ns += waited_ns;
            let bytes = (bytes_per_s * waited_ns as f64 / 1e9) as usize;
            gather.received(bytes.max(piece), now_ns);
            if round >= 100 {
                (all, count) = (all + bytes, count + 1);
            }
        }
        all / count
    }

    #[test]
    fn small_pieces_are_gathered_and_large_ones_are_not() {
        assert!((14 << 10..64 << 10).contains(&reads(50e6, 7000)), "{}", reads(50e6, 7000));
        assert!((14 << 10..64 << 10).contains(&reads(200e6, 7000)), "{}", reads(200e6, 7000));
        // A slow sender is not waited for for long.
        assert!(reads(1e6, 5000) <= 6000);
        let mut gather = Gather::default();
        (1..100).for_each(|read| gather.received(60_000, read));
        assert_eq!(gather.nap_ns(), 0);
    }

    #[test]
    fn nothing_gathers_between_replies() {
        let mut gather = Gather::default();
        (1..100).for_each(|read| gather.received(5000, read));
        assert_eq!(gather.nap_ns(), NAP_MAX_NS);
        gather.pause();
        assert_eq!(gather.nap_ns(), 0);
        gather.received(5000, 200);
        assert_eq!(gather.nap_ns(), NAP_MAX_NS);
    }
}
