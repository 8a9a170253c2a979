//! The client's diary against the peer's log: nothing is a success that was not answered rightly, nothing that was answered
//! rightly and in time is lost, nothing is sent twice that may have been done, and no time is shorter than the truth.

use super::{Findings, was_cut};
use crate::diary::{Asked, End, Way};
use crate::played::Played;
use crate::scene::Scene;
use crate::truth::{Attempt, Fate, Log};
use plimsoll_core::outcome::{Failure, Outcome};
use std::collections::BTreeMap;

/// Number of times that a request is sent again that its peers vouch not to have looked at.
const RESENT_MAX: usize = 16;

const TIMED_OUT: Outcome = Outcome::Failed(Failure::Timeout);

pub(super) fn check(scene: &Scene, played: &Played, log: &Log, findings: &mut Findings) {
    log.offences.iter().for_each(|what| findings.expect(false, || what.clone()));
    let mut attempts: Vec<Vec<Attempt>> = vec![Vec::new(); played.diary.asked.len()];
    for attempt in &log.attempts {
        match attempts.get_mut(attempt.serial as usize) {
            Some(own) => own.push(*attempt),
            None => findings.expect(false, || {
                format!("the peer saw a request that was never asked: {attempt:?}")
            }),
        }
    }
    for attempts in &mut attempts {
        // An attempt on a connection that was left may come after that which took its place, and one that the peer has refused
        // unprocessed may even be sent out after it.
        let is_refused = |attempt: &Attempt| attempt.fate == Fate::Unprocessed;
        attempts.sort_by_key(|attempt| (!is_refused(attempt), attempt.sent_ns, attempt.came_ns));
    }
    let lines = Lines::new(scene, played, log, &attempts);
    for (asked, attempts) in played.diary.asked.iter().zip(&attempts) {
        repeats(asked, attempts, &lines, findings);
        let Some(end) = asked.end else { continue };
        truth(scene, (asked, end), attempts, log, findings);
        times(scene, (asked, end), attempts, log, findings);
        completeness(scene, played, (asked, end), attempts, &lines, findings);
    }
}

/// The connections, and when they came to their end.
struct Lines<'l> {
    log: &'l Log,
    /// Time at which the client left each of those on which a request timed out, where answers come in order, ns.
    left_ns: BTreeMap<u64, u64>,
    /// Longest time from the peer to the client, and in it, ns.
    arrival_max_ns: u64,
}

impl<'l> Lines<'l> {
    fn new(scene: &Scene, played: &Played, log: &'l Log, attempts: &[Vec<Attempt>]) -> Self {
        let mut left_ns = BTreeMap::new();
        let asked = played.diary.asked.iter().zip(attempts).filter(|_| log.is_ordered);
        for (end, attempts) in asked.filter_map(|(asked, attempts)| Some((asked.end?, attempts))) {
            let last = attempts.last().filter(|_| end.outcome == TIMED_OUT);
            if let Some(last) = last {
                let at_ns = left_ns.entry(last.connection).or_insert(end.times.done_ns);
                *at_ns = end.times.done_ns.min(*at_ns);
            }
        }
        let arrival_max_ns = scene.link.latency_max_ns + scene.slack_ns();
        Self { log, left_ns, arrival_max_ns }
    }

    /// Returns true if the connection of an attempt broke, or could not be understood any more, before its answer was out, or was
    /// left by the client before its answer was there.
    fn is_broken(&self, attempt: &Attempt) -> bool {
        let broken_ns = self.log.broken_ns(attempt.connection);
        let left_ns = self.left_ns.get(&attempt.connection).copied().unwrap_or(u64::MAX);
        let is_out = |said_ns| said_ns < broken_ns && said_ns + self.arrival_max_ns <= left_ns;
        broken_ns.min(left_ns) < u64::MAX && !attempt.said_ns.is_some_and(is_out)
    }

    /// Returns true if the answer to an attempt began where the client can see it: not in pieces, nor on a connection on which
    /// nothing need be understood any more.
    fn has_begun(&self, attempt: &Attempt) -> bool {
        let ruined_ns = self.log.ruined_ns(attempt.connection);
        attempt.began_ns.is_some_and(|at_ns| at_ns < ruined_ns) && !attempt.is_cut
    }
}

/// A request comes again only if the peer vouches that it did nothing, or if it may be done twice and the connection was
/// a kept one that broke.
fn repeats(asked: &Asked, attempts: &[Attempt], lines: &Lines<'_>, findings: &mut Findings) {
    let (mut retried, mut resent) = (0, 0);
    for attempt in attempts.iter().rev().skip(1) {
        match attempt.fate {
            Fate::Unprocessed => resent += 1,
            _ => {
                retried += 1;
                let broke = attempt.fate == Fate::DeadOnArrival || lines.is_broken(attempt);
                let may = asked.what.idempotent && attempt.prior > 0 && broke;
                let began = lines.has_begun(attempt);
                let in_doubt = attempt.fate == Fate::Doubtful || attempt.said_ns.is_some();
                findings.expect(may && (!began || in_doubt), || {
                    format!("sent again although it may have been done: {asked:?} {attempts:?}")
                });
            }
        }
    }
    findings.expect(retried <= 1 && resent <= RESENT_MAX, || {
        format!("sent again too often: {asked:?} {attempts:?}")
    });
}

/// Returns true if an answer had begun, and its end came with the corrupted answer to another request on the same connection: where
/// answers mingle, one bit makes the last frame of one answer that of another, and if the content fits no client can tell.
fn is_ended_by_another(scene: &Scene, attempt: &Attempt, end: End, log: &Log) -> bool {
    let Some(began_ns) = attempt.began_ns.filter(|_| !log.is_ordered) else { return false };
    let done_ns = end.times.done_ns;
    let (least_ns, most_ns) =
        (scene.link.latency_min_ns, scene.link.latency_max_ns + scene.slack_ns());
    log.attempts.iter().any(|other| {
        let is_another = other.connection == attempt.connection && other.serial != attempt.serial;
        let came_with_it = other.said_ns.is_some_and(|at_ns| {
            began_ns <= at_ns && (at_ns + least_ns..=at_ns + most_ns).contains(&done_ns)
        });
        is_another && other.fate == Fate::Doubtful && came_with_it
    })
}

/// A success was answered rightly; what was not sent is not called lost.
fn truth(
    scene: &Scene,
    (asked, end): (&Asked, End),
    attempts: &[Attempt],
    log: &Log,
    findings: &mut Findings,
) {
    if end.outcome == Outcome::Ok {
        let is_right = attempts.last().is_some_and(|last| {
            let said = last.said_ns.is_some_and(|at_ns| at_ns <= end.times.done_ns)
                || is_ended_by_another(scene, last, end, log);
            let late = last.fate == Fate::Late && !scene.is_ideal();
            said && (matches!(last.fate, Fate::Right | Fate::Doubtful) || late)
        });
        findings.expect(is_right, || format!("a success that was not one: {asked:?} {attempts:?}"));
    }
    if end.way == Way::Judged && log.ruined.is_empty() {
        let any = attempts.iter().any(|attempt| attempt.began_ns.is_some());
        findings.expect(any, || format!("a reply that was never sent: {asked:?} {attempts:?}"));
    }
    if end.way == Way::Undone {
        // A connection that could not be made, or a peer that vouches for it.
        let done =
            attempts.iter().any(|attempt| attempt.said_ns.is_some() && attempt.fate == Fate::Right);
        findings.expect(!done, || format!("reported as not done: {asked:?} {attempts:?}"));
    }
    if end.outcome == TIMED_OUT {
        let timeouts = scene.plan.timeouts;
        let least_ns = timeouts.connect_ns.min(timeouts.request_ns);
        let waited_ns = end.times.done_ns - end.times.sent_ns;
        findings.expect(waited_ns >= least_ns, || {
            format!("timed out after {waited_ns} ns of {least_ns}: {asked:?}")
        });
    }
}

/// No time is shorter than the way to the peer, the peer's own time, and the way back.
fn times(
    scene: &Scene,
    (asked, end): (&Asked, End),
    attempts: &[Attempt],
    log: &Log,
    findings: &mut Findings,
) {
    let way_ns = scene.link.latency_min_ns;
    for attempt in attempts {
        let is_possible =
            attempt.sent_ns >= end.times.sent_ns && attempt.came_ns >= attempt.sent_ns + way_ns;
        findings.expect(is_possible, || {
            format!("it was sent, or came, before it can have been: {asked:?} {attempt:?}")
        });
    }
    let Some(last) = attempts.last() else { return };
    if end.way == Way::Judged
        && last.fate != Fate::Doubtful
        && let Some(said_ns) = last.said_ns
        && matches!(end.outcome, Outcome::Ok)
        && !(end.times.done_ns < said_ns && is_ended_by_another(scene, last, end, log))
    {
        findings.expect(end.times.done_ns >= said_ns + way_ns, || {
            format!("answered before the answer can have come: {asked:?} {last:?}")
        });
        let late_ns = end.times.done_ns - said_ns.min(end.times.done_ns);
        let most_ns = scene.link.latency_max_ns + scene.slack_ns();
        findings.expect(late_ns <= most_ns, || {
            format!("the answer was left lying for {late_ns} ns: {asked:?} {last:?}")
        });
    }
}

/// An answer in time, on a connection that works, is counted as that answer.
fn completeness(
    scene: &Scene,
    played: &Played,
    (asked, end): (&Asked, End),
    attempts: &[Attempt],
    lines: &Lines<'_>,
    findings: &mut Findings,
) {
    let Some(last) = attempts.last() else { return };
    let Some(said_ns) = last.said_ns.filter(|_| !lines.is_broken(last)) else { return };
    let arrives_ns = said_ns + lines.arrival_max_ns;
    let timeouts = scene.plan.timeouts;
    let is_in_time = arrives_ns < end.times.sent_ns + timeouts.request_ns.min(timeouts.connect_ns);
    let is_cut = was_cut(played) && arrives_ns >= played.over_ns.saturating_sub(scene.slack_ns());
    if !is_in_time || is_cut {
        return;
    }
    let expected = match last.fate {
        Fate::Right => Outcome::Ok,
        Fate::No(failure) => Outcome::Failed(failure),
        _ => return,
    };
    findings.expect(end.outcome == expected, || {
        format!("answered in time, and not {expected:?}: {asked:?} {attempts:?}")
    });
}
