//! Logarithm, exponential and normal quantiles from the four basic operations and the square root
//! only.
//!
//! The standard library leaves `ln` and `exp` to the platform, whose last digit differs; a corpus
//! must be the same bytes everywhere. IEEE 754 defines the basic operations exactly.

/// Natural logarithm of a positive, normal number, to about 1e-15.
pub(super) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh t, with t = (m - 1) / (m + 1) below 0.172.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let (mut sum, mut power) = (0.0, t);
    for k in 0..12 {
        sum += power / f64::from(2 * k + 1);
        power *= square;
    }
    2.0 * sum + exponent as f64 * std::f64::consts::LN_2
}

/// Exponential of a number between -700 and 700, to about 1e-15 of the result.
pub(super) fn exp(x: f64) -> f64 {
    let twos = (x / std::f64::consts::LN_2).round();
    let rest = x - twos * std::f64::consts::LN_2;
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..20 {
        term *= rest / f64::from(k);
        sum += term;
    }
    sum * f64::from_bits(((twos as i64 + 1023) as u64) << 52)
}

/// Quantile of the standard normal distribution at `0 < p < 1`, the same on every platform.
pub(super) fn normal_quantile(p: f64) -> f64 {
    plimsoll_core::normal::quantile_with(p, ln)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_platform_to_the_last_digits() {
        for i in 1..2000 {
            let x = f64::from(i) * 0.37;
            assert!((ln(x) - x.ln()).abs() < 1e-13, "ln {x}");
            let y = x / 40.0 - 9.0;
            assert!((exp(y) / y.exp() - 1.0).abs() < 1e-13, "exp {y}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, z) in
            [(0.5, 0.0), (0.975, 1.959_963_985), (0.01, -2.326_347_874), (0.999, 3.090_232_306)]
        {
            assert!((normal_quantile(p) - z).abs() < 1e-8, "{p}");
        }
    }
}
