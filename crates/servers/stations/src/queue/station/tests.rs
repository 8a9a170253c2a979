use super::*;
use proptest::prelude::*;

fn config(service: ServiceTime) -> StationConfig {
    StationConfig { service, ..StationConfig::default() }
}

fn fixed(ns: u64) -> StationConfig {
    config(ServiceTime::Fixed { ns })
}

fn due_times(station: &mut Station) -> Vec<(u64, u64)> {
    let mut completions = Vec::new();
    station.advance(u64::MAX, &mut completions);
    completions.iter().map(|completion| (completion.id, completion.due_ns)).collect()
}

/// The station as a machine that is looked at once a nanosecond: servers, a line, and work that
/// goes down by one unless a stall is on. Returns when each job is done.
fn tick_by_tick(servers: usize, stall: Option<Stall>, jobs: &[(u64, u64)]) -> Vec<u64> {
    let mut done = vec![None; jobs.len()];
    let mut line: VecDeque<usize> = VecDeque::new();
    let mut serving: Vec<(usize, u64)> = Vec::new();
    let origin = jobs[0].0;
    for now in origin.. {
        serving.retain(|(job, left)| {
            if *left == 0 {
                done[*job] = Some(now);
            }
            *left > 0
        });
        line.extend((0..jobs.len()).filter(|job| jobs[*job].0 == now));
        let is_frozen = stall.is_some_and(|stall| {
            (now - origin) % stall.period_ns >= stall.period_ns - stall.length_ns
        });
        while !is_frozen && (servers == 0 || serving.len() < servers) {
            let Some(job) = line.pop_front() else { break };
            match jobs[job].1 {
                0 => done[job] = Some(now),
                work => serving.push((job, work)),
            }
        }
        if !is_frozen {
            serving.iter_mut().for_each(|(_, left)| *left -= 1);
        }
        if done.iter().all(Option::is_some) {
            break;
        }
    }
    done.into_iter().map(Option::unwrap).collect()
}

proptest! {
    #[test]
    fn departures_are_those_of_a_machine_looked_at_each_nanosecond(
        gaps in proptest::collection::vec(0u64..12, 1..60),
        servers in 0u32..4,
        mean_ns in 0u64..30,
        stall in proptest::option::of((1u64..20, 1u64..30)),
        seed: u64,
    ) {
        let stall = stall.map(|(length_ns, working_ns)| Stall {
            length_ns,
            period_ns: length_ns + working_ns,
        });
        let mut station = Station::new(StationConfig {
            servers,
            stall,
            seed,
            ..config(ServiceTime::Exponential { mean_ns })
        });
        let mut now_ns = 1_000;
        let mut jobs = Vec::new();
        for (id, gap_ns) in gaps.iter().enumerate() {
            now_ns += gap_ns;
            let admitted = station.arrive(now_ns, id as u64).unwrap();
            jobs.push((now_ns, admitted.service_ns));
        }
        let mut completions = Vec::new();
        station.advance(u64::MAX, &mut completions);
        prop_assert!(completions.is_sorted());
        completions.sort_by_key(|completion| completion.id);
        let due: Vec<u64> = completions.iter().map(|completion| completion.due_ns).collect();
        prop_assert_eq!(due, tick_by_tick(servers as usize, stall, &jobs));
    }
}

#[test]
fn late_looks_change_nothing() {
    let run = |look: bool| {
        let mut station = Station::new(StationConfig { servers: 2, ..StationConfig::default() });
        let mut completions = Vec::new();
        for id in 0..1_000 {
            let now_ns = id * 3_000_000;
            if look {
                station.advance(now_ns, &mut completions);
            }
            station.arrive(now_ns, id).unwrap();
        }
        station.advance(u64::MAX, &mut completions);
        completions
    };
    let looked = run(true);
    assert_eq!(looked, run(false));
    assert_eq!(looked.len(), 1_000);
}

#[test]
fn a_delay_is_added_but_occupies_no_server() {
    let mut station = Station::new(StationConfig { delay_ns: 100, ..fixed(10) });
    for id in 0..3 {
        station.arrive(0, id).unwrap();
    }
    assert_eq!(station.waiting(0), 2);
    assert_eq!(due_times(&mut station), [(0, 110), (1, 120), (2, 130)]);
}

#[test]
fn limits_turn_away_and_let_in_again() {
    let mut station = Station::new(StationConfig { waiting_max: 2, ..fixed(10) });
    assert!((0..3).all(|id| station.arrive(0, id).is_ok()));
    assert_eq!(station.arrive(9, 3), Err(Rejection::QueueFull));
    assert!(station.arrive(10, 4).is_ok(), "the second has left the line");

    let mut station = Station::new(StationConfig { in_flight_cap: Some(1), ..fixed(10) });
    assert!(station.arrive(0, 0).is_ok());
    assert_eq!(station.arrive(10, 1), Err(Rejection::InFlightCap), "its reply was not taken");
    assert_eq!(station.pop_due(10).map(|completion| completion.id), Some(0));
    assert!(station.arrive(10, 1).is_ok());
}

#[test]
fn a_rejected_request_draws_nothing() {
    let draws = |cap: Option<u64>| {
        let mut station =
            Station::new(StationConfig { in_flight_cap: cap, ..StationConfig::default() });
        (0..10).filter_map(|id| station.arrive(0, id).ok()).map(|it| it.service_ns).collect()
    };
    let (all, some): (Vec<u64>, Vec<u64>) = (draws(None), draws(Some(4)));
    assert_eq!(all[..4], some);
}

#[test]
fn errors_are_every_nth_accepted_request_and_start_again() {
    let mut station = Station::new(StationConfig { error_every: 3, ..fixed(1) });
    let mut errors = |ids: std::ops::Range<u64>| {
        for id in ids {
            station.arrive(id * 10, id).unwrap();
        }
        let mut completions = Vec::new();
        station.advance(u64::MAX, &mut completions);
        station.restart();
        completions.iter().filter(|it| it.is_error).map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(errors(0..7), [2, 5]);
    assert_eq!(errors(7..12), [9]);
}

#[test]
fn stalls_are_counted_from_the_first_request_and_again_after_a_restart() {
    let stall = Stall { length_ns: 20, period_ns: 100 };
    let mut station = Station::new(StationConfig { stall: Some(stall), ..fixed(0) });
    for (id, now_ns) in [1_000, 1_079, 1_080, 1_099, 1_100, 1_199].into_iter().enumerate() {
        station.arrive(now_ns, id as u64).unwrap();
    }
    let expected = [(0, 1_000), (1, 1_079), (2, 1_100), (3, 1_100), (4, 1_100), (5, 1_200)];
    assert_eq!(due_times(&mut station), expected);
    station.restart();
    station.arrive(1_290, 6).unwrap();
    assert_eq!(due_times(&mut station), [(6, 1_290)]);
}

#[test]
fn a_seed_names_one_sequence_of_service_times() {
    let draws = |seed: u64| -> Vec<u64> {
        let mut station = Station::new(StationConfig { seed, ..StationConfig::default() });
        (0..50).map(|id| station.arrive(id, id).unwrap().service_ns).collect()
    };
    assert_eq!(draws(7), draws(7));
    assert_ne!(draws(7), draws(8));
}

#[test]
fn the_largest_times_do_not_overflow() {
    let stall = Stall { length_ns: 86_313_600_000_000, period_ns: 86_400_000_000_000 };
    let config =
        StationConfig { stall: Some(stall), delay_ns: SERVICE_NS_MAX, ..fixed(SERVICE_NS_MAX) };
    let mut station = Station::new(config);
    for id in 0..100_000 {
        station.arrive(u64::MAX / 4, id).unwrap();
    }
    assert_eq!(due_times(&mut station).len(), 100_000);
}
