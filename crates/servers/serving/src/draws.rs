//! Random draws that more than one server needs.

use plimsoll_core::rng::Rng;

/// A standard normal draw; always takes two uniforms, so that streams stay aligned.
#[must_use]
pub fn normal(rng: &mut Rng) -> f64 {
    let radius = (2.0 * rng.exponential()).sqrt();
    radius * (std::f64::consts::TAU * rng.uniform()).cos()
}

/// A gamma draw with scale 1 (Marsaglia and Tsang, "A simple method for generating gamma
/// variables", 2000); shapes below 1 by their boost `gamma(shape + 1) * u^(1 / shape)`.
#[must_use]
pub fn standard_gamma(shape: f64, rng: &mut Rng) -> f64 {
    if shape < 1.0 {
        let boost = (-rng.exponential() / shape).exp();
        return standard_gamma(shape + 1.0, rng) * boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    // At least 95 of 100 attempts succeed, whatever the shape.
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        let exponential = rng.exponential();
        if v > 0.0 && -exponential < 0.5 * x * x + d * (1.0 - v + v.ln()) {
            return d * v;
        }
    }
}
