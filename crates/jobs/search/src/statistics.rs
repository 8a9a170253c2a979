//! The arithmetic of a cell: rates in a window, the interval over repeats, what a closed system implies.

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// That of the normal distribution.
const Z95: f64 = 1.959_963_984_540_054;

/// The two-sided 95 % quantile of Student's t; above 30 degrees of freedom by Cornish and Fisher's expansion.
#[must_use]
pub fn t95(degrees: usize) -> f64 {
    match degrees {
        0 => f64::INFINITY,
        1..=30 => T95[degrees - 1],
        _ => {
            let n = degrees as f64;
            let z = Z95;
            z + (z.powi(3) + z) / (4.0 * n)
                + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
        }
    }
}

/// Mean of some values; 0 of none.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The 95 % interval of the mean over repeats; none below two of them. It does not go below 0.
#[must_use]
pub fn interval(values: &[f64]) -> Option<[f64; 2]> {
    if values.len() < 2 {
        return None;
    }
    let (n, middle) = (values.len() as f64, mean(values));
    let variance = values.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / (n - 1.0);
    let half = t95(values.len() - 1) * (variance / n).sqrt();
    Some([(middle - half).max(0.0), middle + half])
}

/// The mean response time, ms, that a closed system of `users` without failures must have at a rate (Little's
/// law): N / X less the time that users think.
#[must_use]
pub fn implied_ms(users: u32, per_s: f64, think_ms: f64) -> Option<f64> {
    (per_s > 0.0).then(|| (f64::from(users) * 1e3 / per_s - think_ms).max(0.0))
}

/// Requests of one half of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Half {
    /// Its length, s.
    pub seconds: f64,
    /// Requests that ended in it, each counted as the mean response time of its query in the whole window, s: so a half in
    /// which expensive queries came up has not done less.
    pub work_s: f64,
    /// Sum of the squares of these, s^2: the variance of the work where requests end independently of each other.
    pub variance_s2: f64,
}

/// Speed-up of the second half of a window over the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Rate of work of the second over that of the first, less 1.
    pub share: f64,
    /// True if that is more than chance and more than a trifle.
    pub is_clear: bool,
}

/// Standard errors that the halves' rates must be apart: chance alone does it to one cell of 740.
const APART: f64 = 3.0;
/// A gain below this is a trifle, however many requests report it.
const GAIN_LEAST: f64 = 0.1;

/// The gain of a second half over the first; none where one of them has done nothing.
///
/// With x = work / seconds and the variances v = variance / seconds^2 the gain is x2 / x1 - 1, and clear where it is over
/// 0.1 and x2 - x1 > 3 sqrt(v1 + v2). Where all queries cost the same that is the comparison of two Poisson counts, (n2 -
/// n1) / sqrt(n1 + n2) > 3 for halves of one length (J. Przyborowski and H. Wilenski, "Homogeneity of results in testing
/// samples from Poisson series", Biometrika 31, 1940); weights make the counts compound ones, whose variance is the sum of
/// the squared weights. Closed users end their requests more evenly than that, so that it errs towards silence.
#[must_use]
pub fn gain(first: &Half, second: &Half) -> Option<Gain> {
    if first.seconds <= 0.0 || second.seconds <= 0.0 || first.work_s <= 0.0 || second.work_s <= 0.0
    {
        return None;
    }
    let rate = |half: &Half| half.work_s / half.seconds;
    let variance = |half: &Half| half.variance_s2 / (half.seconds * half.seconds);
    let error = (variance(first) + variance(second)).sqrt();
    let share = rate(second) / rate(first) - 1.0;
    let is_clear = share > GAIN_LEAST && rate(second) - rate(first) > APART * error;
    Some(Gain { share, is_clear })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        assert_eq!(t95(2), 4.303);
        assert!((t95(40) - 2.0211).abs() < 5e-4, "{}", t95(40));
        assert!((t95(120) - 1.9799).abs() < 5e-4);
        assert!(t95(31) < t95(30) && t95(31) > t95(60));
    }

    #[test]
    fn an_interval_needs_two_values_and_holds_their_mean() {
        assert_eq!(interval(&[5.0]), None);
        let [low, high] = interval(&[9.0, 10.0, 11.0]).unwrap();
        assert!((low - (10.0 - 4.303 / 3f64.sqrt())).abs() < 1e-9);
        assert!((high - (10.0 + 4.303 / 3f64.sqrt())).abs() < 1e-9);
        assert_eq!(interval(&[4.0, 4.0]).unwrap(), [4.0, 4.0]);
        assert_eq!(interval(&[0.1, 9.0]).unwrap()[0], 0.0);
    }

    #[test]
    fn users_and_rate_imply_the_response_time() {
        // A cell of the seed's table: 20 users at 5.319 a second wait 3.76 s each.
        assert!((implied_ms(20, 5.319, 0.0).unwrap() - 3760.1).abs() < 0.1);
        assert_eq!(implied_ms(1, 0.0, 0.0), None);
        assert_eq!(implied_ms(2, 1.0, 500.0), Some(1500.0));
    }

    #[test]
    fn a_second_half_is_faster_by_more_than_chance_and_more_than_a_trifle() {
        // So many requests of a quarter of a second in five seconds.
        let half = |n: f64| Half { seconds: 5.0, work_s: n * 0.25, variance_s2: n * 0.25 * 0.25 };
        let clear = |a, b| gain(&half(a), &half(b)).unwrap().is_clear;
        assert!((gain(&half(100.0), &half(150.0)).unwrap().share - 0.5).abs() < 1e-12);
        // (150 - 100) / sqrt(250) is 3.16, and (147 - 100) / sqrt(247) is 2.99.
        assert!(clear(100.0, 150.0) && !clear(100.0, 147.0));
        assert!(!clear(10.0, 15.0), "half as many again is chance where there are few");
        assert!(!clear(1e6, 1.09e6), "nine per cent are a trifle though they are no chance");
        assert!(clear(1e6, 1.11e6) && !clear(1.5e6, 1e6), "slower is not warmer");
        assert_eq!(gain(&half(0.0), &half(9.0)), None);
        // Halves of other lengths are compared by their rates.
        let long = Half { seconds: 10.0, ..half(1000.0) };
        assert!(gain(&half(500.0), &long).unwrap().share.abs() < 1e-12);
    }
}
