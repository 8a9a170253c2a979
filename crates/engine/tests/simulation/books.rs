//! Holds the engine's books against the diary of its clients and the list of the server.

use crate::asker::{Asked, CLASSES};
use crate::bursts;
use crate::scene::{Outcome as Run, Scene, WINDOW_LIMIT_NS};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::interval::Interval;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::schedule::{LoadModel, Next, Schedule};
use plimsoll_core::seek::plant::Window;
use plimsoll_engine::sim::Arrival;
use plimsoll_engine::sim::http::{Fate, Seen};
use std::collections::BTreeMap;

/// How late a stop may be noticed, ns.
const NOTICED_NS: u64 = 60 * MILLISECOND_NS;
/// How late the shard may look, ns: a sleep ends at most 60 us late and answers are gathered for 50 us.
pub const NAP_NS: u64 = 200_000;

/// Checks one run. Panics at the first thing that is wrong; the caller says which seed it was.
pub fn check(scene: &Scene, run: &Run) {
    let totals = run.totals();
    let mut all = totals.clone();
    all.merge(run.end.warmup.as_ref().unwrap_or(&Interval::default()));
    totals.ledger.balance().unwrap();
    all.ledger.balance().unwrap();
    run.seconds.iter().for_each(check_histograms);
    check_histograms(&totals);
    check_histograms(&all);
    // All else is not the generator's lag.
    assert!(all.lag.max_ns() <= NAP_NS, "lag of {} ns", all.lag.max_ns());
    check_end(scene, run);
    check_schedule(scene, run, &totals, &all);
    check_diary(scene, run, &totals, &all);
    check_rates(scene, run, &totals);
    check_windows(run, &all);
    check_order(run);
    check_fates(scene, run, &all);
    check_limits(scene, run);
}

fn check_histograms(interval: &Interval) {
    let mut sum = Ledger::default();
    for class in &interval.classes {
        let ledger = &class.ledger;
        assert_eq!(class.response.count(), ledger.ok);
        assert_eq!(class.service.count(), ledger.ok);
        assert_eq!(class.hits_known, ledger.ok);
        assert_eq!(class.failed.count(), ledger.failed.total());
        sum.merge(ledger);
    }
    let whole = &interval.ledger;
    assert_eq!((sum.sent, sum.ok, sum.failed), (whole.sent, whole.ok, whole.failed));
    assert_eq!(sum.unfinished, whole.unfinished);
    assert_eq!(interval.lag.count(), whole.sent);
    let unserved = whole.refused.queue_full
        + whole.refused.queue_timeout
        + whole.unsent.stopped
        + whole.unfinished;
    assert_eq!(interval.unserved.count(), unserved);
}

/// The run ends within its duration plus its timeout plus 2 s, and a stop within 1 s.
fn check_end(scene: &Scene, run: &Run) {
    let plan = &scene.plan;
    let timeout_ns = plan.timeouts.connect_ns.max(plan.timeouts.request_ns);
    let limit_ns = run.start_ns + plan.limits.duration_ns + timeout_ns + 2 * SECOND_NS;
    assert!(run.over_ns <= limit_ns, "over at {} ns, limit {limit_ns} ns", run.over_ns);
    if run.end.interrupted || run.end.drain_cut {
        let stop_ns = scene.stop_ns.unwrap().max(run.start_ns);
        assert!(run.over_ns <= stop_ns + SECOND_NS, "stopped at {stop_ns}, over {}", run.over_ns);
    } else {
        let unfinished = run.diary.asked.iter().filter(|asked| asked.end.is_none()).count();
        assert_eq!(unfinished, 0, "requests were left although nobody stopped the run");
    }
}

/// What was scheduled is what the schedule makes due, in the warm-up and after it.
fn check_schedule(scene: &Scene, run: &Run, totals: &Interval, all: &Interval) {
    let plan = &scene.plan;
    if let Some(requests) = plan.limits.requests {
        assert!(all.ledger.scheduled <= requests);
    }
    if plan.model.has_askers() || scene.source.is_some() {
        return;
    }
    if let LoadModel::PacedBurst { limit: Some(_), .. } = plan.model {
        return bursts::check(scene, run);
    }
    let (slice, limits) = (plan.slice, plan.limits);
    let mut schedule =
        Schedule::start(&plan.model, slice, limits, plan.seed, run.start_ns).unwrap();
    let mut due = Vec::new();
    while let Next::Send { intended_ns, .. } = schedule.next(u64::MAX) {
        due.push(intended_ns);
    }
    let measured_ns = run.start_ns + plan.warmup_ns;
    let stop_ns = if run.end.interrupted { scene.stop_ns.unwrap_or(0) } else { u64::MAX };
    let count = |until_ns: u64, from_ns: u64| {
        due.iter().filter(|&&at_ns| at_ns >= from_ns && at_ns <= until_ns).count() as u64
    };
    for (ledger, from_ns) in [(&totals.ledger, measured_ns), (&all.ledger, 0)] {
        // A stop is noticed a little later, and what became due by then counts.
        let least = count(stop_ns, from_ns);
        let most = count(stop_ns.saturating_add(NOTICED_NS), from_ns);
        assert!(
            (least..=most).contains(&ledger.scheduled),
            "{} scheduled, not {least} to {most}, from {from_ns}",
            ledger.scheduled
        );
    }
    assert_eq!(run.diary.asked.len() as u64, all.ledger.sent);
}

/// The counts by due time say what the ledger says, and which of the answers came in time.
fn check_windows(run: &Run, all: &Interval) {
    let mut sum = Window::default();
    run.windows.iter().for_each(|window| sum.add(window));
    assert_eq!(sum.scheduled, all.ledger.scheduled);
    assert_eq!(sum.failed, all.ledger.failed.total());
    assert_eq!(sum.completed, all.ledger.ok);
    assert_eq!(sum.late[1], all.ledger.scheduled - all.ledger.ok);
    let in_time = |asked: &&Asked| {
        asked.end.is_some_and(|(outcome, times)| {
            outcome == Outcome::Ok && times.done_ns - times.intended_ns <= WINDOW_LIMIT_NS
        })
    };
    let in_time = run.diary.asked.iter().filter(in_time).count() as u64;
    assert_eq!(sum.late[0], all.ledger.scheduled - in_time);
}

/// The ledger says what the clients saw.
fn check_diary(scene: &Scene, run: &Run, totals: &Interval, all: &Interval) {
    let asked = &run.diary.asked;
    let measured_ns = run.start_ns + scene.plan.warmup_ns;
    let counted = |measured_only: bool| {
        let mut ledger = Ledger::default();
        for one in asked.iter() {
            match one.end {
                Some((_, times)) if measured_only && times.intended_ns < measured_ns => {}
                Some((outcome, _)) => ledger.settle(outcome),
                None => ledger.unfinished += 1,
            }
        }
        (ledger.ok, ledger.failed, ledger.unfinished)
    };
    let of = |ledger: &Ledger| (ledger.ok, ledger.failed, ledger.unfinished);
    assert_eq!(of(&all.ledger), counted(false));
    assert_eq!(all.ledger.sent, asked.len() as u64);
    if scene.plan.ignore_first == 0 && totals.ledger.unfinished == all.ledger.unfinished {
        assert_eq!(of(&totals.ledger), counted(true));
    }
    if scene.plan.ignore_first > 0 && scene.plan.model.clients().is_some() {
        let mut ended: BTreeMap<u32, u64> = BTreeMap::new();
        for one in asked.iter().filter(|one| one.end.is_some()) {
            *ended.entry(one.client).or_default() += 1;
        }
        let ignored: u64 = ended.values().map(|&n| n.min(u64::from(scene.plan.ignore_first))).sum();
        assert_eq!(all.ledger.finished() - totals.ledger.finished(), ignored);
    }
    for (_, times) in asked.iter().filter_map(|one| one.end) {
        assert!(times.sent_ns >= times.intended_ns, "sent before it was due: {times:?}");
        assert!(times.done_ns >= times.sent_ns, "done before it was sent: {times:?}");
        assert!(times.intended_ns >= run.start_ns);
    }
}

/// Rates count what ended in the measured stretch, whatever it was due.
fn check_rates(scene: &Scene, run: &Run, totals: &Interval) {
    let (from_ns, to_ns) = (run.start_ns + scene.plan.warmup_ns, run.end.measured_ns.1);
    let ended = run.diary.asked.iter().filter_map(|asked| asked.end);
    let in_time: Vec<Outcome> = ended
        .filter(|(_, times)| times.done_ns >= from_ns && times.done_ns <= to_ns)
        .map(|(outcome, _)| outcome)
        .collect();
    let ok = in_time.iter().filter(|outcome| **outcome == Outcome::Ok).count() as u64;
    let counted = (totals.counters.ended_in_time, totals.counters.ok_in_time);
    if scene.plan.ignore_first == 0 {
        assert_eq!(counted, (in_time.len() as u64, ok), "{from_ns} to {to_ns}");
    } else {
        assert!(counted.0 <= in_time.len() as u64 && counted.1 <= ok);
    }
}

/// Each connection carried one request at a time, without a gap in their numbers.
fn check_order(run: &Run) {
    let mut last: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
    for seen in &run.seen {
        if let Some((prior, at_ns)) = last.insert(seen.connection, (seen.prior, seen.at_ns)) {
            assert_eq!(seen.prior, prior + 1);
            assert!(seen.at_ns >= at_ns);
        } else {
            assert_eq!(seen.prior, 0);
        }
    }
}

const fn outcome_of(fate: Fate) -> Outcome {
    match fate {
        Fate::Answered(200) => Outcome::Ok,
        Fate::Answered(_) => Outcome::Failed(Failure::Status),
        Fate::Stalled | Fate::Late | Fate::HalfOpen => Outcome::Failed(Failure::Timeout),
        Fate::Reset | Fate::Closed | Fate::DeadOnArrival => Outcome::Failed(Failure::Reset),
        Fate::ResetInside | Fate::Cut => Outcome::Failed(Failure::Short),
        Fate::Garbage => Outcome::Failed(Failure::Protocol),
    }
}

fn must_be_retried(asked: &Asked, seen: &Seen) -> bool {
    asked.idempotent && seen.prior > 0 && outcome_of(seen.fate) == Outcome::Failed(Failure::Reset)
}

/// Every request came to what the server did with it, and the server saw each once, or twice when the
/// first time was on a kept connection that died.
fn check_fates(scene: &Scene, run: &Run, all: &Interval) {
    let mut attempts: Vec<Vec<&Seen>> = vec![Vec::new(); run.diary.asked.len()];
    for seen in &run.seen {
        let item: usize = seen.request.rsplit('/').next().unwrap().parse().unwrap();
        attempts[item].push(seen);
    }
    // Pieces may be long on their way, but each attempt has a connection of its own.
    attempts.iter_mut().for_each(|of_item| of_item.sort_by_key(|seen| seen.connection));
    let (mut unreached, mut silent, mut retries) = (0, 0, 0);
    for (item, (asked, seen)) in run.diary.asked.iter().zip(&attempts).enumerate() {
        let again = seen.first().is_some_and(|first| must_be_retried(asked, first));
        assert!(seen.len() <= 1 + usize::from(again), "item {item} came too often: {seen:?}");
        let Some((outcome, times)) = asked.end else { continue };
        retries += u64::from(again);
        if let Some(first) = seen.first() {
            assert!(first.at_ns >= times.intended_ns, "item {item} came before it was due");
        }
        let no_address = scene.plan.targets[asked.target as usize].addresses.is_empty();
        if seen.len() > usize::from(again) {
            let last = seen[seen.len() - 1];
            assert_eq!(outcome, outcome_of(last.fate), "item {item}: {asked:?} {seen:?}");
            assert!(seen.len() == 1 || last.prior == 0, "item {item} again on a kept connection");
        } else if no_address {
            assert_eq!(outcome, Outcome::Failed(Failure::Connect), "item {item}: {asked:?}");
        } else {
            match outcome {
                Outcome::Failed(Failure::Connect) => unreached += 1,
                Outcome::Failed(Failure::Timeout) => silent += 1,
                // The server had closed already, and the kernel took no more than a piece of the request line.
                Outcome::Failed(Failure::Reset)
                    if scene.link.partial_per_mille > 0 && !asked.idempotent => {}
                _ => panic!("item {item}: {asked:?}, which the server never saw: {seen:?}"),
            }
        }
        if outcome == Outcome::Failed(Failure::Timeout) {
            let timeouts = scene.plan.timeouts;
            let least_ns = if seen.is_empty() { timeouts.connect_ns } else { timeouts.request_ns };
            let waited_ns = times.done_ns - times.sent_ns;
            assert!(waited_ns >= least_ns, "item {item} timed out after {waited_ns} ns");
            // One that is sent again keeps its deadline: it was sent on an open connection, so that nothing
            // but the answer was waited for.
            let most_ns = if again { timeouts.request_ns + NAP_NS } else { u64::MAX };
            assert!(waited_ns <= most_ns, "item {item} timed out only after {waited_ns} ns");
        }
    }
    let knocked = |wanted: fn(Arrival) -> bool| {
        let dead = &scene.script.connects.dead;
        run.knocks
            .iter()
            .filter(|k| k.at_ns >= run.start_ns && !dead.contains(&k.address) && wanted(k.arrival))
            .count() as u64
    };
    let refused = knocked(|a| matches!(a, Arrival::Failed { .. } | Arrival::FailedAtOnce(_)));
    let unanswered = knocked(|a| a == Arrival::Silence);
    if run.end.interrupted || run.end.drain_cut {
        assert!(unreached <= refused && silent <= unanswered && retries <= all.counters.retries);
    } else {
        // One that replaces a connection that the server closed is asked for by no request.
        let [replacing, no_answer] = [(refused, unreached), (unanswered, silent)]
            .map(|(knocks, requests): (u64, u64)| knocks.checked_sub(requests).expect("a knock"));
        assert!(replacing + no_answer <= run.closed, "connections not made");
        assert_eq!(retries, all.counters.retries);
    }
}

fn check_limits(scene: &Scene, run: &Run) {
    let (diary, plan) = (&run.diary, &scene.plan);
    assert!(diary.most_in_flight <= plan.connections, "{} in flight", diary.most_in_flight);
    if let Some(clients) = plan.model.clients() {
        assert!(diary.most_in_flight <= clients && diary.most_of_one_client <= 1);
    }
    if plan.model.has_askers() {
        assert!(diary.most_of_one_client <= 1, "somebody asked twice at a time");
    }
    if let AdmissionModel::Managed { slots, .. } = plan.admission {
        assert!(diary.most_in_flight <= slots);
    }
    if let Some(source) = scene.source {
        assert!(diary.asked.len() as u64 <= source);
    }
    assert!(run.end.slowest.len() <= 20 && run.failures_told <= 20 * Failure::COUNT);
    assert_eq!(run.end.rest.classes.len().max(CLASSES), CLASSES);
}
