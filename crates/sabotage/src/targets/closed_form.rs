//! The truth of a station by arithmetic: the arrivals are the schedule's own, and Lindley's recursion does the rest.

use plimsoll_core::schedule::{Limits, LoadModel, ModelError, Next, Schedule, Slice};

/// A station with servers in order of arrival, or without a queue (0 servers), and a fixed service time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedStation {
    /// Requests served at once; 0: all.
    pub servers: u32,
    /// The service time, ns.
    pub service_ns: u64,
}

/// Time at which each request of an open model is due, ns after the start.
///
/// # Errors
/// When the model cannot be run.
pub fn arrivals(model: &LoadModel, duration_ns: u64, seed: u64) -> Result<Vec<u64>, ModelError> {
    let limits = Limits::after(duration_ns);
    let mut schedule = Schedule::start(model, Slice::WHOLE, limits, seed, 0)?;
    let mut due = Vec::new();
    while let Next::Send { intended_ns, .. } = schedule.next(duration_ns) {
        due.push(intended_ns);
    }
    Ok(due)
}

impl FixedStation {
    /// The response time of each arrival, ns.
    #[must_use]
    pub fn responses(&self, arrivals: &[u64]) -> Vec<u64> {
        let mut free_ns = vec![0; self.servers as usize];
        let serve = |&at_ns: &u64| match free_ns.iter_mut().min_by_key(|free_ns| **free_ns) {
            None => self.service_ns,
            Some(first) => {
                *first = (*first).max(at_ns) + self.service_ns;
                *first - at_ns
            }
        };
        arrivals.iter().map(serve).collect()
    }
}

/// The value that `share` of the sorted values do not exceed; 0 where there are none.
#[must_use]
pub fn quantile(sorted: &[u64], share: f64) -> u64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.max(1) - 1).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::schedule::Arrivals;

    #[test]
    fn an_overloaded_single_server_falls_behind_by_the_same_with_each_request() {
        let model = LoadModel::Open { rate_per_s: 100.0, arrivals: Arrivals::Uniform };
        let due = arrivals(&model, 1_000_000_000, 1).unwrap();
        assert_eq!(due.len(), 100);
        let station = FixedStation { servers: 1, service_ns: 20_000_000 };
        let responses = station.responses(&due);
        assert_eq!(
            (responses[0], responses[1], responses[99]),
            (20_000_000, 30_000_000, 1_010_000_000)
        );
        let any = FixedStation { servers: 0, service_ns: 20_000_000 };
        assert!(any.responses(&due).iter().all(|ns| *ns == 20_000_000));
    }

    #[test]
    fn waiting_of_poisson_arrivals_is_pollaczek_and_khinchines() {
        let model = LoadModel::Open { rate_per_s: 700.0, arrivals: Arrivals::Poisson };
        let due = arrivals(&model, 400_000_000_000, 3).unwrap();
        let station = FixedStation { servers: 1, service_ns: 1_000_000 };
        let responses = station.responses(&due);
        let mean_ms = responses.iter().sum::<u64>() as f64 / responses.len() as f64 / 1e6;
        // M/D/1: service + rho * service / (2 (1 - rho)).
        let expected_ms = 1.0 + 0.7 / (2.0 * 0.3);
        assert!((mean_ms / expected_ms - 1.0).abs() < 0.03, "{mean_ms} {expected_ms}");
    }

    #[test]
    fn quantiles_are_values_of_the_list() {
        let sorted: Vec<u64> = (1..=100).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|share| quantile(&sorted, share)), [1, 50, 99, 100]);
        assert_eq!(quantile(&[], 0.5), 0);
    }
}
