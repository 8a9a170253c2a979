//! The special functions that closed forms need.

use plimsoll_core::gamma::ln_gamma;

/// The regularized lower incomplete gamma function P(a, x): by its series below a + 1, by Lentz'
/// continued fraction above (Abramowitz and Stegun 6.5.29 and 6.5.31).
pub(super) fn regularized_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let scale = (a * x.ln() - x - ln_gamma(a)).exp();
    // Both converge in some multiple of sqrt(a) steps; the limit is for shapes of 10,000.
    const STEPS: usize = 10_000;
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        for _ in 0..STEPS {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term < sum * 1e-16 {
                break;
            }
        }
        return sum * scale;
    }
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1e300, 1.0 / b);
    let mut fraction = d;
    for i in 1..STEPS {
        let i = i as f64;
        let numerator = -i * (i - a);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        let factor = c * d;
        fraction *= factor;
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    1.0 - scale * fraction
}

/// The standard normal quantile for 0 < q < 1, through `P(|Z| <= z) = P(1/2, z^2 / 2)`.
pub(super) fn normal_quantile(q: f64) -> f64 {
    let within = |half_square: f64| regularized_gamma(0.5, half_square);
    let half_square = invert(within, (2.0 * q - 1.0).abs());
    (2.0 * half_square).sqrt().copysign(q - 0.5)
}

/// The x >= 0 at which the increasing function `f` reaches `level`, by doubling and bisection to
/// the last bit. 0 when `f` is there from the start.
pub(super) fn invert(f: impl Fn(f64) -> f64, level: f64) -> f64 {
    if f(0.0) >= level {
        return 0.0;
    }
    let mut high = 1.0;
    while f(high) < level && high < 1e300 {
        high *= 2.0;
    }
    let mut low = 0.0;
    // A double has 53 bits; 200 halvings also reach the smallest answers.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if f(middle) < level {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-11 * expected.abs().max(1.0), "{value} {expected}");
    }

    #[test]
    fn gamma_functions_take_their_known_values() {
        // P(1, x) is the exponential distribution, P(n, x) that of Erlang.
        for x in [0.1f64, 1.0, 3.0, 20.0] {
            close(regularized_gamma(1.0, x), 1.0 - (-x).exp());
            close(regularized_gamma(3.0, x), 1.0 - (-x).exp() * (1.0 + x + x * x / 2.0));
        }
        // Near its mean a gamma of large shape is nearly normal: P(a, a) = 1/2 + 1/(3 sqrt(2 pi
        // a)).
        let a = 10_000.0f64;
        let expected = 0.5 + 1.0 / (3.0 * (std::f64::consts::TAU * a).sqrt());
        assert!((regularized_gamma(a, a) - expected).abs() < 1e-6);
    }

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        close(normal_quantile(0.5), 0.0);
        close(normal_quantile(0.95), 1.644_853_626_951_472_7);
        close(normal_quantile(0.99), 2.326_347_874_040_841);
        close(normal_quantile(0.1), -1.281_551_565_544_600_5);
    }
}
