//! Users against the formulas of their steps, and slices against the whole.

use super::profile::USER_RATE_MAX_PER_S;
use super::*;
use crate::clock::{MILLISECOND_NS, SECOND_NS};
use crate::normal::quantile;
use crate::schedule::{LoadModel, Schedule};
use crate::units::Span;
use std::collections::BTreeMap;

mod properties;

fn profile(text: &str) -> UserProfile {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn model(text: &str, requests: u32, think: &str) -> LoadModel {
    let think = think.parse().unwrap();
    LoadModel::Users { profile: profile(text), requests, think, pace: Span::default() }
}

/// When users come, s after the start, each in the order of its number.
fn coming(text: &str) -> Vec<f64> {
    let mut coming = Coming::new(&profile(text), Slice::WHOLE, 7, 0);
    let mut times = Vec::new();
    while let Some(arrival) = coming.take() {
        assert_eq!(arrival.user, times.len() as u64);
        times.push(arrival.at_ns as f64 / 1e9);
    }
    times
}

fn between(times: &[f64], from: f64, to: f64) -> usize {
    times.iter().filter(|&&t| t >= from && t < to).count()
}

/// One request that was made due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    intended_ns: u64,
    user: u64,
    step: u32,
}

/// Plays a schedule against a server that takes `service_ns` for each request, without limit on how many at a time.
fn play(model: &LoadModel, slice: Slice, limits: Limits, service_ns: u64) -> (Vec<Asked>, u64) {
    play_on(Schedule::start(model, slice, limits, 3, 0).unwrap(), service_ns)
}

fn play_on(mut schedule: Schedule, service_ns: u64) -> (Vec<Asked>, u64) {
    let mut answers: BinaryHeap<Reverse<(u64, u32, u64)>> = BinaryHeap::new();
    let (mut now_ns, mut asked, mut most) = (0, Vec::new(), 0);
    loop {
        let answer_ns = answers.peek().map(|&Reverse((at_ns, ..))| at_ns);
        match schedule.next(now_ns) {
            Next::Send { intended_ns, client } => {
                let turn = schedule.user_turn(client).unwrap();
                assert!(intended_ns <= now_ns && turn.free_ns <= now_ns);
                asked.push(Asked { intended_ns, user: turn.user, step: turn.step });
                answers.push(Reverse((now_ns + service_ns, client, intended_ns)));
                most = most.max(answers.len() as u64);
            }
            Next::Wait { until_ns } if answer_ns.is_none_or(|at_ns| until_ns < at_ns) => {
                assert!(until_ns > now_ns, "a wait that is over already");
                now_ns = until_ns;
            }
            Next::Wait { .. } | Next::Blocked => {
                let Reverse((at_ns, client, intended_ns)) = answers.pop().unwrap();
                now_ns = now_ns.max(at_ns);
                schedule.ended(client, intended_ns, now_ns);
            }
            Next::Done if answers.is_empty() => return (asked, most),
            Next::Done => {
                answers.pop();
            }
        }
    }
}

const LONG: Limits = Limits::after(3600 * SECOND_NS);

#[test]
fn a_number_of_users_is_exact_and_evenly_spread() {
    assert_eq!(coming("at once 3"), [0.0, 0.0, 0.0]);
    assert_eq!(coming("nothing for 1s, at once 2"), [1.0, 1.0]);
    let times = coming("ramp 100 during 10s");
    assert_eq!(times.len(), 100);
    assert!(times.iter().enumerate().all(|(i, t)| (t - i as f64 / 10.0).abs() < 1e-9));
    // Neither whole seconds nor whole milliseconds are a grid.
    let times = coming("ramp 3 during 1ns, constant 3/s during 1500ms");
    assert_eq!(times.len(), 3 + 5);
    assert!((times[4] - (1e-9 + 0.3)).abs() < 2e-9, "{times:?}");
}

#[test]
fn rates_are_the_area_under_their_line() {
    let times = coming("constant 20/s during 1m");
    assert_eq!(times.len(), 1200);
    assert!((times[1199] - 59.95).abs() < 1e-9);
    let times = coming("ramp 0/s to 100/s during 10s");
    assert_eq!(times.len(), 500);
    assert_eq!((between(&times, 0.0, 5.0), between(&times, 5.0, 10.0)), (125, 375));
    let times = coming("ramp 100/s to 0/s during 10s");
    assert_eq!((times.len(), between(&times, 0.0, 5.0)), (500, 375));
    // What one step leaves of a user is carried to the next.
    assert_eq!(coming("constant 0.25/s during 1s, constant 0.25/s during 1s").len(), 1);
    let cut = ["constant 0.7/s during 1s"; 10].join(", ");
    assert_eq!(coming(&cut).len(), 7);
    assert_eq!(coming("constant 90/m during 10s").len(), 15);
}

#[test]
fn a_peak_has_gatlings_shape() {
    let (n, seconds) = (200usize, 20.0);
    let times = coming("peak 200 during 20s");
    assert_eq!(times.len(), n);
    let first = quantile(1.0 / (n as f64 + 2.0));
    for (place, time) in times.iter().enumerate() {
        let z = quantile((place + 1) as f64 / (n as f64 + 2.0));
        let expected = (z - first) / (-2.0 * first) * seconds;
        assert!((time - expected).abs() < 1e-8, "{place}: {time} {expected}");
    }
    assert!(times.is_sorted() && times[0] == 0.0 && times[n - 1] < seconds);
    // The densest second is in the middle, and five times as dense as those at the ends.
    assert!(between(&times, 9.5, 10.5) > 5 * between(&times, 0.0, 1.0).max(1));
}

#[test]
fn stairs_are_gatlings() {
    let per_second = |text: &str, seconds: usize| {
        let times = coming(text);
        (0..seconds).map(|s| between(&times, s as f64, s as f64 + 1.0)).collect::<Vec<_>>()
    };
    // Levels only; the first one is where the stairs begin, and that is 0 unless something else is said.
    assert_eq!(per_second("increment 5/s times 3 lasting 1s", 3), [0, 5, 10]);
    assert_eq!(per_second("increment 5/s times 3 lasting 1s from 10/s", 3), [10, 15, 20]);
    // (level, ramp) and a level at the end.
    let from_ten = per_second("increment 10/s times 3 lasting 1s from 10/s ramps 1s", 5);
    assert_eq!(from_ten, [10, 15, 20, 25, 30]);
    // From 0: (ramp, level).
    assert_eq!(per_second("increment 10/s times 2 lasting 1s ramps 1s", 4), [5, 10, 15, 20]);
    let gatling =
        "incrementUsersPerSec(10).times(2).eachLevelLasting(1.second).separatedByRampsLasting(1)";
    assert_eq!(profile(gatling), profile("increment 10/s times 2 lasting 1s ramps 1s"));
    assert_eq!(profile(gatling).own_duration_ns(), 4 * SECOND_NS);
    let alone = "increment 5/s times 1 lasting 1s".parse::<UserProfile>().unwrap_err();
    assert!(alone.problem.contains("no users arrive"), "{alone}");
}

#[test]
fn random_moments_keep_the_number_and_the_distribution() {
    let times = coming("constant 2000/s during 10s randomized");
    assert_eq!(times.len(), 20_000);
    assert!(times.is_sorted());
    // Kolmogorov's statistic against the uniform distribution; 1.95 / sqrt(n) is its 0.1 % point.
    let n = times.len() as f64;
    let worst = |cdf: &dyn Fn(f64) -> f64, times: &[f64]| {
        let apart = |(i, t): (usize, &f64)| ((i as f64 + 0.5) / n - cdf(*t)).abs();
        times.iter().enumerate().map(apart).fold(0.0, f64::max)
    };
    assert!(worst(&|t| t / 10.0, &times) < 1.95 / n.sqrt());
    assert_ne!(times, coming("constant 2000/s during 10s"));
    let times = coming("ramp 0/s to 4000/s during 10s randomized");
    assert_eq!(times.len(), 20_000);
    assert!(worst(&|t| (t / 10.0).powi(2), &times) < 1.95 / n.sqrt());
    // Gaps of random moments vary as much as they are long; equal gaps do not vary.
    let gaps: Vec<f64> = coming("constant 2000/s during 10s randomized")
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.03);
}

#[test]
fn a_user_asks_waits_thinks_and_leaves() {
    let model = model("ramp 2 during 10s", 3, "2s");
    let (asked, most) = play(&model, Slice::WHOLE, LONG, SECOND_NS);
    let of = |user: u64| -> Vec<u64> {
        asked.iter().filter(|a| a.user == user).map(|a| a.intended_ns / SECOND_NS).collect()
    };
    assert_eq!((of(0), of(1), most), (vec![0, 3, 6], vec![5, 8, 11], 1));
    let steps: Vec<u32> = asked.iter().filter(|a| a.user == 1).map(|a| a.step).collect();
    assert_eq!(steps, [0, 1, 2]);
}

#[test]
fn a_pace_holds_even_when_an_answer_is_late() {
    let pace = Span::seconds(2);
    let profile = profile("at once 1");
    let model = LoadModel::Users { profile, requests: 4, think: Pause::None, pace };
    let mut schedule = Schedule::start(&model, Slice::WHOLE, LONG, 0, 0).unwrap();
    let mut intended = Vec::new();
    let mut now_ns = 0;
    for service_s in [1, 5, 1, 1] {
        let (intended_ns, client) = loop {
            match schedule.next(now_ns) {
                Next::Send { intended_ns, client } => break (intended_ns, client),
                Next::Wait { until_ns } => now_ns = until_ns,
                other => panic!("{other:?}"),
            }
        };
        assert!(schedule.user_turn(client).unwrap().free_ns <= now_ns);
        intended.push(intended_ns / SECOND_NS);
        now_ns += service_s * SECOND_NS;
        schedule.ended(client, intended_ns, now_ns);
    }
    assert_eq!(intended, [0, 2, 4, 6], "the second answer came at 7");
    assert_eq!(schedule.next(now_ns), Next::Done);
}

#[test]
fn concurrent_users_are_replaced_until_the_last_step_ends() {
    let model = model("concurrent 10 during 10s", 2, "none");
    let (asked, most) = play(&model, Slice::WHOLE, LONG, 300 * MILLISECOND_NS);
    assert_eq!(most, 10);
    let users = asked.iter().map(|a| a.user).max().unwrap() + 1;
    // A user takes 0.6 s; the 17th of each seat comes at 9.6 s, and ends after the last step.
    assert_eq!((users, asked.len()), (170, 340));
    assert_eq!(asked.iter().map(|a| a.intended_ns).max().unwrap(), 9_900 * MILLISECOND_NS);
}

/// How many users there are at a moment, when each stays as long as `stay_ns`.
fn present_at(asked: &[Asked], requests: u32, stay_ns: u64, at_ns: u64) -> usize {
    let mut first: BTreeMap<u64, u64> = BTreeMap::new();
    first.extend(asked.iter().filter(|a| a.step == 0).map(|a| (a.user, a.intended_ns)));
    assert!(requests == 1);
    first.values().filter(|&&from_ns| from_ns <= at_ns && at_ns < from_ns + stay_ns).count()
}

#[test]
fn ramps_and_stairs_of_concurrent_users_are_followed() {
    let short_ns = MILLISECOND_NS;
    for (text, points) in [
        ("concurrent 0 to 40 during 8s", vec![(1.0, 5), (4.0, 20), (7.95, 40)]),
        ("concurrent 40 to 0 during 8s", vec![(1.0, 35), (4.0, 20), (7.95, 0)]),
        (
            "increment concurrent 5 times 3 lasting 2s from 10",
            vec![(1.0, 10), (3.0, 15), (5.9, 20)],
        ),
        ("increment concurrent 5 times 2 lasting 2s ramps 1s", vec![(0.6, 3), (2.0, 5), (5.0, 10)]),
        ("increment concurrent 5 times 3 lasting 2s", vec![(1.0, 0), (3.0, 5), (5.9, 10)]),
        (
            "concurrent 5 during 1s, nothing for 1s, concurrent 2 during 1s",
            vec![(0.5, 5), (1.5, 0), (2.5, 2)],
        ),
    ] {
        let (asked, _) = play(&model(text, 1, "none"), Slice::WHOLE, LONG, short_ns);
        for (at_s, expected) in points {
            let at_ns = (at_s * 1e9) as u64;
            assert_eq!(present_at(&asked, 1, short_ns, at_ns), expected, "{text} at {at_s} s");
        }
    }
}

#[test]
fn who_has_left_takes_no_memory() {
    let model = model("constant 1000/s during 100s", 2, "10ms");
    let Schedule::Users(mut users) = Schedule::start(&model, Slice::WHOLE, LONG, 0, 0).unwrap()
    else {
        panic!()
    };
    let (mut now_ns, mut asked) = (0, 0);
    loop {
        match users.next(now_ns) {
            Next::Send { client, intended_ns } => {
                asked += 1;
                users.ended(client, intended_ns, now_ns);
            }
            Next::Wait { until_ns } => now_ns = until_ns,
            Next::Blocked => panic!("nobody is away"),
            Next::Done => break,
        }
    }
    assert_eq!(asked, 200_000);
    assert!(users.places.len() < 20 && users.waiting.capacity() < 64, "{}", users.places.len());
    const { assert!(USER_BYTES <= 64) };
}

#[test]
fn the_end_of_the_run_and_the_number_of_requests_end_it() {
    let endless = model("at once 5", u32::MAX, "1s");
    let (asked, _) = play(&endless, Slice::WHOLE, Limits::after(3 * SECOND_NS), 0);
    assert_eq!(asked.len(), 15);
    let limits = Limits { duration_ns: 3600 * SECOND_NS, requests: Some(7) };
    assert_eq!(play(&endless, Slice::WHOLE, limits, 0).0.len(), 7);
}

#[test]
fn a_user_without_anything_to_ask_leaves_and_nobody_else_comes() {
    let model = model("at once 3", 5, "none");
    let mut schedule = Schedule::start(&model, Slice::WHOLE, LONG, 0, 0).unwrap();
    assert!(matches!(schedule.next(0), Next::Send { client: 0, .. }));
    assert!(matches!(schedule.next(0), Next::Send { client: 1, .. }));
    schedule.withdraw(1);
    assert_eq!(schedule.next(1), Next::Blocked, "the first one is still away");
    schedule.ended(0, 0, 1);
    assert!(matches!(schedule.next(1), Next::Send { client: 0, .. }));
    schedule.postpone(0);
    schedule.ended(0, 1, 2);
    assert!(matches!(schedule.next(2), Next::Send { client: 0, .. }));
    assert_eq!(schedule.user_turn(0).unwrap().step, 1, "what was taken back is asked again");
}

/// Behind a queue a request is asked long after it became due: others may have become due since.
#[test]
fn what_is_taken_back_is_that_users_and_not_the_last_ones() {
    let model = model("at once 3", 2, "none");
    let mut schedule = Schedule::start(&model, Slice::WHOLE, LONG, 0, 0).unwrap();
    for client in 0..3 {
        assert_eq!(schedule.next(0), Next::Send { intended_ns: 0, client });
    }
    schedule.postpone(0);
    schedule.ended(0, 0, 5);
    assert_eq!(schedule.next(5), Next::Send { intended_ns: 5, client: 0 });
    let step = |schedule: &Schedule, client| schedule.user_turn(client).unwrap().step;
    assert_eq!(
        (step(&schedule, 0), step(&schedule, 2)),
        (0, 0),
        "asked again, and not passed over"
    );
    schedule.ended(2, 0, 6);
    assert_eq!(schedule.next(6), Next::Send { intended_ns: 6, client: 2 });
    assert_eq!(step(&schedule, 2), 1);
    // Whoever has nothing left leaves, and whoever waits stays.
    schedule.withdraw(0);
    schedule.ended(1, 0, 7);
    assert_eq!(schedule.next(7), Next::Send { intended_ns: 7, client: 1 });
}

#[test]
fn mistakes_are_told_with_their_place() {
    for (text, column, word) in [
        ("", 1, "a step is missing"),
        ("ramp 100 during 10s,", 21, "a step is missing"),
        ("jump 5", 1, "'jump' is not a step"),
        ("ramp 100", 9, "'during' is missing"),
        ("ramp 100 for 10s", 10, "'for' where 'during' should be"),
        ("ramp x during 10s", 6, "'x' is not a whole number"),
        ("ramp 100 during fast", 17, "'fast' is not a duration"),
        ("constant 20 during 1m", 10, "'20' is not a rate"),
        ("constant -1/s during 1m", 10, "'-1/s' is not a rate"),
        ("at once 5/s", 9, "is a rate"),
        ("ramp 1 to 2 during 3s", 8, "is ambiguous"),
        ("at once 5 at once 6", 11, "separate steps by commas"),
        ("at once 5, concurrent 5 during 1s", 12, "cannot be combined"),
        ("nothing for 5s", 1, "no users arrive"),
        ("concurrent 0 during 5s", 1, "no users arrive"),
        ("at once 0", 1, "0 users"),
        ("constant 5/s during 0s", 1, "without a duration"),
        ("constant 1e9/s during 1s", 1, "users per second"),
        ("increment 5/s times 0 lasting 1s", 1, "0 levels"),
        ("concurrent 2000000 during 1s", 1, "concurrent users"),
        ("constant 1/s during 1000h", 1, "30 days"),
    ] {
        let error = text.parse::<UserProfile>().unwrap_err();
        assert!(error.problem.contains(word), "{text}: {error}");
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn gatlings_words_mean_the_same() {
    for (theirs, ours) in [
        ("nothingFor(4.seconds), atOnceUsers(10)", "nothing for 4s, at once 10"),
        ("rampUsers(10).during(5)", "ramp 10 during 5s"),
        (
            "constantUsersPerSec(20) during (15.seconds) randomized",
            "constant 20/s during 15s randomized",
        ),
        ("rampUsersPerSec(10).to(20).during(10.minutes)", "ramp 10/s to 20/s during 10m"),
        ("stressPeakUsers(1000).during(20.seconds)", "peak 1000 during 20s"),
        ("constantConcurrentUsers(10).during(10.seconds)", "concurrent 10 during 10s"),
        ("rampConcurrentUsers(10).to(20).during(10.seconds)", "concurrent 10 to 20 during 10s"),
        (
            "incrementConcurrentUsers(5).times(5).eachLevelLasting(10).startingFrom(10)",
            "increment concurrent 5 times 5 lasting 10s from 10",
        ),
    ] {
        assert_eq!(profile(theirs), profile(ours), "{theirs}");
        assert_eq!(profile(ours).to_string().parse::<UserProfile>().unwrap(), profile(ours));
    }
}

#[test]
fn the_limits_of_numbers_are_refused_and_not_overrun() {
    let most = format!("constant {USER_RATE_MAX_PER_S}/s during 720h");
    assert_eq!(profile(&most).users(), 25_920_000_000_000);
    assert!(profile("peak 100000000 during 1h").users() == 100_000_000);
    let step = UserStep::Constant { per_s: f64::NAN, during: Span::seconds(1), randomized: false };
    assert!(UserProfile::new(vec![step]).is_err());
}

/// A schedule that begins within its profile against one that was on all the time, with the same answers.
#[test]
fn users_who_came_before_the_start_are_where_they_would_be() {
    let (before_ns, service_ns) = (8 * SECOND_NS, 30 * MILLISECOND_NS);
    let text = "constant 20/s during 8s randomized, constant 30/s during 4s";
    for (requests, think, pace_ms) in
        [(5, "exponential 500ms", 0), (1, "none", 0), (4, "none", 700), (3, "2s", 500)]
    {
        let LoadModel::Users { profile, requests, think, .. } = model(text, requests, think) else {
            panic!("no users")
        };
        let pace = Span { ns: pace_ms * MILLISECOND_NS };
        let model = LoadModel::Users { profile, requests, think, pace };
        let slice = Slice { index: 1, of: 2 };
        let (whole, _) = play(&model, slice, Limits::after(12 * SECOND_NS), service_ns);
        let mut expected: Vec<Asked> =
            whole.into_iter().filter(|asked| asked.intended_ns >= before_ns).collect();
        let limits = Limits::after(4 * SECOND_NS);
        let mut schedule = Schedule::start(&model, slice, limits, 3, before_ns).unwrap();
        schedule.begin_before(before_ns, service_ns);
        let (mut asked, _) = play_on(schedule, service_ns);
        expected.sort_unstable();
        asked.sort_unstable();
        assert!(asked.len() > 50, "{}", asked.len());
        assert_eq!(asked, expected, "{requests} requests, {think}, {pace}");
    }
}
