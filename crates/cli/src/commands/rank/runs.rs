//! Runs at one rate, and FeedSim's table of them.

use super::RankArgs;
use crate::commands::method::unless_dead;
use plimsoll_core::rng::splitmix64;
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::plant::Segment;
use plimsoll_core::verdict::{Evidence, Verdict, VerdictKind, is_merely_late, judge};
use plimsoll_engine::plant::{EnginePlant, Stretch};
use plimsoll_engine::run::RunEnd;
use plimsoll_wire::rank::Rank;
use serde_json::{Value, json};

/// The head of FeedSim's table.
const HEAD: &str = "duration_secs,total_queries,requested_qps,achieved_qps,total_bytes_rx,total_bytes_tx,\
                    rx_MBps,tx_MBps,min_ms,avg_ms,50p_ms,90p_ms,95p_ms,99p_ms,99.9p_ms";
/// How much lower a final run begins again after one that missed a limit.
const STEP_DOWN: f64 = 0.97;
/// Final runs at most.
const FINAL_RUNS_MAX: usize = 4;

/// One run at one rate.
pub struct Row {
    requested_per_s: f64,
    stretch: Stretch,
    /// Whether every limit held.
    held: bool,
}

/// The servers under load.
pub type Plant<'a> = EnginePlant<'a, Rank, fn() -> Rank>;

/// Offers one rate, after load of the same kind that is not kept.
pub fn measure(
    plant: &mut Plant<'_>,
    rate_per_s: f64,
    warmup_s: f64,
    seconds: f64,
    goal: &Goal,
) -> Row {
    let seed = splitmix64(goal.seed ^ rate_per_s.to_bits());
    if warmup_s > 0.0 {
        plant.measure(Segment { rate_per_s, duration_s: warmup_s }, splitmix64(seed));
    }
    let stretch = plant.measure(Segment { rate_per_s, duration_s: seconds }, seed);
    let held = holds(goal, &stretch) && stretch.counts.scheduled > 0;
    Row { requested_per_s: rate_per_s, stretch, held }
}

/// Whether every limit held. For another tool's method the plant counts other limits than the goal's own.
fn holds(goal: &Goal, stretch: &Stretch) -> bool {
    let scheduled = stretch.counts.scheduled.max(1) as f64;
    let at =
        stretch.limits.iter().position(|&limit_ns| limit_ns == (goal.limit_s * 1e9).round() as u64);
    match (goal.limits.len(), at) {
        (1, Some(at)) if stretch.limits.len() > 1 => {
            stretch.counts.late[at] as f64 / scheduled <= goal.limits[0].allowed()
        }
        _ => goal.excess(&stretch.counts).0 <= 1.0,
    }
}

/// The rates of `-q`, each offered to every instance, with one warm-up for all.
pub fn fixed(plant: &mut Plant<'_>, args: &RankArgs, goal: &Goal, instances: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, rate) in args.qps.iter().enumerate() {
        let warmup_s = if index == 0 { f64::from(args.warmup) } else { 0.0 };
        let rate_per_s = rate * instances as f64;
        let row = measure(plant, rate_per_s, warmup_s, f64::from(args.seconds), goal);
        let over = row.stretch.interrupted;
        rows.push(row);
        if over {
            break;
        }
    }
    rows
}

/// A long run at the certified rate, a little lower when it misses a limit after all. The last row is the result.
pub fn final_run(
    plant: &mut Plant<'_>,
    certified_per_s: f64,
    seconds: f64,
    goal: &Goal,
) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut rate_per_s = certified_per_s;
    while rows.len() < FINAL_RUNS_MAX {
        let row = measure(plant, rate_per_s, 0.0, seconds, goal);
        let done = row.held || row.stretch.interrupted;
        rows.push(row);
        if done {
            break;
        }
        rate_per_s *= STEP_DOWN;
    }
    rows
}

impl Row {
    /// Returns how long it was. One that was stopped has windows that never began, but what was recorded until then counts.
    fn seconds(&self) -> f64 {
        let Stretch { seconds, totals, interrupted, .. } = &self.stretch;
        let recorded = if *interrupted { totals.seconds() } else { 0.0 };
        seconds.max(recorded).max(1e-9)
    }

    /// FeedSim's columns, in its order; times in ms, megabytes of 10^6.
    fn columns(&self) -> [f64; 15] {
        let Stretch { totals, .. } = &self.stretch;
        let seconds = self.seconds();
        let all = totals.all_classes();
        let response = all.response.summary();
        let counters = &totals.counters;
        [
            seconds.round(),
            totals.ledger.ok as f64,
            self.requested_per_s,
            counters.ok_in_time as f64 / seconds,
            counters.bytes_received as f64,
            counters.bytes_sent as f64,
            counters.bytes_received as f64 / 1e6 / seconds,
            counters.bytes_sent as f64 / 1e6 / seconds,
            response.min,
            response.mean,
            response.p50,
            response.p90,
            response.p95,
            response.p99,
            response.p99_9,
        ]
    }

    /// Instances that answered.
    fn successful(&self) -> usize {
        self.stretch.totals.classes.iter().filter(|part| part.ledger.ok > 0).count()
    }

    fn line(&self) -> String {
        let text = self.columns().map(|value| {
            if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") }
        });
        text.join(",")
    }

    /// What each instance did in this run: the requests of class i went to instance i.
    fn instances(&self) -> Vec<Value> {
        let seconds = self.seconds();
        let parts = &self.stretch.totals.classes;
        let share = 1.0 / parts.len().max(1) as f64;
        parts
            .iter()
            .map(|part| {
                json!({
                    "requested_per_s": self.requested_per_s * share,
                    "achieved_per_s": part.ledger.ok as f64 / seconds,
                    "failed": part.ledger.failed.total(),
                    "p50_ms": part.response.quantile_ns(0.5) as f64 / 1e6,
                    "p95_ms": part.response.quantile_ns(0.95) as f64 / 1e6,
                })
            })
            .collect()
    }

    /// How far the instances' answers per second lie apart, over their mean.
    pub fn spread(&self) -> f64 {
        let oks: Vec<f64> =
            self.stretch.totals.classes.iter().map(|part| part.ledger.ok as f64).collect();
        let mean = oks.iter().sum::<f64>() / oks.len().max(1) as f64;
        let most = oks.iter().copied().fold(0.0, f64::max);
        let least = oks.iter().copied().fold(f64::INFINITY, f64::min);
        if mean > 0.0 { (most - least) / mean } else { 0.0 }
    }

    /// The row for the record.
    pub fn to_json(&self) -> Value {
        let mut object = serde_json::Map::new();
        for (name, value) in HEAD.split(',').zip(self.columns()) {
            object.insert(name.to_owned(), json!(value));
        }
        object.insert("from_s".to_owned(), json!(self.stretch.from_s));
        object.insert("to_s".to_owned(), json!(self.stretch.from_s + self.stretch.seconds));
        object.insert("held".to_owned(), json!(self.held));
        object.insert("stopped".to_owned(), json!(self.stretch.interrupted));
        object.insert("failed".to_owned(), json!(self.stretch.totals.ledger.failed.total()));
        Value::Object(object)
    }
}

/// FeedSim's table as it writes it.
pub fn csv(rows: &[Row]) -> String {
    let lines: Vec<String> = rows.iter().map(Row::line).collect();
    format!("{HEAD}\n{}{}", lines.join("\n"), if lines.is_empty() { "" } else { "\n" })
}

/// Share of the limit that the generator's own delays may make up, and what they may be whatever the limit, s.
const OWN_SHARE: f64 = 0.1;
const OWN_FLOOR_S: f64 = 0.002;

/// The verdict on the whole: the search's, unless nothing was answered at all, or one of the runs after the search,
/// or of the fixed rates, cannot be believed.
pub fn verdict(of_search: Verdict, rows: &[Row], end: &RunEnd, goal: &Goal) -> Verdict {
    let of_search = unless_dead(of_search, end);
    if of_search.kind != VerdictKind::Valid {
        return of_search;
    }
    let mut of_rows = rows.iter().map(|row| (row, row.verdict(goal)));
    let wrong = of_rows.find(|(_, verdict)| verdict.kind != VerdictKind::Valid);
    let Some((row, Verdict { kind, mut reasons, .. })) = wrong else { return of_search };
    if let Some(reason) = reasons.first_mut() {
        *reason = format!("the run at {:.1}/s: {reason}", row.requested_per_s);
    }
    reasons.extend(of_search.reasons);
    Verdict::new(kind, reasons)
}

impl Row {
    /// May this run be believed? Delays of the generator that are small beside the limit do not matter, however large
    /// they are beside the times of a quick target.
    fn verdict(&self, goal: &Goal) -> Verdict {
        let Stretch { totals, health, interrupted, .. } = &self.stretch;
        let evidence =
            Evidence { interrupted: *interrupted, health: *health, ..Evidence::of(totals) };
        let verdict = judge(&evidence);
        let tolerated_ms = (OWN_SHARE * goal.limit_s).max(OWN_FLOOR_S) * 1e3;
        let own_ms = verdict.bounds.map_or(f64::INFINITY, |bounds| {
            [bounds.p50_ms, bounds.p95_ms]
                .map(|[low, high]| high - low)
                .into_iter()
                .fold(0.0, f64::max)
        });
        let is_limited = verdict.kind == VerdictKind::GeneratorLimited;
        if is_limited && is_merely_late(&evidence) && own_ms <= tolerated_ms {
            return Verdict { kind: VerdictKind::Valid, ..verdict };
        }
        verdict
    }
}

/// What the record holds under `rank`: the last run by instance and as a whole, and all runs.
pub fn record(rows: &[Row], instances: usize) -> Value {
    let runs: Vec<Value> = rows.iter().map(Row::to_json).collect();
    let last = rows.last();
    let overall = last.map(|row| {
        let columns = row.columns();
        json!({
            "requested_per_s": columns[2],
            "achieved_per_s": columns[3],
            "p50_ms": columns[10],
            "p95_ms": columns[12],
            "p99_ms": columns[13],
            "held": row.held,
        })
    });
    json!({
        "instances": last.map_or_else(Vec::new, Row::instances),
        "overall": overall,
        "spread": last.map_or(0.0, Row::spread),
        "spawned_instances": instances,
        "successful_instances": last.map_or(0, Row::successful),
        "runs": runs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::clock::MILLISECOND_NS as MS;
    use plimsoll_core::interval::Interval;
    use plimsoll_core::seek::plant::Window;
    use plimsoll_core::verdict::Health;

    /// A run whose replies take 5 ms, of which they may have waited `late_ns` for plimsoll to read them.
    fn row(late_ns: u64, health: Health) -> Row {
        let mut totals = Interval::new(1);
        for _ in 0..1000 {
            totals.classes[0].record_ok(5 * MS, 5 * MS);
            totals.lag.record(20_000);
        }
        totals.delays.receive.record_many(late_ns, 1000);
        (totals.ledger.scheduled, totals.ledger.sent, totals.ledger.ok) = (1000, 1000, 1000);
        (totals.counters.ended_in_time, totals.to_ns) = (1000, 10_000 * MS);
        let (counts, limits) = (Window::default(), Vec::new());
        let stretch = Stretch {
            from_s: 0.0,
            seconds: 10.0,
            counts,
            limits,
            totals,
            health,
            interrupted: false,
        };
        Row { requested_per_s: 100.0, stretch, held: true }
    }

    /// Lag is not all that a generator adds: replies that wait to be read count as well, and so does a saturated thread.
    #[test]
    fn a_run_is_judged_by_all_of_the_generators_delays() {
        let goal = |limit_s| Goal::late(0.05, limit_s, 10.0, 1);
        let kind = |row: &Row, limit_s| row.verdict(&goal(limit_s)).kind;
        let healthy = Health::default();
        assert_eq!(kind(&row(MS / 2, healthy), 0.15), VerdictKind::Valid);
        assert_eq!(kind(&row(4 * MS, healthy), 0.15), VerdictKind::Valid, "3 % of the limit");
        assert_eq!(kind(&row(4 * MS, healthy), 0.01), VerdictKind::GeneratorLimited);
        let saturated = Health { busy: 0.99, ..healthy };
        assert_eq!(kind(&row(MS / 2, saturated), 0.15), VerdictKind::GeneratorLimited);
    }
}
