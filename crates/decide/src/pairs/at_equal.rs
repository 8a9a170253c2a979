//! Log ratios of pairs as they would be had something else been equal on both sides of each pair.
//!
//! Analysis of covariance: the log ratio y of a pair is a + b x + noise, where x is what B's block had more than A's of something that was
//! measured beside it, such as delays of the generator. The intercept a is the log ratio at x = 0 (Fisher, *Statistical methods for
//! research workers*, 1932; Deng et al., "Improving the sensitivity of online controlled experiments by utilizing pre-experiment data",
//! 2013). Where x differs by chance only, this takes its part out of the noise; where one side has a little more of it, it takes its
//! part out of the ratio, and widens the interval by the error of the slope. It does so only where y is a line in x: percentiles are
//! not, so that a side with clearly more of it ([`is_one_sided`]) has no answer.

use super::Pairs;
use crate::student;

/// Chance with which differences that have no side are called one-sided.
const ONE_SIDED: f64 = 0.05;
/// Fewest pairs from which a slope is measured.
pub const PAIRS_LEAST: usize = 8;

/// Log ratios at equal values of a covariate.
#[derive(Clone, Debug, PartialEq)]
pub struct AtEqual {
    /// One for each pair. Their mean is the intercept, and its standard error, as of independent values, is that of the intercept.
    pub log_ratios: Vec<f64>,
    /// Change of the log ratio with each unit of the covariate.
    pub slope: f64,
    /// Mean of the covariate's differences.
    pub difference: f64,
}

/// States log ratios at equal values of a covariate, of which `differences` are B's minus A's, pair by pair.
///
/// `None` below [`PAIRS_LEAST`] pairs, and if the same side has the same amount more of it in each pair: then its part in the ratio
/// cannot be known.
#[must_use]
pub fn at_equal(log_ratios: &[f64], differences: &[f64]) -> Option<AtEqual> {
    let n = log_ratios.len().min(differences.len());
    if n < PAIRS_LEAST {
        return None;
    }
    let mean = |values: &[f64]| values[..n].iter().sum::<f64>() / n as f64;
    let (ratio, difference) = (mean(log_ratios), mean(differences));
    let about =
        || log_ratios[..n].iter().zip(differences).map(|(y, x)| (y - ratio, x - difference));
    let squares: f64 = about().map(|(_, x)| x * x).sum();
    if squares <= (1e-12 * difference).powi(2) * n as f64 {
        let is_equal = difference == 0.0;
        let log_ratios = log_ratios[..n].to_vec();
        return is_equal.then_some(AtEqual { log_ratios, slope: 0.0, difference });
    }
    let slope = about().map(|(y, x)| x * y).sum::<f64>() / squares;
    let intercept = ratio - slope * difference;
    // The slope takes a degree of freedom, and its error has a part in that of the intercept.
    let own = (n as f64 - 1.0) / (n as f64 - 2.0);
    let of_slope = 1.0 + n as f64 * difference * difference / squares;
    let widened = (own * of_slope).sqrt();
    let value = |(y, x): (f64, f64)| intercept + (y - slope * x) * widened;
    Some(AtEqual { log_ratios: about().map(value).collect(), slope, difference })
}

/// Returns true if one side has more of the covariate than chance explains: the t test of its differences, at 5 %.
#[must_use]
pub fn is_one_sided(differences: &[f64]) -> bool {
    let n = differences.len() as f64;
    if n < 2.0 {
        return false;
    }
    let mean = differences.iter().sum::<f64>() / n;
    let error = super::deviation(differences, mean) / n.sqrt();
    mean != 0.0 && student::two_sided(mean.abs() / error, n - 1.0) < ONE_SIDED
}

/// Returns the comparison of pairs at equal values of a covariate, with the same looks.
///
/// `columns` are the log ratios of each metric, none for one that is not to be stated in this way; `differences` are those of the
/// covariate in the same pairs. A pair without one of both is missing.
#[must_use]
pub fn restated(
    decision: &Pairs,
    columns: &[Option<&[Option<f64>]>],
    differences: &[Option<f64>],
) -> Pairs {
    let mut rows = vec![vec![None; columns.len()]; differences.len()];
    for (at, column) in columns.iter().enumerate() {
        let Some(values) = column else { continue };
        let both = values.iter().zip(differences).enumerate();
        let known: Vec<(usize, f64, f64)> =
            both.filter_map(|(pair, (y, x))| Some((pair, (*y)?, (*x)?))).collect();
        let ratios: Vec<f64> = known.iter().map(|one| one.1).collect();
        let covariate: Vec<f64> = known.iter().map(|one| one.2).collect();
        let Some(found) = at_equal(&ratios, &covariate) else { continue };
        for ((pair, _, _), value) in known.iter().zip(found.log_ratios) {
            rows[*pair][at] = Some(value);
        }
    }
    decision.again(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;

    fn normal(rng: &mut Rng) -> f64 {
        (2.0 * rng.exponential()).sqrt() * (std::f64::consts::TAU * rng.uniform()).cos()
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (mean, (squares / (n - 1.0) / n).sqrt())
    }

    #[test]
    fn a_covariate_that_explains_all_leaves_the_intercept() {
        let x: Vec<f64> = (0..20).map(|at| f64::from(at % 7) - 1.0).collect();
        let y: Vec<f64> = x.iter().map(|x| 0.05 + 0.3 * x).collect();
        let found = at_equal(&y, &x).unwrap();
        assert!((found.slope - 0.3).abs() < 1e-12);
        assert!(found.log_ratios.iter().all(|value| (value - 0.05).abs() < 1e-12));
    }

    /// The standard error of the values is that of the intercept in a textbook: s sqrt(1/n + x^2/Sxx), s with n - 2.
    #[test]
    fn the_error_is_that_of_the_intercept() {
        let mut rng = Rng::new(3);
        let x: Vec<f64> = (0..12).map(|_| 1.0 + normal(&mut rng)).collect();
        let y: Vec<f64> = x.iter().map(|x| 0.5 * x + 0.1 * normal(&mut rng)).collect();
        let found = at_equal(&y, &x).unwrap();
        let (mean, error) = moments(&found.log_ratios);
        let n = 12.0;
        let (x_mean, sxx) =
            (found.difference, x.iter().map(|v| (v - found.difference).powi(2)).sum::<f64>());
        let rest = y.iter().zip(&x).map(|(y, x)| (y - mean - found.slope * x).powi(2)).sum::<f64>();
        let wanted = (rest / (n - 2.0) * (1.0 / n + x_mean * x_mean / sxx)).sqrt();
        assert!((error / wanted - 1.0).abs() < 1e-9, "{error} {wanted}");
    }

    /// Of equal sides, one with more delays throughout: the intervals of the ratios as they are hold 0 almost never, those at equal
    /// delays in 95 % of the cases.
    #[test]
    fn intervals_hold_the_truth_although_one_side_has_more_of_it() {
        let mut rng = Rng::new(11);
        let (mut plain, mut adjusted, cases) = (0, 0, 4_000);
        for _ in 0..cases {
            let x: Vec<f64> = (0..30).map(|_| 0.5 + 0.5 * normal(&mut rng)).collect();
            let y: Vec<f64> = x.iter().map(|x| 0.4 * x + 0.1 * normal(&mut rng)).collect();
            let holds = |values: &[f64]| {
                let (mean, error) = moments(values);
                mean.abs() < error * crate::student::quantile(0.975, 28.0)
            };
            plain += u32::from(holds(&y));
            adjusted += u32::from(holds(&at_equal(&y, &x).unwrap().log_ratios));
        }
        let share = |count: u32| f64::from(count) / f64::from(cases);
        assert!(share(plain) < 0.05, "{plain}");
        assert!((0.94..0.96).contains(&share(adjusted)), "{adjusted}");
    }

    #[test]
    fn a_side_with_more_of_it_differs_from_chance() {
        let mut rng = Rng::new(5);
        let mut draw =
            |mean: f64| -> Vec<f64> { (0..40).map(|_| mean + normal(&mut rng)).collect() };
        let by_chance = (0..1_000).filter(|_| is_one_sided(&draw(0.0))).count();
        assert!((30..70).contains(&by_chance), "{by_chance}");
        assert!(is_one_sided(&draw(1.0)));
        assert!(is_one_sided(&[0.1; 10]) && !is_one_sided(&[0.0; 10]) && !is_one_sided(&[1.0]));
    }

    #[test]
    fn without_variation_only_an_equal_covariate_leaves_the_ratios_as_they_are() {
        let y: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(at_equal(&y, &[0.0; 10]).unwrap().log_ratios, y);
        assert_eq!(at_equal(&y, &[0.1; 10]), None);
        assert_eq!(at_equal(&y[..7], &y[..7]), None);
    }
}
