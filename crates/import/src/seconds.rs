//! The seconds of a measurement, kept small: counts, and times as cells of three significant digits.
//!
//! A log can be of hours and in any order. Each second holds only the cells in use; if they become too many, neighbours are
//! put together. A single stretch can have too many cells too: a few bytes of an encoded histogram can stand for thousands of
//! cells, so a reader of such histograms stops then ([`Seconds::is_full`]). Single requests take more bytes in their file than
//! here.

use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::{ClassPart, Interval};
use plimsoll_core::ledger::Failed;
use plimsoll_core::outcome::Failure;
use std::collections::BTreeMap;
use std::io;

/// Most cells of all seconds together, about 100 MB. A single stretch can have more: 110,592 for each kind of a class.
pub const CELLS_MAX: usize = 2_000_000;
/// Most stretches between the first and the last request.
const SLOTS_MAX: u64 = 10_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Bits of a time that are kept.
const BITS: u32 = 12;

/// A histogram of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// From the intended start to the last byte.
    Response,
    /// From the send to the last byte.
    Service,
    /// Of a failed request.
    Failed,
}

/// Counts of one class in one stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct SlotCounts {
    ok: u64,
    failed: Failed,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Slot {
    counts: BTreeMap<u16, SlotCounts>,
    cells: BTreeMap<(u16, Kind, u32), u64>,
    statuses: BTreeMap<u16, u64>,
}

/// Requests that ended at one time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    /// Index of the class.
    pub class: usize,
    /// Successful requests.
    pub ok: u64,
    /// Failed requests, with their kind.
    pub failed: Option<(Failure, u64)>,
    /// Status code.
    pub status: Option<u16>,
}

/// All seconds of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Seconds {
    span_s: u64,
    slots: BTreeMap<u64, Slot>,
    cells: usize,
    classes: usize,
    /// Start and end of the measurement on the clock of the source, ns.
    bounds_ns: (u64, u64),
}

impl Default for Seconds {
    fn default() -> Self {
        Self { span_s: 1, slots: BTreeMap::new(), cells: 0, classes: 1, bounds_ns: (0, 0) }
    }
}

impl Seconds {
    /// Counts requests that ended at `at_ns`, on the clock of the source.
    pub fn count(&mut self, at_ns: u64, ends: &Ends) {
        let class = self.class(ends.class);
        let slot = self.slot(at_ns);
        let counts = slot.counts.entry(class).or_default();
        counts.ok = counts.ok.saturating_add(ends.ok);
        if let Some((kind, many)) = ends.failed {
            *counts.failed.column(kind) += many;
        }
        if let Some(status) = ends.status {
            *slot.statuses.entry(status).or_default() += 1;
        }
    }

    /// Counts times, ns, of requests that ended at `at_ns`.
    pub fn time(&mut self, at_ns: u64, class: usize, kind: Kind, value_ns: u64, many: u64) {
        let class = self.class(class);
        let cells = &mut self.slot(at_ns).cells;
        let before = cells.len();
        *cells.entry((class, kind, cell_of(value_ns))).or_default() += many;
        self.cells += cells_grown(before, self.slots.get(&(at_ns / SECOND_NS / self.span_s)));
        // A stretch without a neighbour stays as it is.
        if self.cells > CELLS_MAX && self.slots.len() > 1 {
            self.coarsen();
        }
    }

    /// Returns true if there are too many cells, and all of them are in a single stretch, which cannot be made longer.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.cells > CELLS_MAX && self.slots.len() == 1
    }

    /// Puts seconds together until one stretch is at least this long, s.
    pub fn coarsen_to(&mut self, span_s: u64) {
        while self.span_s < span_s.min(86_400) {
            self.coarsen();
        }
    }

    /// Moves all service times to the response times: what they are is known only when the log has been read.
    pub fn take_service_for_response(&mut self) {
        for slot in self.slots.values_mut() {
            let cells = std::mem::take(&mut slot.cells).into_iter();
            slot.cells = cells
                .map(|((class, kind, cell), many)| match kind {
                    Kind::Service => ((class, Kind::Response, cell), many),
                    other => ((class, other, cell), many),
                })
                .collect();
        }
    }

    /// Sets start and end on the clock of the source, ns, and the number of classes.
    pub fn close(&mut self, bounds_ns: (u64, u64), classes: usize) {
        self.bounds_ns = bounds_ns;
        self.classes = classes.max(1);
        let slots = |s: &Self| (bounds_ns.1 - bounds_ns.0.min(bounds_ns.1)) / SECOND_NS / s.span_s;
        while slots(self) > SLOTS_MAX {
            self.coarsen();
        }
    }

    /// Length of a stretch, s; 1 unless the measurement is very long.
    #[must_use]
    pub const fn span_s(&self) -> u64 {
        self.span_s
    }

    /// Calls `keep` for each stretch in the order of time, also for those in which nothing ended.
    ///
    /// # Errors
    /// The first error of `keep`.
    pub fn each(&self, mut keep: impl FnMut(&Interval) -> io::Result<()>) -> io::Result<()> {
        let (start_ns, end_ns) = self.bounds_ns;
        let (Some((&first, _)), Some((&last, _))) =
            (self.slots.first_key_value(), self.slots.last_key_value())
        else {
            return Ok(());
        };
        let span_ns = self.span_s * SECOND_NS;
        let mut interval = Interval::new(self.classes);
        let nothing = Slot::default();
        let from = first.min(start_ns / span_ns).max(last.saturating_sub(SLOTS_MAX + 1));
        for index in from..=last {
            interval.clear();
            let begin_ns = index.saturating_mul(span_ns);
            interval.from_ns = begin_ns.saturating_sub(start_ns);
            let to_ns =
                begin_ns.saturating_add(span_ns).min(end_ns.max(begin_ns.saturating_add(1)));
            interval.to_ns = to_ns.saturating_sub(start_ns).max(interval.from_ns);
            fill(&mut interval, self.slots.get(&index).unwrap_or(&nothing));
            if interval.to_ns > interval.from_ns {
                keep(&interval)?;
            }
        }
        Ok(())
    }

    fn class(&mut self, class: usize) -> u16 {
        self.classes = self.classes.max(class + 1);
        class.min(usize::from(u16::MAX)) as u16
    }

    fn slot(&mut self, at_ns: u64) -> &mut Slot {
        self.slots.entry(at_ns / SECOND_NS / self.span_s).or_default()
    }

    /// Puts each two neighbours together.
    fn coarsen(&mut self) {
        let span_s = self.span_s * 2;
        let mut merged: BTreeMap<u64, Slot> = BTreeMap::new();
        for (index, slot) in std::mem::take(&mut self.slots) {
            let place = merged.entry(index / 2).or_default();
            for (class, counts) in slot.counts {
                let sum = place.counts.entry(class).or_default();
                sum.ok = sum.ok.saturating_add(counts.ok);
                sum.failed = sum_of(&sum.failed, &counts.failed);
            }
            for (cell, many) in slot.cells {
                *place.cells.entry(cell).or_default() += many;
            }
            for (status, many) in slot.statuses {
                *place.statuses.entry(status).or_default() += many;
            }
        }
        self.cells = merged.values().map(|slot| slot.cells.len()).sum();
        self.slots = merged;
        self.span_s = span_s;
    }
}

fn cells_grown(before: usize, slot: Option<&Slot>) -> usize {
    slot.map_or(0, |slot| slot.cells.len().saturating_sub(before))
}

fn sum_of(one: &Failed, other: &Failed) -> Failed {
    let mut sum = *one;
    for kind in Failure::ALL {
        *sum.column(kind) += other.get(kind);
    }
    sum
}

fn fill(interval: &mut Interval, slot: &Slot) {
    for (&class, counts) in &slot.counts {
        let Some(part) = interval.classes.get_mut(usize::from(class)) else { continue };
        let failed = counts.failed.total();
        part.ledger.sent = counts.ok + failed;
        part.ledger.ok = counts.ok;
        part.ledger.failed = counts.failed;
        let ledger = &mut interval.ledger;
        ledger.ok += counts.ok;
        ledger.sent += counts.ok + failed;
        ledger.scheduled = ledger.sent;
        ledger.failed = sum_of(&ledger.failed, &counts.failed);
        let counters = &mut interval.counters;
        counters.ok_in_time += counts.ok;
        counters.ended_in_time += counts.ok + failed;
    }
    for (&(class, kind, cell), &many) in &slot.cells {
        if let Some(part) = interval.classes.get_mut(usize::from(class)) {
            histogram(part, kind).record_many(value_of(cell), many);
        }
    }
    interval.statuses.clone_from(&slot.statuses);
}

fn histogram(part: &mut ClassPart, kind: Kind) -> &mut Histogram {
    match kind {
        Kind::Response => &mut part.response,
        Kind::Service => &mut part.service,
        Kind::Failed => &mut part.failed,
    }
}

/// The cell of a time: its highest bits, and how many are below.
fn cell_of(value_ns: u64) -> u32 {
    let shift = (u64::BITS - value_ns.leading_zeros()).saturating_sub(BITS);
    shift << BITS | (value_ns >> shift) as u32
}

/// The middle of a cell, ns.
fn value_of(cell: u32) -> u64 {
    let (shift, bits) = (cell >> BITS, u64::from(cell & ((1 << BITS) - 1)));
    (bits << shift) + ((1u64 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cell_keeps_three_digits(value in 0u64..u64::MAX / 2) {
            let kept = value_of(cell_of(value));
            prop_assert!(kept.abs_diff(value) as f64 <= value as f64 / 4_000.0 + 0.5);
        }
    }

    fn all(seconds: &Seconds) -> Vec<Interval> {
        let mut found = Vec::new();
        seconds
            .each(|interval| {
                found.push(interval.clone());
                Ok(())
            })
            .unwrap();
        found
    }

    #[test]
    fn seconds_are_those_of_the_clock_and_none_is_left_out() {
        let mut seconds = Seconds::default();
        // From 10.5 s to 13.2 s; nothing ends between 11 and 12 s... of the clock.
        for at_ms in [13_200u64, 10_700, 10_900, 12_100] {
            seconds.count(at_ms * 1_000_000, &Ends { ok: 1, status: Some(200), ..Ends::default() });
            seconds.time(at_ms * 1_000_000, 0, Kind::Service, 2_000_000, 1);
        }
        seconds.close((10_500_000_000, 13_200_000_000), 1);
        let found = all(&seconds);
        let edges: Vec<(u64, u64)> =
            found.iter().map(|i| (i.from_ns / 1_000_000, i.to_ns / 1_000_000)).collect();
        assert_eq!(edges, [(0, 500), (500, 1_500), (1_500, 2_500), (2_500, 2_700)]);
        let ok: Vec<u64> = found.iter().map(|i| i.ledger.ok).collect();
        assert_eq!(ok, [2, 0, 1, 1]);
        assert_eq!(found[0].classes[0].service.count(), 2);
        assert_eq!(found[3].statuses[&200], 1);
    }

    #[test]
    fn only_stretches_that_have_a_neighbour_are_put_together() {
        let mut seconds = Seconds::default();
        // More often than a length in seconds can be doubled.
        for class in 0..100 {
            // As if this stretch had all other cells too.
            seconds.cells = CELLS_MAX;
            seconds.time(SECOND_NS, class, Kind::Service, 2_000_000, 1);
        }
        assert_eq!(seconds.span_s(), 1);
        seconds.time(2 * SECOND_NS, 0, Kind::Service, 2_000_000, 1);
        assert_eq!(seconds.span_s(), 2);
    }

    #[test]
    fn a_time_years_off_costs_no_memory() {
        let mut seconds = Seconds::default();
        for at_s in [1u64, 4_000_000_000] {
            seconds.count(at_s * SECOND_NS, &Ends { ok: 1, ..Ends::default() });
        }
        seconds.close((SECOND_NS, 4_000_000_000 * SECOND_NS), 1);
        // Not all at once: an interval takes half a megabyte.
        let (mut stretches, mut ok) = (0, 0);
        seconds
            .each(|interval| {
                stretches += 1;
                ok += interval.ledger.ok;
                Ok(())
            })
            .unwrap();
        assert!(stretches <= SLOTS_MAX + 2, "{stretches}");
        assert_eq!(ok, 2);
    }
}
