//! A rule on the change of a metric between two runs, as in `--fail-on 'p99>+5%'`.
//!
//! A rule is judged on the interval of a ratio, never on its estimate alone: a change that may lie on either side of the bound
//! is [`Judged::CannotTell`].

use std::fmt;
use std::str::FromStr;

/// The direction in which a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Better {
    /// Rates: more is better.
    Higher,
    /// Times, errors and costs: less is better.
    Lower,
}

/// Names of the metrics that compare a run with another, and the direction in which each is better.
pub const METRICS: [(&str, Better); 14] = [
    ("rate", Better::Higher),
    ("max-rate", Better::Higher),
    ("accepted", Better::Higher),
    ("documents", Better::Higher),
    ("bytes", Better::Higher),
    ("mean", Better::Lower),
    ("p50", Better::Lower),
    ("p90", Better::Lower),
    ("p95", Better::Lower),
    ("p99", Better::Lower),
    ("p99.9", Better::Lower),
    ("max", Better::Lower),
    ("errors", Better::Lower),
    ("cpu", Better::Lower),
];

/// Returns the direction in which a metric of [`METRICS`] is better; `None` for an unknown name.
#[must_use]
pub fn better(metric: &str) -> Option<Better> {
    METRICS.iter().find(|(name, _)| *name == metric).map(|(_, better)| *better)
}

/// The side of the bound on which a rule fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// A change above the bound fails: `>`.
    Above,
    /// A change below the bound fails: `<`.
    Below,
}

/// A rule on the relative change of one metric. It fails if the change is beyond its bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Name of the metric, such as `p99`.
    pub metric: String,
    /// Side of the bound on which the rule fails.
    pub side: Side,
    /// Bound of the relative change B/A - 1: 0.05 is 5 % more, -0.05 is 5 % less. Above -1.
    pub bound: f64,
}

/// The judgement of an interval by a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Judged {
    /// The whole interval is within the bound.
    Holds,
    /// The bound lies inside the interval, or there is no interval.
    CannotTell,
    /// The whole interval is beyond the bound.
    Fails,
}

impl Rule {
    /// Judges the interval `low` to `high` of the ratio B/A; `None` if there is none. Infinite ends are allowed.
    #[must_use]
    pub fn judge(&self, interval: Option<(f64, f64)>) -> Judged {
        let Some((low, high)) = interval else { return Judged::CannotTell };
        let bound = 1.0 + self.bound;
        let (fails, holds) = match self.side {
            Side::Above => (low > bound, high <= bound),
            Side::Below => (high < bound, low >= bound),
        };
        match (fails, holds) {
            (true, _) => Judged::Fails,
            (_, true) => Judged::Holds,
            _ => Judged::CannotTell,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.side == Side::Above { '>' } else { '<' };
        let percent = (self.bound * 1e8).round() / 1e6;
        write!(f, "{}{side}{percent:+}%", self.metric)
    }
}

/// A text that is not a rule. The message says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RuleError {}

/// Example in messages.
const FORM: &str = "write METRIC>+N% or METRIC<-N%, as in 'p99>+5%' or 'rate<-5%'";

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let wrong = |what: &str| RuleError(format!("'{text}': {what}"));
        let at = text.find(['<', '>']).ok_or_else(|| wrong(FORM))?;
        let (metric, rest) = (text[..at].trim(), text[at + 1..].trim());
        let side = if text.as_bytes()[at] == b'>' { Side::Above } else { Side::Below };
        if metric.is_empty() || rest.is_empty() || rest.contains(['<', '>', '=']) {
            return Err(wrong(FORM));
        }
        let metric = if metric == "p99_9" { "p99.9" } else { metric };
        let Some(better) = better(metric) else {
            let names: Vec<&str> = METRICS.iter().map(|(name, _)| *name).collect();
            return Err(wrong(&format!("unknown metric '{metric}'; write {}", names.join(", "))));
        };
        let number = rest.strip_suffix('%').map(str::trim_end).ok_or_else(|| {
            wrong(&format!("the change '{rest}' has no unit; write it in percent, as in '+5%'"))
        })?;
        let percent: f64 = number
            .parse()
            .ok()
            .filter(|percent: &f64| percent.is_finite() && *percent > -100.0)
            .ok_or_else(|| wrong(&format!("'{number}' is not a percentage above -100")))?;
        let is_signed = number.starts_with(['+', '-']);
        match (better, side) {
            (Better::Higher, Side::Above) => Err(wrong(&format!(
                "a higher {metric} is better; write '{metric}<-{}%' to fail if it falls",
                percent.abs()
            ))),
            (Better::Lower, Side::Below) => Err(wrong(&format!(
                "a lower {metric} is better; write '{metric}>+{}%' to fail if it rises",
                percent.abs()
            ))),
            (Better::Higher, Side::Below) if !is_signed && percent > 0.0 => Err(wrong(&format!(
                "the change has no sign; write '{metric}<-{percent}%' to fail if it falls by more"
            ))),
            _ => Ok(Self { metric: metric.to_owned(), side, bound: percent / 100.0 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        text.parse().unwrap()
    }

    #[test]
    fn a_rule_is_read_and_written() {
        for (text, metric, side, bound, written) in [
            ("p99>+5%", "p99", Side::Above, 0.05, "p99>+5%"),
            ("p99>5%", "p99", Side::Above, 0.05, "p99>+5%"),
            (" p99.9 > +2.5 % ", "p99.9", Side::Above, 0.025, "p99.9>+2.5%"),
            ("p99_9>0%", "p99.9", Side::Above, 0.0, "p99.9>+0%"),
            ("rate<-5%", "rate", Side::Below, -0.05, "rate<-5%"),
            ("rate<0%", "rate", Side::Below, 0.0, "rate<+0%"),
            ("rate<+10%", "rate", Side::Below, 0.1, "rate<+10%"),
            ("cpu>-10%", "cpu", Side::Above, -0.1, "cpu>-10%"),
        ] {
            let read = rule(text);
            assert_eq!((read.metric.as_str(), read.side, read.bound), (metric, side, bound));
            assert_eq!(read.to_string(), written);
            assert_eq!(rule(written), read);
        }
    }

    #[test]
    fn a_wrong_rule_is_told_what_to_write() {
        for (text, part) in [
            ("p99", "write METRIC>+N%"),
            ("", "write METRIC>+N%"),
            (">+5%", "write METRIC>+N%"),
            ("p99>", "write METRIC>+N%"),
            ("p99>=5%", "write METRIC>+N%"),
            ("p98>+5%", "unknown metric 'p98'; write rate, max-rate"),
            ("p99>+0.05", "no unit; write it in percent"),
            ("p99>+5ms", "no unit; write it in percent"),
            ("p99>+x%", "'+x' is not a percentage"),
            ("p99>nan%", "is not a percentage"),
            ("rate<-100%", "is not a percentage above -100"),
            ("rate>+5%", "a higher rate is better; write 'rate<-5%'"),
            ("p99<-5%", "a lower p99 is better; write 'p99>+5%'"),
            ("rate<5%", "has no sign; write 'rate<-5%'"),
        ] {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}': ")), "{error}");
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn an_interval_fails_or_holds_only_as_a_whole() {
        let slower = rule("p99>+5%");
        assert_eq!(slower.judge(Some((1.06, 1.20))), Judged::Fails);
        assert_eq!(slower.judge(Some((1.02, 1.20))), Judged::CannotTell);
        assert_eq!(slower.judge(Some((0.97, 1.05))), Judged::Holds);
        assert_eq!(slower.judge(Some((0.50, 0.60))), Judged::Holds);
        assert_eq!(slower.judge(Some((f64::INFINITY, f64::INFINITY))), Judged::Fails);
        assert_eq!(slower.judge(None), Judged::CannotTell);
        let fewer = rule("rate<-5%");
        assert_eq!(fewer.judge(Some((0.80, 0.94))), Judged::Fails);
        assert_eq!(fewer.judge(Some((0.90, 0.96))), Judged::CannotTell);
        assert_eq!(fewer.judge(Some((0.95, 2.00))), Judged::Holds);
        // The worst of several is their maximum.
        assert!(Judged::Holds < Judged::CannotTell && Judged::CannotTell < Judged::Fails);
    }
}
