//! Managed admission against a model of it: waiting requests, rejected ones, and their times.

use super::{Findings, was_cut};
use crate::played::Played;
use crate::scene::Scene;
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::schedule::{Next, Schedule};
use std::collections::VecDeque;

pub(super) fn check(scene: &Scene, played: &Played, findings: &mut Findings) {
    let ledger = played.all().ledger;
    let AdmissionModel::Managed { slots, queue_max, queue_timeout_ns } = scene.plan.admission
    else {
        let refused = ledger.refused.queue_full + ledger.refused.queue_timeout;
        findings.same("rejections without slots", refused, 0);
        return;
    };
    if scene.plan.model.has_askers() {
        // With a cycle or a pace, intended starts lie before the time at which anybody asked.
        return;
    }
    let slack_ns = scene.slack_ns();
    let mut sent_ns = 0;
    let mut waits: Vec<(u64, i32)> = Vec::new();
    for asked in &played.diary.asked {
        let Some(end) = asked.end else { continue };
        let times = end.times;
        let waited_ns = times.sent_ns - times.intended_ns;
        findings.expect(waited_ns <= queue_timeout_ns + slack_ns, || {
            format!("waited {waited_ns} ns of {queue_timeout_ns}: {asked:?}")
        });
        findings
            .expect(times.sent_ns >= sent_ns, || format!("sent before one before it: {asked:?}"));
        sent_ns = sent_ns.max(times.sent_ns);
        waits.extend([(times.intended_ns, 1), (times.sent_ns, -1)]);
    }
    if !scene.is_ideal() {
        return;
    }
    // Whoever finds a free slot waits for no place.
    waits.sort_unstable();
    let (mut waiting, mut most) = (0, 0);
    for (_, change) in waits {
        waiting += change;
        most = most.max(waiting);
    }
    let places = i64::from(queue_max) + i64::from(slots);
    findings.expect(i64::from(most) <= places, || format!("{most} waited in {places} places"));
    if scene.is_exact_queue && !was_cut(played) && ledger.unsent.stopped == 0 {
        let model = Model { slots, places: queue_max as usize, timeout_ns: queue_timeout_ns };
        let kept = (ledger.sent, ledger.refused.queue_full, ledger.refused.queue_timeout);
        findings.same(
            "sent and rejected, in the ledger and in the model",
            kept,
            model.run(scene, played),
        );
    }
}

/// The queue as its documentation has it, where slots are the only thing that is waited for.
struct Model {
    slots: u32,
    places: usize,
    timeout_ns: u64,
}

impl Model {
    /// Returns how many requests are sent, rejected because the queue is full, and rejected because they wait too long.
    /// When a slot becomes free is taken from the diary, and when a request is due from the schedule.
    fn run(&self, scene: &Scene, played: &Played) -> (u64, u64, u64) {
        let plan = &scene.plan;
        let start_ns = played.start_ns;
        let schedule = Schedule::start(&plan.model, plan.slice, plan.limits, plan.seed, start_ns);
        let Ok(mut schedule) = schedule else { return (0, 0, 0) };
        let mut due = VecDeque::new();
        while let Next::Send { intended_ns, .. } = schedule.next(u64::MAX) {
            due.push_back(intended_ns);
        }
        let ends = played.diary.asked.iter().filter_map(|asked| asked.end);
        let mut free: Vec<u64> = ends.map(|end| end.times.done_ns).collect();
        free.sort_unstable();
        let mut free = VecDeque::from(free);
        let (mut sent, mut full, mut timeout, mut in_flight) = (0, 0, 0, 0u32);
        let mut waiting: VecDeque<u64> = VecDeque::new();
        loop {
            let expiry_ns = waiting.front().map(|due_ns| due_ns + self.timeout_ns + 1);
            let next = [due.front().copied(), free.front().copied(), expiry_ns];
            let Some(now_ns) = next.into_iter().flatten().min() else { break };
            while free.front().is_some_and(|at_ns| *at_ns <= now_ns) {
                free.pop_front();
                in_flight = in_flight.saturating_sub(1);
            }
            while due.front().is_some_and(|at_ns| *at_ns <= now_ns) {
                let places = self.places + self.slots.saturating_sub(in_flight) as usize;
                match due.pop_front() {
                    Some(due_ns) if waiting.len() < places => waiting.push_back(due_ns),
                    _ => full += 1,
                }
            }
            while waiting.front().is_some_and(|due_ns| now_ns - due_ns > self.timeout_ns) {
                waiting.pop_front();
                timeout += 1;
            }
            while in_flight < self.slots && waiting.pop_front().is_some() {
                in_flight += 1;
                sent += 1;
            }
        }
        (sent, full, timeout)
    }
}
