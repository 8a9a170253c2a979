//! The goal of a search, as the commands that search read it from their flags.

use crate::method::Method;
use crate::prepare::one_of_each;
use crate::usage::usage;
use anyhow::Result;
use clap::Args;
use plimsoll_core::seek::goal::{Goal, Limit};
use plimsoll_core::seek::plant::LIMITS_MAX;
use plimsoll_core::slo::{ClassSlo, Slo};
use plimsoll_core::units::Span;

/// Longest budget.
const BUDGET_MAX: Span = Span::seconds(24 * 3600);

/// Flags of every search for the load line.
#[derive(Args, Debug)]
pub struct SearchFlags {
    /// Time for the whole search
    #[arg(long, value_name = "TIME", default_value = "5m", help_heading = "Search")]
    pub budget: Span,
    /// Half-width of the interval at which the search ends
    ///
    /// As a share of the rate.
    #[arg(long, value_name = "PERCENT", default_value = "5%", help_heading = "Search")]
    pub width: String,
    /// Method: plimsoll's own, or that of another tool
    ///
    /// plimsoll finds an interval and a certified rate. For comparison: feedsim (FeedSim's script, about half an hour),
    /// mutilate (mutilate --search, under a minute), nighthawk (Nighthawk's adaptive load, about twenty minutes) or mlperf
    /// (the early-stopping rule of MLPerf's LoadGen, hours).
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "METHOD",
        default_value = "plimsoll",
        help_heading = "Search"
    )]
    pub strategy: Method,
}

/// Goal of a search as the flags give it.
pub struct Wish<'a> {
    /// Limits to hold.
    pub slo: &'a [ClassSlo],
    /// Time for the whole search.
    pub budget: Span,
    /// Half-width of the interval, `5%` or `0.05`.
    pub width: &'a str,
    /// Confidence of the interval, `95%` or `0.95`.
    pub confidence: &'a str,
    /// Seed of every random choice.
    pub seed: u64,
    /// Rate to begin with, requests per second.
    pub start_per_s: f64,
    /// Highest rate to offer, requests per second.
    pub most_per_s: f64,
    /// Method of the search.
    pub method: Method,
}

impl Wish<'_> {
    /// The goal, and the longest response time of each limit that the plant must count, ns.
    ///
    /// # Errors
    /// When a limit, a share or the budget cannot be sought.
    pub fn goal(&self) -> Result<(Goal, Vec<u64>)> {
        one_of_each(self.slo)?;
        let (limits, limits_ns) = limits(self.slo)?;
        if self.budget.ns == 0 || self.budget.ns > BUDGET_MAX.ns {
            return Err(usage("--budget: use a time above 0 and at most 24h, such as 5m"));
        }
        let longest_ns = limits_ns.iter().copied().filter(|&ns| ns < u64::MAX).max();
        let goal = Goal {
            limits,
            limit_s: longest_ns.map_or(1.0, |ns| ns as f64 / 1e9),
            budget_s: self.budget.as_seconds(),
            width: share("--width", self.width, "5%")?,
            confidence: share("--confidence", self.confidence, "95%")?,
            seed: self.seed,
            start_per_s: self.start_per_s,
            most_per_s: self.most_per_s,
        };
        goal.check().map_err(usage)?;
        if self.method.rival().is_some() && self.slo.iter().any(|limit| limit.class.is_some()) {
            return Err(usage(
                "--slo: other tools' searches do not support classes; leave {class=...} out",
            ));
        }
        let limits_ns = self.method.limits_ns(&goal, limits_ns)?;
        Ok((goal, limits_ns))
    }
}

/// Longest time that a request may take where the user named no timeout: what is late by twice the limit is late enough.
pub fn timeout(goal: &Goal) -> Span {
    Span { ns: (2e9 * goal.limit_s) as u64 + 1_000_000_000 }
}

/// The limits as the search takes them, and the longest response time of each, ns.
fn limits(slo: &[ClassSlo]) -> Result<(Vec<Limit>, Vec<u64>)> {
    if slo.len() > LIMITS_MAX {
        return Err(usage(format!("--slo: at most {LIMITS_MAX} limits at once")));
    }
    let mut limits = Vec::new();
    let mut limits_ns = Vec::new();
    for limit in slo {
        let label = limit.to_string();
        let (own, ns) = match limit.slo {
            Slo::Quantile { limit: Span { ns: 0 }, .. } | Slo::Mean(Span { ns: 0 }) => {
                return Err(usage(format!("--slo {label}: the time must be above 0")));
            }
            Slo::Quantile { quantile, limit } if quantile < 1.0 => {
                (Limit::late(&label, 1.0 - quantile), limit.ns)
            }
            Slo::Errors(share) if share > 0.0 && share < 1.0 => {
                (Limit::late(&label, share), u64::MAX)
            }
            Slo::Mean(limit) => (Limit::mean(&label, limit.as_seconds()), limit.ns),
            Slo::Errors(_) => {
                return Err(usage(format!(
                    "--slo {label}: a search needs a share above 0 % and below 100 %; write errors=0.1%"
                )));
            }
            Slo::Quantile { .. } | Slo::Max(_) => {
                return Err(usage(format!(
                    "--slo {label}: a limit on every single request cannot be searched for; write p99.9={}",
                    label.split_once('=').map_or("1s", |(_, limit)| limit)
                )));
            }
            Slo::Rate(_) => {
                return Err(usage(
                    "--slo rate: the rate is the result of the search; see --start-rate, --max-rate",
                ));
            }
        };
        limits.push(own);
        limits_ns.push(ns);
    }
    Ok((limits, limits_ns))
}

/// Reads `5%` or `0.05`.
fn share(flag: &str, text: &str, example: &str) -> Result<f64> {
    let (digits, scale) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 0.01));
    let share = digits.trim().parse::<f64>().ok().map(|value| value * scale);
    share.filter(|share| *share > 0.0 && *share < 1.0).ok_or_else(|| {
        usage(format!("{flag} '{text}': write a share above 0% and below 100%, such as {example}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_as_percent_or_fraction() {
        assert!((share("--width", "5%", "5%").unwrap() - 0.05).abs() < 1e-12);
        assert!((share("--width", "0.03", "5%").unwrap() - 0.03).abs() < 1e-12);
        for wrong in ["", "5", "0%", "100%", "-1%", "x%"] {
            assert!(share("--width", wrong, "5%").is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_that_no_load_can_promise_are_refused() {
        let read = |text: &str| limits(&[text.parse().unwrap()]);
        let (own, ns) = read("p95=100ms").unwrap();
        assert!((own[0].allowed() - 0.05).abs() < 1e-12);
        assert_eq!(ns, [100_000_000]);
        assert_eq!(read("errors=0.1%").unwrap().1, [u64::MAX]);
        for wrong in ["max=1s", "p100=1s", "rate=100", "errors=0%", "p95=0s", "mean=0s"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
