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
use plimsoll_record::RunRecord;
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
/// The same under a fixed rate if others kept the generator from a processor, on both sides alike.
const WITHHELD_MOST: f64 = 1.0 / 3.0;
/// Standard errors that the numbers of such blocks of both sides may be apart by chance: 5 %.
const APART: f64 = 1.96;

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
    left_out: LeftOut,
    /// Blocks in which the user's limit of connections was the limit, and the first verdict on one.
    by_connections: (u64, Option<Verdict>),
}

/// Blocks that are left out.
#[derive(Clone, Copy, Debug, Default)]
struct LeftOut {
    /// Those whose generator had no time or nothing else left.
    own: u64,
    /// Those in which others kept it from a processor.
    outside: u64,
}

/// Reason why a block is left out.
struct Reason {
    text: String,
    is_outside: bool,
}

fn block_limit(record: &RunRecord) -> Option<Reason> {
    let health = &record.generator.health;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let own = |text: String| Some(Reason { text, is_outside: false });
    if record.counters.exhausted > 0 {
        return own("the generator had no descriptor, port or memory left".to_owned());
    }
    if health.suspended_s > SUSPENDED_S {
        return own("the machine was suspended".to_owned());
    }
    if record.verdict.kind == VerdictKind::Void {
        return own("its ledger does not balance".to_owned());
    }
    if record.duration_s < SHORTEST_S {
        return None;
    }
    if health.withheld() > WITHHELD {
        let share = percent(health.withheld());
        let text = format!("the generator was kept from a processor for {share} of the time");
        return Some(Reason { text, is_outside: true });
    }
    if health.left() < LEFT {
        return own(format!("the generator was busy for {} of the time", percent(health.busy)));
    }
    None
}

impl Side {
    /// Adds a block; returns why it is left out, if it is.
    pub fn add(&mut self, measured: &Measured) -> Option<String> {
        let record = measured.record.as_deref()?;
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
        let limit = block_limit(record)?;
        self.left_out.own += u64::from(!limit.is_outside);
        self.left_out.outside += u64::from(limit.is_outside);
        Some(limit.text)
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

    /// Only an open load goes on as planned while the generator is late.
    fn is_open(&self) -> bool {
        self.model.as_ref().is_some_and(LoadModel::is_open)
    }

    /// Returns true if nothing but delays made the generator the limit, and they are small beside the response times.
    fn is_merely_late(&self) -> bool {
        self.is_open() && is_merely_late(&self.evidence()) && are_small(&self.totals)
    }
}

/// Judges the generator of the whole comparison.
#[must_use]
pub fn judged(sides: &[Side; 2], pairs: &[AbPair], are_generators: bool) -> AbGenerator {
    let blocks = sides[0].blocks + sides[1].blocks;
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
        a: verdicts[0].as_ref().map(|verdict| verdict.kind),
        b: verdicts[1].as_ref().map(|verdict| verdict.kind),
        reason:
            "such a block is left out; its own delays are judged over all blocks of a side together"
                .to_owned(),
        ..AbGenerator::default()
    };
    left_out(&mut found, sides);
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
                found.reason =
                    late(&format!("over all blocks of {letter}, in the worst case, {first}"));
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

/// Many blocks that are left out are a limit. Blocks without a processor say nothing of the others, which are judged by their delays, if they
/// come by chance: few of them, or as many on both sides.
fn left_out(found: &mut AbGenerator, sides: &[Side; 2]) {
    let [a, b] = [0, 1].map(|side| sides[side].left_out);
    let (own, outside) = (a.own + b.own, a.outside + b.outside);
    let (limited, blocks) = (own + outside, found.blocks);
    found.limited_blocks = limited;
    let are_more_than = |count: u64, share: f64| count as f64 > share * blocks as f64;
    if !are_more_than(limited, LEFT_OUT_MOST) {
        return;
    }
    let apart = a.outside.abs_diff(b.outside) as f64;
    let is_chance = apart <= APART * (outside as f64).sqrt();
    let are_open = sides.iter().all(Side::is_open);
    let counts =
        format!("the generator had no processor or no time left in {limited} of {blocks} blocks");
    let is_tolerated = are_open && is_chance && !are_more_than(own, LEFT_OUT_MOST);
    if is_tolerated && !are_more_than(limited, WITHHELD_MOST) {
        found.is_late = true;
        found.reason = late(&format!(
            "in {outside} of {blocks} blocks, which are left out, others kept it from a processor"
        ));
        return;
    }
    found.is_limit = true;
    let most = if is_tolerated { "a third" } else { "a tenth" };
    found.reason = format!(
        "{counts}, more than {most}; give it a core of its own, a lower rate, or another machine"
    );
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

fn late(reason: &str) -> String {
    format!(
        "its delays hit both sides, and each percentile is compared at equal delays; they pull a ratio towards 1, so nothing is \
         called the same; {reason}"
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
        let limit = |block: &Measured| Side::default().add(block);
        assert_eq!(limit(&block(0.5, 0.1)), None);
        assert!(limit(&block(0.99, 0.0)).unwrap().contains("busy for 99 %"));
        assert!(limit(&block(0.1, 0.3)).unwrap().contains("from a processor for 30 %"));
        assert_eq!(limit(&Measured::default()), None);
    }

    /// Ten blocks, of which some had no time left, and some no processor.
    fn side(busy: usize, starved: usize, load: &serde_json::Value) -> Side {
        let mut side = Side::default();
        for at in 0..10 {
            let mut block = match at {
                _ if at < busy => block(0.99, 0.0),
                _ if at < busy + starved => block(0.1, 0.3),
                _ => block(0.2, 0.0),
            };
            block.record.as_mut().unwrap().scenario = serde_json::json!({ "load": load });
            side.add(&block);
        }
        side
    }

    #[test]
    fn many_such_blocks_or_a_limited_side_are_the_limit() {
        let closed = serde_json::Value::Null;
        let of = |counts: [(usize, usize); 2]| {
            let sides = counts.map(|(busy, starved)| side(busy, starved, &closed));
            judged(&sides, &[], false)
        };
        let fine = of([(1, 0), (1, 0)]);
        assert!(fine.is_judged && !fine.is_limit && fine.limited_blocks == 2, "{fine:?}");
        assert!(of([(2, 0), (1, 0)]).is_limit && of([(0, 2), (0, 1)]).is_limit);
        let limited = judged(&[side(0, 0, &closed), side(10, 0, &closed)], &[], false);
        assert!(limited.is_limit && limited.reason.contains("a tenth"), "{limited:?}");
        assert!(!judged(&[side(10, 0, &closed), side(10, 0, &closed)], &[], true).is_limit);
    }

    #[test]
    fn blocks_without_a_processor_are_left_out_where_both_sides_have_them() {
        let open = serde_json::to_value(LoadModel::Open {
            rate_per_s: 100.0,
            arrivals: Arrivals::Poisson,
        });
        let open = open.unwrap();
        let of = |counts: [(usize, usize); 2]| {
            judged(&counts.map(|(busy, starved)| side(busy, starved, &open)), &[], false)
        };
        let both = of([(0, 3), (0, 2)]);
        assert!(both.is_late && !both.is_limit && both.limited_blocks == 5, "{both:?}");
        assert!(both.reason.contains("in 5 of 20 blocks"), "{both:?}");
        assert!(of([(0, 6), (0, 0)]).is_limit, "one side has all of them");
        assert!(of([(0, 4), (0, 4)]).reason.contains("more than a third"));
        assert!(of([(3, 0), (0, 1)]).is_limit, "its own time is no chance");
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
        let alike = judged(&sides(1_000_000), &pairs(0.1), false);
        assert!(alike.is_late && !alike.is_limit, "{alike:?}");
        assert_eq!(alike.a, Some(VerdictKind::GeneratorLimited));
        assert!(alike.reason.contains("equal delays"), "{alike:?}");
        let of_b = judged(&sides(1_000_000), &pairs(0.12), false);
        assert!(of_b.is_limit && of_b.is_one_sided && !of_b.is_late, "{of_b:?}");
        assert!(of_b.reason.contains("10.0 % of a response time for A and 12.0 % for B"));
        // Nearly half of each response time is the generator's.
        assert!(judged(&sides(8_000_000), &pairs(0.1), false).is_limit);
        let mut closed = sides(1_000_000);
        closed[0].model = None;
        assert!(judged(&closed, &pairs(0.1), false).is_limit);
    }
}
