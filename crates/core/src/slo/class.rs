//! A limit on the requests of one class.

use super::{Slo, SloError};
use crate::interval::Interval;
use crate::judged::Judged;
use crate::ledger::Ledger;
use crate::record::{Rates, SloResult};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A limit on all requests, `p95=500ms`, or on those of one class, `p95{class=fuzzy}=50ms`.
///
/// Requests that were never sent have no class: a limit on a class does not judge them after a run, and a search counts
/// them as late for every limit.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassSlo {
    /// The limit.
    pub slo: Slo,
    /// The class; `None` for all requests.
    pub class: Option<String>,
}

impl From<Slo> for ClassSlo {
    fn from(slo: Slo) -> Self {
        Self { slo, class: None }
    }
}

impl FromStr for ClassSlo {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Self, SloError> {
        let Some((name, rest)) = text.split_once('{') else {
            return Ok(Self::from(text.parse::<Slo>()?));
        };
        let wrong = |problem: &str| SloError { text: text.to_owned(), problem: problem.to_owned() };
        let form = "one class is named as p95{class=fuzzy}=50ms";
        // A class may be called anything, so that the last brace is the closing one.
        let (selector, value) = rest.rsplit_once('}').ok_or_else(|| wrong(form))?;
        let class = selector.trim().strip_prefix("class").map(str::trim_start);
        let class = class.and_then(|class| class.strip_prefix('=')).map(str::trim);
        let class = class.filter(|class| !class.is_empty()).ok_or_else(|| wrong(form))?;
        let value = value.trim_start().strip_prefix('=').ok_or_else(|| wrong(form))?;
        let slo = format!("{name}={value}").parse()?;
        Ok(Self { slo, class: Some(class.to_owned()) })
    }
}

impl ClassSlo {
    /// The limit's name: `p95`, `p95{class=fuzzy}` ...
    #[must_use]
    pub fn name(&self) -> String {
        match &self.class {
            Some(class) => format!("{}{{class={class}}}", self.slo.name()),
            None => self.slo.name(),
        }
    }

    /// Returns whether a run met it; `classes` are the names of the classes of `totals`, and `timeout_ns` is the timeout
    /// of its requests.
    #[must_use]
    pub fn judge(
        &self,
        totals: &Interval,
        classes: &[String],
        timeout_ns: u64,
        rates: &Rates,
    ) -> SloResult {
        // Where there is one class, a request that was never sent would have been of it.
        let is_all = |class: &&String| classes.len() != 1 || classes[0] != **class;
        let Some(class) = self.class.as_ref().filter(is_all) else {
            return self.slo.judge(&Judged::of(totals, timeout_ns), &totals.ledger, rates);
        };
        let place = classes.iter().position(|name| name == class);
        let Some(part) = place.and_then(|place| totals.classes.get(place)) else {
            return self.slo.judge(&Judged::default(), &Ledger::default(), &Rates::default());
        };
        // What a class has scheduled is what was sent of it.
        let ledger = Ledger { scheduled: part.ledger.sent, ..part.ledger };
        let share = ledger.ok as f64 / totals.ledger.ok.max(1) as f64;
        let rates = Rates { ok_per_s: rates.ok_per_s * share, ..Rates::default() };
        self.slo.judge(&Judged::of_class(part, timeout_ns), &ledger, &rates)
    }
}

impl fmt::Display for ClassSlo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.slo.to_string();
        let value = text.split_once('=').map_or("", |(_, value)| value);
        write!(f, "{}={value}", self.name())
    }
}

impl Serialize for ClassSlo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ClassSlo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{MILLISECOND_NS, SECOND_NS};

    #[test]
    fn limits_on_a_class_are_read_and_shown_alike() {
        for text in [
            "p95{class=fuzzy}=50ms",
            "mean{class=a b}=1s",
            "errors{class={x}}=0.1%",
            "rate{class=a=b}=5",
            "p99=1s",
        ] {
            assert_eq!(text.parse::<ClassSlo>().unwrap().to_string(), text);
        }
        let spaced: ClassSlo = "p95{ class = fuzzy } = 50ms".parse().unwrap();
        assert_eq!(
            (spaced.name().as_str(), spaced.class.as_deref()),
            ("p95{class=fuzzy}", Some("fuzzy"))
        );
        for wrong in [
            "p95{fuzzy}=5ms",
            "p95{class=}=5ms",
            "p95{class=a}",
            "p95{class=a=5ms",
            "{class=a}=5ms",
        ] {
            assert!(wrong.parse::<ClassSlo>().is_err(), "{wrong}");
        }
        let unit = "p95{class=a}=5".parse::<ClassSlo>().unwrap_err().to_string();
        assert!(unit.contains("needs its unit"), "{unit}");
    }

    /// 90 requests of class `a` take 1 ms, 10 of class `b` 100 ms, and one of `b` fails.
    #[test]
    fn a_limit_on_a_class_judges_its_requests_alone() {
        let mut totals = Interval::new(2);
        (0..90).for_each(|_| totals.classes[0].record_ok(MILLISECOND_NS, MILLISECOND_NS));
        (0..10)
            .for_each(|_| totals.classes[1].record_ok(100 * MILLISECOND_NS, 100 * MILLISECOND_NS));
        totals.classes[1].record_failed(MILLISECOND_NS);
        (totals.classes[0].ledger.sent, totals.classes[0].ledger.ok) = (90, 90);
        (totals.classes[1].ledger.sent, totals.classes[1].ledger.ok) = (11, 10);
        (totals.ledger.scheduled, totals.ledger.sent, totals.ledger.ok) = (101, 101, 100);
        let names = ["a".to_owned(), "b".to_owned()];
        let rates = Rates { ok_per_s: 50.0, ..Rates::default() };
        let held = |text: &str| {
            text.parse::<ClassSlo>().unwrap().judge(&totals, &names, SECOND_NS, &rates).held
        };
        for text in [
            "p50{class=b}=101ms",
            "max{class=a}=2ms",
            "errors{class=a}=0",
            "errors{class=b}=10%",
            "rate{class=a}=45",
            "p50=2ms",
        ] {
            assert!(held(text), "{text}");
        }
        for text in [
            "p50{class=b}=50ms",
            "p95{class=b}=500ms",
            "errors{class=b}=9%",
            "rate{class=a}=46",
            "p99=50ms",
            "p50{class=c}=1h",
        ] {
            assert!(!held(text), "{text}");
        }
    }
}
