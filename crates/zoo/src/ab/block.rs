//! A block of load on one side: arrivals from a shared schedule, a machine that drifts, and what is measured of it.

use super::machine::Machine;
use super::models::Model;
use plimsoll_core::rng::Rng;

/// Metrics at a fixed rate, in the order of their values.
pub const METRICS: [&str; 4] = ["p50", "p95", "p99", "mean"];

/// One side: the model, and a factor on its service times.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// The server.
    pub model: Model,
    /// Service times are multiplied by this: 1 for A, 1.05 for a B that is 5 % slower.
    pub factor: f64,
    /// Response times, with the wait in the queue, are multiplied by this.
    pub response_factor: f64,
}

/// Returns Poisson arrivals at this rate during `length_s` seconds, s from the beginning of the block.
#[must_use]
pub fn schedule(rate_per_s: f64, length_s: f64, rng: &mut Rng) -> Vec<f64> {
    let mut arrivals = Vec::with_capacity((rate_per_s * length_s * 1.2) as usize);
    let mut at = rng.exponential() / rate_per_s;
    while at < length_s {
        arrivals.push(at);
        at += rng.exponential() / rate_per_s;
    }
    arrivals
}

impl Side {
    /// Returns the response times, s, of a block that begins at `begin_s` with an idle server (Lindley's recursion).
    pub fn responses(
        self,
        arrivals: &[f64],
        begin_s: f64,
        machine: &mut Machine,
        rng: &mut Rng,
    ) -> Vec<f64> {
        let (mut ready, queue) = (0.0f64, self.model.queue);
        let response = |at: &f64| {
            let service = self.model.service.draw(rng) * self.factor * machine.factor(begin_s + at);
            if !queue {
                return service * self.response_factor;
            }
            ready = ready.max(*at) + service;
            (ready - at) * self.response_factor
        };
        arrivals.iter().map(response).collect()
    }
}

/// Returns the response times of requests that arrive after the discarded beginning.
#[must_use]
pub fn after(arrivals: &[f64], responses: &[f64], discard_s: f64) -> Vec<f64> {
    let first = arrivals.partition_point(|at| *at < discard_s);
    responses[first..].to_vec()
}

/// Returns the least value that a share `p` of the values does not exceed; none if fewer than one value is above it on average.
#[must_use]
pub fn quantile(values: &mut [f64], p: f64) -> Option<f64> {
    let enough = values.len() as f64 * (1.0 - p) >= 1.0;
    let at = ((values.len() as f64 * p).ceil() as usize).saturating_sub(1);
    enough.then(|| *values.select_nth_unstable_by(at, f64::total_cmp).1)
}

/// Returns p50, p95, p99 and mean of response times.
#[must_use]
pub fn measured(mut responses: Vec<f64>) -> [Option<f64>; 4] {
    let mean = responses.iter().sum::<f64>() / responses.len() as f64;
    let mut value = |p| quantile(&mut responses, p);
    let quantiles = [value(0.5), value(0.95), value(0.99)];
    [quantiles[0], quantiles[1], quantiles[2], quantiles[0].map(|_| mean)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ab::models;

    #[test]
    fn quantiles_are_those_of_sorted_values() {
        let mut values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(quantile(&mut values, 0.5), Some(100.0));
        assert_eq!(quantile(&mut values, 0.99), Some(198.0));
        assert_eq!(quantile(&mut values[..50], 0.99), None);
        assert_eq!(quantile(&mut [], 0.5), None);
    }

    #[test]
    fn a_queue_on_a_steady_machine_is_as_in_the_textbook() {
        // M/M/1 at 0.8: response times are exponential with a mean of 1/(1250 - 1000) s.
        let side = Side { model: models::all()[3], factor: 1.0, response_factor: 1.0 };
        let (mut rng, mut all) = (Rng::new(1), Vec::new());
        for _ in 0..100 {
            let arrivals = schedule(1_000.0, 20.0, &mut rng);
            let responses = side.responses(&arrivals, 0.0, &mut Machine::steady(), &mut rng);
            all.extend(after(&arrivals, &responses, 2.0));
        }
        let values = measured(all);
        for (value, wanted) in values.iter().zip([0.002_77, 0.011_98, 0.018_42, 0.004]) {
            assert!((value.unwrap() / wanted - 1.0).abs() < 0.05, "{values:?}");
        }
    }
}
