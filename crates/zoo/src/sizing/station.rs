//! Points of a queue on virtual time, measured as runs at several rates are: a late share a batch, a curve, the rate at which
//! it reaches the limit.

use crate::draw::Draw;
use plimsoll_core::rng::Rng;
use plimsoll_decide::sizing::line::{Batch, Crossing, Measured, late_share, reached};
use plimsoll_decide::sizing::models::QueueLimit;
use plimsoll_decide::sizing::queue::Service;
use plimsoll_decide::sizing::{Point, RelativeError};

/// The service times of a station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Exponential, mean and limit drawn.
    Exponential,
    /// Gamma with a coefficient of variation of 0.5.
    Gamma,
    /// Lognormal with sigma 0.8.
    Lognormal,
    /// Two exponentials with a squared coefficient of variation of 4.
    Hyper,
    /// `serve queue --service exponential:20ms`, with the limit p95=100ms.
    ServeQueue,
}

/// A station under a limit.
#[derive(Clone, Copy)]
struct Station {
    service: Draw,
    limit_s: f64,
}

/// Share of requests that may be late.
const ALLOWED: f64 = 0.05;
/// Length of a run, s, in mean service times for stations whose mean is drawn.
const LENGTH: f64 = 6_000.0;
/// Batches of a run; the first is left out.
const BATCHES: usize = 11;
/// Rates of the runs, as shares of the rate at which all servers are always busy.
const RATES: [f64; 8] = [0.2, 0.45, 0.6, 0.72, 0.82, 0.9, 0.97, 1.05];

impl Kind {
    fn station(self, rng: &mut Rng) -> Station {
        let mean_s = 0.005 + 0.045 * rng.uniform();
        // A limit of 1.5 to 3.5 times the 95th percentile of the service time.
        let room = 1.5 + 2.0 * rng.uniform();
        let of = |service, p95: f64| Station { service, limit_s: room * p95 * mean_s };
        match self {
            Self::Exponential => of(Draw::Exponential(mean_s), 3.0),
            Self::Gamma => of(Draw::Gamma { mean_s, cv: 0.5 }, 1.94),
            Self::Lognormal => of(Draw::Lognormal { mean_s, sigma: 0.8 }, 2.71),
            Self::Hyper => of(Draw::Hyper { mean_s, cv2: 4.0 }, 3.6),
            Self::ServeQueue => Station { service: Draw::Exponential(0.02), limit_s: 0.1 },
        }
    }
}

impl Station {
    /// Response times of one run, each with its arrival, s.
    fn run(&self, servers: usize, rate: f64, length_s: f64, rng: &mut Rng) -> Vec<(f64, f64)> {
        let mut free = vec![0.0f64; servers];
        let mut at_s = 0.0;
        let mut times = Vec::with_capacity((rate * length_s) as usize);
        loop {
            at_s += rng.exponential() / rate;
            if at_s >= length_s {
                return times;
            }
            let mut first = 0;
            for other in 1..servers {
                if free[other] < free[first] {
                    first = other;
                }
            }
            let done_s = at_s.max(free[first]) + self.service.draw(rng);
            free[first] = done_s;
            times.push((at_s, done_s - at_s));
        }
    }

    /// The rate that holds the limit, by runs at several rates; the service times are those of the lowest rate.
    fn point(&self, n: f64, rng: &mut Rng) -> Option<(Point, Option<Service>)> {
        let mean_s = self.service.mean_s();
        let length_s = LENGTH * mean_s;
        let mut measured = Vec::new();
        let mut service = None;
        for share in RATES {
            let per_s = share * n / mean_s;
            let times = self.run(n as usize, per_s, length_s, rng);
            let mut batches = [Batch::default(); BATCHES];
            for (at_s, response_s) in &times {
                let batch = &mut batches[(at_s / length_s * BATCHES as f64) as usize];
                batch.requests += 1;
                batch.late += u64::from(*response_s > self.limit_s);
            }
            if let Some((value, error)) = late_share(&batches[1..]) {
                measured.push(Measured { per_s, value, weight: times.len() as f64, error });
            }
            if service.is_none() {
                let mut sorted: Vec<f64> =
                    times.iter().map(|(_, response_s)| *response_s).collect();
                sorted.sort_by(f64::total_cmp);
                service = Service::of(|p| sorted[(p * sorted.len() as f64) as usize]);
            }
        }
        let (Crossing::At(per_s), error) = reached(&measured, ALLOWED)? else { return None };
        let error = error.map(RelativeError::of_run);
        Some((Point { n, per_s, error }, service))
    }
}

/// Measures these numbers of servers, and one more. A station whose limit does not hold on the fewest servers at the lowest rate,
/// so that there is nothing to size, is drawn again.
pub fn measure(
    kind: Kind,
    ns: &[f64],
    more: f64,
    rng: &mut Rng,
) -> (Vec<Point>, Option<QueueLimit>, f64) {
    loop {
        let station = kind.station(rng);
        let all: Option<Vec<(Point, Option<Service>)>> =
            ns.iter().chain([&more]).map(|n| station.point(*n, rng)).collect();
        let Some(mut all) = all else { continue };
        let Some((again, _)) = all.pop() else { continue };
        // More servers, less waiting: the response times of the most are closest to service times.
        let service = all.iter().rev().find_map(|(_, service)| service.clone());
        let points = all.into_iter().map(|(point, _)| point).collect();
        return (points, Some(QueueLimit { allowed: ALLOWED, service }), again.per_s);
    }
}
