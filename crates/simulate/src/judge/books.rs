//! The ledger and the histograms of a run against the diary of its clients.

use super::{Findings, was_cut};
use crate::diary::Way;
use crate::played::{Played, WINDOW_LIMIT_NS, WINDOW_NS};
use crate::scene::Scene;
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::Interval;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::seek::plant::Window;

pub(super) fn check(scene: &Scene, played: &Played, findings: &mut Findings) {
    let (totals, all) = (played.totals(), played.all());
    for (name, interval) in [("measured part", &totals), ("whole run", &all)] {
        let balance = interval.ledger.balance();
        findings
            .expect(balance.is_ok(), || format!("the {name}: {balance:?} {:?}", interval.ledger));
        sums(name, interval, findings);
    }
    played.seconds.iter().for_each(|second| sums("second", second, findings));
    diary(played, &all, findings);
    histograms(played, &all, findings);
    windows(played, &all, findings);
    limits(scene, played, &all, findings);
    end(scene, played, findings);
    if scene.plan.ignore_first == 0 {
        rates(scene, played, &totals, findings);
    }
    if scene.is_ideal() {
        let most_ns = scene.slack_ns();
        findings.expect(all.lag.max_ns() <= most_ns, || {
            format!("a thread that is never late has a lag of {} ns", all.lag.max_ns())
        });
    }
}

/// The parts of an interval come to its whole.
fn sums(name: &str, interval: &Interval, findings: &mut Findings) {
    let mut sum = Ledger::default();
    for class in &interval.classes {
        let own = &class.ledger;
        let counts = (class.response.count(), class.service.count(), class.failed.count());
        findings.same(name, counts, (own.ok, own.ok, own.failed.total()));
        sum.merge(own);
    }
    let whole = &interval.ledger;
    findings.same(
        name,
        (sum.sent, sum.ok, sum.failed, sum.unfinished),
        (whole.sent, whole.ok, whole.failed, whole.unfinished),
    );
    let unserved = whole.refused.queue_full + whole.refused.queue_timeout + whole.unsent.stopped;
    findings.same(name, interval.unserved.count(), unserved + whole.unfinished);
    findings.same(name, interval.lag.count(), whole.sent);
}

/// The ledger says what the clients saw.
fn diary(played: &Played, all: &Interval, findings: &mut Findings) {
    let mut seen = Ledger::default();
    for asked in &played.diary.asked {
        match asked.end {
            Some(end) => seen.settle(end.outcome),
            None => seen.unfinished += 1,
        }
        let Some(end) = asked.end else { continue };
        let times = end.times;
        let holds = times.intended_ns <= times.sent_ns && times.sent_ns <= times.done_ns;
        findings.expect(holds, || format!("times that go backwards: {asked:?}"));
        let is_complete = end.way == Way::Judged;
        findings.expect(is_complete || end.outcome != Outcome::Ok, || {
            format!("a success without a reply: {asked:?}")
        });
    }
    let ledger = &all.ledger;
    findings.same(
        "requests in the ledger and in the diary",
        ledger.sent,
        played.diary.asked.len() as u64,
    );
    findings.same(
        "ends in the ledger and in the diary",
        (ledger.ok, ledger.failed, ledger.unfinished),
        (seen.ok, seen.failed, seen.unfinished),
    );
    let gauge = played.gauge;
    findings.same(
        "the gauge and the ledger",
        (gauge.sent, gauge.ok, gauge.failed, gauge.queue_full, gauge.queue_timeout),
        (
            ledger.sent,
            ledger.ok,
            ledger.failed.total(),
            ledger.refused.queue_full,
            ledger.refused.queue_timeout,
        ),
    );
    played.diary.offences.iter().for_each(|what| findings.expect(false, || what.clone()));
    findings.same("times that the sessions were finished", played.diary.finished, 1);
}

/// The histograms are those of the times in the diary, value for value.
fn histograms(played: &Played, all: &Interval, findings: &mut Findings) {
    for (number, class) in all.classes.iter().enumerate() {
        let [mut response, mut service, mut failed] = [(); 3].map(|()| Histogram::new());
        let own = played.diary.asked.iter().filter(|asked| usize::from(asked.what.class) == number);
        for end in own.filter_map(|asked| asked.end) {
            let times = end.times;
            let response_ns = times.done_ns.saturating_sub(times.intended_ns);
            if end.outcome == Outcome::Ok {
                response.record(response_ns);
                service.record(times.done_ns.saturating_sub(times.sent_ns));
            } else {
                failed.record(response_ns);
            }
        }
        for (name, kept, own) in [
            ("response times", &class.response, &response),
            ("service times", &class.service, &service),
            ("times of failures", &class.failed, &failed),
        ] {
            findings.expect(kept.cells().eq(own.cells()), || {
                let (kept, own) = (kept.summary(), own.summary());
                format!("{name} of class {number} are not those of the requests: {kept:?}, {own:?}")
            });
        }
    }
}

/// The counts by due time say what the ledger says, and which of the answers came in time.
fn windows(played: &Played, all: &Interval, findings: &mut Findings) {
    if played.over_ns.saturating_sub(played.start_ns) > played.windows.len() as u64 * WINDOW_NS {
        return;
    }
    let mut sum = Window::default();
    played.windows.iter().for_each(|window| sum.add(window));
    let ledger = &all.ledger;
    findings.same(
        "counts by due time",
        (sum.scheduled, sum.failed, sum.completed),
        (ledger.scheduled, ledger.failed.total(), ledger.ok),
    );
    let in_time = played.diary.asked.iter().filter_map(|asked| asked.end).filter(|end| {
        let waited_ns = end.times.done_ns.saturating_sub(end.times.intended_ns);
        end.outcome == Outcome::Ok && waited_ns <= WINDOW_LIMIT_NS
    });
    let in_time = in_time.count() as u64;
    findings.same(
        "requests above a limit",
        (sum.late[0], sum.late[1]),
        (ledger.scheduled.saturating_sub(in_time), ledger.scheduled.saturating_sub(ledger.ok)),
    );
}

fn limits(scene: &Scene, played: &Played, all: &Interval, findings: &mut Findings) {
    let (diary, plan) = (&played.diary, &scene.plan);
    if plan.model.has_askers() {
        findings
            .expect(diary.most_of_one_client <= 1, || "a client asked twice at a time".to_owned());
    }
    if let Some(clients) = plan.model.clients() {
        findings.expect(diary.most_in_flight <= clients, || {
            format!("{} in flight of {clients} clients", diary.most_in_flight)
        });
    }
    if let AdmissionModel::Managed { slots, .. } = plan.admission {
        findings.expect(diary.most_in_flight <= slots, || {
            format!("{} in flight in {slots} slots", diary.most_in_flight)
        });
    }
    if let Some(source) = scene.source {
        findings
            .expect(diary.asked.len() as u64 <= source, || "more than the source has".to_owned());
    }
    if let Some(requests) = plan.limits.requests {
        findings.expect(all.ledger.scheduled <= requests, || {
            format!("{} of {requests} requests", all.ledger.scheduled)
        });
    }
    let samples = 20 * Failure::COUNT;
    findings.expect(
        played.end.slowest.len() <= 20 && played.failures_told.len() <= samples,
        || {
            format!(
                "{} slow and {} failed samples",
                played.end.slowest.len(),
                played.failures_told.len()
            )
        },
    );
}

/// The run ends within its duration, its timeouts and 2 s; a stop is obeyed within 1 s.
fn end(scene: &Scene, played: &Played, findings: &mut Findings) {
    let (plan, slack_ns) = (&scene.plan, scene.slack_ns());
    let timeout_ns = plan.timeouts.connect_ns.max(plan.timeouts.request_ns);
    let limit_ns = played.start_ns + plan.limits.duration_ns + timeout_ns + 2 * SECOND_NS;
    findings.expect(played.over_ns <= limit_ns + slack_ns, || {
        format!("the run was over at {} ns, the limit was {limit_ns} ns", played.over_ns)
    });
    if was_cut(played) {
        let stop_ns = scene.stop_ns.unwrap_or(0).max(played.start_ns);
        let stopped = played.end.interrupted || played.end.drain_cut;
        findings.expect(!stopped || played.over_ns <= stop_ns + SECOND_NS + slack_ns, || {
            format!("stopped at {stop_ns} ns, over at {} ns", played.over_ns)
        });
    } else {
        let open = played.diary.asked.iter().filter(|asked| asked.end.is_none()).count();
        findings.same("requests without an end in a run that was not stopped", open, 0);
    }
}

/// Rates count what ended in the measured stretch, whenever it was due.
fn rates(scene: &Scene, played: &Played, totals: &Interval, findings: &mut Findings) {
    let from_ns = played.start_ns + scene.plan.warmup_ns;
    let to_ns = played.end.measured_ns.1;
    let ended = played.diary.asked.iter().filter_map(|asked| asked.end);
    let within = ended.filter(|end| (from_ns..=to_ns).contains(&end.times.done_ns));
    let (mut all, mut ok) = (0, 0);
    for end in within {
        all += 1;
        ok += u64::from(end.outcome == Outcome::Ok);
    }
    let counted = (totals.counters.ended_in_time, totals.counters.ok_in_time);
    findings.same("requests that ended in the measured stretch", counted, (all, ok));
}
