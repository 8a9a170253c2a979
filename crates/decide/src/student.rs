//! Student's t distribution.
//!
//! The distribution function is the regularised incomplete beta function, evaluated by Lentz's continued fraction
//! (Abramowitz & Stegun 26.5.8, 26.7.1); quantiles are found on it by bisection.

use plimsoll_core::gamma::ln_gamma;

/// Relative accuracy of the continued fraction.
const PRECISION: f64 = 1e-14;
/// Most terms of the continued fraction. It needs some tens for the arguments of t distributions.
const TERMS_MOST: u32 = 500;

/// Returns the probability that |t| with this many degrees of freedom is at least `t`, which may be negative. `freedom` is above 0.
#[must_use]
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// Returns the quantile `p`, 0 to 1, of Student's t with this many degrees of freedom, above 0.
#[must_use]
pub fn quantile(p: f64, freedom: f64) -> f64 {
    let tail = 2.0 * p.min(1.0 - p);
    if tail <= 0.0 {
        return if p < 0.5 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let mut high = 1.0;
    while two_sided(high, freedom) > tail && high < 1e300 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if two_sided(middle, freedom) > tail {
            low = middle;
        } else {
            high = middle;
        }
        if high - low <= 1e-13 * high {
            break;
        }
    }
    if p < 0.5 { -high } else { high }
}

/// Returns the regularised incomplete beta function for a and b above 0 and x from 0 to 1.
pub(crate) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, x) / a
    } else {
        1.0 - front * continued_fraction(b, a, 1.0 - x) / b
    }
}

fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const SMALL: f64 = 1e-300;
    let away = |value: f64| if value.abs() < SMALL { SMALL } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut product = d;
    for m in 1..TERMS_MOST {
        let m = f64::from(m);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away(1.0 + numerator * d);
            c = away(1.0 + numerator / c);
            product *= c * d;
        }
        if (c * d - 1.0).abs() < PRECISION {
            break;
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_printed_tables() {
        for (p, freedom, t) in [
            (0.975, 1.0, 12.7062),
            (0.95, 2.0, 2.919_99),
            (0.975, 2.0, 4.302_65),
            (0.975, 5.0, 2.570_58),
            (0.995, 10.0, 3.169_27),
            (0.975, 30.0, 2.042_27),
            (0.9995, 29.0, 3.659_41),
            (0.975, 1e6, 1.959_97),
        ] {
            assert!((quantile(p, freedom) / t - 1.0).abs() < 2e-5, "{p} {freedom}");
            assert!((quantile(1.0 - p, freedom) / -t - 1.0).abs() < 2e-5, "{p} {freedom}");
        }
        assert_eq!(quantile(1.0, 3.0), f64::INFINITY);
        assert_eq!(quantile(0.0, 3.0), f64::NEG_INFINITY);
    }

    #[test]
    fn tails_agree_with_closed_forms() {
        for t in [0.1f64, 1.0, 3.0, -3.0, 50.0] {
            // One degree is Cauchy's distribution; two degrees have a root.
            let one = 1.0 - 2.0 * t.abs().atan() / std::f64::consts::PI;
            let two = 1.0 - t.abs() / (2.0 + t * t).sqrt();
            assert!((two_sided(t, 1.0) / one - 1.0).abs() < 1e-9, "{t}");
            assert!((two_sided(t, 2.0) / two - 1.0).abs() < 1e-9, "{t}");
        }
        assert_eq!(two_sided(0.0, 7.0), 1.0);
        assert_eq!(two_sided(f64::INFINITY, 7.0), 0.0);
    }
}
