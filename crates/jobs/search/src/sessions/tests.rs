use super::*;
use crate::dialect::Dialect;
use plimsoll_core::outcome::Outcome;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{LoadModel, Think};
use plimsoll_core::units::Span;
use plimsoll_engine::sim::parts::{asked, difference, in_parts};
use plimsoll_job::prepare::plan_of;
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::{Encoding, Reply, Request};
use plimsoll_wire::{Sessions, Submission, Turn};
use plimsoll_workloads::render::RenderedSet;
use plimsoll_workloads::script::UserOrder;

fn passes(order: Order, repeats: &[u32], user: u32, users: u32, passes: u32) -> Vec<u16> {
    let mut walk = Walk::new(order, repeats, user, users, 1);
    std::iter::from_fn(|| walk.next(Some(passes))).collect()
}

#[test]
fn orders_are_what_they_are_called() {
    assert_eq!(passes(Order::Block, &[2, 1, 3], 1, 2, 1), [0, 0, 1, 2, 2, 2]);
    assert_eq!(passes(Order::Interleaved, &[2, 1, 3], 0, 2, 1), [0, 1, 2, 0, 2, 2]);
    assert_eq!(passes(Order::Interleaved, &[1, 1, 1, 1], 1, 2, 2), [2, 3, 0, 1, 2, 3, 0, 1]);
    let one = passes(Order::Shuffle, &[5, 5, 5], 0, 2, 2);
    let other = passes(Order::Shuffle, &[5, 5, 5], 1, 2, 2);
    assert_ne!(one, other);
    for all in [one, other] {
        for query in 0..3 {
            assert_eq!(all[..15].iter().filter(|own| **own == query).count(), 5);
        }
    }
}

fn sessions(users: u32, passes: Option<u32>) -> (CellSessions, Receiver<Tally>) {
    let mut requests = RenderedSet::default();
    for class in 0..2 {
        requests.push(class, 0, |out| out.extend_from_slice(b"POST / HTTP/1.1\r\n\r\n{}"));
    }
    let window = match passes {
        Some(_) => Window::FirstDone,
        None => Window::Fixed { warmup_ns: 100, length_ns: 1000 },
    };
    users_of(requests, users, Course::Walks { passes }, window)
}

fn users_of(
    requests: RenderedSet,
    users: u32,
    course: Course,
    window: Window,
) -> (CellSessions, Receiver<Tally>) {
    let plan = CellPlan {
        repeats: vec![1; requests.len()],
        queries: 3,
        order: Order::Block,
        users,
        slice: Slice::WHOLE,
        course,
        window,
        seed: 1,
    };
    let dialect = Dialect::Elasticsearch;
    let checks = HttpAsking::checks(dialect, &["time<5us".to_owned()]).unwrap();
    let asking = HttpAsking { requests: Arc::new(requests), dialect, checks, filling: None };
    let (outbox, result) = Outbox::new();
    (CellSessions::new(plan, asking, outbox), result)
}

fn reply(body: &'static str, status: u16) -> Reply<'static> {
    Reply {
        status,
        head: b"",
        body: body.as_bytes(),
        encoding: Encoding::Identity,
        body_bytes: body.len() as u64,
        truncated: false,
    }
}

const FINE: &str = r#"{"timed_out":false,"_shards":{"failed":0},"hits":{"total":{"value":3}}}"#;

fn ask(sessions: &mut CellSessions, client: u32) -> Submission {
    match sessions.next(client, 0, &mut Request::default()) {
        Turn::Ask(what) => what,
        other => panic!("{other:?}"),
    }
}

fn times(intended_ns: u64, done_ns: u64) -> Times {
    Times { intended_ns, sent_ns: intended_ns, done_ns }
}

#[test]
fn the_window_counts_what_ends_in_it_wherever_it_began() {
    let (mut users, result) = sessions(1, None);
    // Due at 50, so the window is 150 to 1150.
    for (from, to) in [(50, 120), (120, 200), (200, 1149), (1149, 1150)] {
        let what = ask(&mut users, 0);
        let judged = users.judge(0, &what, &reply(FINE, 200), times(from, to));
        assert_eq!((judged.outcome, judged.hits), (Outcome::Ok, Some(3)));
    }
    Box::new(users).finish(0);
    let tally = result.try_recv().unwrap();
    assert_eq!((tally.start_ns, tally.window_ok, tally.window_sum_ns), (50, 2, 80 + 949));
    // One in each half of the window, which tells nothing.
    assert_eq!(tally.parts.gain(1000).map(|gain| gain.is_clear), Some(false));
    assert_eq!(
        tally.queries[0],
        QueryTally { ok: 2, failed: 0, hits_min: Some(3), hits_max: Some(3) }
    );
    assert_eq!(tally.queries[2], QueryTally::default());
}

#[test]
fn passes_end_the_window_when_the_first_user_is_done() {
    let (mut users, result) = sessions(2, Some(1));
    let mut step = |client, from, to| {
        let what = ask(&mut users, client);
        users.judge(client, &what, &reply(FINE, 200), times(from, to));
    };
    step(0, 10, 20);
    step(1, 10, 60);
    step(0, 20, 70);
    step(1, 60, 90);
    assert_eq!(users.next(0, 0, &mut Request::default()), Turn::Exhausted);
    Box::new(users).finish(0);
    let tally = result.try_recv().unwrap();
    assert_eq!((tally.first_over_ns, tally.window_ok, tally.last_ns), (70, 3, 90));
}

#[test]
fn a_200_that_timed_out_is_a_failure_and_says_why() {
    let (mut users, result) = sessions(1, None);
    for (body, status, failure, reason) in [
        (r#"{"timed_out":true,"hits":{}}"#, 200, Failure::Check, "in time"),
        (r#"{"timed_out":false,"_shards":{"failed":2}}"#, 200, Failure::Check, "all shards"),
        (
            r#"{"error":{"root_cause":[{"reason":"too many"}]}}"#,
            429,
            Failure::Status,
            "429: too many",
        ),
    ] {
        let what = ask(&mut users, 0);
        let reply = reply(body, status);
        let judged = users.judge(0, &what, &reply, times(1, 500));
        assert_eq!(judged.outcome, Outcome::Failed(failure), "{body}");
        assert!(users.explain(&what, &reply).0.contains(reason), "{body}");
    }
    Box::new(users).finish(0);
    let tally = result.try_recv().unwrap();
    assert_eq!((tally.window_ok, tally.queries[0].failed + tally.queries[1].failed), (0, 3));
}

#[test]
fn a_dead_engine_is_given_up_and_a_slow_one_is_not() {
    let (mut users, _) = sessions(2, None);
    let lose = |users: &mut CellSessions, failure| {
        let what = ask(users, 0);
        users.lost(0, &what, failure, times(1, 2));
    };
    for _ in 0..20 {
        lose(&mut users, Failure::Timeout);
    }
    for _ in 0..5 {
        lose(&mut users, Failure::Connect);
    }
    assert!(!users.users.outbox.give_up.load(Ordering::Relaxed));
    lose(&mut users, Failure::Connect);
    assert!(users.users.outbox.give_up.load(Ordering::Relaxed));
}

#[test]
fn a_users_own_checks_come_on_top_of_the_dialects() {
    let (mut users, result) = sessions(1, None);
    let what = ask(&mut users, 0);
    let judged = users.judge(0, &what, &reply(FINE, 200), times(200, 9_200));
    assert_eq!(judged.outcome, Outcome::Failed(Failure::Check), "it took longer than 5 us");
    assert!(users.explain(&what, &reply(FINE, 200)).0.contains("longer than a check allows"));
    Box::new(users).finish(0);
    assert_eq!(result.try_recv().unwrap().window_ok, 0);
}

#[test]
fn users_who_come_and_go_ask_by_their_script_and_all_of_them_count() {
    let mut requests = RenderedSet::default();
    for class in 0..3 {
        requests.push(class, 0, |out| out.extend_from_slice(b"POST / HTTP/1.1\r\n\r\n{}"));
    }
    let script = Script::new(UserOrder::Block, &[1; 3], 0, 1).unwrap();
    let (mut users, result) = users_of(requests, 1, Course::Script(script), Window::ToEnd(0));
    let mut asked = Vec::new();
    for user in 0..2u64 {
        for step in 0..3 {
            users.user(0, UserTurn { user, step, free_ns: 0 });
            let what = ask(&mut users, 0);
            asked.push(what.class);
            let at = 100 + user * 30 + u64::from(step) * 10;
            users.judge(0, &what, &reply(FINE, 200), times(at, at + 10));
        }
    }
    assert_eq!(asked, [0, 1, 2, 0, 1, 2]);
    Box::new(users).finish(0);
    let tally = result.try_recv().unwrap();
    assert_eq!((tally.start_ns, tally.first_over_ns, tally.last_ns), (100, 130, 160));
    assert_eq!((tally.window_ok, tally.window_sum_ns), (6, 60));
}

#[test]
fn the_users_of_all_parts_ask_what_those_of_one_process_ask() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let users = 5 + rng.below(30) as u32;
        let orders = [Order::Block, Order::Interleaved, Order::Shuffle];
        let order = orders[rng.below(3) as usize];
        let passes = (rng.below(2) == 0).then(|| 1 + rng.below(3) as u32);
        let repeats: Vec<u32> = (0..1 + rng.below(6)).map(|_| 1 + rng.below(3) as u32).collect();
        let think = if rng.below(2) == 0 { Think::None } else { Think::Fixed(20_000_000) };
        let scenario = Scenario {
            load: LoadModel::Closed { clients: users, think, cycle_ns: 0 },
            duration: Some(Span { ns: 300_000_000 }),
            seed,
            ..Scenario::default()
        };
        let part = |own: Scenario| {
            let course = Course::Walks { passes };
            let mut requests = RenderedSet::default();
            for class in 0..repeats.len() as u8 {
                let text = format!("POST /{class} HTTP/1.1\r\n\r\n{{}}");
                requests.push(class, 0, |out| out.extend_from_slice(text.as_bytes()));
            }
            let window = Window::ToEnd(0);
            let plan = CellPlan {
                repeats: repeats.clone(),
                queries: repeats.len(),
                order,
                users,
                slice: own.slice,
                course,
                window,
                seed,
            };
            let dialect = Dialect::Elasticsearch;
            let checks = HttpAsking::checks(dialect, &[]).unwrap();
            let asking =
                HttpAsking { requests: Arc::new(requests), dialect, checks, filling: None };
            let sessions = CellSessions::new(plan, asking, Outbox::new().0);
            let sessions: Box<dyn Sessions<Http> + Send> = Box::new(sessions);
            let text = |request: &Request| String::from_utf8(request.bytes.clone()).unwrap();
            asked(&plan_of(&own, Vec::new(), None, 1), vec![sessions], text).unwrap()
        };
        let parts = 1 + rng.below(5) as u32;
        // All users of a part are on one thread.
        let union: Vec<_> = in_parts(&scenario, parts, 1).flat_map(part).collect();
        assert_eq!(difference(union, part(scenario)), None, "seed {seed}");
    }
}
