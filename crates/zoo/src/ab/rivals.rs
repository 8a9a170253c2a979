//! Other methods on the same servers and the same machine: A runs for half of the time, then B.

use super::block::{Side, quantile, schedule};
use super::machine::Machine;
use super::models::{Model, RATE_PER_S};
use super::session::{ERROR, Plant, SESSION_S};
use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_decide::student;

/// Runs of each side for rivals that compare runs.
const RUNS: usize = 10;
/// A change point within this many runs of the true one is the true one.
const NEAR: usize = 1;
/// Difference that the fixed threshold claims.
const THRESHOLD: f64 = 0.05;

/// Ways to compare two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// Welch's t test on the times of all requests.
    RequestsT,
    /// Mann and Whitney's test on the times of all requests.
    RequestsU,
    /// p95 of one run of each, which differ by more than 5 %.
    TwoRuns,
    /// Mann and Whitney's test on the p95 of ten runs of each, as benchstat does.
    TenRuns,
    /// E-divisive over the p95 of all runs, with a t test at the split that it chose.
    Divisive,
}

/// A claim of a rival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// None.
    No,
    /// B is slower.
    Slower,
    /// Any other: B is faster, or the change is elsewhere.
    Other,
}

impl Rival {
    /// All, in the order of the table.
    pub const ALL: [Self; 5] =
        [Self::RequestsT, Self::RequestsU, Self::TwoRuns, Self::TenRuns, Self::Divisive];

    /// Returns the name in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestsT => "t test on requests",
            Self::RequestsU => "Mann-Whitney on requests",
            Self::TwoRuns => "two runs, p95 5 % apart",
            Self::TenRuns => "ten runs each, Mann-Whitney on p95",
            Self::Divisive => "E-divisive with a t test on p95",
        }
    }
}

/// Returns the claims of all rivals on one session, in the order of [`Rival::ALL`].
#[must_use]
pub fn claims(model: Model, plant: Plant, seed: u64) -> [Claim; 5] {
    let mut machine = Machine::new(derive_seed(seed, "machine"));
    let mut rng = Rng::new(derive_seed(seed, "requests"));
    let run_s = SESSION_S / (2 * RUNS) as f64;
    let mut requests = [Vec::new(), Vec::new()];
    let mut p95 = Vec::new();
    for run in 0..2 * RUNS {
        let side = run / RUNS;
        let (factor, response_factor) =
            if side == 0 { (1.0, 1.0) } else { (plant.service, plant.response) };
        let arrivals = schedule(RATE_PER_S, run_s, &mut rng);
        let server = Side { model, factor, response_factor };
        let mut times = server.responses(&arrivals, run as f64 * run_s, &mut machine, &mut rng);
        requests[side].extend_from_slice(&times);
        p95.extend(quantile(&mut times, 0.95));
    }
    let [mut a, mut b] = requests;
    let by_t = welch(&a, &b);
    let by_u = mann_whitney(&a, &b);
    let apart =
        quantile(&mut b, 0.95).zip(quantile(&mut a, 0.95)).map_or(0.0, |(b, a)| (b / a).ln());
    let two_runs = if apart.abs() > THRESHOLD.ln_1p() { claim(0.0, apart) } else { Claim::No };
    let (of_a, of_b) = p95.split_at(RUNS.min(p95.len()));
    [by_t, by_u, two_runs, mann_whitney(of_a, of_b), divisive(&p95)]
}

/// Returns the claim for a p-value and a direction, above 0 if B is slower.
fn claim(p_value: f64, direction: f64) -> Claim {
    match p_value <= ERROR {
        false => Claim::No,
        true if direction > 0.0 => Claim::Slower,
        true => Claim::Other,
    }
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (n - 1.0) / n)
}

fn welch(a: &[f64], b: &[f64]) -> Claim {
    let ((mean_a, square_a), (mean_b, square_b)) = (moments(a), moments(b));
    let freedom = (square_a + square_b).powi(2)
        / (square_a.powi(2) / (a.len() as f64 - 1.0) + square_b.powi(2) / (b.len() as f64 - 1.0));
    let t = (mean_b - mean_a) / (square_a + square_b).sqrt();
    claim(student::two_sided(t, freedom), t)
}

/// With the normal approximation and without ties: times are continuous.
fn mann_whitney(a: &[f64], b: &[f64]) -> Claim {
    let mut all: Vec<(f64, bool)> =
        a.iter().map(|v| (*v, false)).chain(b.iter().map(|v| (*v, true))).collect();
    all.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let ranks: f64 =
        (1u32..).zip(&all).filter(|(_, (_, of_b))| *of_b).map(|(rank, _)| f64::from(rank)).sum();
    let (n, m) = (a.len() as f64, b.len() as f64);
    let u = ranks - m * (m + 1.0) / 2.0 - n * m / 2.0;
    let z = u.signum() * (u.abs() - 0.5).max(0.0) / (n * m * (n + m + 1.0) / 12.0).sqrt();
    // Student's t with 1e9 degrees of freedom is the normal distribution.
    claim(student::two_sided(z, 1e9), z)
}

/// Matteson and James, "A nonparametric approach for multiple change point analysis" (2014): the split with the largest energy
/// distance, at least two runs from each end; then the t test at that split, as Hunter and Otava do it.
fn divisive(series: &[f64]) -> Claim {
    let n = series.len();
    let split = (2..n.saturating_sub(1))
        .max_by(|one, other| energy(series, *one).total_cmp(&energy(series, *other)));
    let Some(split) = split else { return Claim::No };
    match welch(&series[..split], &series[split..]) {
        Claim::Slower if split.abs_diff(RUNS) > NEAR => Claim::Other,
        other => other,
    }
}

fn energy(series: &[f64], split: usize) -> f64 {
    let (left, right) = series.split_at(split);
    let apart = |one: &[f64], other: &[f64]| -> f64 {
        one.iter().flat_map(|a| other.iter().map(move |b| (a - b).abs())).sum()
    };
    let (n, m) = (left.len() as f64, right.len() as f64);
    let inside = apart(left, left) / (n * (n - 1.0)) + apart(right, right) / (m * (m - 1.0));
    n * m / (n + m) * (2.0 * apart(left, right) / (n * m) - inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ab::models;

    #[test]
    fn rivals_find_a_step_in_a_quiet_series_where_it_is() {
        let series: Vec<f64> =
            (0..20).map(|at| f64::from(at % 3) * 0.01 + if at < 10 { 1.0 } else { 1.1 }).collect();
        assert_eq!(divisive(&series), Claim::Slower);
        assert_eq!(mann_whitney(&series[..10], &series[10..]), Claim::Slower);
        assert_eq!(mann_whitney(&series[10..], &series[..10]), Claim::Other);
        assert_eq!(welch(&[1.0, 2.0, 3.0, 2.0], &[2.0, 1.0, 2.0, 3.0]), Claim::No);
    }

    #[test]
    fn runs_one_after_the_other_claim_a_difference_of_equal_sides_more_often_than_not() {
        let model = models::all()[1];
        let claimed: Vec<[Claim; 5]> =
            (0..12).map(|seed| claims(model, Plant::NONE, seed)).collect();
        let false_claims = |at: usize| claimed.iter().filter(|one| one[at] != Claim::No).count();
        assert!(false_claims(0) >= 9 && false_claims(1) >= 9, "{claimed:?}");
    }
}
