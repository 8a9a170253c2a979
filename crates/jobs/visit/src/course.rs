//! A visit over time and slice by slice, for its record.

use super::slice::SliceTimes;
use super::whole::Visit;
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::moments::Moments;
use plimsoll_record::visit::{SLICES_MAX, VisitMoment, VisitSlice};

/// Length of a stretch, ns, until there are too many of them.
const EVERY_NS: u64 = 200 * MILLISECOND_NS;

/// State of a visit, all slices together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    entries: u64,
    bytes: u64,
    slices_done: u32,
    asking: u32,
    times: SliceTimes,
}

impl Standing {
    /// The state at a time, ns.
    #[must_use]
    pub fn of(visit: &Visit, now_ns: u64) -> Self {
        let waits = visit.waits();
        let mut all = Self { asking: visit.asking(), ..Self::default() };
        for index in 0..visit.form().visited().len() as u32 {
            let slice = visit.slice(index);
            all.entries += slice.progress.documents + slice.progress.removes;
            all.bytes += slice.progress.bytes;
            all.slices_done += u32::from(slice.progress.done);
            all.times.wait_ns += slice.times.wait_ns;
            all.times.receive_ns += slice.times.receive_ns + slice.receiving_ns(now_ns, waits);
            all.times.turn_ns += slice.times.turn_ns;
        }
        all
    }
}

/// The stretches of a visit so far.
pub struct Course {
    began_ns: u64,
    /// Time at which the last stretch ended, ns, and how the visit stood then.
    last: (u64, Standing),
    moments: Moments<VisitMoment>,
}

impl Course {
    /// For a visit that stood like this when it began, ns.
    #[must_use]
    pub fn new(before: Standing, began_ns: u64) -> Self {
        Self { began_ns, last: (began_ns, before), moments: Moments::default() }
    }

    /// Ends a stretch if it has been long enough.
    pub fn look(&mut self, visit: &Visit, now_ns: u64) {
        if now_ns.saturating_sub(self.last.0) >= EVERY_NS {
            self.add(now_ns, Standing::of(visit, now_ns));
        }
    }

    /// Ends the last stretch, and returns all of them.
    #[must_use]
    pub fn end(mut self, visit: &Visit, now_ns: u64) -> Vec<VisitMoment> {
        self.add(now_ns, Standing::of(visit, now_ns));
        self.moments.into_kept()
    }

    fn add(&mut self, now_ns: u64, now: Standing) {
        let (last_ns, last) = self.last;
        let length_ns = now_ns.saturating_sub(last_ns) as f64;
        if length_ns <= 0.0 {
            return;
        }
        let since = |ns: u64| ns.saturating_sub(self.began_ns) as f64 / 1e9;
        let per_s = |to: u64, from: u64| to.saturating_sub(from) as f64 / (length_ns / 1e9);
        let share = |to: u64, from: u64| to.saturating_sub(from) as f64 / length_ns;
        self.moments.push(VisitMoment {
            from_s: since(last_ns),
            to_s: since(now_ns),
            documents_per_s: per_s(now.entries, last.entries),
            mb_per_s: per_s(now.bytes, last.bytes) / 1e6,
            asking: now.asking,
            slices_done: now.slices_done,
            first_byte: share(now.times.wait_ns, last.times.wait_ns),
            receiving: share(now.times.receive_ns, last.times.receive_ns),
            between: share(now.times.turn_ns, last.times.turn_ns),
        });
        self.last = (now_ns, now);
    }
}

/// The first slices by themselves.
#[must_use]
pub fn by_slice(visit: &Visit) -> Vec<VisitSlice> {
    let visited = visit.form().visited().len() as u32;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let one = |index: u32| {
        let slice = visit.slice(index);
        VisitSlice {
            slice: visit.form().slice_at(index),
            done: slice.progress.done,
            documents: slice.progress.documents + slice.progress.removes,
            replies: slice.progress.replies,
            bytes: slice.progress.bytes,
            first_byte_s: seconds(slice.times.wait_ns),
            receiving_s: seconds(slice.times.receive_ns),
            between_s: seconds(slice.times.turn_ns),
        }
    };
    (0..visited).take(SLICES_MAX).map(one).collect()
}
