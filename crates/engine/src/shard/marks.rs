//! What a shard has used up to a moment: taken where the measured stretch begins and where it ends, so that neither the
//! warm-up nor the wait for the last replies dilutes what it says of the stretch.

use super::Shard;
use crate::health::thread_cpu_ns;
use crate::net::Net;
use plimsoll_core::clock::Clock;
use plimsoll_wire::Protocol;

/// What a shard has used up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The moment, ns on the engine's clock.
    pub at_ns: u64,
    /// How long it had waited for the network, ns.
    pub idle_ns: u64,
    /// CPU time of its thread, ns.
    pub cpu_ns: u64,
}

/// The beginning and the end of the measured stretch, as far as they have come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    from: Option<Mark>,
    to: Option<Mark>,
}

impl Marks {
    /// Both; where the end of the schedule did not come, the stretch ends with `last`.
    pub fn until(self, last: Mark) -> (Mark, Mark) {
        let from = self.from.unwrap_or(last);
        (from, self.to.unwrap_or(last))
    }
}

impl Mark {
    /// The share of the time from `self` to `to` that the shard had work, 0 to 1.
    #[must_use]
    pub fn busy_until(&self, to: &Mark) -> f64 {
        let lived_ns = to.at_ns.saturating_sub(self.at_ns);
        if lived_ns == 0 {
            return 0.0;
        }
        let idle_ns = to.idle_ns.saturating_sub(self.idle_ns);
        1.0 - (idle_ns as f64 / lived_ns as f64).min(1.0)
    }
}

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Takes the marks that are due.
    #[inline]
    pub(super) fn take_marks(&mut self, now_ns: u64) {
        if now_ns >= self.next_mark_ns() {
            let mark = self.mark(now_ns);
            if self.marks.from.is_none() && self.is_measuring(now_ns) {
                self.marks.from = Some(mark);
            }
            if now_ns >= self.end_ns {
                self.marks.to = Some(mark);
            }
        }
    }

    pub(super) fn mark(&self, at_ns: u64) -> Mark {
        Mark { at_ns, idle_ns: self.net.idle_ns(), cpu_ns: thread_cpu_ns() }
    }

    /// When the next mark is due, ns.
    #[inline]
    pub(super) fn next_mark_ns(&self) -> u64 {
        match (self.marks.from, self.marks.to) {
            (_, Some(_)) => u64::MAX,
            (Some(_), None) => self.end_ns,
            (None, None) => self.measured_from_ns().min(self.end_ns),
        }
    }
}
