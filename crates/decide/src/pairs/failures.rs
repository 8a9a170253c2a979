//! Comparison of failures from small counts.
//!
//! A log ratio of two counts near 0 is mostly noise, and without a failure it does not exist. Given the failures of both sides
//! together, those of B are binomial if a request fails with the same probability on both (the exact conditional test:
//! Przyborowski and Wilenski, "Homogeneity of results in testing samples from Poisson series", 1940). Failures come in
//! clusters, so counts are first divided by their dispersion over the pairs (the quasi-likelihood of McCullagh and Nelder,
//! "Generalized linear models", 1989, section 4.5), and the sign-flip test over the pairs must agree.

use super::looks::PAIRS_LEAST;
use super::{Kind, sign_flip};
use crate::student::incomplete_beta;

/// Requests of a block, and those of them that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Failed requests.
    pub failed: u64,
    /// Requests that were sent.
    pub sent: u64,
}

/// The answer for failures, of B against A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failures {
    /// Better: B fails less often. Same: the interval of the ratio is within the margin.
    pub kind: Kind,
    /// All blocks of A.
    pub a: Count,
    /// All blocks of B.
    pub b: Count,
    /// Share of failures of B, divided by that of A; NaN without failures, infinite if only B failed.
    pub ratio: f64,
    /// Lower end of the interval of the ratio (Clopper and Pearson 1934, on counts divided by their dispersion).
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The larger p-value of the two tests, two-sided.
    pub p_value: f64,
    /// Variance of the counts over pairs, divided by that of independent failures; at least 1.
    pub dispersion: f64,
}

/// Compares the failures in the blocks of pairs, (A, B) each, with a probability of a false claim of `error`, 0 to 1.
///
/// `margin` is the relative difference below which shares are the same. The function is for one look: at one of several, or
/// one metric of several, give it the error that may be spent there. Fewer than 6 pairs make no claim.
#[must_use]
pub fn compare(pairs: &[(Count, Count)], error: f64, margin: f64) -> Failures {
    let total = |side: &dyn Fn(&(Count, Count)) -> Count| {
        pairs.iter().map(side).fold(Count::default(), |sum, one| Count {
            failed: sum.failed + one.failed,
            sent: sum.sent + one.sent,
        })
    };
    let (a, b) = (total(&|pair| pair.0), total(&|pair| pair.1));
    let share = |count: Count| count.failed as f64 / count.sent as f64;
    let dispersion = dispersion(pairs, b.sent as f64 / (a.sent + b.sent) as f64);
    let (of_a, of_b) = (a.failed as f64 / dispersion, b.failed as f64 / dispersion);
    // Probability that a failure is one of B's if both fail equally often.
    let even = b.sent as f64 / (a.sent + b.sent) as f64;
    let at_least = |p: f64| if of_b > 0.0 { incomplete_beta(of_b, of_a + 1.0, p) } else { 1.0 };
    let at_most =
        |p: f64| if of_a > 0.0 { 1.0 - incomplete_beta(of_b + 1.0, of_a, p) } else { 1.0 };
    let odds = |p: f64| p / (1.0 - p) * a.sent as f64 / b.sent as f64;
    let low = if of_b > 0.0 { odds(root(|p| at_least(p) - error / 2.0)) } else { 0.0 };
    let high = if of_a > 0.0 { odds(root(|p| error / 2.0 - at_most(p))) } else { f64::INFINITY };
    let differences: Vec<f64> = pairs
        .iter()
        .map(|(a, b)| share(*b) - share(*a))
        .filter(|difference| difference.is_finite())
        .collect();
    let opposite: Vec<f64> = differences.iter().map(|difference| -difference).collect();
    let by_signs = sign_flip::upper(&differences).min(sign_flip::upper(&opposite));
    let by_counts = if a.sent > 0 && b.sent > 0 { at_least(even).min(at_most(even)) } else { 1.0 };
    let p_value = (2.0 * by_counts.max(by_signs)).min(1.0);
    let ratio = share(b) / share(a);
    let kind = match (differences.len() >= PAIRS_LEAST, p_value <= error) {
        (true, true) if ratio > 1.0 => Kind::Worse,
        (true, true) if ratio < 1.0 => Kind::Better,
        (true, _) if low > 1.0 / (1.0 + margin) && high < 1.0 + margin => Kind::Same,
        _ => Kind::CannotTell,
    };
    Failures { kind, a, b, ratio, low, high, p_value, dispersion }
}

/// Variance of the failures over all blocks, divided by that of independent failures; at least 1.
fn dispersion(pairs: &[(Count, Count)], even: f64) -> f64 {
    let blocks: Vec<Count> = pairs.iter().flat_map(|pair| [pair.0, pair.1]).collect();
    let failed: u64 = blocks.iter().map(|block| block.failed).sum();
    if failed == 0 || !even.is_finite() {
        return 1.0;
    }
    // Each side has its own share: a difference between them is no dispersion.
    let squares: f64 = [0, 1].iter().map(|side| side_squares(&blocks, *side)).sum();
    let freedom = blocks.len().saturating_sub(2).max(1) as f64;
    (squares / freedom).max(1.0)
}

/// Pearson's statistic of the blocks of one side.
fn side_squares(blocks: &[Count], side: usize) -> f64 {
    let own = || blocks.iter().skip(side).step_by(2);
    let failed: u64 = own().map(|block| block.failed).sum();
    let sent: u64 = own().map(|block| block.sent).sum();
    let share = failed as f64 / sent as f64;
    let square = |block: &Count| {
        let expected = share * block.sent as f64;
        (block.failed as f64 - expected).powi(2) / (expected * (1.0 - share))
    };
    own().map(square).filter(|square| square.is_finite()).sum()
}

/// Returns where a function that rises from 0 to 1 is 0, by bisection.
fn root(rising: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if rising(middle) < 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;

    fn pair(a: u64, b: u64) -> (Count, Count) {
        (Count { failed: a, sent: 1_000 }, Count { failed: b, sent: 1_000 })
    }

    #[test]
    fn counts_and_interval_are_those_of_the_exact_test() {
        // One failure in each of ten blocks of B: 2 * 2^-10, and Clopper and Pearson's 0.6915 for 10 of 10.
        let found = compare(&[pair(0, 1); 10], 0.05, 0.05);
        assert_eq!(found.kind, Kind::Worse);
        assert!((found.p_value - 2.0 / 1024.0).abs() < 1e-9, "{found:?}");
        assert!((found.low - 0.691_5 / 0.308_5).abs() < 0.01, "{found:?}");
        assert_eq!((found.high, found.ratio), (f64::INFINITY, f64::INFINITY));
        assert_eq!(compare(&[pair(1, 0); 10], 0.05, 0.05).kind, Kind::Better);
    }

    #[test]
    fn no_failures_and_few_pairs_make_no_claim() {
        for pairs in [&[] as &[_], &[pair(0, 0); 20], &[pair(0, 9); 5], &[pair(1, 0); 3]] {
            assert_eq!(compare(pairs, 0.05, 0.05).kind, Kind::CannotTell, "{pairs:?}");
        }
        assert_eq!(compare(&[(Count::default(), Count::default()); 9], 0.05, 0.05).p_value, 1.0);
    }

    #[test]
    fn many_equal_failures_are_the_same() {
        let found = compare(&[(pair(500, 500)); 40], 0.05, 0.05);
        assert_eq!(found.kind, Kind::Same, "{found:?}");
    }

    #[test]
    fn one_cluster_of_failures_is_no_difference() {
        let mut pairs = [pair(0, 0); 20];
        pairs[7] = pair(0, 200);
        let found = compare(&pairs, 0.05, 0.05);
        assert_eq!(found.kind, Kind::CannotTell);
        assert!(found.dispersion > 50.0 && found.low < 1.0, "{found:?}");
    }

    #[test]
    fn false_claims_on_clustered_failures_stay_below_the_error() {
        let mut rng = Rng::new(1);
        let mut block = || {
            let rate = 3.0 * rng.exponential();
            let failed = (0..1_000).filter(|_| rng.uniform() < rate / 1_000.0).count();
            Count { failed: failed as u64, sent: 1_000 }
        };
        let claims = (0..400)
            .filter(|_| {
                let pairs: Vec<_> = (0..20).map(|_| (block(), block())).collect();
                compare(&pairs, 0.05, 0.05).kind != Kind::CannotTell
            })
            .count();
        assert!(claims < 35, "{claims} of 400");
    }
}
