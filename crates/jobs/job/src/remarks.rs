//! Remarks on a run's requests: why they failed, and when there were too few, or when connections did not last.

use plimsoll_core::ledger::{Failed, Ledger};
use plimsoll_core::outcome::Cause;
use plimsoll_core::scenario::Scenario;
use plimsoll_engine::run::RunEnd;
use plimsoll_record::FailureSample;
use plimsoll_report::number::{counted, time};
use plimsoll_report::plain::printable;

/// Fewer answers than these say nothing of a second run.
const ANSWERS_LEAST: u64 = 30;
/// A shorter stretch is over before anything has settled, s.
const STRETCH_LEAST_S: f64 = 0.5;
/// A connection that carries fewer requests on average was not kept.
const REQUESTS_A_CONNECTION: u64 = 2;

/// The first failure in words, with what may help.
pub fn first_failure(sample: &FailureSample, scenario: &Scenario) -> String {
    let FailureSample { kind, reason, .. } = sample;
    let hint = hint(sample.cause, scenario).unwrap_or_default();
    // A target may say anything.
    format!("first failure: {kind}: {}{hint}", printable(reason))
}

fn hint(cause: Cause, scenario: &Scenario) -> Option<&'static str> {
    match cause {
        Cause::NotHttp1 if !scenario.http2 => {
            Some("; for a server that supports only HTTP/2, use --http2")
        }
        Cause::NoHttp2 => Some("; leave out --http2"),
        Cause::Certificate if scenario.job == "fbench" => {
            Some("; trust its authority with -T FILE")
        }
        Cause::Certificate => Some(
            "; trust its authority with --cacert FILE, check another name with --sni NAME, or accept any certificate with --insecure",
        ),
        Cause::NotHttp1 | Cause::Unknown => None,
    }
}

/// Remarks on the requests of a run at one load, regardless of its verdict.
pub fn remarks(scenario: &Scenario, end: &RunEnd) -> Vec<String> {
    let (ledger, counters) = (&end.totals.ledger, &end.totals.counters);
    let mut remarks = Vec::new();
    // Where many requests wait for their answers, many connections are open at once, and none of them was ended by the server.
    let kept = scenario.own_connections().max(end.connections);
    if scenario.keepalive {
        remarks.extend(ended(counters.connects, kept.into(), ledger));
    }
    if ledger.ok > 0 && !end.interrupted {
        remarks.extend(too_little(ledger.ok, end.measured_s));
    }
    remarks.extend(cut(end.drain_cut, ledger));
    remarks
}

/// The remark on a server that ends connections: `opened` were opened, of which at most `kept` were to be open at once.
fn ended(opened: u64, kept: u64, ledger: &Ledger) -> Option<String> {
    let lost = opened.saturating_sub(kept);
    // Where few requests were answered, connections were lost with the others, or never opened for them.
    let Failed { status, check, app, .. } = ledger.failed;
    let is_answered = ledger.ok + status + check + app >= lost / 2;
    (lost > kept && is_answered && ledger.ok < REQUESTS_A_CONNECTION * lost).then(|| {
        format!(
            "{opened} connections were opened for {} requests: the server, or what is before it, ends a connection after {}; \
             opening the next one is part of the response times",
            ledger.sent,
            if opened >= ledger.sent { "every answer" } else { "few answers" }
        )
    })
}

/// Names what a stop cut off that came when the time was over and the last replies were waited for.
fn cut(drain_cut: bool, ledger: &Ledger) -> Option<String> {
    let (unfinished, unsent) = (ledger.unfinished, ledger.unsent.stopped);
    let parts: Vec<String> = [(unfinished, "in flight"), (unsent, "not yet sent")]
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", counted(*number, "request")))
        .collect();
    (drain_cut && !parts.is_empty()).then(|| {
        format!(
            "stopped after the measured time, while plimsoll waited for the last replies: {} cut off; they are late for \
             every limit",
            parts.join(" and ")
        )
    })
}

/// Says so when a run was over before it could mean anything.
fn too_little(answers: u64, measured_s: f64) -> Option<String> {
    if answers < ANSWERS_LEAST {
        let answers = counted(answers, "answer");
        return Some(format!("{answers} are too few for a result; use a longer run"));
    }
    (measured_s < STRETCH_LEAST_S).then(|| {
        format!(
            "the run took only {}, which is too short to show the target's speed; use a longer run",
            time(measured_s * 1e3)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_over_at_once_says_so() {
        assert!(too_little(1, 10.0).unwrap().starts_with("1 answer "));
        assert!(too_little(4, 0.001).unwrap().contains("too few"));
        assert!(too_little(100_000, 0.07).unwrap().contains("took only 70.0 ms"));
        assert_eq!(too_little(100, 1.0), None);
    }

    #[test]
    fn connections_of_a_long_queue_were_not_ended_by_the_server() {
        let ledger = Ledger { sent: 2400, ok: 2400, ..Ledger::default() };
        // The target stood still for three seconds, and 900 requests waited.
        assert_eq!(ended(1352, 1352, &ledger), None);
        assert!(ended(2400, 64, &ledger).unwrap().contains("ends a connection after every answer"));
        assert!(ended(1300, 64, &ledger).unwrap().contains("after few answers"));
        assert_eq!(ended(1200, 64, &ledger), None, "two answers on each");
        let failed = Failed { timeout: 2000, ..Failed::default() };
        let ledger = Ledger { sent: 2400, ok: 400, failed, ..Ledger::default() };
        assert_eq!(ended(2400, 64, &ledger), None, "most were lost without an answer");
    }

    #[test]
    fn what_a_stop_after_the_time_cut_off_is_named() {
        let mut ledger = Ledger { unfinished: 3, ..Ledger::default() };
        assert!(cut(true, &ledger).unwrap().contains("replies: 3 requests in flight cut off"));
        ledger.unsent.stopped = 1;
        let line = cut(true, &ledger).unwrap();
        assert!(line.contains("3 requests in flight and 1 request not yet sent cut off"), "{line}");
        assert_eq!(cut(false, &ledger), None);
        assert_eq!(cut(true, &Ledger::default()), None);
    }

    #[test]
    fn a_failure_that_has_a_way_out_names_it() {
        let advice = |cause: Cause, scenario: &Scenario| {
            let (kind, reason) = ("tls".to_owned(), "it says no".to_owned());
            let sample = FailureSample { kind, reason, cause, ..FailureSample::default() };
            first_failure(&sample, scenario)
        };
        let plain = Scenario::default();
        assert!(advice(Cause::Certificate, &plain).contains("--cacert FILE"));
        let fbench = Scenario { job: "fbench".to_owned(), ..Scenario::default() };
        assert!(advice(Cause::Certificate, &fbench).ends_with("trust its authority with -T FILE"));
        assert!(advice(Cause::NotHttp1, &plain).ends_with("use --http2"));
        let two = Scenario { http2: true, ..Scenario::default() };
        assert!(!advice(Cause::NotHttp1, &two).contains("--http2"));
        assert!(advice(Cause::NoHttp2, &two).ends_with("leave out --http2"));
        assert_eq!(advice(Cause::Unknown, &plain), "first failure: tls: it says no");
    }
}
