//! Was the generator the limit? Judged per block and over all blocks of a side together.
//!
//! A block of a second is short: one stall of the machine makes its p95 late, and hits both sides by chance. So a block is left
//! out only if its generator had no processor or no time left. Whether the generator's own delays shaped the times is judged over
//! all blocks of a side together, by the rules of a run of that length.

use crate::late::{are_small, differences};
use crate::measured::{Measured, totals};
use plimsoll_core::interval::Interval;
use plimsoll_core::schedule::LoadModel;
use plimsoll_core::verdict::{
    ConnectionLimit, Evidence, Health, Verdict, VerdictKind, is_merely_late, judge,
};
use plimsoll_decide::pairs::at_equal::is_one_sided;
use plimsoll_record::ab::{AbGenerator, AbPair};
use plimsoll_report::assemble::rates;

/// Share of a block for which the process may be kept from a processor; that of a run.
const WITHHELD: f64 = 0.2;
/// A thread with less than this share of a block left has no time to be on time; that of a run.
const LEFT: f64 = 0.03;
/// Of a shorter block the share of busy time says nothing, s.
const SHORTEST_S: f64 = 0.1;
/// A machine that was suspended for longer measured something else, s.
const SUSPENDED_S: f64 = 0.1;
/// Share of the blocks that may be left out before nothing is claimed.
const LEFT_OUT_MOST: f64 = 0.1;

/// All blocks of one side, added up.
#[derive(Debug, Default)]
pub struct Side {
    /// The sum; the one class holds the requests of all classes.
    pub totals: Interval,
    /// Measured time, s.
    pub measured_s: f64,
    /// Version and commit of the program that made the load.
    pub tool: String,
    health: Health,
    model: Option<LoadModel>,
    threads: u32,
    blocks: u64,
    /// Blocks in which the user's limit of connections was the limit, and the first verdict on one.
    by_connections: (u64, Option<Verdict>),
}

/// Returns why a block is left out, if it is.
#[must_use]
pub fn block_limit(measured: &Measured) -> Option<String> {
    let record = measured.record.as_deref()?;
    let health = &record.generator.health;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if record.counters.exhausted > 0 {
        return Some("the generator had no descriptor, port or memory left".to_owned());
    }
    if health.suspended_s > SUSPENDED_S {
        return Some("the machine was suspended".to_owned());
    }
    if record.verdict.kind == VerdictKind::Void {
        return Some("its ledger does not balance".to_owned());
    }
    if record.duration_s < SHORTEST_S {
        return None;
    }
    if health.withheld() > WITHHELD {
        let share = percent(health.withheld());
        return Some(format!("the generator was kept from a processor for {share} of the time"));
    }
    if health.left() < LEFT {
        return Some(format!("the generator was busy for {} of the time", percent(health.busy)));
    }
    None
}

impl Side {
    /// Adds a block.
    pub fn add(&mut self, measured: &Measured) {
        let Some(record) = measured.record.as_deref() else { return };
        let (later, own_s) = (&record.generator.health, self.measured_s);
        self.totals.merge(&totals(record));
        let share = record.duration_s / (own_s + record.duration_s).max(1e-9);
        let mix = |own: f64, later: f64| own + (later - own) * share;
        self.health = Health {
            busy: mix(self.health.busy, later.busy),
            starved: mix(self.health.starved, later.starved),
            throttled: mix(self.health.throttled, later.throttled),
            stolen: mix(self.health.stolen, later.stolen),
            stopped: mix(self.health.stopped, later.stopped),
            ..self.health
        };
        self.measured_s += record.duration_s;
        self.threads = record.generator.threads.max(1);
        if self.tool.is_empty() {
            self.tool = record.tool.name();
        }
        if self.model.is_none() {
            let load = record.scenario.get("load").cloned().unwrap_or_default();
            self.model = serde_json::from_value(load).ok();
        }
        self.blocks += 1;
        if record.verdict.kind == VerdictKind::ConnectionLimited {
            self.by_connections.0 += 1;
            self.by_connections.1.get_or_insert_with(|| record.verdict.clone());
        }
    }

    /// Judges all blocks together; `None` if none has a record.
    #[must_use]
    pub fn judge(&self) -> Option<Verdict> {
        if self.totals.ledger.scheduled == 0 {
            return None;
        }
        if self.by_connections.0 as f64 > LEFT_OUT_MOST * self.blocks as f64 {
            return self.by_connections.1.clone();
        }
        Some(judge(&self.evidence()))
    }

    fn evidence(&self) -> Evidence<'_> {
        let totals = &self.totals;
        let model = self.model.as_ref();
        let mut evidence = Evidence::of(totals);
        evidence.rates = rates(&totals.ledger, &totals.counters, self.measured_s);
        evidence.measured_s = self.measured_s;
        evidence.open = model.is_none_or(LoadModel::is_open);
        evidence.full_speed = model.is_some_and(LoadModel::is_full_speed);
        evidence.clients = model.and_then(LoadModel::clients);
        evidence.threads = self.threads.max(1);
        evidence.connections = ConnectionLimit::Grown;
        evidence.health = self.health;
        evidence
    }

    /// Returns true if nothing but delays made the generator the limit, and they are small beside the response times. Only an open load
    /// goes on as planned meanwhile.
    fn is_merely_late(&self) -> bool {
        let is_open = self.model.as_ref().is_some_and(LoadModel::is_open);
        is_open && is_merely_late(&self.evidence()) && are_small(&self.totals)
    }
}

/// Judges the generator of the whole comparison.
#[must_use]
pub fn judged(
    sides: &[Side; 2],
    (blocks, limited): (u64, u64),
    pairs: &[AbPair],
    are_generators: bool,
) -> AbGenerator {
    if are_generators || blocks == 0 {
        let reason = if are_generators {
            "the generators are compared, so that neither is judged"
        } else {
            "no block has a generator of plimsoll"
        };
        return AbGenerator { reason: reason.to_owned(), ..AbGenerator::default() };
    }
    let verdicts = [sides[0].judge(), sides[1].judge()];
    let mut found = AbGenerator {
        is_judged: true,
        blocks,
        limited_blocks: limited,
        a: verdicts[0].as_ref().map(|verdict| verdict.kind),
        b: verdicts[1].as_ref().map(|verdict| verdict.kind),
        reason:
            "such a block is left out; its own delays are judged over all blocks of a side together"
                .to_owned(),
        ..AbGenerator::default()
    };
    if limited as f64 > LEFT_OUT_MOST * blocks as f64 {
        found.is_limit = true;
        found.reason = format!(
            "the generator had no processor or no time left in {limited} of {blocks} blocks, more than a tenth; give it a core \
             of its own, a lower rate, or another machine"
        );
    }
    for ((letter, side), verdict) in ['A', 'B'].into_iter().zip(sides).zip(verdicts) {
        let Some(verdict) = verdict else { continue };
        let is_limit =
            matches!(verdict.kind, VerdictKind::GeneratorLimited | VerdictKind::ConnectionLimited);
        if !is_limit || found.is_limit {
            continue;
        }
        let first = verdict.reasons.into_iter().next().unwrap_or_default();
        if verdict.kind == VerdictKind::GeneratorLimited && side.is_merely_late() {
            if !found.is_late {
                found.reason = late(letter, &first);
            }
            found.is_late = true;
        } else {
            found.is_limit = true;
            found.reason = format!("over all blocks of {letter}: {first}");
        }
    }
    if found.is_late && !found.is_limit {
        one_sided(&mut found, pairs);
    }
    found.is_late &= !found.is_limit;
    found
}

/// Delays that one side has more of are the limit: they could be taken for a difference of the targets.
fn one_sided(found: &mut AbGenerator, pairs: &[AbPair]) {
    let (delays, differences) = differences(pairs);
    if !is_one_sided(&differences) {
        return;
    }
    let mean = |side: fn(&(f64, f64)) -> f64| {
        delays.iter().map(side).sum::<f64>() * 100.0 / delays.len() as f64
    };
    (found.is_limit, found.is_one_sided) = (true, true);
    found.reason = format!(
        "its delays were {:.1} % of a response time for A and {:.1} % for B, more than chance explains; give it a core of its own, \
         more --threads or another machine",
        mean(|both| both.0),
        mean(|both| both.1)
    );
}

fn late(letter: char, reason: &str) -> String {
    format!(
        "its delays hit both sides, and each percentile is compared at equal delays; they pull a ratio towards 1, so nothing is \
         called the same; over all blocks of {letter}, in the worst case, {reason}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::schedule::Arrivals;
    use plimsoll_report::samples;

    fn block(busy: f64, starved: f64) -> Measured {
        let mut record = samples::good();
        record.generator.health = Health { busy, starved, ..Health::default() };
        Measured { record: Some(Box::new(record)), ..Measured::default() }
    }

    #[test]
    fn a_block_without_time_left_is_left_out() {
        assert_eq!(block_limit(&block(0.5, 0.1)), None);
        assert!(block_limit(&block(0.99, 0.0)).unwrap().contains("busy for 99 %"));
        assert!(block_limit(&block(0.1, 0.3)).unwrap().contains("from a processor for 30 %"));
        assert_eq!(block_limit(&Measured::default()), None);
    }

    #[test]
    fn many_such_blocks_or_a_limited_side_are_the_limit() {
        let side = |busy| {
            let mut side = Side::default();
            for _ in 0..3 {
                side.add(&block(busy, 0.0));
            }
            side
        };
        let fine = judged(&[side(0.2), side(0.2)], (20, 2), &[], false);
        assert!(fine.is_judged && !fine.is_limit, "{fine:?}");
        assert!(judged(&[side(0.2), side(0.2)], (20, 3), &[], false).is_limit);
        let limited = judged(&[side(0.2), side(0.99)], (20, 0), &[], false);
        assert!(limited.is_limit && limited.reason.contains("over all blocks of B"), "{limited:?}");
        assert!(!judged(&[side(0.99), side(0.99)], (20, 20), &[], true).is_limit);
    }

    /// A thousand requests of 10 ms, of which 600 were sent behind a stall of this length.
    fn late_side(lag_ns: u64, arrivals: Arrivals) -> Side {
        let mut totals = Interval::new(1);
        (totals.ledger.scheduled, totals.ledger.sent, totals.ledger.ok) = (1_000, 1_000, 1_000);
        totals.classes[0].response.record_many(10_000_000, 1_000);
        totals.classes[0].service.record_many(10_000_000, 1_000);
        totals.lag.record_many(lag_ns, 600);
        totals.delays.disturbed = 600;
        let model = Some(LoadModel::Open { rate_per_s: 100.0, arrivals });
        let health = Health { busy: 0.2, ..Health::default() };
        Side { totals, measured_s: 10.0, model, health, threads: 1, blocks: 10, ..Side::default() }
    }

    #[test]
    fn delays_that_hit_both_sides_alike_are_no_limit_and_those_of_one_side_are() {
        let sides = |lag_ns| [0, 1].map(|_| late_side(lag_ns, Arrivals::Poisson));
        let pairs = |of_b: f64| -> Vec<AbPair> {
            let delays = |at: u32| (0.1, of_b + 0.01 * (f64::from(at % 5) - 2.0));
            (0..20).map(|at| AbPair { delays: Some(delays(at)), ..AbPair::default() }).collect()
        };
        let alike = judged(&sides(1_000_000), (20, 0), &pairs(0.1), false);
        assert!(alike.is_late && !alike.is_limit, "{alike:?}");
        assert_eq!(alike.a, Some(VerdictKind::GeneratorLimited));
        assert!(alike.reason.contains("equal delays"), "{alike:?}");
        let of_b = judged(&sides(1_000_000), (20, 0), &pairs(0.12), false);
        assert!(of_b.is_limit && of_b.is_one_sided && !of_b.is_late, "{of_b:?}");
        assert!(of_b.reason.contains("10.0 % of a response time for A and 12.0 % for B"));
        // Nearly half of each response time is the generator's.
        assert!(judged(&sides(8_000_000), (20, 0), &pairs(0.1), false).is_limit);
        // More blocks than a tenth had no processor.
        assert!(judged(&sides(1_000_000), (20, 3), &pairs(0.1), false).is_limit);
        let mut closed = sides(1_000_000);
        closed[0].model = None;
        assert!(judged(&closed, (20, 0), &pairs(0.1), false).is_limit);
    }
}
