//! Log ratios of a pair of blocks.

use crate::measured::{Measured, failures};
use plimsoll_decide::pairs::failures::Count;

/// Failed requests of a block, and all that ended.
#[must_use]
pub fn count(measured: &Measured) -> Count {
    failures(measured).map_or_else(Count::default, |(failed, sent)| Count { failed, sent })
}

/// Returns ln(B/A); none if it is not finite.
#[must_use]
pub fn log_ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let ratio = (b? / a?).ln();
    ratio.is_finite().then_some(ratio)
}

/// Log ratio of the shares of failed requests, with half a failure more on each side (Haldane and Anscombe's correction), so that
/// a block without a failure has one too.
#[must_use]
pub fn shares(both: &[Box<Measured>; 2]) -> Option<f64> {
    let share = |measured: &Measured| {
        let (failed, all) = failures(measured)?;
        Some((failed as f64 + 0.5) / (all as f64 + 1.0))
    };
    log_ratio(share(&both[0]), share(&both[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_report::samples;

    #[test]
    fn blocks_without_failures_have_a_ratio_of_failures_too() {
        let block = |failed: u64| {
            let mut record = samples::good();
            record.ledger.ok = 300 - failed;
            record.ledger.failed.status = failed;
            Box::new(Measured { record: Some(Box::new(record)), ..Measured::default() })
        };
        assert_eq!(shares(&[block(0), block(0)]), Some(0.0));
        assert!((shares(&[block(0), block(7)]).unwrap() - 15f64.ln()).abs() < 1e-9);
        assert_eq!(shares(&[Box::default(), block(7)]), None);
        assert_eq!(log_ratio(Some(0.0), Some(1.0)), None);
        assert_eq!(log_ratio(Some(2.0), Some(2.0)), Some(0.0));
    }
}
