//! The words of a search as those of a load, so that it can be followed in steps.

use crate::jobs::{has, has_any, remove, value};
use anyhow::Result;
use plimsoll_core::slo::{ClassSlo, Slo};
use plimsoll_job::usage::usage;

/// Flags of a search that a load does not have.
const OF_SEARCH: [&str; 7] = [
    "--budget",
    "--width",
    "--strategy",
    "--confidence",
    "--start-rate",
    "--max-rate",
    "--duration",
];
/// Requests that only a search can send.
const ONLY_SOUGHT: [&str; 4] = ["--feed", "--votes", "--users", "--over-time"];

/// A limit that steps can follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Longest response time, ns.
    pub ns: u64,
    /// Share of the requests that may be late.
    pub late: f64,
}

/// Returns the limit that steps can follow; `None` if whole searches are compared instead.
#[must_use]
pub fn limit(words: &[String]) -> Option<Limit> {
    let is_votes = words.iter().any(|word| word.starts_with("volt://"))
        && !has_any(words, &["--body", "--queries"]);
    let limits = words.iter().filter(|word| word.starts_with("--slo")).count();
    if has_any(words, &ONLY_SOUGHT) || is_votes || limits != 1 {
        return None;
    }
    let slo: ClassSlo = value(words, "--slo")?.parse().ok()?;
    match (slo.class.as_ref(), slo.slo) {
        (None, Slo::Quantile { quantile, limit }) => {
            Some(Limit { ns: limit.ns, late: 1.0 - quantile })
        }
        _ => None,
    }
}

/// Rejects flags of a search that its blocks have no use for; `in_steps` is true if the search is followed by steps.
///
/// # Errors
/// The first such flag.
pub fn check(words: &[String], in_steps: bool) -> Result<()> {
    let precision = ["--width", "--confidence"].into_iter().find(|flag| has(words, flag));
    Err(usage(match precision.filter(|_| in_steps) {
        _ if has(words, "--budget") => {
            "--budget stands after --; write it before --, where it is for the whole comparison".to_owned()
        }
        _ if has(words, "--over-time") => {
            "--over-time finds no single rate that could be compared; leave it out".to_owned()
        }
        _ if has(words, "--strategy") => {
            "--strategy is not supported for the blocks of ab, whose searches are plimsoll's own; leave it out".to_owned()
        }
        Some(flag) => format!(
            "{flag} is for a search, and ab follows this limit by steps; leave it out, or use --margin and --error before --"
        ),
        None => return Ok(()),
    }))
}

/// Flags of a search that make another search: with different ones, A and B would not be compared by the same measure.
const ALIKE: [&str; 4] = ["--slo", "--feed", "--votes", "--users"];

/// Rejects flags of one side that must be the same for both.
///
/// # Errors
/// The first such flag.
pub fn check_alike(words: &[String]) -> Result<()> {
    match ALIKE.iter().find(|flag| has(words, flag)) {
        Some(flag) => Err(usage(format!("{flag} must be the same for A and B; write it after --"))),
        None => Ok(()),
    }
}

/// The words of a search as those of a load, without rate and times.
#[must_use]
pub fn load_words(words: &[String], limit: Limit) -> Vec<String> {
    let mut words = words.to_vec();
    "load".clone_into(&mut words[0]);
    OF_SEARCH.iter().for_each(|flag| remove(&mut words, flag));
    remove(&mut words, "--slo");
    let mut add = |flag: &str, value: &str| {
        if !has(&words, flag) {
            words.extend([flag.to_owned(), value.to_owned()]);
        }
    };
    add("--arrivals", "poisson");
    add("--timeout", &format!("{}ns", 2 * limit.ns + 1_000_000_000));
    add("--max-failed", "100%");
    if has(&words, "--queries") && !has(&words, "--order") {
        words.extend(["--order".to_owned(), "random".to_owned()]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn flags_that_no_block_of_a_search_uses_are_rejected() {
        let checked = |text: &str, in_steps| {
            check(&words(text), in_steps).map_or_else(|error| error.to_string(), |()| String::new())
        };
        for flag in ["--budget 1m", "--strategy=mutilate", "--over-time"] {
            for in_steps in [true, false] {
                let line = checked(&format!("seek --slo p95=5ms {flag}"), in_steps);
                assert!(line.starts_with(&flag[..8]), "{line}");
            }
        }
        assert!(checked("seek --width 3%", true).starts_with("--width is for a search"));
        assert_eq!(checked("seek --slo mean=5ms --width 3% --confidence 99%", false), "");
        assert_eq!(checked("seek --slo p95=5ms --start-rate 5", true), "");
    }

    #[test]
    fn a_search_with_one_percentile_is_followed_by_steps() {
        let found = limit(&words("seek http://h --slo p95=50ms")).unwrap();
        assert_eq!(found.ns, 50_000_000);
        assert!((found.late - 0.05).abs() < 1e-9);
        for other in ["--slo mean=5ms", "--slo p95=5ms --slo p99=9ms", "--slo p95=5ms --votes"] {
            assert_eq!(limit(&words(&format!("seek http://h {other}"))), None, "{other}");
        }
        assert_eq!(
            load_words(&words("seek http://h --slo p95=50ms --budget 1m --http2"), found).join(" "),
            "load http://h --http2 --arrivals poisson --timeout 1100000000ns --max-failed 100%"
        );
    }
}
