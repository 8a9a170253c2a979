//! Rival models of scaling: the form in which the rate grows with the number of nodes.
//!
//! A model is a family of curves ln C(n) = a + h(n), where the level a is free and the form h has none, one or two
//! parameters. n is counted in units of the smallest measured number of nodes.

use super::queue::Service;

/// A family of curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// C = a n.
    Linear,
    /// C = a n / (1 + σ (n - 1)), 0 <= σ <= 1 (Amdahl's law).
    Amdahl,
    /// C = a n / (1 + σ (n - 1) + κ n (n - 1)), κ >= 0 (Gunther's universal scalability law).
    Usl,
    /// C = n / S at the share of busy time at which a queue with n servers and service times of mean S reaches the limit.
    Queue,
}

impl Kind {
    /// The name of the model.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Amdahl => "Amdahl",
            Self::Usl => "USL",
            Self::Queue => "queue",
        }
    }
}

/// The limit and the service times of a queue whose servers are the nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueLimit {
    /// Share of requests that may be late, above 0 and below 1.
    pub allowed: f64,
    /// Measured distribution of the service time; without it its variation is free.
    pub service: Option<Service>,
}

/// A family of curves, with the parameters of those that are compared with the points.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// The family.
    pub kind: Kind,
    /// Number of parameters, with the level.
    pub parameters: usize,
    /// Parameters of each curve: σ and κ, or the limit in mean service times and the index of the service times.
    pub forms: Vec<[f64; 2]>,
    /// Smallest measured number of nodes.
    unit: f64,
    /// Service times of a queue.
    services: Vec<Service>,
    /// Share of requests that may be late in a queue.
    allowed: f64,
}

/// Steps of a parameter: the n-th value is the square of n over the steps, so that small values lie closest.
const STEPS: i32 = 240;
/// Largest κ, with n in units of the smallest number of nodes.
const KAPPA_MAX: f64 = 0.25;
/// Smallest limit of a queue that is tried, in mean service times.
const LIMIT_MIN: f64 = 1.02;
/// Ratio of each limit to the one before.
const LIMIT_STEP: f64 = 1.07;
/// Number of limits that are tried.
const LIMITS: i32 = 70;
/// Squared coefficients of variation of a queue whose service times are unknown.
const VARIATIONS: [f64; 5] = [0.05, 0.5, 1.0, 2.0, 5.0];
/// Factors of the mean wait around that of the approximation, which errs by some percent to some tens of percent.
const WAITS: [f64; 5] = [0.6, 0.8, 1.0, 1.25, 1.6];
/// Steps between two of a parameter, and how far they go, when the surroundings of the best curve are looked at.
const FINE: i32 = 10;

impl Family {
    /// Returns h at a number of nodes for the curve with these parameters; infinite if the queue holds no rate.
    #[must_use]
    pub fn ln(&self, parameters: &[f64; 2], n: f64) -> f64 {
        let [first, second] = *parameters;
        if self.kind == Kind::Queue {
            let service = self.services.get(second as usize);
            let busy = service.map_or(0.0, |one| one.busy_at_limit(n, first, self.allowed));
            return (n * busy).ln();
        }
        let m = n / self.unit;
        (m / (1.0 + first * (m - 1.0) + second * m * (m - 1.0))).ln()
    }

    /// Returns parameters around those of one curve, closer to each other than those of the family.
    #[must_use]
    pub fn around(&self, [first, second]: [f64; 2]) -> Vec<[f64; 2]> {
        let fine = || (-2 * FINE..=2 * FINE).map(|i| f64::from(i) / f64::from(FINE));
        let near = |at: f64, most: f64| {
            let root = (at / most).sqrt();
            let moved =
                move |step: f64| most * (root + step / f64::from(STEPS)).clamp(0.0, 1.0).powi(2);
            fine().map(moved).collect::<Vec<f64>>()
        };
        match self.kind {
            Kind::Linear => Vec::new(),
            Kind::Amdahl => near(first, 1.0).into_iter().map(|sigma| [sigma, 0.0]).collect(),
            Kind::Usl => {
                let kappas = near(second, KAPPA_MAX);
                let with = |sigma: f64| kappas.iter().map(move |kappa| [sigma, *kappa]);
                near(first, 1.0).into_iter().flat_map(with).collect()
            }
            Kind::Queue => fine().map(|step| [first * LIMIT_STEP.powf(step), second]).collect(),
        }
    }
}

fn steps(most: f64) -> impl Iterator<Item = f64> {
    (0..=STEPS).map(move |i| most * (f64::from(i) / f64::from(STEPS)).powi(2))
}

/// Returns the rival families. `unit` is the smallest measured number of nodes.
#[must_use]
pub fn rivals(unit: f64, queue: Option<&QueueLimit>) -> Vec<Family> {
    let family = |kind, parameters, forms| Family {
        kind,
        parameters,
        forms,
        unit,
        services: Vec::new(),
        allowed: 0.0,
    };
    let usl = steps(1.0).flat_map(|sigma| steps(KAPPA_MAX).map(move |kappa| [sigma, kappa]));
    let mut found = vec![
        family(Kind::Linear, 1, vec![[0.0, 0.0]]),
        family(Kind::Amdahl, 2, steps(1.0).map(|sigma| [sigma, 0.0]).collect()),
        family(Kind::Usl, 3, usl.collect()),
    ];
    found.extend(queue.map(|limit| {
        let services: Vec<Service> = match &limit.service {
            Some(service) => WAITS.into_iter().map(|factor| service.waiting(factor)).collect(),
            None => VARIATIONS.into_iter().map(Service::weibull).collect(),
        };
        let limits = || (0..LIMITS).map(|i| LIMIT_MIN * LIMIT_STEP.powi(i));
        let of = |index: usize| limits().map(move |at| [at, index as f64]);
        let forms = (0..services.len()).flat_map(of).collect();
        Family { services, allowed: limit.allowed, ..family(Kind::Queue, 3, forms) }
    }));
    found
}
