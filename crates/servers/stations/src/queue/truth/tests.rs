use super::*;
use crate::queue::{Station, StationConfig};
use plimsoll_core::rng::Rng;

fn config(servers: u32, service: &str) -> QueueConfig {
    let service = service.parse().unwrap();
    let station = StationConfig { servers, service, ..StationConfig::default() };
    QueueConfig { station, ..QueueConfig::default() }
}

fn close(value: f64, expected: f64, tolerance: f64, what: &str) {
    let off = (value - expected).abs();
    assert!(off <= tolerance * expected.abs().max(1e-6), "{what}: {value}, not {expected}");
}

/// Response times in ms, sorted, of a station on virtual time.
fn by_station(config: &QueueConfig, rate_per_s: f64, arrivals: Arrivals, count: usize) -> Vec<f64> {
    let mut station = Station::new(config.station.clone());
    let mut rng = Rng::new(99);
    let mut at_s = 0.0;
    let mut completions = Vec::with_capacity(count);
    for id in 0..count {
        let now_ns = (at_s * 1e9) as u64;
        station.advance(now_ns, &mut completions);
        station.arrive(now_ns, id as u64).unwrap();
        at_s += match arrivals {
            Arrivals::Poisson => rng.exponential() / rate_per_s,
            Arrivals::Uniform => 1.0 / rate_per_s,
        };
    }
    station.advance(u64::MAX, &mut completions);
    let mut responses: Vec<f64> =
        completions.iter().map(|it| (it.due_ns - it.arrived_ns) as f64 / 1e6).collect();
    responses.sort_by(f64::total_cmp);
    responses
}

/// The same from scratch: a line for k servers as a sorted list of their loads in seconds, with
/// service times drawn here.
fn by_recursion(
    servers: usize,
    mut service_s: impl FnMut(&mut Rng) -> f64,
    mut gap_s: impl FnMut(&mut Rng) -> f64,
    count: usize,
) -> Vec<f64> {
    let mut rng = Rng::new(4242);
    let mut loads = vec![0.0f64; servers];
    let mut responses: Vec<f64> = (0..count)
        .map(|_| {
            let response_s = loads[0] + service_s(&mut rng);
            loads[0] = response_s;
            loads.sort_by(f64::total_cmp);
            let gap_s = gap_s(&mut rng);
            loads.iter_mut().for_each(|load| *load = (*load - gap_s).max(0.0));
            response_s * 1e3
        })
        .collect();
    responses.sort_by(f64::total_cmp);
    responses
}

fn assert_sample(sample: &[f64], truth: &Truth, tolerance: f64) {
    let model = &truth.model;
    let mean = sample.iter().sum::<f64>() / sample.len() as f64;
    close(mean, truth.mean_ms.unwrap(), tolerance, &format!("mean of {model}"));
    let quantiles =
        [(0.5, truth.p50_ms), (0.9, truth.p90_ms), (0.95, truth.p95_ms), (0.99, truth.p99_ms)];
    for (q, claimed) in quantiles {
        if let Some(claimed) = claimed {
            let measured = sample[(q * sample.len() as f64) as usize];
            close(measured, claimed, tolerance, &format!("{q} of {model}"));
        }
    }
}

const COUNT: usize = 400_000;

#[test]
fn one_exponential_server_is_exponential() {
    let config = config(1, "exponential:5ms");
    let truth = truth(&config, 140.0, Arrivals::Poisson).unwrap();
    // mu - lambda is 60 per second.
    close(truth.mean_ms.unwrap(), 1e3 / 60.0, 1e-12, "mean");
    close(truth.p99_ms.unwrap(), 1e3 / 60.0 * 100f64.ln(), 1e-9, "p99");
    close(truth.utilization, 0.7, 1e-12, "utilization");
    assert_sample(&by_station(&config, 140.0, Arrivals::Poisson, COUNT), &truth, 0.03);
    let sample =
        by_recursion(1, |rng| 5e-3 * rng.exponential(), |rng| rng.exponential() / 140.0, COUNT);
    assert_sample(&sample, &truth, 0.03);
}

#[test]
fn several_exponential_servers_follow_erlang() {
    // Two servers at load 1: C = 1/3 in every textbook; one server: C is the utilization.
    close(erlang_c(2, 1.0), 1.0 / 3.0, 1e-12, "C(2, 1)");
    close(erlang_c(1, 0.7), 0.7, 1e-12, "C(1, 0.7)");
    for (servers, rate) in [(3, 480.0), (8, 1_400.0), (2, 200.0)] {
        let config = config(servers, "exponential:5ms");
        let truth = truth(&config, rate, Arrivals::Poisson).unwrap();
        assert_sample(&by_station(&config, rate, Arrivals::Poisson, COUNT), &truth, 0.03);
        let servers = servers as usize;
        let gap = |rng: &mut Rng| rng.exponential() / rate;
        let sample = by_recursion(servers, |rng| 5e-3 * rng.exponential(), gap, COUNT);
        assert_sample(&sample, &truth, 0.03);
    }
    // With k mu - lambda = mu the two rates are equal, and nothing breaks next to it.
    let p99 = |rate| truth(&config(2, "exponential:5ms"), rate, Arrivals::Poisson).unwrap().p99_ms;
    close(p99(200.0).unwrap(), p99(200.0001).unwrap(), 1e-5, "p99 beside the pole");
}

#[test]
fn one_fixed_server_follows_franx() {
    let config = config(1, "fixed:5ms");
    for rate in [60.0, 140.0, 190.0] {
        let truth = truth(&config, rate, Arrivals::Poisson).unwrap();
        let sample = by_recursion(1, |_| 5e-3, |rng| rng.exponential() / rate, 2 * COUNT);
        let tolerance = if rate > 150.0 { 0.05 } else { 0.03 };
        assert_sample(&sample, &truth, tolerance);
        assert_sample(&by_station(&config, rate, Arrivals::Poisson, COUNT), &truth, tolerance);
    }
}

#[test]
fn the_waiting_distribution_has_the_mean_of_pollaczek_and_khinchine() {
    for utilization in [0.1, 0.5, 0.9, 0.98] {
        let waiting = DeterministicWaiting::new(utilization).unwrap();
        close(waiting.up_to(0.0), 1.0 - utilization, 1e-9, "nobody before it");
        // Before the first departure: (1 - rho) exp(rho x).
        close(waiting.up_to(0.7), (1.0 - utilization) * (0.7 * utilization).exp(), 1e-9, "early");
        // The mean is the integral of 1 - F; Simpson's rule between the kinks at whole numbers.
        let tail = |x: f64| 1.0 - waiting.up_to(x);
        let just_below = |k: f64| tail(k * (1.0 - 1e-15));
        let mean: f64 = (0..500)
            .map(f64::from)
            .take_while(|k| tail(*k) > 1e-9)
            .map(|k| {
                let (quarter, half, most) = (tail(k + 0.25), tail(k + 0.5), tail(k + 0.75));
                (tail(k) + 4.0 * quarter + 2.0 * half + 4.0 * most + just_below(k + 1.0)) / 12.0
            })
            .sum();
        close(mean, utilization / (2.0 * (1.0 - utilization)), 1e-4, "mean waiting");
    }
    assert!(DeterministicWaiting::new(0.9999).is_none());
}

#[test]
fn general_service_has_the_mean_of_pollaczek_and_khinchine() {
    for service in ["lognormal:4ms,0.6", "gamma:2,5ms", "bimodal:0.9,2ms,20ms"] {
        let config = config(1, service);
        let truth = truth(&config, 100.0, Arrivals::Poisson).unwrap();
        assert_eq!((truth.model.as_str(), truth.p99_ms), ("M/G/1", None));
        assert_sample(&by_station(&config, 100.0, Arrivals::Poisson, COUNT), &truth, 0.03);
    }
}

#[test]
fn uniform_arrivals_at_one_exponential_server_follow_their_root() {
    let config = config(1, "exponential:5ms");
    let truth = truth(&config, 140.0, Arrivals::Uniform).unwrap();
    assert_sample(&by_station(&config, 140.0, Arrivals::Uniform, COUNT), &truth, 0.03);
    let sample = by_recursion(1, |rng| 5e-3 * rng.exponential(), |_| 1.0 / 140.0, COUNT);
    assert_sample(&sample, &truth, 0.03);
}

#[test]
fn uniform_arrivals_never_wait_for_fixed_service() {
    for (servers, rate) in [(1, 200.0), (3, 600.0), (3, 10.0)] {
        let config = config(servers, "fixed:5ms");
        let truth = truth(&config, rate, Arrivals::Uniform).unwrap();
        assert_eq!((truth.p99_ms, truth.max_ms), (Some(5.0), Some(5.0)));
        assert_sample(&by_station(&config, rate, Arrivals::Uniform, 10_000), &truth, 1e-3);
    }
}

#[test]
fn with_unlimited_servers_the_response_is_the_service() {
    let services = ["fixed:5ms", "exponential:5ms", "lognormal:5ms,1", "gamma:3,5ms"];
    for service in services.into_iter().chain(["bimodal:0.93,1ms,50ms"]) {
        let mut config = config(0, service);
        config.station.delay_ns = 2_000_000;
        for arrivals in [Arrivals::Poisson, Arrivals::Uniform] {
            let truth = truth(&config, 10_000.0, arrivals).unwrap();
            assert_sample(&by_station(&config, 10_000.0, arrivals, COUNT), &truth, 0.03);
        }
    }
    let truth = truth(&config(0, "exponential:5ms"), 1.0, Arrivals::Poisson).unwrap();
    close(truth.p50_ms.unwrap(), 5.0 * 2f64.ln(), 1e-12, "median");
}

#[test]
fn stalls_follow_their_formula() {
    let mut config = config(1, "fixed:0");
    config.station.stall = Some(Stall { length_ns: 1_000_000_000, period_ns: 5_000_000_000 });
    let truth = truth(&config, 1_000.0, Arrivals::Uniform).unwrap();
    let known = [truth.p50_ms, truth.p90_ms, truth.p95_ms, truth.p99_ms, truth.max_ms];
    for (value, expected) in known.into_iter().zip([0.0, 500.0, 750.0, 950.0, 1_000.0]) {
        close(value.unwrap(), expected, 1e-9, "quantile");
    }
    close(truth.mean_ms.unwrap(), 100.0, 1e-12, "mean");
    // 20,000 requests over exactly four periods.
    let sample = by_station(&config, 1_000.0, Arrivals::Uniform, 20_000);
    assert_sample(&sample, &truth, 0.01);
    close(*sample.last().unwrap(), 1_000.0, 1e-3, "maximum");
    let sample = by_station(&config, 1_000.0, Arrivals::Poisson, COUNT);
    assert_sample(&sample, &truth, 0.03);
    // A uniform process at whole milliseconds that starts with the period is not special.
    let sample = by_station(&config, 977.0, Arrivals::Uniform, 4_885);
    assert_sample(&sample, &truth, 0.01);
}

#[test]
fn a_truth_that_does_not_exist_says_why() {
    let reason =
        |config: &QueueConfig, rate, arrivals| truth_or_reason(config, rate, arrivals).unwrap_err();
    let exponential = config(2, "exponential:5ms");
    assert!(reason(&exponential, 400.0, Arrivals::Poisson).contains("overloaded"));
    assert!(reason(&exponential, 0.0, Arrivals::Poisson).contains("above 0"));
    assert!(reason(&exponential, 100.0, Arrivals::Uniform).contains("uniform"));
    assert!(reason(&config(2, "fixed:5ms"), 10.0, Arrivals::Poisson).contains("M/D/k"));
    assert!(reason(&config(1, "fixed:5ms"), 201.0, Arrivals::Uniform).contains("overloaded"));
    let mut capped = config(1, "fixed:5ms");
    capped.station.in_flight_cap = Some(4);
    assert!(reason(&capped, 1.0, Arrivals::Poisson).contains("cap"));
    let limited = |service, waiting_max| {
        let mut limited = config(1, service);
        limited.station.waiting_max = waiting_max;
        limited
    };
    assert!(reason(&limited("exponential:5ms", 3), 140.0, Arrivals::Poisson).contains("waiting"));
    assert!(reason(&limited("exponential:5ms", 3), 140.0, Arrivals::Uniform).contains("waiting"));
    // Without a request that waits the limit changes nothing.
    assert!(truth(&limited("fixed:5ms", 0), 140.0, Arrivals::Uniform).is_some());
    assert!(truth(&limited("fixed:0", 0), 140.0, Arrivals::Poisson).is_some());
    // A stall of one second has 140 that wait at its end.
    let mut frozen = limited("fixed:0", 150);
    frozen.station.stall = Some(Stall { length_ns: 1_000_000_000, period_ns: 5_000_000_000 });
    assert!(reason(&frozen, 140.0, Arrivals::Poisson).contains("waiting"));
    frozen.station.waiting_max = 500;
    assert!(truth(&frozen, 140.0, Arrivals::Poisson).is_some());
    let mut stalled = config(1, "fixed:5ms");
    stalled.station.stall = Some(Stall { length_ns: 1, period_ns: 1_000 });
    assert!(reason(&stalled, 1.0, Arrivals::Poisson).contains("fixed:0"));
}
