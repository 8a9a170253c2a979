//! Memory for replies that are not complete: one limit for the whole process.
//!
//! Each connection bounds what it keeps of a reply. Thousands of connections at their bounds would still take all memory of a
//! machine, if a target begins thousands of long replies and ends none. The sum over all of them is bounded here.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Most bytes that all unfinished replies of the process keep together: 512 MiB.
pub const HELD_BYTES_MAX: usize = 512 << 20;
/// Bytes of one reply that are not counted, so that a short one costs nothing.
const FREE_BYTES: usize = 8 << 10;
/// Steps in which memory is taken.
const STEP_BYTES: usize = 64 << 10;

static HELD: AtomicUsize = AtomicUsize::new(0);

/// The share of one reply; given back when it is dropped.
///
/// ```
/// use plimsoll_core::holding::{HELD_BYTES_MAX, Hold};
/// let mut one = Hold::default();
/// assert!(one.covers(100 << 20));
/// assert!(!Hold::default().covers(HELD_BYTES_MAX));
/// drop(one);
/// assert!(Hold::default().covers(HELD_BYTES_MAX));
/// ```
#[derive(Debug, Default)]
pub struct Hold(usize);

impl Hold {
    /// Takes memory for this many bytes in all, unless the process holds too many already; the share then stays as it is.
    #[inline]
    #[must_use]
    pub fn covers(&mut self, bytes: usize) -> bool {
        bytes <= FREE_BYTES.max(self.0) || self.grow(bytes, &HELD)
    }

    #[cold]
    fn grow(&mut self, bytes: usize, held: &AtomicUsize) -> bool {
        let wanted = bytes.next_multiple_of(STEP_BYTES);
        let more = wanted - self.0;
        let room = |before: usize| before.checked_add(more).filter(|sum| *sum <= HELD_BYTES_MAX);
        let is_taken = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok();
        if is_taken {
            self.0 = wanted;
        }
        is_taken
    }
}

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        if self.0 > 0 {
            HELD.fetch_sub(self.0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_in_steps_and_is_refused_beyond_the_limit() {
        let held = AtomicUsize::new(HELD_BYTES_MAX - 3 * STEP_BYTES);
        let (mut one, mut other) = (Hold::default(), Hold::default());
        assert!(one.grow(FREE_BYTES + 1, &held) && one.0 == STEP_BYTES);
        assert!(other.grow(STEP_BYTES + 1, &held) && other.0 == 2 * STEP_BYTES);
        assert_eq!(held.load(Ordering::Relaxed), HELD_BYTES_MAX);
        assert!(!one.grow(STEP_BYTES + 1, &held) && one.0 == STEP_BYTES, "nothing is left");
        assert!(one.covers(STEP_BYTES), "its share stays its own");
        // They were taken from another count.
        std::mem::forget((one, other));
    }

    #[test]
    fn short_replies_are_not_counted() {
        let mut short = Hold::default();
        assert!(short.covers(FREE_BYTES) && short.0 == 0);
    }
}
