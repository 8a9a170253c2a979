//! Two groups of agents of one run: each has a load of its own, and both start at the same time.

use super::CoordinatorPost;
use crate::coordinator::lead_ns;
use plimsoll_core::clock::now_ns;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The other group, as one of them knows it.
pub(super) struct Other {
    post: Weak<CoordinatorPost>,
    /// Number of groups that are ready.
    ready: Arc<Mutex<u32>>,
    /// True for the group in whose report the other one is.
    is_first: bool,
}

impl fmt::Debug for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Other").field("is_first", &self.is_first).finish_non_exhaustive()
    }
}

/// Lets the phases of two groups start at the same time, each as soon as all agents of both are ready. The second group is in the
/// report of the first one.
pub fn start_together(first: &Arc<CoordinatorPost>, second: &Arc<CoordinatorPost>) {
    let ready = Arc::new(Mutex::new(0));
    for (post, other, is_first) in [(first, second, true), (second, first, false)] {
        post.post.with(|seat| seat.coordinator.hold());
        let other = Other { post: Arc::downgrade(other), ready: ready.clone(), is_first };
        // The first call counts.
        let _ = post.other.set(other);
    }
}

impl CoordinatorPost {
    /// The other group of agents, if this is the first of two.
    #[must_use]
    pub fn second_group(&self) -> Option<Arc<CoordinatorPost>> {
        self.other.get().filter(|other| other.is_first)?.post.upgrade()
    }

    /// All agents of this group are ready: the last group names the start for both.
    pub(super) fn arrive(&self) {
        let Some(other) = self.other.get() else { return };
        let mut ready = other.ready.lock().unwrap_or_else(PoisonError::into_inner);
        *ready += 1;
        let is_last = *ready == 2;
        drop(ready);
        if let (true, Some(post)) = (is_last, other.post.upgrade()) {
            let at_ns = now_ns() + lead_ns(self.agents() + post.agents());
            for one in [self, &*post] {
                one.post.with(|seat| seat.coordinator.release(at_ns));
            }
        }
    }

    /// Ends the schedule of all agents before its time; the run is whole all the same.
    pub fn end_early(&self) {
        self.post.with(|seat| seat.coordinator.end_early());
    }

    /// Lets all agents end their load in order.
    pub fn stop(&self) {
        self.post.with(|seat| seat.coordinator.stop());
    }
}
