//! Was the generator the limit? Judged per block and over all blocks of a side together.
//!
//! A block of a second is short: one stall of the machine makes its p95 late, and hits both sides by chance. So a block is left
//! out only if its generator had no processor or no time left. Whether the generator's own delays shaped the times is judged over
//! all blocks of a side together, by the rules of a run of that length.

use crate::measured::Measured;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::{ClassPart, Interval};
use plimsoll_core::schedule::LoadModel;
use plimsoll_core::verdict::{ConnectionLimit, Evidence, Health, Verdict, VerdictKind, judge};
use plimsoll_record::RunRecord;
use plimsoll_record::ab::AbGenerator;
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

/// Decodes a histogram of a record; an empty one if it has none.
fn histogram(record: &RunRecord, name: &str) -> Histogram {
    let text = record.histograms.get(name);
    text.and_then(|text| Histogram::decode(text).ok()).unwrap_or_default()
}

/// The measurements of a record, all classes in one.
fn totals(record: &RunRecord) -> Interval {
    let mut all = ClassPart { ledger: record.ledger, ..ClassPart::default() };
    for name in &record.class_names {
        all.response.merge(&histogram(record, &format!("{name}/response")));
        all.service.merge(&histogram(record, &format!("{name}/service")));
        all.failed.merge(&histogram(record, &format!("{name}/failed")));
    }
    let mut totals = Interval::new(1);
    totals.to_ns = (record.duration_s * 1e9) as u64;
    totals.ledger = record.ledger;
    totals.counters = record.counters;
    totals.lag = histogram(record, "lag");
    totals.delays.receive = histogram(record, "receive-lag");
    totals.delays.send = histogram(record, "send");
    totals.delays.starved = histogram(record, "starved");
    totals.delays.connection = histogram(record, "connection-wait");
    totals.delays.disturbed = record.generator.disturbed;
    totals.unserved = histogram(record, "unserved");
    totals.statuses.clone_from(&record.statuses);
    totals.classes[0] = all;
    totals
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
        Some(judge(&evidence))
    }
}

/// Judges the generator of the whole comparison.
#[must_use]
pub fn judged(sides: &[Side; 2], blocks: u64, limited: u64, are_generators: bool) -> AbGenerator {
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
    for (letter, verdict) in ['A', 'B'].iter().zip(verdicts.into_iter().flatten()) {
        let is_limit =
            matches!(verdict.kind, VerdictKind::GeneratorLimited | VerdictKind::ConnectionLimited);
        if is_limit && !found.is_limit {
            found.is_limit = true;
            let first = verdict.reasons.into_iter().next().unwrap_or_default();
            found.reason = format!("over all blocks of {letter}: {first}");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let fine = judged(&[side(0.2), side(0.2)], 20, 2, false);
        assert!(fine.is_judged && !fine.is_limit, "{fine:?}");
        assert!(judged(&[side(0.2), side(0.2)], 20, 3, false).is_limit);
        let limited = judged(&[side(0.2), side(0.99)], 20, 0, false);
        assert!(limited.is_limit && limited.reason.contains("over all blocks of B"), "{limited:?}");
        assert!(!judged(&[side(0.99), side(0.99)], 20, 20, true).is_limit);
    }
}
