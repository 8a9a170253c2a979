//! Scales of a picture: from values to places.

/// Ticks that a scale should have at least, if it is logarithmic; with fewer decades, there are some between them.
const TICKS_MIN: usize = 3;
/// Ticks that a linear scale has at most.
const TICKS_MAX: f64 = 6.0;
/// Decades of a logarithmic scale.
const DECADES: [i32; 2] = [-9, 18];

/// A scale from `low` to `high`, drawn between two places.
#[derive(Clone, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
    places: (f64, f64),
}

impl Scale {
    /// A linear scale that begins at 0.
    pub fn from_zero((low, high): (f64, f64)) -> Self {
        let high = if high > 0.0 { high * 1.05 } else { 1.0 };
        Self { low: low.min(0.0), high, is_log: false, places: (0.0, 1.0) }
    }

    /// A linear scale of the values as they are.
    pub fn of_time((low, high): (f64, f64)) -> Self {
        // A single moment stands in the middle.
        let (low, high) = if high > low { (low, high) } else { (low - 0.5, low + 0.5) };
        Self { low, high, is_log: false, places: (0.0, 1.0) }
    }

    /// A logarithmic scale; the values must be above 0.
    pub fn log((low, high): (f64, f64)) -> Self {
        let (low, high) = if high > low * 1.2 { (low, high) } else { (low / 1.5, high * 1.5) };
        Self { low, high, is_log: true, places: (0.0, 1.0) }
    }

    /// The scale between two places.
    pub fn over(mut self, from: f64, to: f64) -> Self {
        self.places = (from, to);
        self
    }

    fn share(&self, value: f64) -> f64 {
        match self.is_log {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        }
    }

    /// The place of a value.
    pub fn place(&self, value: f64) -> f64 {
        self.places.0 + (self.places.1 - self.places.0) * self.share(value).clamp(0.0, 1.0)
    }

    /// Round values inside the scale, ascending.
    pub fn ticks(&self) -> Vec<f64> {
        if self.is_log {
            let of = |steps: &[f64]| -> Vec<f64> {
                let decades = (DECADES[0]..=DECADES[1]).map(|decade| 10f64.powi(decade));
                let all = decades.flat_map(|decade| steps.iter().map(move |step| step * decade));
                all.filter(|tick| (self.low..=self.high).contains(tick)).collect()
            };
            let decades = of(&[1.0]);
            return if decades.len() >= TICKS_MIN { decades } else { of(&[1.0, 2.0, 5.0]) };
        }
        let rough = (self.high - self.low) / TICKS_MAX;
        let decade = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
        let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|number| number as f64 * step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(Scale::of_time((0.0, 60.0)).ticks(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        assert_eq!(Scale::log((0.5, 200.0)).ticks(), [1.0, 10.0, 100.0]);
        assert_eq!(Scale::log((3.0, 30.0)).ticks(), [5.0, 10.0, 20.0]);
        assert_eq!(Scale::of_time((0.0, 0.0)).ticks().len(), 5);
        assert!(Scale::from_zero((0.0, 0.0)).ticks().contains(&0.0));
    }

    #[test]
    fn places_lie_between_the_ends() {
        let scale = Scale::log((1.0, 100.0)).over(200.0, 0.0);
        assert_eq!([1.0, 10.0, 100.0, 1e9].map(|at| scale.place(at)), [200.0, 100.0, 0.0, 0.0]);
    }
}
