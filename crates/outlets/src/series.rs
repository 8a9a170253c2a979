//! The sums of a run so far, by class and phase: what OTLP sends and `/metrics` shows.

use crate::classic::Classic;
use crate::exponential::Exponential;
use crate::names::{Names, VALUES_MAX};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::Interval;
use plimsoll_core::ledger::{Failed, Ledger};
use plimsoll_core::outcome::Failure;
use std::collections::BTreeMap;

/// The name of the phase before the measured ones.
pub const WARMUP: &str = "warmup";

/// Times in both forms that readers take.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// For OTLP.
    pub exponential: Exponential,
    /// For Prometheus text.
    pub classic: Classic,
}

impl Times {
    fn add(&mut self, histogram: &Histogram) {
        self.exponential.add(histogram);
        self.classic.add(histogram);
    }
}

/// The sums of one class in one phase.
#[derive(Clone, Debug, Default)]
pub struct ClassSeries {
    /// Requests sent.
    pub sent: u64,
    /// Requests that succeeded.
    pub ok: u64,
    /// Requests that failed, by kind.
    pub failed: Failed,
    /// Intended start to last byte, successful requests.
    pub response: Times,
    /// Send to last byte, successful requests.
    pub service: Times,
}

impl ClassSeries {
    fn count(&mut self, ledger: &Ledger) {
        self.sent += ledger.sent;
        self.ok += ledger.ok;
        for kind in Failure::ALL {
            *self.failed.column(kind) += ledger.failed.get(kind);
        }
    }
}

/// The sums of one phase.
#[derive(Clone, Debug, Default)]
pub struct PhaseSeries {
    /// The ledger.
    pub ledger: Ledger,
    /// Bytes handed to the kernel.
    pub bytes_sent: u64,
    /// Bytes taken from the kernel.
    pub bytes_received: u64,
    /// Connections opened.
    pub connects: u64,
    /// Lag of the generator.
    pub lag: Times,
    /// Replies by place of their status code.
    pub statuses: Vec<u64>,
    /// By place of the class.
    pub classes: Vec<ClassSeries>,
}

/// The sums of a run so far.
#[derive(Clone, Debug)]
pub struct Series {
    classes: Names,
    phases: Names,
    statuses: Names,
    /// The place of each status code that has come.
    status_places: BTreeMap<u16, usize>,
    sums: Vec<PhaseSeries>,
    warmup: Option<PhaseSeries>,
    in_flight: u32,
}

impl Series {
    /// The sums of a run with these classes and phases, all 0.
    #[must_use]
    pub fn new(classes: &[String], phases: &[String]) -> Self {
        // One value is left for the warm-up.
        let phases = Names::of(phases, VALUES_MAX - 1);
        let classes = Names::of(classes, VALUES_MAX);
        let empty = PhaseSeries {
            classes: vec![ClassSeries::default(); classes.shown().len()],
            ..PhaseSeries::default()
        };
        Self {
            sums: vec![empty; phases.shown().len()],
            classes,
            phases,
            statuses: Names::of(&[], VALUES_MAX),
            status_places: BTreeMap::new(),
            warmup: None,
            in_flight: 0,
        }
    }

    /// Adds one second of the run.
    pub fn add(&mut self, second: &Interval) {
        let phase = self.phases.place(second.phase as usize, |index| format!("phase {index}"));
        self.in_flight = second.in_flight;
        let mut sum = std::mem::take(place_in(&mut self.sums, phase));
        self.add_to(&mut sum, second);
        self.sums[phase] = sum;
    }

    /// Adds what was measured before the measured phases.
    pub fn add_warmup(&mut self, warmup: &Interval) {
        let mut sum = self.warmup.take().unwrap_or_default();
        self.add_to(&mut sum, warmup);
        self.warmup = Some(sum);
    }

    fn add_to(&mut self, sum: &mut PhaseSeries, second: &Interval) {
        sum.ledger.merge(&second.ledger);
        sum.bytes_sent += second.counters.bytes_sent;
        sum.bytes_received += second.counters.bytes_received;
        sum.connects += second.counters.connects;
        sum.lag.add(&second.lag);
        for (&status, &count) in &second.statuses {
            let next = self.status_places.len();
            let names = &mut self.statuses;
            let entry = self.status_places.entry(status);
            let place = *entry.or_insert_with(|| names.place(next, |_| status.to_string()));
            *place_in(&mut sum.statuses, place) += count;
        }
        // Requests of no class are counted under another name, so that the classes add up to the ledger.
        let mut rest = second.ledger;
        for (index, part) in second.classes.iter().enumerate() {
            let place = self.classes.place(index, |index| format!("class {index}"));
            let class = place_in(&mut sum.classes, place);
            class.count(&part.ledger);
            class.response.add(&part.response);
            class.service.add(&part.service);
            rest.sent = rest.sent.saturating_sub(part.ledger.sent);
            rest.ok = rest.ok.saturating_sub(part.ledger.ok);
            for kind in Failure::ALL {
                let left = rest.failed.get(kind).saturating_sub(part.ledger.failed.get(kind));
                *rest.failed.column(kind) = left;
            }
        }
        if rest.sent + rest.ok + rest.failed.total() > 0 {
            place_in(&mut sum.classes, self.classes.other()).count(&rest);
        }
    }

    /// Requests in flight at the end of the last second.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The phases with their sums.
    pub fn phases(&self) -> impl Iterator<Item = (&str, &PhaseSeries)> {
        let measured = self.phases.shown().iter().map(String::as_str).zip(&self.sums);
        measured.chain(self.warmup.as_ref().map(|warmup| (WARMUP, warmup)))
    }

    /// Each class in each phase: phase, class, sums.
    pub fn classes(&self) -> impl Iterator<Item = (&str, &str, &ClassSeries)> {
        self.phases().flat_map(|(phase, sum)| {
            let names = self.classes.shown().iter().map(String::as_str);
            names.zip(&sum.classes).map(move |(class, sum)| (phase, class, sum))
        })
    }

    /// Replies by status code in each phase: phase, code, count.
    pub fn statuses(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.phases().flat_map(|(phase, sum)| {
            let names = self.statuses.shown().iter().map(String::as_str);
            names.zip(&sum.statuses).map(move |(code, count)| (phase, code, *count))
        })
    }
}

/// The entry at a place, which is made if it is not there.
fn place_in<T: Clone + Default>(all: &mut Vec<T>, place: usize) -> &mut T {
    if all.len() <= place {
        all.resize(place + 1, T::default());
    }
    &mut all[place]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn second(phase: u32, classes: usize, requests: u64) -> Interval {
        let mut second = Interval::new(classes);
        second.phase = phase;
        second.to_ns = 1_000_000_000;
        second.ledger.scheduled = requests + 1;
        second.ledger.sent = requests;
        second.ledger.ok = requests;
        second.ledger.refused.queue_full = 1;
        second.statuses.insert(200, requests);
        for number in 0..requests {
            let part = &mut second.classes[number as usize % classes];
            part.ledger.sent += 1;
            part.ledger.ok += 1;
            part.record_ok(2_000_000, 1_000_000);
            second.lag.record(20_000);
        }
        second
    }

    #[test]
    fn counts_of_classes_and_phases_add_up_to_the_ledger() {
        let mut series = Series::new(&names(&["a", "b"]), &names(&["steady"]));
        for (phase, requests) in [(0, 10), (0, 11), (1, 5)] {
            series.add(&second(phase, 2, requests));
        }
        let ok: u64 = series.classes().map(|(_, _, class)| class.ok).sum();
        let response: u64 =
            series.classes().map(|(_, _, class)| class.response.exponential.count()).sum();
        let scheduled: u64 = series.phases().map(|(_, phase)| phase.ledger.scheduled).sum();
        assert_eq!((ok, response, scheduled), (26, 26, 29));
        let phases: Vec<_> = series.phases().map(|(name, phase)| (name, phase.ledger.ok)).collect();
        assert_eq!(phases, [("steady", 21), ("phase 1", 5)]);
        assert_eq!(
            series.statuses().collect::<Vec<_>>(),
            [("steady", "200", 21), ("phase 1", "200", 5)]
        );
    }

    #[test]
    fn requests_without_a_class_are_counted_under_other() {
        let mut series = Series::new(&names(&["a"]), &names(&["steady"]));
        let mut one = second(0, 1, 4);
        one.ledger.sent += 3;
        *one.ledger.failed.column(Failure::Connect) += 3;
        series.add(&one);
        let failed: Vec<_> =
            series.classes().map(|(_, class, sum)| (class, sum.sent, sum.failed.connect)).collect();
        assert_eq!(failed, [("a", 4, 0), ("other", 3, 3)]);
    }

    #[test]
    fn a_warmup_is_a_phase_of_its_own() {
        let mut series = Series::new(&names(&["a"]), &names(&["steady"]));
        series.add(&second(0, 1, 4));
        series.add_warmup(&second(0, 1, 7));
        let phases: Vec<_> = series.phases().map(|(name, phase)| (name, phase.ledger.ok)).collect();
        assert_eq!(phases, [("steady", 4), (WARMUP, 7)]);
    }

    #[test]
    fn many_parts_and_classes_stay_within_the_bound() {
        let classes: Vec<String> = (0..64).map(|number| format!("c{number}")).collect();
        let mut series = Series::new(&classes, &names(&["steady"]));
        for phase in 0..100 {
            series.add(&second(phase, 64, 128));
        }
        series.add_warmup(&second(0, 64, 128));
        assert_eq!(series.phases().count(), VALUES_MAX);
        assert_eq!(series.classes().count(), VALUES_MAX * VALUES_MAX);
        let ok: u64 = series.classes().map(|(_, _, class)| class.ok).sum();
        assert_eq!(ok, 101 * 128);
    }
}
