//! Intended starts against those that the schedule gives.

use super::{Findings, was_cut};
use crate::diary::End;
use crate::played::Played;
use crate::scene::Scene;
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::rng::derive_seed;
use plimsoll_core::schedule::{LoadModel, Next, Schedule};
use std::collections::BTreeMap;

/// Delay until a stop is noticed, ns.
const NOTICED_NS: u64 = 60 * MILLISECOND_NS;

pub(super) fn check(scene: &Scene, played: &Played, findings: &mut Findings) {
    let model = &scene.plan.model;
    let starts = played.diary.asked.iter().filter_map(|asked| asked.end);
    for end in starts {
        findings.expect(end.times.intended_ns >= played.start_ns, || {
            format!("{end:?} was due before the start at {}", played.start_ns)
        });
    }
    users(scene, played, findings);
    let is_paced = matches!(model, LoadModel::PacedBurst { limit: Some(_), .. });
    if model.has_askers() || is_paced {
        return;
    }
    arrivals(scene, played, findings);
}

/// Arrivals that do not depend on the answers: each request has the intended start that the schedule gives it, and no
/// arrival is used twice or forgotten.
fn arrivals(scene: &Scene, played: &Played, findings: &mut Findings) {
    let plan = &scene.plan;
    let started = Schedule::start(&plan.model, plan.slice, plan.limits, plan.seed, played.start_ns);
    let Ok(mut schedule) = started else { return };
    let mut due: BTreeMap<u64, i64> = BTreeMap::new();
    while let Next::Send { intended_ns, .. } = schedule.next(u64::MAX) {
        *due.entry(intended_ns).or_default() += 1;
    }
    let mut unused = due.clone();
    for asked in &played.diary.asked {
        let Some(end) = asked.end else { continue };
        let left = unused.entry(end.times.intended_ns).or_default();
        *left -= 1;
        let is_due = *left >= 0;
        findings.expect(is_due, || {
            format!("nothing more was due at {}: {asked:?}", end.times.intended_ns)
        });
    }
    if scene.source.is_some() || played.end.refused.is_some() {
        return;
    }
    let measured_ns = played.start_ns + plan.warmup_ns;
    let stop_ns = if played.end.interrupted { scene.stop_ns.unwrap_or(0) } else { u64::MAX };
    let count = |until_ns: u64, from_ns: u64| {
        let within = due.range(from_ns..).take_while(|(at_ns, _)| **at_ns <= until_ns);
        within.map(|(_, count)| *count as u64).sum::<u64>()
    };
    let (totals, all) = (played.totals(), played.all());
    for (ledger, from_ns) in [(&totals.ledger, measured_ns), (&all.ledger, 0)] {
        // A stop is noticed a little later, and what became due by then counts.
        let least = count(stop_ns, from_ns);
        let most = count(stop_ns.saturating_add(NOTICED_NS + scene.slack_ns()), from_ns);
        findings.expect((least..=most).contains(&ledger.scheduled), || {
            format!("{} scheduled from {from_ns} ns on, not {least} to {most}", ledger.scheduled)
        });
    }
}

/// A user's last request so far.
#[derive(Clone, Copy)]
struct Last {
    step: u32,
    end: Option<End>,
}

/// Returns true if a request ended for want of a connection, which rests then together with the client.
fn has_paused(end: End) -> bool {
    matches!(end.outcome, Outcome::Failed(Failure::Connect | Failure::Timeout))
}

/// Each user asks its requests in their order and no more than it has, each exactly when its think time and pace say.
fn users(scene: &Scene, played: &Played, findings: &mut Findings) {
    let plan = &scene.plan;
    let LoadModel::Users { requests, think, pace, .. } = &plan.model else { return };
    // A request that admission rejects is one of the user's, and a client that pauses asks when the pause is over.
    let is_exact = plan.admission == AdmissionModel::Direct && scene.pause_ns == 0;
    let seed = derive_seed(plan.seed, "think");
    let due_ns = |user: u64, last: Last| {
        let times = last.end?.times;
        let thinks_ns = think.draw_ns(seed, user, last.step + 1);
        let rested_ns = times.done_ns + thinks_ns;
        Some(match (pace.ns, thinks_ns) {
            (0, _) => rested_ns,
            (pace_ns, 0) => times.intended_ns + pace_ns,
            (pace_ns, _) => rested_ns.max(times.intended_ns + pace_ns),
        })
    };
    let mut all: BTreeMap<u64, Last> = BTreeMap::new();
    for asked in &played.diary.asked {
        let Some(turn) = asked.turn else {
            findings
                .expect(false, || format!("the user of this request was not announced: {asked:?}"));
            continue;
        };
        findings.expect(turn.step < *requests, || format!("a user asked too often: {asked:?}"));
        let Some(last) = all.insert(turn.user, Last { step: turn.step, end: asked.end }) else {
            findings.expect(turn.step == 0 || !is_exact, || format!("not its first: {asked:?}"));
            continue;
        };
        let follows = if is_exact { turn.step == last.step + 1 } else { turn.step > last.step };
        findings
            .expect(follows, || format!("request {} of a user came before {asked:?}", last.step));
        let Some(end) = asked.end else { continue };
        let before_ns = last.end.map_or(u64::MAX, |end| end.times.done_ns);
        findings.expect(end.times.sent_ns >= before_ns, || {
            format!("sent before the answer at {before_ns}: {asked:?}")
        });
        let expected_ns = due_ns(turn.user, last);
        // Who could not be connected pauses before it goes on.
        let is_late = last.end.is_some_and(has_paused)
            && expected_ns.is_some_and(|at_ns| at_ns <= end.times.intended_ns);
        let is_due = is_late || expected_ns == Some(end.times.intended_ns);
        findings.expect(!is_exact || is_due, || {
            format!("due at {expected_ns:?} by its think time and pace: {asked:?}")
        });
    }
    let is_whole = !was_cut(played) && scene.source.is_none() && plan.limits.requests.is_none();
    if is_exact && is_whole && played.all().ledger.unsent.stopped == 0 {
        let end_ns = played.start_ns + plan.limits.duration_ns;
        for (user, last) in all.iter().filter(|(_, last)| last.step + 1 < *requests) {
            if last.end.is_none_or(|end| has_paused(end) || end.times.done_ns >= end_ns) {
                continue;
            }
            let due_ns = due_ns(*user, *last).unwrap_or(u64::MAX);
            findings.expect(due_ns >= end_ns, || {
                format!("user {user} asks no more after request {}, due at {due_ns}", last.step)
            });
        }
    }
}
