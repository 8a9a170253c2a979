use super::*;
use crate::schedule::{Arrivals, Step};

#[test]
fn secrets_stay_out_of_records() {
    let scenario = Scenario {
        headers: ["Authorization: Bearer abc", "X-Kind: plain", "@secret-headers.txt"]
            .map(str::to_owned)
            .into(),
        targets: vec!["https://me:pw@host:1/x".to_owned(), "http://h/a@b?q=1&token=abc".to_owned()],
        body: Some("user=me&password=abc".to_owned()),
        ..Scenario::default()
    };
    let text = serde_json::to_string(&scenario.without_secrets()).unwrap();
    assert!(!text.contains("abc") && !text.contains("pw"), "{text}");
    for kept in
        ["X-Kind: plain", "\"@secret-headers.txt\"", "@host:1/x", "http://h/a@b?q=1", "user=me"]
    {
        assert!(text.contains(kept), "{kept} is missing in {text}");
    }
}

#[test]
fn there_is_a_connection_for_every_slot() {
    let slots = |slots| AdmissionModel::Managed { slots, queue_max: 1, queue_timeout_ns: 1 };
    let count = |load: &LoadModel, admission, connections| {
        let load = load.clone();
        Scenario { load, admission, connections, ..Scenario::default() }.connection_count()
    };
    let closed = LoadModel::Closed { clients: 7, think: Think::None, cycle_ns: 0 };
    let open = LoadModel::Open { rate_per_s: 500.0, arrivals: Arrivals::Uniform };
    let burst = LoadModel::Burst { size: 500, every_ns: 1 };
    assert_eq!(count(&closed, AdmissionModel::Direct, None), 7);
    assert_eq!(count(&closed, slots(200), None), 7);
    assert_eq!(count(&open, AdmissionModel::Direct, None), 64);
    assert_eq!(count(&burst, AdmissionModel::Direct, None), 500);
    assert_eq!(count(&open, slots(200), None), 200);
    assert_eq!(count(&open, slots(200), Some(20)), 20);
}

/// Load that arrives at its own time grows, and only over HTTP; what bounds it is known by name.
#[test]
fn connections_grow_where_nobody_named_their_number() {
    let most = |load: LoadModel, connections, target: &str, openable| {
        let targets = vec![target.to_owned()];
        Scenario { load, connections, targets, ..Scenario::default() }.connections_at_most(openable)
    };
    let open = || LoadModel::Open { rate_per_s: 500.0, arrivals: Arrivals::Uniform };
    let closed = || LoadModel::Closed { clients: 7, think: Think::None, cycle_ns: 0 };
    let (http, sql) = ("http://h/", "postgres://h/");
    let grown = Scenario::CONNECTIONS_GROWN;
    assert_eq!(most(open(), None, http, 20_000), (grown, ConnectionLimit::Own(grown)));
    assert_eq!(most(open(), None, http, 40), (40, ConnectionLimit::Machine(40)));
    assert_eq!(most(open(), Some(64), http, 20_000), (64, ConnectionLimit::Asked(64)));
    assert_eq!(most(open(), None, sql, 20_000), (64, ConnectionLimit::Own(64)));
    assert_eq!(most(closed(), None, http, 20_000), (7, ConnectionLimit::None));
    assert_eq!(most(closed(), Some(3), http, 20_000), (3, ConnectionLimit::Asked(3)));
    // With slots, a connection is a limit only where it carries one request at a time.
    for (target, limit) in [
        (http, ConnectionLimit::Asked(1)),
        (sql, ConnectionLimit::Asked(1)),
        ("volt://h:1", ConnectionLimit::None),
    ] {
        let admission = AdmissionModel::Managed { slots: 20, queue_max: 50, queue_timeout_ns: 1 };
        let targets = vec![target.to_owned()];
        let managed = Scenario {
            load: open(),
            admission,
            connections: Some(1),
            targets,
            ..Scenario::default()
        };
        assert_eq!(managed.connections_at_most(20_000), (1, limit));
    }
    let users = |profile: &str| LoadModel::Users {
        profile: profile.parse().unwrap(),
        requests: 1,
        think: Default::default(),
        pace: Span::default(),
    };
    assert_eq!(most(users("at once 50"), None, http, 20_000), (50, ConnectionLimit::None));
    assert_eq!(most(users("at once 5000"), None, http, 20_000), (5000, ConnectionLimit::None));
    let own = ConnectionLimit::Own(grown);
    assert_eq!(most(users("at once 50000"), None, http, 20_000), (grown, own));
    let own = ConnectionLimit::Own(1000);
    assert_eq!(most(users("at once 5000"), None, sql, 20_000), (1000, own));
}

#[test]
fn the_first_part_of_a_profile_is_its_warm_up() {
    let step = |from_per_s, to_per_s, s: u64| Step {
        from_per_s,
        to_per_s,
        duration_ns: Span::seconds(s).ns,
    };
    let steps = vec![step(0.0, 100.0, 3), step(100.0, 100.0, 7)];
    let load = LoadModel::Profile { steps, arrivals: Arrivals::Uniform };
    let length = |duration: Option<u64>, warmup| {
        let (duration, warmup) = (duration.map(Span::seconds), Span::seconds(warmup));
        let load = load.clone();
        Scenario { load, duration, warmup, ..Scenario::default() }.length().as_seconds()
    };
    assert_eq!((length(None, 0), length(None, 3)), (10.0, 7.0));
    assert_eq!((length(Some(5), 3), length(Some(60), 3), length(None, 11)), (5.0, 7.0, 0.0));
}

#[test]
fn so_many_requests_take_the_time_they_need() {
    let length = |duration: Option<u64>, requests| {
        let duration = duration.map(Span::seconds);
        Scenario { duration, requests, ..Scenario::default() }.length()
    };
    assert_eq!(length(None, None), Span::seconds(10));
    assert_eq!(length(None, Some(100_000)), Scenario::LONGEST);
    assert_eq!(length(Some(3), Some(100_000)), Span::seconds(3));
}

#[test]
fn users_have_the_time_and_the_connections_that_they_may_need() {
    let users = |profile: &str, requests, connections| {
        let load = LoadModel::Users {
            profile: profile.parse().unwrap(),
            requests,
            think: Default::default(),
            pace: Span::default(),
        };
        Scenario { load, connections, ..Scenario::default() }
    };
    // 30 s for a reply and 5 s for a connection, one after the other where two share one.
    assert_eq!(users("at once 100", 1, None).length(), Span::seconds(35));
    assert_eq!(users("at once 100", 2, Some(50)).length(), Span::seconds(140));
    let held = users("concurrent 20 during 1m", 3, None);
    assert_eq!((held.length(), held.expected_length()), (Span::seconds(165), Span::seconds(60)));
    assert_eq!(held.connection_count(), 20);
    assert_eq!(users("ramp 5000 during 1m", 1, None).connection_count(), 1000);
    let asked = Scenario { duration: Some(Span::seconds(7)), ..held };
    assert_eq!((asked.length(), asked.expected_length()), (Span::seconds(7), Span::seconds(7)));
}

#[test]
fn a_scenario_reads_back_from_json() {
    let scenario = Scenario::default();
    let text = serde_json::to_string(&scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario);
    assert!(serde_json::from_str::<Scenario>("{\"durations\":\"5s\"}").is_err());
}
