//! `fuzziness`: a number of edits, or one by the length of the word.

use super::super::error::ElasticError;
use plimsoll_index::fuzzy::FuzzyMode;
use plimsoll_scan::Metric;
use serde_json::Value as Json;

/// Edit distance of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fuzziness {
    Edits(u64),
    /// No edit below the first length, one below the second, two from there on, in characters.
    Auto(usize, usize),
}

/// The errors that a scan counts: `"edits"`, or `"hamming"` for replacements only.
///
/// # Errors
/// When it is neither.
pub(super) fn metric(json: &Json) -> Result<Metric, ElasticError> {
    match json.as_str() {
        Some("edits") => Ok(Metric::Edits),
        Some("hamming") => Ok(Metric::Hamming),
        _ => {
            let reason = format!("[metric] is \"edits\" or \"hamming\", not [{json}]");
            Err(ElasticError::argument(reason))
        }
    }
}

impl Default for Fuzziness {
    fn default() -> Self {
        Self::Edits(0)
    }
}

impl Fuzziness {
    /// The edits for a word of this many characters.
    pub(crate) fn edits(self, length: usize) -> u64 {
        match self {
            Self::Edits(edits) => edits,
            Self::Auto(low, _) if length < low => 0,
            Self::Auto(_, high) if length < high => 1,
            Self::Auto(..) => 2,
        }
    }

    /// Reads `2`, `"2"`, `"AUTO"` or `"AUTO:3,6"`.
    ///
    /// # Errors
    /// When it is none of these, or more than the server's mode takes.
    pub(super) fn read(json: &Json, mode: FuzzyMode) -> Result<Self, ElasticError> {
        let text = json.as_str().map_or_else(|| json.to_string(), ToOwned::to_owned);
        let upper = text.to_ascii_uppercase();
        if upper == "AUTO" {
            return Ok(Self::Auto(3, 6));
        }
        if let Some(bounds) = upper.strip_prefix("AUTO:") {
            let bounds = bounds.split_once(',').and_then(|(low, high)| {
                let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
                (low <= high).then_some((low, high))
            });
            let (low, high) = bounds.ok_or_else(|| {
                let reason = format!("failed to find low and high distance values: [{text}]");
                ElasticError::new(400, "parse_exception", reason)
            })?;
            return Ok(Self::Auto(low, high));
        }
        let limit = mode.max_edits();
        let edits = text.parse::<f64>().ok().filter(|edits| edits.is_finite() && *edits >= 0.0);
        // Shares of an edit do not count.
        let edits = edits.map(f64::trunc).filter(|edits| *edits <= limit as f64);
        edits.map(|edits| Self::Edits(edits as u64)).ok_or_else(|| {
            let valid = match mode {
                FuzzyMode::Index => "[0, 1, 2]",
                FuzzyMode::Automaton => "[0, 1, 2, 3, 4]",
                FuzzyMode::Scan => "whole numbers from 0",
            };
            ElasticError::argument(format!("Valid edit distances are {valid} but was [{text}]"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_forms_are_read() {
        let index = |json: Json| Fuzziness::read(&json, FuzzyMode::Index);
        assert_eq!(index(json!(2)), Ok(Fuzziness::Edits(2)));
        assert_eq!(index(json!("1")), Ok(Fuzziness::Edits(1)));
        assert_eq!(index(json!("auto")), Ok(Fuzziness::Auto(3, 6)));
        assert_eq!(index(json!("AUTO:2,9")), Ok(Fuzziness::Auto(2, 9)));
        let refused = index(json!(4)).unwrap_err();
        assert_eq!(refused.reason, "Valid edit distances are [0, 1, 2] but was [4]");
        assert_eq!(index(json!(1.5)), Ok(Fuzziness::Edits(1)));
        assert_eq!(index(json!("2.9")), Ok(Fuzziness::Edits(2)));
        for bad in [json!("x"), json!(-1), json!("AUTO:9,2"), json!("AUTO:1")] {
            assert!(index(bad.clone()).is_err(), "{bad}");
        }
        assert_eq!(Fuzziness::read(&json!(4), FuzzyMode::Automaton), Ok(Fuzziness::Edits(4)));
        assert!(Fuzziness::read(&json!(5), FuzzyMode::Automaton).is_err());
        assert_eq!(Fuzziness::read(&json!(9), FuzzyMode::Scan), Ok(Fuzziness::Edits(9)));
        let auto = Fuzziness::Auto(3, 6);
        assert_eq!([2, 3, 5, 6].map(|length| auto.edits(length)), [0, 1, 1, 2]);
    }
}
