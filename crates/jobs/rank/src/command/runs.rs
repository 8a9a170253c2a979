//! Runs at one rate, and FeedSim's table of them.

use super::RankArgs;
use plimsoll_core::rng::splitmix64;
use plimsoll_core::seek::finding::{Event, Finding, Measured, Verdict as Found};
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::plant::Segment;
use plimsoll_core::seek::search::least_run_s;
use plimsoll_core::verdict::{Evidence, Verdict, VerdictKind, is_merely_late, judge};
use plimsoll_engine::plant::{EnginePlant, Stretch};
use plimsoll_engine::run::RunEnd;
use plimsoll_job::method::unless_dead;
use plimsoll_record::rank::{RankInstance, RankOverall, RankResult, RankRun};
use plimsoll_wire::rank::Rank;

/// The head of FeedSim's table.
const HEAD: &str = "duration_secs,total_queries,requested_qps,achieved_qps,total_bytes_rx,total_bytes_tx,\
                    rx_MBps,tx_MBps,min_ms,avg_ms,50p_ms,90p_ms,95p_ms,99p_ms,99.9p_ms";
/// Factor by which a final run is lower than the one before, which missed a limit.
const STEP_DOWN: f64 = 0.97;
/// Final runs at most.
const FINAL_RUNS_MAX: usize = 4;

/// One run at one rate.
pub struct Row {
    requested_per_s: f64,
    stretch: Stretch,
    /// True if every limit held.
    held: bool,
}

/// The servers under load.
pub type Plant<'a> = EnginePlant<'a, Rank, anyhow::Error>;

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

/// Returns true if every limit held. For another tool's method the plant counts other limits than the goal's own.
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

/// A long run at the rate that the search found, a little lower when it misses a limit after all. The last row is the result;
/// none is shorter than a run that certifies a rate must be.
pub fn final_run(
    plant: &mut Plant<'_>,
    found_per_s: f64,
    seconds: f64,
    goal: &Goal,
    observe: &mut dyn FnMut(&Event),
) -> Vec<Row> {
    let seconds = seconds.max(least_run_s(goal).ceil());
    let mut rows: Vec<Row> = Vec::new();
    let mut rate_per_s = found_per_s;
    while rows.len() < FINAL_RUNS_MAX {
        let row = measure(plant, rate_per_s, 0.0, seconds, goal);
        observe(&Event::Certified { seen: row.seen(goal), held: row.held });
        let done = row.held || row.stretch.interrupted;
        rows.push(row);
        if done {
            break;
        }
        rate_per_s *= STEP_DOWN;
    }
    rows
}

/// The finding with the last run in place of what the search itself certified: nothing is certified that did not hold in
/// the run that was checked last.
pub fn checked(found: Finding, rows: &[Row], goal: &Goal) -> Finding {
    let was_certified = found.certified.is_some();
    let found = Finding { certified: None, certified_last: false, ..found };
    let Some(last) = rows.last() else {
        if was_certified {
            let reason = "the run was stopped before the rate was checked".to_owned();
            return Finding { verdict: Found::Interrupted, reason, ..found };
        }
        return found;
    };
    let seen = last.seen(goal);
    let at = format!("at {:.1}/s", seen.rate_per_s);
    if last.stretch.interrupted {
        let reason = format!("the run was stopped while the rate was checked, {at}");
        return Finding { verdict: Found::Interrupted, reason, ..found };
    }
    let known = found
        .half_width
        .map_or(String::new(), |half| format!("; the line is known to {:.1} %", 100.0 * half));
    if last.held {
        let reason = match found.verdict {
            Found::Ok | Found::BudgetTooSmall => {
                format!("all limits held in the final run, {:.0} s {at}{known}", seen.seconds)
            }
            _ => found.reason.clone(),
        };
        let broke = rows.iter().rev().find(|row| !row.held).map(|row| row.seen(goal));
        return Finding {
            reason,
            certified: Some(seen),
            certified_last: true,
            broke: broke.or(found.broke),
            ..found
        };
    }
    let runs = match rows.len() {
        1 => "the final run".to_owned(),
        n => format!("the final {n} runs"),
    };
    let reason = format!(
        "no rate is certified: a limit was missed in {runs}, {:.0} s each, down to {:.1}/s{known}",
        seen.seconds, seen.rate_per_s
    );
    match (found.verdict, found.interval_per_s) {
        (Found::Ok | Found::BudgetTooSmall, Some((low, _))) if seen.rate_per_s < low => Finding {
            verdict: Found::Drifting,
            reason: format!(
                "the limits were missed in {runs}, {:.0} s each, down to {:.1}/s, although they held in the search: the \
                 target changed",
                seen.seconds, seen.rate_per_s
            ),
            estimate_per_s: None,
            interval_per_s: None,
            half_width: None,
            ..found
        },
        (Found::Ok | Found::BudgetTooSmall | Found::NeverViolated { .. }, _) => {
            Finding { verdict: Found::BudgetTooSmall, reason, broke: Some(seen), ..found }
        }
        _ => Finding { broke: Some(seen), ..found },
    }
}

impl Row {
    /// The run as a search reports its own.
    fn seen(&self, goal: &Goal) -> Measured {
        let limits = goal.limits.len();
        Measured::new(self.requested_per_s, self.seconds(), limits, &self.stretch.counts)
    }

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

    /// Results of each instance in this run: the requests of class i went to instance i.
    fn instances(&self) -> Vec<RankInstance> {
        let seconds = self.seconds();
        let parts = &self.stretch.totals.classes;
        let share = 1.0 / parts.len().max(1) as f64;
        parts
            .iter()
            .map(|part| RankInstance {
                requested_per_s: self.requested_per_s * share,
                achieved_per_s: part.ledger.ok as f64 / seconds,
                failed: part.ledger.failed.total(),
                p50_ms: part.response.quantile_ns(0.5) as f64 / 1e6,
                p95_ms: part.response.quantile_ns(0.95) as f64 / 1e6,
            })
            .collect()
    }

    /// Spread of the instances' answers per second, over their mean.
    pub fn spread(&self) -> f64 {
        let oks: Vec<f64> =
            self.stretch.totals.classes.iter().map(|part| part.ledger.ok as f64).collect();
        let mean = oks.iter().sum::<f64>() / oks.len().max(1) as f64;
        let most = oks.iter().copied().fold(0.0, f64::max);
        let least = oks.iter().copied().fold(f64::INFINITY, f64::min);
        if mean > 0.0 { (most - least) / mean } else { 0.0 }
    }

    /// The row for the record.
    fn recorded(&self) -> RankRun {
        let [
            duration_secs,
            total_queries,
            requested_qps,
            achieved_qps,
            total_bytes_rx,
            total_bytes_tx,
            rx_mb_per_s,
            tx_mb_per_s,
            min_ms,
            avg_ms,
            p50_ms,
            p90_ms,
            p95_ms,
            p99_ms,
            p99_9_ms,
        ] = self.columns();
        RankRun {
            duration_secs,
            total_queries,
            requested_qps,
            achieved_qps,
            total_bytes_rx,
            total_bytes_tx,
            rx_mb_per_s,
            tx_mb_per_s,
            min_ms,
            avg_ms,
            p50_ms,
            p90_ms,
            p95_ms,
            p99_ms,
            p99_9_ms,
            from_s: self.stretch.from_s,
            to_s: self.stretch.from_s + self.stretch.seconds,
            held: self.held,
            stopped: self.stretch.interrupted,
            failed: self.stretch.totals.ledger.failed.total(),
        }
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

/// The verdict on the whole: the search's, unless nothing was answered at all, or a run that is part of the result cannot be
/// believed: the last one of a search, any one of fixed rates.
pub fn verdict(
    of_search: Verdict,
    rows: &[Row],
    end: &RunEnd,
    goal: &Goal,
    fixed: bool,
) -> Verdict {
    let of_search = unless_dead(of_search, end);
    if of_search.kind != VerdictKind::Valid {
        return of_search;
    }
    let judged = if fixed { rows } else { &rows[rows.len().saturating_sub(1)..] };
    let mut of_rows = judged.iter().map(|row| (row, row.verdict(goal)));
    let wrong = of_rows.find(|(_, verdict)| verdict.kind != VerdictKind::Valid);
    let Some((row, Verdict { kind, mut reasons, .. })) = wrong else { return of_search };
    if let Some(reason) = reasons.first_mut() {
        *reason = format!("the run at {:.1}/s: {reason}", row.requested_per_s);
    }
    reasons.extend(of_search.reasons);
    Verdict::new(kind, reasons)
}

impl Row {
    /// Returns the verdict on this run. Delays of the generator that are small beside the limit do not matter, however large
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

/// Section `rank` of the record: the last run by instance and as a whole, and all runs.
pub fn record(rows: &[Row], instances: usize) -> RankResult {
    let runs: Vec<RankRun> = rows.iter().map(Row::recorded).collect();
    let overall = runs.last().map(|run| RankOverall {
        requested_per_s: run.requested_qps,
        achieved_per_s: run.achieved_qps,
        p50_ms: run.p50_ms,
        p95_ms: run.p95_ms,
        p99_ms: run.p99_ms,
        held: run.held,
    });
    let last = rows.last();
    RankResult {
        instances: last.map_or_else(Vec::new, Row::instances),
        overall,
        spread: last.map_or(0.0, Row::spread),
        spawned_instances: instances,
        successful_instances: last.map_or(0, Row::successful),
        runs,
        stages: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::clock::MILLISECOND_NS as MS;
    use plimsoll_core::interval::Interval;
    use plimsoll_core::seek::plant::Window;
    use plimsoll_core::verdict::Health;
    use plimsoll_job::method::verdict_of;
    use serde_json::json;

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

    fn run(rate_per_s: f64, held: bool) -> Row {
        let mut row = row(0, Health::default());
        (row.requested_per_s, row.held) = (rate_per_s, held);
        (row.stretch.counts.scheduled, row.stretch.counts.late[0]) =
            (1000, if held { 30 } else { 80 });
        row
    }

    /// A search that found a line of 150/s and certified 145/s, or had no time to.
    fn found(certified: bool) -> Finding {
        let counts = Window { scheduled: 1000, ..Window::default() };
        let own = certified.then(|| Measured::new(145.0, 8.0, 1, &counts));
        serde_json::from_value(json!({
            "verdict": if certified { "ok" } else { "budget-too-small" }, "reason": "the search's own",
            "certified": own, "certified_last": certified, "estimate_per_s": 150.0,
            "interval_per_s": [140.0, 160.0], "confidence": 0.95, "half_width": 0.066,
            "curve": [], "phases": [], "elapsed_s": 100.0,
        }))
        .unwrap()
    }

    fn goal() -> Goal {
        Goal::late(0.05, 0.15, 100.0, 1)
    }

    #[test]
    fn the_run_that_was_checked_last_is_the_headline() {
        let rows = [run(145.0, false), run(140.6, true)];
        let reported = checked(found(true), &rows, &goal());
        let certified = reported.certified.as_ref().unwrap();
        assert_eq!((certified.rate_per_s, certified.seconds), (140.6, 10.0));
        assert!((certified.late_share[0] - 0.03).abs() < 1e-9 && reported.certified_last);
        assert_eq!(reported.broke.as_ref().map(|run| run.rate_per_s), Some(145.0));
        assert_eq!(verdict_of(&reported).kind, VerdictKind::Valid);
        assert!(reported.reason.contains("10 s at 140.6/s"), "{}", reported.reason);
        // A search that had no time to certify a rate has one when the run at its interval's lower end holds.
        let reported = checked(found(false), &[run(140.0, true)], &goal());
        assert_eq!(reported.certified.as_ref().map(|run| run.rate_per_s), Some(140.0));
        assert_eq!(verdict_of(&reported).kind, VerdictKind::Valid);
    }

    #[test]
    fn what_did_not_hold_in_the_last_run_is_not_certified() {
        let rows = [run(145.0, false), run(141.0, false)];
        let reported = checked(found(true), &rows, &goal());
        assert_eq!(
            (reported.certified.is_some(), reported.interval_per_s),
            (false, Some((140.0, 160.0)))
        );
        assert_eq!(verdict_of(&reported).kind, VerdictKind::BudgetTooSmall);
        assert!(
            reported.reason.contains("the final 2 runs, 10 s each, down to 141.0/s"),
            "{}",
            reported.reason
        );
        // Below the interval the search and its check contradict each other.
        let reported = checked(found(true), &[run(145.0, false), run(136.0, false)], &goal());
        assert_eq!(verdict_of(&reported).kind, VerdictKind::Unstable);
        assert!(reported.certified.is_none() && reported.interval_per_s.is_none());
    }

    #[test]
    fn a_check_that_was_stopped_or_never_made_certifies_nothing() {
        let mut cut = run(145.0, true);
        cut.stretch.interrupted = true;
        for rows in [vec![cut], Vec::new()] {
            let reported = checked(found(true), &rows, &goal());
            assert!(reported.certified.is_none(), "{}", reported.reason);
            assert_eq!(verdict_of(&reported).kind, VerdictKind::Partial);
        }
        let reported = checked(found(false), &[], &goal());
        assert_eq!(verdict_of(&reported).kind, VerdictKind::BudgetTooSmall);
        assert_eq!(reported.reason, "the search's own");
    }
}
