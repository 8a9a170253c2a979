//! The state of a run that has not ended: figures of its last seconds, failures, and the verdict so far.

use super::parts::Part;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::{ClassPart, Interval};
use plimsoll_core::scenario::Scenario;
use plimsoll_core::slo::ClassSlo;
use plimsoll_core::verdict::{Evidence, VerdictKind, judge};
use plimsoll_report::assemble::rates;
use plimsoll_report::number::{count, significant, time};
use std::collections::VecDeque;

/// Seconds whose times are shown: fewer jump about, more are no longer now.
const LAST: usize = 5;
/// Fewer answers than these are no verdict.
const JUDGED_FROM: u64 = 30;

/// The limits of a run, as far as they can be judged while it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// Limits over all classes; those of one class are judged at the end.
    limits: Vec<ClassSlo>,
    timeout_ns: u64,
    open: bool,
    full_speed: bool,
    clients: Option<u32>,
    threads: u32,
    max_failed: f64,
}

impl Rules {
    /// Those of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        Self {
            limits: scenario.slo.iter().filter(|slo| slo.class.is_none()).cloned().collect(),
            timeout_ns: scenario.timeout.ns,
            open: scenario.load.is_open(),
            full_speed: scenario.load.is_full_speed(),
            clients: scenario.own_clients(),
            threads: scenario.threads,
            max_failed: scenario.max_failed.0,
        }
    }
}

/// Everything since the begin of a run, all classes together, and its last seconds.
#[derive(Debug, Default)]
pub(super) struct SoFar {
    totals: Interval,
    last: VecDeque<Second>,
}

#[derive(Debug, Default)]
struct Second {
    seconds: f64,
    ok: u64,
    all: ClassPart,
}

impl SoFar {
    /// Adds a finished second.
    pub fn add(&mut self, second: &Interval) {
        let all = second.all_classes();
        let together = Interval {
            from_ns: second.from_ns,
            to_ns: second.to_ns,
            ledger: second.ledger,
            counters: second.counters,
            lag: second.lag.clone(),
            delays: second.delays.clone(),
            unserved: second.unserved.clone(),
            classes: vec![all.clone()],
            ..Interval::default()
        };
        self.totals.merge(&together);
        self.last.push_back(Second { seconds: second.seconds(), ok: second.ledger.ok, all });
        if self.last.len() > LAST {
            self.last.pop_front();
        }
    }

    /// Requests that have ended.
    pub fn ended(&self) -> u64 {
        self.totals.ledger.finished()
    }

    /// Rate, median and this quantile of the last seconds, and the failures so far.
    pub fn parts(&self, quantile: (&str, f64)) -> Vec<Part> {
        let (mut seconds, mut ok, mut all) = (0.0, 0, ClassPart::default());
        for one in &self.last {
            seconds += one.seconds;
            ok += one.ok;
            all.merge(&one.all);
        }
        let rate = significant(ok as f64 / f64::max(seconds, 1e-9));
        let mut parts = vec![Part::first(format!("{rate}/s")).at_least(9)];
        parts.push(match all.response.count() {
            0 => Part::new("no answer", 2),
            _ => times(&all.response, quantile),
        });
        let failed = self.totals.ledger.failed.total();
        parts.push(Part::new(format!("failed {}", count(failed)), 1));
        parts
    }

    /// The verdict so far in a word or two: that of what has ended.
    pub fn verdict(&self, rules: &Rules) -> String {
        let mut totals = self.totals.clone();
        let ledger = &mut totals.ledger;
        // What is in flight or waits may still end well.
        ledger.sent = ledger.finished();
        ledger.unfinished = 0;
        ledger.unsent.stopped = 0;
        ledger.scheduled = ledger.sent + ledger.refused.queue_full + ledger.refused.queue_timeout;
        let ledger = totals.ledger;
        if ledger.finished() < JUDGED_FROM {
            return match ledger.failed.total() {
                0 => String::new(),
                _ if ledger.ok == 0 => "failing".to_owned(),
                _ => String::new(),
            };
        }
        let rates = rates(&totals.ledger, &totals.counters, totals.seconds());
        let judged = |slo: &ClassSlo| slo.judge(&totals, &[], rules.timeout_ns, &rates);
        let evidence = Evidence {
            rates,
            open: rules.open,
            full_speed: rules.full_speed,
            clients: rules.clients,
            threads: rules.threads,
            max_failed: rules.max_failed,
            ..Evidence::of(&totals)
        };
        match judge(&evidence).kind {
            VerdictKind::TargetFailed => "failing".to_owned(),
            VerdictKind::Valid => match rules.limits.iter().find(|slo| !judged(slo).held) {
                Some(missed) => format!("missing {}", missed.name()),
                None => "valid".to_owned(),
            },
            kind => kind.name().to_owned(),
        }
    }
}

/// The median and another quantile, in one part: narrow terminals get them with one unit, and then without the median.
fn times(response: &Histogram, (name, quantile): (&str, f64)) -> Part {
    let ms = |quantile| time(response.quantile_ns(quantile) as f64 / 1e6);
    let (median, high) = (ms(0.5), ms(quantile));
    let (value, unit) = median.split_once(' ').unwrap_or((&median, ""));
    let low = if high.ends_with(&format!(" {unit}")) { value } else { &median };
    Part::new(format!("p50 {median:>7}  {name} {high:>7}"), 3)
        .or(format!("p50 {median}  {name} {high}"))
        .or(format!("p50/{name} {low}/{high}"))
        .or(format!("{name} {high}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::parts::in_a_row;

    /// A second with `ok` good answers of `ms` milliseconds each, and some failures.
    fn second(index: u64, ok: u64, ms: u64, failed: u64) -> Interval {
        let mut second = Interval::new(1);
        second.from_ns = index * 1_000_000_000;
        second.to_ns = second.from_ns + 1_000_000_000;
        for _ in 0..ok {
            second.classes[0].record_ok(ms * 1_000_000, ms * 1_000_000);
        }
        for _ in 0..failed {
            second.classes[0].record_failed(1_000_000);
        }
        second.ledger.ok = ok;
        second.ledger.failed.status = failed;
        // One more is in flight, and one waits.
        second.ledger.sent = ok + failed + 1;
        second.ledger.scheduled = ok + failed + 2;
        second.counters.ok_in_time = ok;
        second.counters.ended_in_time = ok + failed;
        second
    }

    fn after(seconds: &[Interval]) -> SoFar {
        let mut so_far = SoFar::default();
        seconds.iter().for_each(|one| so_far.add(one));
        so_far
    }

    fn rules(limits: &[&str]) -> Rules {
        let slo = limits.iter().map(|text| text.parse().unwrap()).collect();
        Rules::of(&Scenario { slo, ..Scenario::default() })
    }

    #[test]
    fn times_are_those_of_the_last_seconds_and_failures_those_of_all() {
        let slow: Vec<Interval> = (0..10).map(|index| second(index, 20, 900, 1)).collect();
        let fast: Vec<Interval> = (10..15).map(|index| second(index, 100, 2, 0)).collect();
        let text = in_a_row(&after(&[slow, fast].concat()).parts(("p99", 0.99)));
        assert_eq!(text, "100/s, p50 2.00 ms  p99 2.00 ms, failed 10");
        let text = in_a_row(&after(&[second(0, 0, 0, 0)]).parts(("p99", 0.99)));
        assert_eq!(text, "0/s, no answer, failed 0");
    }

    #[test]
    fn the_verdict_so_far_is_that_of_what_has_ended() {
        let verdict =
            |seconds: &[Interval], limits: &[&str]| after(seconds).verdict(&rules(limits));
        assert_eq!(verdict(&[second(0, 100, 2, 0)], &["p95=100ms"]), "valid");
        assert_eq!(verdict(&[second(0, 100, 200, 0)], &["p95=100ms"]), "missing p95");
        assert_eq!(verdict(&[second(0, 40, 2, 60)], &[]), "failing");
        assert_eq!(verdict(&[second(0, 0, 2, 3)], &[]), "failing");
        assert_eq!(verdict(&[second(0, 3, 2, 0)], &[]), "");
        let mut late = second(0, 100, 2, 0);
        late.counters.exhausted = 1;
        assert_eq!(verdict(&[late], &[]), "generator-limited");
    }
}
