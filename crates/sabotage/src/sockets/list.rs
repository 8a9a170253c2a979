//! The runs on real sockets.

use super::case::{Before, Case, Source, Target};
use crate::judging::{Grade, Range};
use crate::sabotages::confines::Confine;
use crate::sabotages::live::Live;
use crate::targets::closed_form::{FixedStation, arrivals, quantile};
use crate::targets::server::{Language, Script};
use plimsoll_core::schedule::{Arrivals, LoadModel};
use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn between(low: f64, high: f64) -> Range {
    Range { low, high }
}

/// All runs, in the order of the table.
#[must_use]
pub fn all() -> Vec<Case> {
    let mut cases: Vec<Case> = bases().into_iter().flat_map(|base| sabotaged(&base)).collect();
    cases.extend(models());
    cases.extend(misbehaving());
    cases.extend(edges());
    cases.extend(too_few());
    cases.extend(costly());
    cases.extend(disks());
    cases.extend(clocks());
    cases.extend(commands());
    // One line of the table for each kind, whatever the order in which they are made.
    let mut kinds: Vec<&'static str> = Vec::new();
    for case in &cases {
        if !kinds.contains(&case.kind) {
            kinds.push(case.kind);
        }
    }
    cases.sort_by_key(|case| kinds.iter().position(|kind| *kind == case.kind));
    cases
}

/// Runs whose truth is the same on a machine that does other things, for the suite; with the grade that each must have,
/// where others cannot change that.
#[must_use]
pub fn sample() -> Vec<(Case, Option<Grade>)> {
    let first = |cases: Vec<Case>, kind: &str| cases.into_iter().find(|case| case.kind == kind);
    let not = Some(Grade::NotTheTargets);
    [
        (first(misbehaving(), "target never answers a share"), None),
        (first(misbehaving(), "target dies"), not),
        (first(edges(), "stopped by the user"), not),
        (first(too_few(), "few connections"), not),
    ]
    .into_iter()
    .filter_map(|(case, grade)| Some((case?, grade)))
    .collect()
}

/// A script that answers every request after `service`.
fn steady(language: Language, service: Duration) -> Script {
    Script { language, service, body_bytes: 64, ..Script::default() }
}

/// A uniform open load of 3 s on the harness's own server.
fn open(script: Script, rate: f64, more: &str) -> Case {
    let scheme = match script.language {
        Language::Http => "http://ADDRESS/",
        Language::Https => "https://ADDRESS/ --insecure",
        Language::Postgres => "'postgres://me@ADDRESS/db?sslmode=disable' --body 'SELECT 1'",
    };
    let words = format!("load {scheme} --rate {rate} --duration 3s --timeout 2s {more}");
    // What is in flight at the end has not ended in time.
    let ended = rate * (1.0 - script.service.as_secs_f64() / 3.0);
    Case::new("nothing", Target::Scripted(script), &words, 3.0, 2.0)
        .with(Source::Log(Some(between(ended, rate))))
}

fn served(words: &'static str, load: &str, seconds: f64, timeout_s: f64) -> Case {
    let words_of_load = format!("load URL {load}");
    Case::new("nothing", Target::Served(words), &words_of_load, seconds, timeout_s)
}

/// Poisson arrivals at a single server: the truth is the schedule's own arrivals and Lindley's recursion.
fn fifo(rate: f64, service_ms: u64, timeout_s: f64) -> Case {
    let words = match service_ms {
        4 => "queue --servers 1 --service fixed:4ms",
        _ => "queue --servers 1 --service fixed:10ms",
    };
    let load =
        format!("--rate {rate} --arrivals poisson --seed 7 --duration 3s --timeout {timeout_s}s");
    let model = LoadModel::Open { rate_per_s: rate, arrivals: Arrivals::Poisson };
    let station = FixedStation { servers: 1, service_ns: service_ms * 1_000_000 };
    let due = arrivals(&model, 3_000_000_000, 7).unwrap_or_default();
    let mut responses = station.responses(&due);
    let ended = due.iter().zip(&responses).filter(|(at, took)| **at + **took <= 3_000_000_000);
    let ok_per_s = ended.count() as f64 / 3.0;
    responses.sort_unstable();
    let time = |share| Some(Range::exact(quantile(&responses, share) as f64 / 1e6));
    served(words, &load, 3.0, timeout_s).with(Source::Known([
        time(0.50),
        time(0.95),
        time(0.99),
        Some(Range::exact(ok_per_s)),
    ]))
}

/// Loads and targets of which each is sabotaged in every way.
fn bases() -> Vec<Case> {
    let quick = served(
        "queue --servers 0 --service fixed:5ms",
        "--rate 1500 --duration 3s --timeout 2s",
        3.0,
        2.0,
    );
    let closed = served(
        "queue --servers 0 --service fixed:10ms",
        "--clients 16 --duration 3s --timeout 2s",
        3.0,
        2.0,
    );
    vec![
        open(steady(Language::Http, ms(20)), 200.0, ""),
        quick.all_take(5.0, between(1490.0, 1500.0)),
        closed.all_take(10.0, between(1550.0, 1600.0)),
        open(steady(Language::Https, ms(20)), 200.0, ""),
        open(steady(Language::Postgres, ms(15)), 200.0, ""),
        fifo(150.0, 4, 2.0),
        over_http2(),
    ]
}

/// A uniform open load over HTTP/2, with several requests at a time on each connection.
fn over_http2() -> Case {
    let target = Target::Delayed("search", ms(20));
    let words = "load URL/state/v1/health --http2 --rate 200 --duration 3s --timeout 2s";
    Case::new("nothing", target, words, 3.0, 2.0).all_take(20.5, between(195.0, 200.0))
}

/// A case, and the same under each sabotage of the generator's CPU.
fn sabotaged(base: &Case) -> Vec<Case> {
    let again = || base.clone();
    let pulses = |stopped, every| Live::Pulses { stopped: ms(stopped), every: ms(every) };
    let on_one_core = match &base.target {
        // Its own log would show what the generator has done to it.
        Target::Scripted(script) => {
            let rate = match &base.source {
                Source::Log(rate) => *rate,
                _ => None,
            };
            let time = Some(Range::exact(script.service.as_secs_f64() * 1e3));
            again().with(Source::Known([time, time, time, rate]))
        }
        _ => again(),
    };
    vec![
        again(),
        again().under("busy neighbours", Live::Neighbours(1)),
        again().under("busy neighbours", Live::Neighbours(2)),
        again().under("busy neighbours", Live::Neighbours(4)),
        again().under("stopped in pulses", pulses(5, 100)),
        again().under("stopped in pulses", pulses(20, 200)),
        again().under("stopped in pulses", pulses(100, 500)),
        on_one_core.in_a("on the target's core", Confine::OnTargetsCore),
        again().under("CPU quota", Live::Quota(5)),
        again().in_a("nice", Confine::Nice).under("nice", Live::Neighbours(1)),
    ]
}

/// Other models, as they are and sabotaged once.
fn models() -> Vec<Case> {
    let any = "queue --servers 0 --service fixed:20ms";
    let users = served(
        any,
        "--users 'constant 60/s during 3s' --user-requests 3 --think 50ms --timeout 2s",
        5.0,
        2.0,
    );
    let managed = "--rate 400 --slots 50 --queue 100 --queue-timeout 1s --duration 3s --timeout 2s";
    let managed = served(any, managed, 3.0, 2.0).all_take(20.0, between(395.0, 400.0));
    let burst = served(any, "--burst 50 --every 100ms --duration 3s --timeout 2s", 3.0, 2.0)
        .all_take(20.0, Range::exact(500.0));
    let profile = served(any, "--rate-profile 100-500:3s --timeout 2s", 3.0, 2.0)
        .all_take(20.0, between(293.0, 300.0));
    let time = Some(Range::exact(20.0));
    let users = users.with(Source::Known([time, time, time, None]));
    let pulses = Live::Pulses { stopped: ms(100), every: ms(500) };
    let mut cases = Vec::new();
    for (number, base) in [users, managed, burst, profile].into_iter().enumerate() {
        cases.push(base.clone());
        let other = match number % 2 {
            0 => base.clone().under("busy neighbours", Live::Neighbours(2)),
            _ => base.clone().under("CPU quota", Live::Quota(5)),
        };
        cases.push(other);
        cases.push(base.under("stopped in pulses", pulses));
    }
    cases
}

/// Targets that hang, fail, cut and close.
fn misbehaving() -> Vec<Case> {
    let script = steady(Language::Http, ms(10));
    let ok = |share: f64| Some(between(300.0 * share * 0.98, 300.0 * share));
    let hangs = |every: u64, p95_held, max_held| {
        let script = Script { hang_every: every, ..script };
        let share = 1.0 - 1.0 / every as f64;
        let limits = "--slo p95=100ms --slo max=200ms --timeout 1s";
        let mut case = open(script, 300.0, limits).with(Source::Log(ok(share)));
        case.words = case.words.replace("--timeout 2s ", "");
        case.judges("p95", p95_held).judges("max", max_held)
    };
    let of = |kind, script: Script, share: f64| Case {
        kind,
        ..open(script, 300.0, "").with(Source::Log(ok(share)))
    };
    let late = Script { late_every: 10, late: ms(300), ..script };
    let dies = |seconds: u64| {
        let script = Script { dies_after: Some(Duration::from_secs(seconds)), ..script };
        open(script, 300.0, "").with(Source::Unknown).must_be(&["target-failed"])
    };
    let times = |p50, p95, p99, rate| Source::Known([Some(p50), Some(p95), Some(p99), Some(rate)]);
    // What was dropped on a kept connection is asked again, and takes twice as long.
    let (once, again) = (between(10.0, 10.5), between(10.0, 21.0));
    let dropped = open(Script { drop_every: 20, ..script }, 300.0, "");
    let dropped = Case { kind: "target cuts or drops", ..dropped };
    let dropped = dropped.with(times(once, again, again, between(280.0, 300.0)));
    // A handshake is in the time of the request that needs it.
    let handshakes = Script { close_after: 5, language: Language::Https, ..script };
    let handshakes = Case { kind: "reconnect storm", ..open(handshakes, 300.0, "") };
    let shaken = between(10.0, 14.0);
    let handshakes = handshakes.with(times(once, shaken, shaken, between(290.0, 300.0)));
    let mut cases = vec![
        hangs(12, false, false),
        hangs(120, true, false),
        of("target answers a share late", late, 1.0),
        of("target fails a share", Script { fail_every: 10, ..script }, 0.9)
            .judges("errors", false),
        of("target cuts or drops", Script { cut_every: 20, ..script }, 0.95),
        dropped,
        of("reconnect storm", Script { close_after: 1, ..script }, 1.0),
        of("reconnect storm", Script { close_after: 10, ..script }, 1.0),
        handshakes,
        Case { kind: "target dies", ..dies(1) },
        Case { kind: "target dies", ..dies(2) },
        Case { kind: "target overloaded", ..fifo(150.0, 10, 6.0) },
        Case { kind: "target overloaded", ..fifo(250.0, 10, 8.0) },
    ];
    for case in &mut cases[..2] {
        case.kind = "target never answers a share";
    }
    cases[3].words.push_str(" --slo errors=1%");
    // Of two that died after a second and later, the later one has answered more than half.
    cases[10].kinds = &[];
    cases
}

/// Warm-ups, drains, and Ctrl-C in each of them.
fn edges() -> Vec<Case> {
    let slow = "queue --servers 0 --service fixed:1s";
    let kind = "long answers at the edges";
    let warm = "--rate 50 --warmup 2s --duration 3s --connections 150 --timeout 4s --slo rate=45";
    let cold = "--rate 50 --duration 3s --connections 150 --timeout 4s";
    let warm = served(slow, warm, 5.0, 4.0).all_take(1000.0, Range::exact(50.0));
    let cold = served(slow, cold, 3.0, 4.0).all_take(1000.0, between(33.0, 50.0));
    let closed = served(slow, "--clients 20 --warmup 2s --duration 3s --timeout 4s", 5.0, 4.0);
    let closed = closed.all_take(1000.0, Range::exact(20.0));
    let many = "--rate 500 --duration 3s --timeout 2s";
    let many = served("queue --servers 0 --service fixed:200ms", many, 3.0, 2.0);
    let many = many.all_take(200.0, between(466.0, 500.0));
    let interrupted = |after: u64, load: &str| {
        let case = served("queue --servers 0 --service fixed:500ms", load, 4.0, 2.0);
        let live = Live::Interrupt(ms(after));
        case.under("stopped by the user", live).must_be(&["partial"])
    };
    let load = "--rate 50 --warmup 1s --duration 3s --timeout 2s";
    vec![
        Case { kind, ..warm.judges("rate", true) },
        Case { kind, ..cold },
        Case { kind, ..closed },
        Case { kind: "many in flight", ..many },
        interrupted(500, load),
        interrupted(2_000, load),
        // In the drain everything that was asked for has been sent.
        interrupted(4_150, load).must_be(&["partial", "valid"]),
        interrupted(1_500, "--clients 8 --duration 3s --timeout 2s"),
    ]
}

/// Connections, files and ports.
fn too_few() -> Vec<Case> {
    let any = "queue --servers 0 --service fixed:50ms";
    let few = |load: &str, ok: f64| {
        let case = served(any, load, 3.0, 2.0).all_take(50.0, between(ok * 0.98, ok));
        Case { kind: "few connections", healthy: false, ..case }
    };
    let files = |load: &str, ok: f64| {
        let case = served(any, load, 3.0, 2.0).all_take(50.0, between(ok * 0.97, ok));
        case.in_a("few files", Confine::Files(64))
    };
    let ports = |load: &str, ok: f64| {
        let case = served(any, load, 3.0, 2.0).all_take(50.0, between(ok * 0.97, ok));
        case.in_a("few ports", Confine::Ports(20))
    };
    vec![
        few("--rate 200 --connections 4 --duration 3s --timeout 2s", 200.0),
        few("--rate 100 --connections 2 --duration 3s --timeout 6s", 100.0),
        few("--clients 16 --connections 4 --duration 3s --timeout 2s", 320.0),
        few("--burst 20 --every 200ms --connections 5 --duration 3s --timeout 2s", 100.0),
        files("--clients 200 --duration 3s --timeout 2s", 4000.0),
        files("--rate 1500 --duration 3s --timeout 2s", 1500.0),
        ports("--clients 60 --duration 3s --timeout 2s", 1200.0),
        ports("--rate 1000 --duration 3s --timeout 2s", 1000.0),
    ]
}

/// A check that costs the generator more than the request: about 70 us for 30 kB.
fn costly() -> Vec<Case> {
    let kind = "costly check";
    let check = r"--check 'body=~(?s)(l.{0,60}){6}zz|so$|pl$|li$|im$|ms$|ol$|ll$|\n$|p$|k$'";
    let script = |body_bytes| Script { body_bytes, ..steady(Language::Http, ms(10)) };
    let at = |rate: f64, body_bytes| Case {
        kind,
        healthy: false,
        ..open(script(body_bytes), rate, check)
    };
    let on = |words, load: &str, (low, high): (f64, f64), ok_per_s| {
        let time = Some(between(low, high));
        let case = served(words, &format!("{load} --duration 3s --timeout 2s {check}"), 3.0, 2.0);
        let case = case.with(Source::Known([time, time, time, Some(ok_per_s)]));
        Case { kind, healthy: false, ..case }
    };
    // What the target itself needs to send a burst is the truth's, too.
    let small = "queue --servers 0 --service fixed:10ms --body-bytes 30000";
    let large = "queue --servers 0 --service fixed:40ms --body-bytes 200000";
    vec![
        at(100.0, 30_000),
        at(1_000.0, 30_000),
        at(500.0, 200_000),
        at(1_500.0, 200_000),
        at(2_500.0, 200_000),
        on(small, "--burst 64 --every 100ms", (10.0, 12.5), between(620.0, 640.0)),
        on(large, "--clients 64", (40.0, 42.0), between(1_480.0, 1_600.0)),
    ]
}

/// A slow and a full disk under the record.
fn disks() -> Vec<Case> {
    let any = "queue --servers 0 --service fixed:5ms";
    let load = "--rate 1000 --duration 3s --timeout 2s";
    let base = || served(any, load, 3.0, 2.0).all_take(5.0, between(990.0, 1000.0));
    let frozen = |frozen, every| Live::FrozenDisk { frozen: ms(frozen), every: ms(every) };
    vec![
        base().under("frozen disk under the record", frozen(400, 800)),
        base().under("frozen disk under the record", frozen(1_500, 2_000)),
        base().in_a("full disk under the record", Confine::Disk(16)),
    ]
}

/// A wall clock that is set: times are measured by another one.
fn clocks() -> Vec<Case> {
    let kind = "wall clock stepped";
    let steps = || Live::ClockSteps(Duration::from_secs(30));
    bases().into_iter().take(2).map(|base| base.under(kind, steps()).must_be(&["valid"])).collect()
}

/// Commands with a truth of their own: documents, operations, votes, ranks.
fn commands() -> Vec<Case> {
    let search = || Target::Served("search --durability none");
    let documents = 3_000;
    let visit = |words: &str| Case {
        before: Before::Fed(documents),
        numbers: vec![("/visit/documents", documents as f64)],
        ..Case::new("nothing", search(), words, 20.0, 20.0)
    };
    let feed = || Case {
        before: Before::Written(documents),
        numbers: vec![("/ledger/ok", documents as f64)],
        ..Case::new("nothing", search(), "feed URL FOLDER/input.jsonl", 20.0, 20.0)
    };
    let votes = || {
        let database = Target::Delayed("voter --partitions 1", ms(20));
        let words = "voter URL --rate 300 --duration 3s --timeout 2s";
        Case::new("nothing", database, words, 6.0, 5.0).all_take(20.3, between(290.0, 300.0))
    };
    let ranks = || {
        let server = Target::Delayed("rank --scale 8 --wait 20ms", ms(100));
        let words = "rank --target URL -q 30 -d 4 -w 0 -o FOLDER/table.txt";
        let time = |low, high| Some(between(low, high));
        let known = [time(122.0, 132.0), time(124.0, 140.0), time(124.0, 145.0), time(28.0, 30.0)];
        Case::new("nothing", server, words, 8.0, 10.0).with(Source::Known(known))
    };
    let pulses = |stopped, every| Live::Pulses { stopped: ms(stopped), every: ms(every) };
    let pulsed = |case: Case| case.under("stopped in pulses", pulses(100, 400));
    let beside = |case: Case| case.under("busy neighbours", Live::Neighbours(2));
    let out = "visit URL --cluster plimsoll --out FOLDER/out";
    let slow = Case { kind: "slow reader of visit's output", healthy: false, ..visit(out) };
    let slow = Case { live: vec![Live::SlowReader], ..slow };
    vec![
        visit(out),
        slow,
        pulsed(visit(out)),
        feed(),
        pulsed(feed()),
        beside(feed()),
        votes(),
        pulsed(votes()),
        beside(votes()),
        ranks(),
        pulsed(ranks()),
        beside(ranks()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_a_hundred_runs_and_they_fit_into_their_time() {
        let cases = all();
        assert!((100..=140).contains(&cases.len()), "{}", cases.len());
        let kinds: BTreeSet<&str> = cases.iter().map(|case| case.kind).collect();
        assert!(kinds.len() >= 18, "{kinds:?}");
        assert!(cases.iter().filter(|case| case.healthy).count() >= 25);
        assert!(cases.iter().all(|case| case.healthy || case.kind != "nothing"));
        // Runs of one kind stand together.
        let order: Vec<&str> = cases.iter().map(|case| case.kind).collect();
        let groups = order.windows(2).filter(|two| two[0] != two[1]).count() + 1;
        assert_eq!(groups, kinds.len());
        assert_eq!(sample().len(), 4);
    }
}
