//! The standard normal distribution.

/// Quantile at `0 < p < 1`, to about 1e-9 (P. J. Acklam's rational approximation, 2003).
#[must_use]
pub fn quantile(p: f64) -> f64 {
    quantile_with(p, f64::ln)
}

/// The same with a logarithm of the caller's, for whoever needs the same last digit on every platform: all else are
/// operations that IEEE 754 defines exactly.
#[must_use]
pub fn quantile_with(p: f64, ln: impl Fn(f64) -> f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 5] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 4] =
        [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416];
    let poly = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |q: f64| poly(&C, q) / (poly(&D, q) * q + 1.0);
    if p < 0.02425 {
        tail((-2.0 * ln(p)).sqrt())
    } else if p > 1.0 - 0.02425 {
        -tail((-2.0 * ln(1.0 - p)).sqrt())
    } else {
        let q = p - 0.5;
        let r = q * q;
        poly(&A, r) * q / (poly(&B, r) * r + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, z) in
            [(0.5, 0.0), (0.975, 1.959_963_985), (0.01, -2.326_347_874), (0.999, 3.090_232_306)]
        {
            assert!((quantile(p) - z).abs() < 1e-8, "{p}");
        }
    }
}
