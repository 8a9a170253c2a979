//! The runs of a loaded machine: an observer at the target says when each request came.

use super::case::{Case, Source, Target};
use crate::sabotages::interposer::Interposed;
use crate::sabotages::live::{Absent, Live};
use std::time::Duration;

/// A rate that plimsoll holds on an idle core, per second.
const MODERATE: f64 = 20_000.0;
/// A rate at which requests are far apart: an absence is then noticed by nothing but the clock.
const LOW: f64 = 200.0;
/// Share of the rate of clients at full speed that is near the limit.
const NEAR: f64 = 0.8;
/// Length of a run, s.
const SECONDS: f64 = 5.0;
/// Timeout of a request, s.
const TIMEOUT_S: f64 = 2.0;
/// Time beyond the usual that a run may take.
const ENDING: Duration = Duration::from_secs(60);
/// Busy programs beside the generator.
const BUSY: u32 = 4;
/// Step of the wall clock, s.
const HOUR_S: i64 = 3_600;

const fn s(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// A uniform open load on the observer.
fn open(kind: &'static str, rate: f64, seconds: f64) -> Case {
    let count = (rate * (seconds + 1.0)) as u64;
    let words = format!(
        "load URL --queries FOLDER/numbers --rate {rate} --duration {seconds}s --timeout {TIMEOUT_S}s"
    );
    let case = Case::new(kind, Target::Observed(count, rate), &words, seconds, TIMEOUT_S);
    // How long a machine takes to start and to end a process from which it takes the processor is not what is judged here.
    let ends_within = case.ends_within + ENDING;
    Case { ends_within, ..case }.with(Source::Arrivals)
}

/// Clients at full speed, to find the rate that is near the limit.
#[must_use]
pub fn fastest() -> Case {
    let words = "load URL --clients 64 --duration 2s --timeout 2s";
    Case::new("nothing", Target::Observed(1, 1.0), words, 2.0, TIMEOUT_S)
}

/// All runs, in the order of the table; `fastest_per_s` is the rate of clients at full speed.
#[must_use]
pub fn all(fastest_per_s: f64) -> Vec<Case> {
    let high = (fastest_per_s * NEAR / 1_000.0).round() * 1_000.0;
    let mut cases = Vec::new();
    for rate in [LOW, MODERATE, high] {
        let base = || open("nothing", rate, SECONDS);
        // Near its limit any machine has moments in which it is beyond it.
        cases.push(Case { healthy: rate < high, ..base() });
        cases.push(base().under("four busy loops on its core", Live::Neighbours(BUSY)));
        cases.push(base().under("four busy loops on all cores", Live::NeighboursAnywhere(BUSY)));
        cases.push(base().under("a quota of 20 % of a core", Live::Quota(20)));
        cases.push(base().under("stopped for 5 to 200 ms", Live::Bursts(Absent::Stopped)));
        cases.push(stolen(base()));
        cases.push(base().under("time stolen unreported", Live::Bursts(Absent::Unreported)));
    }
    for by in [HOUR_S, -HOUR_S] {
        cases.push(stepped(by));
    }
    cases.push(suspended(60, SECONDS));
    cases.push(stopped_for(60));
    // One line of the table for each kind.
    let kinds: Vec<&'static str> = cases.iter().map(|case| case.kind).collect();
    cases.sort_by_key(|case| kinds.iter().position(|kind| *kind == case.kind));
    cases
}

/// Short runs for the suite, one of each class that needs no control group.
#[must_use]
pub fn sample() -> Vec<Case> {
    vec![
        open("nothing", MODERATE, 2.0),
        open("nothing", MODERATE, 3.0).under("four busy loops on its core", Live::Neighbours(BUSY)),
        open("nothing", MODERATE, 3.0)
            .under("stopped for 5 to 200 ms", Live::Bursts(Absent::Stopped)),
        stepped(-HOUR_S),
        suspended(60, 2.0),
        stopped_for(3),
    ]
}

/// Frozen, and counted as stolen time.
fn stolen(base: Case) -> Case {
    let interposed = Interposed { has_own_stat: true, ..Interposed::default() };
    let case = base.under("time stolen and reported", Live::Bursts(Absent::Stolen));
    Case { interposed, ..case }
}

/// The wall clock is stepped in the middle: times are measured by another one, and the verdict stays valid.
fn stepped(by_s: i64) -> Case {
    let interposed = Interposed { steps: vec![(s(1), by_s)], ..Interposed::default() };
    Case { interposed, ..open("wall clock stepped by an hour", MODERATE, 3.0) }
}

/// The boot clock leaps and the monotonic one does not, as after a suspension.
fn suspended(for_s: u32, seconds: f64) -> Case {
    let interposed = Interposed { suspends: vec![(s(1), for_s)], ..Interposed::default() };
    let case = open("suspended for a minute", MODERATE, seconds);
    Case { interposed, ..case.must_be(&["generator-limited"]) }
}

/// Stopped from the first second on. Requests that became due meanwhile are sent late or never.
fn stopped_for(for_s: u64) -> Case {
    let kind = if for_s >= 60 { "stopped for a minute" } else { "stopped for seconds" };
    let live = Live::StoppedOnce { after: s(1), stopped: s(for_s) };
    let case = open(kind, MODERATE, for_s as f64 + 4.0).under(kind, live);
    case.must_be(&["generator-limited"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_kind_stand_together_and_the_rate_near_the_limit_is_used() {
        let cases = all(100_400.0);
        let kinds: Vec<&str> = cases.iter().map(|case| case.kind).collect();
        let groups = kinds.windows(2).filter(|two| two[0] != two[1]).count() + 1;
        assert_eq!((groups, cases.len()), (10, 25));
        assert!(cases.iter().any(|case| case.words.contains("--rate 80000 ")));
        assert!(
            sample()
                .iter()
                .all(|case| kinds.contains(&case.kind) || case.kind == "stopped for seconds")
        );
    }
}
