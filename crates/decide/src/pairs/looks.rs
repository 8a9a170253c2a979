//! The planned looks at the pairs, and the share of the error that each may spend.

/// Shares of the planned maximum at which there is a look before the last one, and the share of the error spent there.
///
/// The shares rise as those of O'Brien and Fleming: only a very clear difference ends a comparison early, and little is left
/// over for it at the end.
const EARLY: [(f64, f64); 3] = [(0.25, 0.01), (0.5, 0.05), (0.75, 0.12)];
/// Fewest pairs at which there is a look.
pub const PAIRS_LEAST: usize = 6;

/// Planned looks: after which pair, and with which share of the error. The shares sum to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks {
    at: Vec<(usize, f64)>,
}

impl Looks {
    /// Plans the looks of a comparison of at most `pairs_most` pairs, with a family-wise error from 0 to 1.
    ///
    /// A look that could not find anything is left out, and its share is spent at the last one: with n pairs, the least
    /// p-value of a sign-flip test is 2^(1-n).
    #[must_use]
    pub fn plan(pairs_most: usize, error: f64) -> Self {
        let mut at = Vec::new();
        let mut left = 1.0;
        for (fraction, share) in EARLY {
            let pairs = (fraction * pairs_most as f64).ceil() as usize;
            let least = 2f64.powi(1 - i32::try_from(pairs).unwrap_or(i32::MAX));
            let later = at.last().is_none_or(|(before, _)| pairs > *before);
            if later && pairs >= PAIRS_LEAST && pairs < pairs_most && least <= error * share {
                at.push((pairs, share));
                left -= share;
            }
        }
        at.push((pairs_most, left));
        Self { at }
    }

    /// Returns the share of the error to spend after this many pairs; none if there is no look.
    #[must_use]
    pub fn due(&self, pairs: usize) -> Option<f64> {
        self.at.iter().find(|(at, _)| *at == pairs).map(|(_, share)| *share)
    }

    /// Returns the share of the error that looks after this many pairs, or fewer, have not spent.
    #[must_use]
    pub fn left(&self, pairs: usize) -> f64 {
        self.at.iter().filter(|(at, _)| *at > pairs).map(|(_, share)| share).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_error_sum_to_one_for_every_plan() {
        for pairs in 1..400 {
            let looks = Looks::plan(pairs, 0.05);
            assert!((looks.left(0) - 1.0).abs() < 1e-12, "{pairs}");
            assert!(looks.due(pairs).is_some(), "{pairs}");
            assert!(looks.at.windows(2).all(|two| two[0].0 < two[1].0), "{pairs}");
        }
    }

    #[test]
    fn a_look_that_could_not_find_anything_is_left_out() {
        assert_eq!(Looks::plan(8, 0.05).at, [(8, 1.0)]);
        let many: Vec<usize> = Looks::plan(88, 0.05).at.iter().map(|(at, _)| *at).collect();
        assert_eq!(many, [22, 44, 66, 88]);
    }
}
