//! Queueing theory of lateness near saturation, as a prior and for the forecast.
//!
//! Near saturation the backlog of nearly any queue is a reflected Brownian motion (Kingman 1962, Iglehart and
//! Whitt 1970). Its drift is known once the capacity C is: the idle share m = 1 - rate / C. Its stationary tail is
//! exponential, and the limit pins the exponent: a share q of requests finds more than x seconds of work, where x
//! is what the limit leaves above the floor, so that sigma^2 / m^2 = 2 x / (m ln(1/q)).

use crate::normal;

/// Natural time of the backlog, s: sigma^2 / m^2 of the Brownian motion at the line.
#[must_use]
pub fn backlog_time_s(slack_s: f64, idle_share: f64, allowed: f64) -> f64 {
    2.0 * slack_s / (idle_share.max(1e-4) * (1.0 / allowed).ln())
}

/// Share of the capacity that is idle at the line, by the same theory: the variance of arrivals and completions over their
/// mean is 1 for Poisson arrivals and `index` for what an overloaded target completes.
#[must_use]
pub fn idle_share(slack_s: f64, capacity_per_s: f64, index: f64, allowed: f64) -> f64 {
    (1.0 + index) * (1.0 / allowed).ln() / (2.0 * capacity_per_s * slack_s)
}

/// Variance of the count of late requests over the binomial one, in the long run.
///
/// For the indicator of a level that is passed by a share q of the time, the asymptotic variance of the time
/// average is `2 (sigma^2 / m^2) (q (1 - q) - q^2 ln(1/q))`: the integral of `4 F^2 / (sigma^2 pi)` over the
/// stationary density, with F the integral of the centred indicator below each point.
#[must_use]
pub fn dispersion(rate_per_s: f64, backlog_time_s: f64, allowed: f64) -> f64 {
    let q = allowed;
    1.0 + rate_per_s * 2.0 * backlog_time_s * (1.0 - q * (1.0 / q).ln() / (1.0 - q))
}

/// Slope of the late share's logit over the logarithm of the rate, at a line with this room to capacity.
///
/// The logarithm of the late share falls from 0 at capacity to ln q at the line; of queues with 1 to 24 servers
/// the slope there is 0.6 to 1.1 of a straight line's.
#[must_use]
pub fn slope(room: f64, allowed: f64) -> f64 {
    0.85 * (1.0 / allowed).ln() / room
}

/// Time at the line, s, until the interval's half-width is `width` of the rate: `variance` is that of the late share
/// after one second, `rise` the share's slope over the logarithm of the rate.
#[must_use]
pub fn time_to_width_s(variance: f64, rise: f64, width: f64, confidence: f64) -> f64 {
    variance * (normal::quantile(0.5 + confidence / 2.0) / (rise * width)).powi(2)
}

/// Half-width of the interval, as a share of the rate, after this many seconds at the line: the inverse of
/// [`time_to_width_s`].
#[must_use]
pub fn width_after(variance: f64, rise: f64, seconds: f64, confidence: f64) -> f64 {
    normal::quantile(0.5 + confidence / 2.0) * (variance / seconds.max(1e-9)).sqrt() / rise
}

/// Quantile of Student's t, by the Cornish-Fisher series in 1 / freedom to third order; within 2 % above 4 degrees
/// of freedom for the usual tails.
#[must_use]
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    let z = normal::quantile(p);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_quantiles_agree_with_tables() {
        for (freedom, t) in [(5.0, 2.571), (10.0, 2.228), (30.0, 2.042)] {
            assert!((student_quantile(0.975, freedom) / t - 1.0).abs() < 0.01, "{freedom}");
        }
    }

    #[test]
    fn theory_puts_the_line_where_the_closed_form_has_it() {
        // M/M/1 of 20 ms with 500 ms, M/M/4 with 100 ms, and M/H2/8 of 20 ms with 200 ms by simulation.
        for (capacity, slack_s, index, line) in
            [(50.0, 0.48, 1.0, 44.01), (200.0, 0.08, 1.0, 163.04), (400.0, 0.18, 5.0, 350.5)]
        {
            let ratio = capacity * (1.0 - idle_share(slack_s, capacity, index, 0.05)) / line;
            assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
        }
    }

    #[test]
    fn theory_is_near_what_long_simulations_gave_for_single_queues() {
        // M/M/1 of 20 ms with 500 ms, and M/M/4 with 100 ms: dispersions of 227 and 61, times of 285 and 96 s.
        for (rate, capacity, slack_s, measured, seconds, slope_true) in
            [(44.01, 50.0, 0.48, 227.0, 285.0, 22.0), (163.04, 200.0, 0.08, 61.0, 96.0, 10.6)]
        {
            let time_s = backlog_time_s(slack_s, 1.0 - rate / capacity, 0.05);
            let ratio = dispersion(rate, time_s, 0.05) / measured;
            assert!((0.7..1.5).contains(&ratio), "{ratio}");
            let logit_slope = slope_true / 0.95;
            let t = time_to_width_s(measured * 0.05 * 0.95 / rate, slope_true * 0.05, 0.05, 0.95);
            assert!((t / seconds - 1.0).abs() < 0.15, "{t} for {seconds}");
            let ratio = slope(capacity / rate - 1.0, 0.05) / logit_slope;
            assert!((0.6..1.6).contains(&ratio), "{ratio}");
        }
    }
}
