//! Lasting changes of level in a series of runs, by a permutation test.
//!
//! The test asks whether the order of the runs matters. Its statistic is the largest standardised difference between the runs
//! before and after a split, over all splits; the same maximum over all splits is taken of many random orders. So the p value
//! accounts for the choice of the split (Antoch and Hušková, "Permutation tests in change point analysis", Statistics and
//! Probability Letters 53, 2001). E-divisive followed by a t-test at the split that it chose does not, and reports changes in noise.
//!
//! The statistic is made smaller if neighbouring runs are correlated, as on a machine with good and bad hours. Values enter as
//! logarithms, clipped at four standard deviations of normal noise: a single spike, however high, is not a step. Segments have at
//! least three runs. A segment with a change is split there, and both parts are tested again (binary segmentation, Vostrikova
//! 1981); at the end each change is tested once more between its neighbours.

use plimsoll_core::rng::{Rng, derive_seed};

/// Fewest runs of a segment.
pub const SEGMENT_LEAST: usize = 3;
/// Fewest runs of a series that is tested: with fewer, the most extreme order is not rare enough.
pub const SERIES_LEAST: usize = 10;

/// Settings of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Share of series without a change in which one is found, above 0 and below 1.
    pub error: f64,
    /// Random orders, at least `1 / error`.
    pub orders: u32,
    /// Seed of the random orders.
    pub seed: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self { error: 0.025, orders: 1_999, seed: 1 }
    }
}

/// A lasting change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first run after the change.
    pub at: usize,
    /// Index of the first run of the segment before it.
    pub from: usize,
    /// Index after the last run of the segment behind it.
    pub to: usize,
    /// Share of random orders, the observed one included, whose largest difference is at least as large, 0 to 1.
    pub p_value: f64,
    /// Median of the segment behind the change over the median of the segment before it.
    pub ratio: f64,
}

/// Returns the changes of level in a series, oldest first. Values are finite; a series shorter than [`SERIES_LEAST`] has none.
#[must_use]
pub fn change_points(values: &[f64], terms: &Terms) -> Vec<ChangePoint> {
    let mut found = Vec::new();
    let mut open = vec![(0, values.len())];
    while let Some((from, to)) = open.pop() {
        if let Some((at, _)) = test(&values[from..to], terms) {
            found.push(from + at);
            open.extend([(from, from + at), (from + at, to)]);
        }
    }
    found.sort_unstable();
    confirmed(values, found, terms)
}

/// The changes that are still found between their neighbours: one that only a wider segment shows is dropped.
fn confirmed(values: &[f64], mut found: Vec<usize>, terms: &Terms) -> Vec<ChangePoint> {
    loop {
        let edges = |index: usize, found: &[usize]| {
            let from = index.checked_sub(1).map_or(0, |before| found[before]);
            (from, found.get(index + 1).copied().unwrap_or(values.len()))
        };
        let judged: Vec<Option<f64>> = (0..found.len())
            .map(|index| {
                let (from, to) = edges(index, &found);
                // One change is between its neighbours as it was found.
                test(&values[from..to], terms).map(|(_, p_value)| p_value)
            })
            .collect();
        let Some(lost) = judged.iter().position(Option::is_none) else {
            let point = |(index, p_value): (usize, f64)| {
                let ((from, to), at) = (edges(index, &found), found[index]);
                let ratio = median(&values[at..to]) / median(&values[from..at]);
                ChangePoint { at, from, to, p_value, ratio }
            };
            return judged.into_iter().flatten().enumerate().map(point).collect();
        };
        found.remove(lost);
    }
}

/// Tests one segment: the index of the first run after the best split, and its p value, if that is at most the error.
fn test(values: &[f64], terms: &Terms) -> Option<(usize, f64)> {
    if values.len() < SERIES_LEAST {
        return None;
    }
    let levels = levels(values);
    let mut scores = scores(&levels);
    let weights = weights(&scores)?;
    let (at, observed) = largest(&scores, &weights);
    // Rounding must not make the same order differ from itself.
    let threshold = observed * deflation(&levels, &scores, at) * (1.0 - 1e-9);
    let mut rng = Rng::new(derive_seed(terms.seed, "change points"));
    // The test ends when the error is exceeded whatever the remaining orders are.
    let most = (terms.error * f64::from(terms.orders + 1)).floor() as u32;
    let mut as_large = 1;
    for _ in 0..terms.orders {
        rng.shuffle(&mut scores);
        as_large += u32::from(largest(&scores, &weights).1 >= threshold);
        if as_large > most {
            return None;
        }
    }
    Some((at, f64::from(as_large) / f64::from(terms.orders + 1)))
}

/// The part of a difference that remains if neighbouring runs are correlated: the square root of `(1 - r) / (1 + r)`, the share of the
/// runs that is left of an autoregressive series with the correlation `r` of neighbours.
///
/// Two estimates of `r` are made, and the smaller one is used: a second change inside a segment makes the first one too large,
/// and the other one is less exact.
fn deflation(levels: &[f64], scores: &[f64], at: usize) -> f64 {
    let correlation = within(scores, at).min(of_differences(levels)).clamp(0.0, 0.95);
    ((1.0 - correlation) / (1.0 + correlation)).sqrt()
}

/// Correlation of neighbours inside the two segments.
fn within(scores: &[f64], at: usize) -> f64 {
    let (mut products, mut squares) = (0.0, 0.0);
    for part in [&scores[..at], &scores[at..]] {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        squares += part.iter().map(|score| (score - mean).powi(2)).sum::<f64>();
        products += part.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum::<f64>();
    }
    let total: f64 = scores.iter().map(|score| score * score).sum();
    // What rounding leaves of equal values is not noise.
    if squares <= 1e-12 * total { 0.0 } else { products / squares }
}

/// Correlation of neighbours from differences of runs one and two apart, whose variances are as 1 to `1 + r`. Differences
/// across a change are far from the others, and are left out.
fn of_differences(levels: &[f64]) -> f64 {
    let variance = |apart: usize| {
        let pairs = levels.iter().zip(&levels[apart..]);
        let differences: Vec<f64> = pairs.map(|(one, next)| (next - one).abs()).collect();
        let most = SPIKE * NORMAL_SD * median(&differences);
        let (mut squares, mut count) = (0.0, 0.0);
        for difference in differences.iter().filter(|difference| **difference <= most) {
            squares += difference * difference;
            count += 1.0;
        }
        squares / count
    };
    let (one, two) = (variance(1), variance(2));
    if one > 0.0 { two / one - 1.0 } else { 0.0 }
}

/// For each split, what makes the sum of the scores before it a standardised difference; `None` if all scores are equal.
fn weights(scores: &[f64]) -> Option<Vec<f64>> {
    let n = scores.len() as f64;
    let variance = scores.iter().map(|score| score * score).sum::<f64>() / (n - 1.0);
    let weight = |k: usize| {
        let k = k as f64;
        1.0 / (variance * k * (n - k) / n).sqrt()
    };
    (variance > 0.0).then(|| (0..scores.len()).map(weight).collect())
}

/// The split with the largest standardised difference: the number of runs before it, and the difference.
fn largest(scores: &[f64], weights: &[f64]) -> (usize, f64) {
    let (mut sum, mut best) = (0.0, (0, 0.0));
    let splits = scores.len() - SEGMENT_LEAST;
    for (index, (score, weight)) in scores.iter().zip(&weights[1..=splits]).enumerate() {
        sum += score;
        let difference = f64::abs(sum) * weight;
        if index + 1 >= SEGMENT_LEAST && difference > best.1 {
            best = (index + 1, difference);
        }
    }
    best
}

/// Distance from the median, in standard deviations of normal noise, beyond which a run counts as if it were at this distance.
const CLIP: f64 = 4.0;
/// The same for differences, beyond which one is left out.
const SPIKE: f64 = 3.0;
/// Standard deviation of a normal distribution over its median absolute deviation.
const NORMAL_SD: f64 = 1.482_6;

/// The logarithms of positive values; others as they are.
fn levels(values: &[f64]) -> Vec<f64> {
    let are_positive = values.iter().all(|value| *value > 0.0);
    values.iter().map(|value| if are_positive { value.ln() } else { *value }).collect()
}

/// Deviations from the median, clipped, with mean 0.
fn scores(levels: &[f64]) -> Vec<f64> {
    let mut scores = levels.to_vec();
    let middle = median(&scores);
    scores.iter_mut().for_each(|score| *score -= middle);
    let distances: Vec<f64> = scores.iter().map(|score| score.abs()).collect();
    let limit = match CLIP * NORMAL_SD * median(&distances) {
        // More than half of the runs are equal: the others are above or below, no matter how far.
        0.0 => distances.iter().copied().filter(|d| *d > 0.0).fold(f64::INFINITY, f64::min),
        limit => limit,
    };
    scores.iter_mut().for_each(|score| *score = score.clamp(-limit, limit));
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    scores.iter_mut().for_each(|score| *score -= mean);
    scores
}

/// The middle value, or the mean of the two in the middle; NaN of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

    /// Noise that is the same each time: `percent` of the level, roughly normal.
    fn noise(seed: u64, runs: usize, percent: f64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let normal = |rng: &mut Rng| (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
        (0..runs).map(|_| 100.0 * (percent / 100.0 * normal(&mut rng)).exp()).collect()
    }

    fn stepped(mut values: Vec<f64>, at: usize, factor: f64) -> Vec<f64> {
        values[at..].iter_mut().for_each(|value| *value *= factor);
        values
    }

    fn found(values: &[f64]) -> Vec<usize> {
        change_points(values, &Terms::default()).iter().map(|point| point.at).collect()
    }

    #[test]
    fn a_step_is_found_where_it_is_with_its_size() {
        let values = stepped(noise(1, 60, 2.0), 40, 1.2);
        let points = change_points(&values, &Terms::default());
        assert_eq!(points.len(), 1, "{points:?}");
        let point = points[0];
        assert_eq!((point.at, point.from, point.to), (40, 0, 60));
        assert!((point.ratio - 1.2).abs() < 0.02 && point.p_value <= 0.001, "{point:?}");
    }

    #[test]
    fn several_steps_are_found_up_and_down_and_up_again() {
        for (factor, seeds) in [(1.0 / 1.2, 0..40), (1.2, 40..80)] {
            let series = |seed| stepped(stepped(noise(seed, 90, 2.0), 30, 1.2), 60, factor);
            let all: Vec<Vec<usize>> = seeds.map(|seed| found(&series(seed))).collect();
            let has = |found: &[usize], step: usize| found.iter().any(|at| at.abs_diff(step) < 2);
            // A step that is undone looks much like correlated noise, until it is long over.
            let both = all.iter().filter(|found| has(found, 30) && has(found, 60)).count();
            assert!(both >= 36, "{all:?}");
            // Three segments, each with an error of 2.5 %: a third finding is to be expected in 3 of 40.
            let more = all.iter().filter(|found| found.len() > 2).count();
            assert!(more <= 8, "{all:?}");
        }
    }

    #[test]
    fn one_spike_is_no_step_wherever_it_is() {
        let spikes = (0..60).filter(|at| {
            let mut values = noise(4, 60, 2.0);
            values[*at] *= 10.0;
            !found(&values).is_empty()
        });
        // As many as in noise: 2.5 % of 60.
        assert!(spikes.count() <= 3);
    }

    #[test]
    fn short_and_constant_series_have_no_change() {
        let steep: Vec<f64> = (1..SERIES_LEAST).map(|n| f64::from(n as u32)).collect();
        assert_eq!(found(&steep), [0usize; 0]);
        assert_eq!(found(&[5.0; 50]), [0usize; 0]);
        assert_eq!(found(&[]), [0usize; 0]);
    }

    #[test]
    fn failures_that_begin_are_a_change_though_most_values_are_equal() {
        let mut values = vec![0.0; 40];
        values[30..].iter_mut().for_each(|value| *value = 0.01);
        assert_eq!(found(&values), [30]);
        let point = change_points(&values, &Terms::default())[0];
        assert_eq!(point.ratio, f64::INFINITY);
    }

    #[test]
    fn the_shortest_series_can_show_a_change() {
        let values = stepped(noise(5, SERIES_LEAST, 1.0), 5, 2.0);
        assert_eq!(found(&values), [5]);
    }

    #[test]
    fn noise_is_rarely_a_change() {
        let false_alarms = (0..200).filter(|seed| !found(&noise(100 + seed, 50, 2.0)).is_empty());
        // The error is 2.5 %: more than 14 of 200 has a probability below 0.0003.
        assert!(false_alarms.count() <= 14);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn the_unit_of_the_values_does_not_matter(seed in 0u64..1_000, factor in 0.5f64..2.0) {
            let values = stepped(noise(seed, 40, 2.0), 20, factor);
            let other: Vec<f64> = values.iter().map(|value| value * 1_024.0).collect();
            prop_assert_eq!(found(&values), found(&other));
        }

        #[test]
        fn segments_have_at_least_three_runs(values in proptest::collection::vec(1.0f64..3.0, 0..60)) {
            let points = change_points(&values, &Terms { error: 0.3, orders: 99, seed: 1 });
            for point in points {
                prop_assert!(point.at - point.from >= SEGMENT_LEAST && point.to - point.at >= SEGMENT_LEAST);
                prop_assert!(point.p_value > 0.0 && point.p_value <= 0.3);
            }
        }
    }
}
