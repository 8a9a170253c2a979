//! Growth of a figure over a long run: memory, descriptors, lag.
//!
//! The slope is fitted over the second half of the run, because a process fills its caches and pools in the first. Neighbouring
//! samples resemble each other, so that the textbook's interval of a slope would be far too narrow. The samples are therefore
//! averaged in batches that are much longer than their memory (the integrated autocorrelation time of what the line leaves,
//! as in [`crate::relaxation`]), and the interval is Student's, with the degrees of freedom of the batches. The longer the
//! memory, the fewer the batches, and the wider the interval: a figure that wanders is not reported as one that grows.
//!
//! "Flat" is a claim that needs evidence, too: the whole interval is below an allowance. A run that is too short for that
//! gets the answer "cannot tell".

use crate::relaxation::{memory, without_trend};
use crate::student;

/// Fewest samples of the second half that are judged.
pub const SAMPLES_LEAST: usize = 24;
/// Fewest and most batches.
const BATCHES: (usize, usize) = (4, 24);
/// Length of a batch, in units of the memory of the samples.
const BATCH: f64 = 10.0;
/// Seconds in an hour.
const HOUR_S: f64 = 3_600.0;

/// Terms of a judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Share of flat series that may be called growing, above 0 and below 1.
    pub error: f64,
    /// Growth an hour, in the unit of the samples, up to which a figure counts as flat; at least 0.
    pub allowance: f64,
}

/// An answer about one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Its growth is at most the allowance: the whole interval is.
    Flat,
    /// It grows, and by more than the allowance as far as can be seen.
    Grows,
    /// The interval holds both.
    CannotTell,
}

impl Answer {
    /// Returns the words of the answer.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Grows => "grows",
            Self::CannotTell => "cannot tell",
        }
    }
}

/// Growth of a figure in the second half of a run, in its unit an hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Mean of the second half.
    pub level: f64,
    /// The slope.
    pub per_hour: f64,
    /// Ends of its interval.
    pub interval: (f64, f64),
    /// The answer.
    pub answer: Answer,
}

/// Judges a figure by its samples, as (time in s, value), in the order of time. Values that are not finite are left out. The
/// interval is infinite if fewer than [`SAMPLES_LEAST`] samples lie in the second half.
#[must_use]
pub fn judge(samples: &[(f64, f64)], terms: Terms) -> Growth {
    let known: Vec<(f64, f64)> = samples.iter().copied().filter(|one| one.1.is_finite()).collect();
    let half = second_half(&known);
    let level = half.iter().map(|one| one.1).sum::<f64>() / half.len().max(1) as f64;
    let (slope, error) =
        if half.len() < SAMPLES_LEAST { (0.0, f64::INFINITY) } else { slope(half, terms.error) };
    let interval = (HOUR_S * (slope - error), HOUR_S * (slope + error));
    let per_hour = HOUR_S * slope;
    let answer = match interval {
        (_, high) if high <= terms.allowance => Answer::Flat,
        (low, _) if low > 0.0 && per_hour > terms.allowance => Answer::Grows,
        _ => Answer::CannotTell,
    };
    Growth { level, per_hour, interval, answer }
}

/// The samples behind the middle of the time.
fn second_half(samples: &[(f64, f64)]) -> &[(f64, f64)] {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return &[] };
    let middle_s = (first.0 + last.0) / 2.0;
    let from = samples.partition_point(|one| one.0 < middle_s);
    &samples[from..]
}

/// Returns the slope per second, and half the width of its interval.
fn slope(samples: &[(f64, f64)], error: f64) -> (f64, f64) {
    let values: Vec<f64> = samples.iter().map(|one| one.1).collect();
    let wanted = samples.len() as f64 / (BATCH * memory(&without_trend(&values)));
    let count = (wanted as usize).clamp(BATCHES.0, BATCHES.1);
    let edge = |batch: usize| batch * samples.len() / count;
    let mean = |batch: &[(f64, f64)]| {
        let size = batch.len() as f64;
        let sum = batch.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (sum.0 / size, sum.1 / size)
    };
    let batches: Vec<(f64, f64)> =
        (0..count).map(|batch| mean(&samples[edge(batch)..edge(batch + 1)])).collect();
    let (middle_s, level) = mean(&batches);
    let spread: f64 = batches.iter().map(|one| (one.0 - middle_s).powi(2)).sum();
    if spread <= 0.0 {
        return (0.0, f64::INFINITY);
    }
    let slope =
        batches.iter().map(|one| (one.0 - middle_s) * (one.1 - level)).sum::<f64>() / spread;
    let left: f64 =
        batches.iter().map(|one| (one.1 - level - slope * (one.0 - middle_s)).powi(2)).sum();
    let freedom = count as f64 - 2.0;
    let deviation = (left / freedom / spread).sqrt();
    (slope, student::quantile(1.0 - error, freedom) * deviation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;

    const TERMS: Terms = Terms { error: 0.01, allowance: 1.0 };

    /// A sample a second: noise whose neighbours are correlated, around a line.
    fn series(seed: u64, count: usize, correlation: f64, per_hour: f64) -> Vec<(f64, f64)> {
        let mut rng = Rng::new(seed);
        let mut noise = 0.0;
        let one = |at: usize| {
            noise = correlation * noise + rng.exponential() - 1.0;
            (at as f64, 500.0 + noise + per_hour * at as f64 / HOUR_S)
        };
        (0..count).map(one).collect()
    }

    fn share(wanted: Answer, of: impl Fn(u64) -> Growth) -> f64 {
        (0..400).filter(|seed| of(*seed).answer == wanted).count() as f64 / 400.0
    }

    #[test]
    fn a_flat_series_is_rarely_called_growing_however_its_neighbours_are_correlated() {
        for correlation in [0.0, 0.5, 0.9, 0.97] {
            for count in [120, 1_200] {
                let any = Terms { allowance: 0.0, ..TERMS };
                let grows =
                    share(Answer::Grows, |seed| judge(&series(seed, count, correlation, 0.0), any));
                // 400 draws of 1 % are at most 12 in all but one of ten thousand cases; a series of sixty samples cannot
                // show all of a memory of 33.
                let most = if correlation > 0.95 && count < 1_000 { 0.05 } else { 0.03 };
                assert!(grows <= most, "{correlation} {count}: {grows}");
            }
        }
    }

    #[test]
    fn a_figure_that_wanders_is_rarely_called_growing() {
        let walk = |seed| {
            let mut samples = series(seed, 600, 0.0, 0.0);
            let mut sum = 0.0;
            for one in &mut samples {
                sum += one.1 - 500.0;
                one.1 = sum;
            }
            judge(&samples, TERMS)
        };
        assert!(share(Answer::Grows, walk) <= 0.05);
        assert!(share(Answer::Flat, walk) <= 0.05);
    }

    #[test]
    fn a_planted_leak_is_found_with_its_size() {
        // 20 kB a second with noise of 100 kB is found in five minutes.
        let leak = |seed| {
            let samples = series(seed, 300, 0.5, 72_000.0 / 100.0);
            judge(&samples, Terms { error: 0.01, allowance: 20.0 })
        };
        assert!(share(Answer::Grows, leak) >= 0.99);
        let growth = leak(7);
        assert!(growth.interval.0 < 720.0 && 720.0 < growth.interval.1, "{growth:?}");
    }

    #[test]
    fn a_descriptor_a_minute_is_found_in_ten() {
        let samples: Vec<(f64, f64)> =
            (0..600).map(|at| (f64::from(at), f64::from(20 + at / 60))).collect();
        let growth = judge(&samples, Terms { error: 0.001, allowance: 6.0 });
        assert_eq!(growth.answer, Answer::Grows, "{growth:?}");
        assert!((growth.per_hour - 60.0).abs() < 6.0, "{growth:?}");
    }

    #[test]
    fn flat_needs_evidence() {
        let long = |seed| judge(&series(seed, 7_200, 0.5, 0.0), TERMS);
        assert!(share(Answer::Flat, long) >= 0.99);
        let short = |seed| judge(&series(seed, 120, 0.5, 0.0), TERMS);
        assert!(share(Answer::Flat, short) <= 0.05);
        let few: Vec<(f64, f64)> = (0..40).map(|at| (f64::from(at), 1.0)).collect();
        assert_eq!(judge(&few, TERMS).answer, Answer::CannotTell);
        assert_eq!(judge(&[], TERMS).answer, Answer::CannotTell);
    }

    #[test]
    fn a_constant_is_flat_and_the_first_half_does_not_count() {
        let constant: Vec<(f64, f64)> = (0..100).map(|at| (f64::from(at), 17.0)).collect();
        let growth = judge(&constant, Terms { allowance: 0.0, ..TERMS });
        assert_eq!((growth.answer, growth.level, growth.per_hour), (Answer::Flat, 17.0, 0.0));
        let filled: Vec<(f64, f64)> =
            (0..100).map(|at| (f64::from(at), f64::from(at.min(45)))).collect();
        assert_eq!(judge(&filled, TERMS).answer, Answer::Flat);
        let with_gaps: Vec<(f64, f64)> = filled
            .iter()
            .map(|one| (one.0, if one.0 == 70.0 { f64::NAN } else { one.1 }))
            .collect();
        assert_eq!(judge(&with_gaps, TERMS).answer, Answer::Flat);
    }

    #[test]
    fn growth_within_the_allowance_is_flat() {
        let samples = series(3, 7_200, 0.0, 0.5);
        let growth = judge(&samples, TERMS);
        assert_eq!(growth.answer, Answer::Flat, "{growth:?}");
        let more = judge(&series(3, 7_200, 0.0, 5.0), TERMS);
        assert_eq!(more.answer, Answer::Grows, "{more:?}");
    }
}
