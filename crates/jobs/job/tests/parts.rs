//! A run in parts asks what one process with as many threads asks: the same requests, due at the same times.
#![allow(clippy::unwrap_used)]

use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::rng::Rng;
use plimsoll_core::scenario::{RowOrder, RowsPer, RowsScenario, Scenario};
use plimsoll_core::schedule::{LoadModel, Slice};
use plimsoll_core::verdict::ConnectionLimit;
use plimsoll_engine::sim::parts::{Asked, any_scenario, asked, difference, in_parts};
use plimsoll_job::prepare::{check_limits, only_whole, open, plan_of};
use proptest::prelude::*;
use std::path::Path;

/// A scenario over HTTP of any kind; its files are in `folder`.
fn drawn(seed: u64, folder: &Path) -> Scenario {
    let mut scenario = any_scenario(seed);
    let mut rng = Rng::new(!seed);
    let users = matches!(scenario.load, LoadModel::Users { .. });
    scenario.targets = vec!["http://127.0.0.1:9/".to_owned()];
    // Only clients keep their connections, and so their targets.
    if scenario.load.clients().is_some() && rng.below(2) == 0 {
        scenario.targets.push("http://127.0.0.1:19/".to_owned());
    }
    let orders = match users {
        true => &["file", "block", "interleaved", "shuffle", "random"][..],
        false => &["file", "shuffle", "random"][..],
    };
    orders[rng.below(orders.len() as u64) as usize].clone_into(&mut scenario.order);
    if users {
        scenario.repeat = 1 + rng.below(3) as u32;
    }
    let has_rows = rng.below(2) == 0;
    let place = if has_rows { "&v={{v}}" } else { "" };
    let lines = 1 + rng.below(30);
    let queries: String = (0..lines).map(|line| format!("/q?n={line}{place}\n")).collect();
    let path = folder.join("queries.txt");
    std::fs::write(&path, queries).unwrap();
    scenario.queries = Some(path);
    if has_rows {
        let file = folder.join("rows.csv");
        let rows: String = (0..1 + rng.below(200)).map(|row| format!("r{row}\n")).collect();
        std::fs::write(&file, format!("v\n{rows}")).unwrap();
        let orders = [RowOrder::Queue, RowOrder::Circular, RowOrder::Shuffle, RowOrder::Random];
        let order = orders[rng.below(4) as usize];
        let per = if users && rng.below(2) == 0 { RowsPer::User } else { RowsPer::Request };
        scenario.rows = Some(RowsScenario { file, order, per });
    }
    scenario.traceparent = (rng.below(2) == 0).then_some(0.5);
    scenario
}

/// Requests of one part, as the engine's threads would make them.
fn part(scenario: &Scenario) -> Vec<Asked> {
    let (plan, form) = open(scenario).unwrap();
    let sessions = form.sessions(scenario).unwrap();
    asked(&plan, sessions, |request| String::from_utf8(request.bytes.clone()).unwrap()).unwrap()
}

fn union(scenario: &Scenario, parts: u32, threads: u32) -> Vec<Asked> {
    in_parts(scenario, parts, threads).flat_map(|own| part(&own)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_union_of_all_parts_is_the_run_of_one_process(
        seed in any::<u64>(), parts in 1u32..=5, threads in 1u32..=3,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let scenario = drawn(seed, folder.path());
        let whole = union(&scenario, 1, parts * threads);
        let difference = difference(union(&scenario, parts, threads), whole);
        prop_assert_eq!(difference, None, "{:?}", scenario);
    }

    #[test]
    fn an_open_run_is_the_same_with_any_number_of_parts_and_threads(
        seed in any::<u64>(), parts in 1u32..=5, threads in 1u32..=3,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut scenario = drawn(seed, folder.path());
        let has_backlog = matches!(scenario.load, LoadModel::PacedBurst { limit: Some(_), .. });
        prop_assume!(!scenario.load.has_askers() && !has_backlog);
        // Each thread draws for itself.
        scenario.traceparent = None;
        scenario.order = scenario.order.replace("random", "shuffle");
        let one = union(&scenario, 1, 1);
        let difference = difference(union(&scenario, parts, threads), one);
        prop_assert_eq!(difference, None, "{:?}", scenario);
    }

    #[test]
    fn the_shares_of_a_plan_are_its_sum(
        seed in any::<u64>(), parts in 1u32..=5, threads in 1u32..=3,
        (slots, queue, connections) in (15u32..200, 0u32..50, 15u32..500), managed in any::<bool>(),
    ) {
        let mut scenario = any_scenario(seed);
        if managed {
            let queue_timeout_ns = 1_000_000_000;
            scenario.admission = AdmissionModel::Managed { slots, queue_max: queue, queue_timeout_ns };
        }
        scenario.connections = (seed % 2 == 0).then_some(connections);
        let sums = |parts: u32, threads: u32| {
            let mut sums = [0u64; 5];
            for own in in_parts(&scenario, parts, threads) {
                check_limits(&own).unwrap();
                let plan = plan_of(&own, Vec::new(), None, 1);
                let cuts = (0..threads).map(|shard| plan.cut(shard, threads));
                let cuts: Vec<_> = cuts.collect();
                let of_threads: u32 = cuts.iter().map(|cut| cut.connections).sum();
                prop_assert_eq!(of_threads, plan.connections, "{:?}", scenario);
                let places = match plan.admission {
                    AdmissionModel::Managed { slots, queue_max, .. } => (slots, queue_max),
                    AdmissionModel::Direct => (0, 0),
                };
                let limit = match plan.connection_limit {
                    ConnectionLimit::Asked(most) | ConnectionLimit::Own(most) => most,
                    _ => 0,
                };
                let warm = plan.warm_connections.unwrap_or(plan.connections);
                let own = [plan.connections, warm, places.0, places.1, limit];
                sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += u64::from(own));
            }
            Ok(sums)
        };
        prop_assert_eq!(sums(parts, threads)?, sums(1, parts * threads)?, "{:?}", scenario);
    }
}

#[test]
fn what_cannot_be_shared_out_is_rejected() {
    let error = |scenario: Scenario| check_limits(&scenario).unwrap_err().to_string();
    let slice = Slice { index: 2, of: 5 };
    let whole = Scenario { slice, threads: 2, ..Scenario::default() };
    let clients = |clients| LoadModel::Closed {
        clients,
        think: plimsoll_core::schedule::Think::None,
        cycle_ns: 0,
    };
    for (scenario, expected) in [
        (
            Scenario { load: clients(4), ..whole.clone() },
            "4 clients cannot be shared out to 5 parts",
        ),
        (Scenario { requests: Some(3), ..whole.clone() }, "3 requests cannot"),
        (
            Scenario { connections: Some(9), ..whole.clone() },
            "--connections 9 is less than one for each of 10 threads (5 parts of 2)",
        ),
        (
            Scenario {
                admission: AdmissionModel::Managed { slots: 7, queue_max: 1, queue_timeout_ns: 1 },
                ..whole.clone()
            },
            "--slots 7 is less",
        ),
        (
            Scenario {
                load: LoadModel::Users {
                    profile: "at once 4".parse().unwrap(),
                    requests: 1,
                    think: plimsoll_core::schedule::Pause::None,
                    pace: plimsoll_core::units::Span::default(),
                },
                ..whole.clone()
            },
            "4 users cannot",
        ),
    ] {
        let text = error(scenario);
        assert!(text.contains(expected), "{text}");
    }
    assert!(check_limits(&Scenario { load: clients(5), ..whole }).is_ok());
    let text = only_whole(slice, "a search", "it decides alone").unwrap_err().to_string();
    assert_eq!(text, "a search cannot be part 3 of 5 of a larger run: it decides alone");
    assert!(only_whole(Slice::WHOLE, "a search", "").is_ok());
}
