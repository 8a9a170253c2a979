//! Goal of a search.

use super::plant::{LIMITS_MAX, Window};
use serde::{Deserialize, Serialize};

/// Quantity that a limit bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SeekBound"))]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The share of requests that miss it, as the plant counts them: late ones for a quantile, failed ones for
    /// an error limit. `allowed` is above 0 and below 1.
    Late {
        /// Share of requests that may miss the limit.
        allowed: f64,
    },
    /// The mean response time, failed requests included, s.
    Mean {
        /// Longest mean, s, above 0.
        limit_s: f64,
    },
}

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SeekLimit"))]
pub struct Limit {
    /// Text of the limit as the user wrote it, such as `p95=500ms`.
    pub label: String,
    /// Quantity that it bounds.
    pub bound: Bound,
}

impl Limit {
    /// A limit on the share of requests that the plant counts as late.
    #[must_use]
    pub fn late(label: &str, allowed: f64) -> Self {
        Self { label: label.to_owned(), bound: Bound::Late { allowed } }
    }

    /// A limit on the mean response time, s.
    #[must_use]
    pub fn mean(label: &str, limit_s: f64) -> Self {
        Self { label: label.to_owned(), bound: Bound::Mean { limit_s } }
    }

    /// The class of requests that it judges, by the label `p95{class=NAME}=50ms`; none where it judges all.
    #[must_use]
    pub fn class(&self) -> Option<&str> {
        let (_, rest) = self.label.split_once("{class=")?;
        rest.rsplit_once('}').map(|(name, _)| name)
    }

    /// The share that the plant's abort rule allows; a mean never aborts.
    #[must_use]
    pub fn allowed(&self) -> f64 {
        match self.bound {
            Bound::Late { allowed } => allowed,
            Bound::Mean { .. } => 1.0,
        }
    }

    /// Ratio of the measured to the allowed value: at most 1 if it held. `at` is the limit's place in the plant.
    #[must_use]
    pub fn excess(&self, at: usize, counts: &Window) -> f64 {
        match self.bound {
            Bound::Late { allowed } => counts.late_share(at) / allowed,
            Bound::Mean { limit_s } => {
                counts.subject_sum_s(at) / (limit_s * counts.subject(at).max(1) as f64)
            }
        }
    }

    /// The counts as a share that must not pass a target: (requests judged, late, target).
    ///
    /// A limit on one class has the requests of that class only, and as little evidence as those give.
    ///
    /// A mean m against a limit L goes in as the share m / (m + L), which is one half at the line and whose logit
    /// is ln(m / L), so that one estimator serves both.
    #[must_use]
    pub fn as_share(&self, at: usize, counts: &Window) -> (f64, f64, f64) {
        let n = counts.subject(at) as f64;
        match self.bound {
            Bound::Late { allowed } => (n, counts.late[at] as f64, allowed),
            Bound::Mean { limit_s } => {
                let mean_s = counts.subject_sum_s(at) / n.max(1.0);
                (n, n * mean_s / (mean_s + limit_s), 0.5)
            }
        }
    }
}

/// A search's task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Limits, in the plant's order; 1 to [`LIMITS_MAX`].
    pub limits: Vec<Limit>,
    /// The longest time limit, s: how long after its intended start a request's verdict is open.
    pub limit_s: f64,
    /// Time for everything, s. It may be passed by one block of load and the wait for its replies.
    pub budget_s: f64,
    /// Half-width of the interval that is good enough, as a share of the rate.
    pub width: f64,
    /// Share of intervals that must hold the line, above 0 and below 1.
    pub confidence: f64,
    /// Seed of the arrivals.
    pub seed: u64,
    /// First rate, requests per second.
    pub start_per_s: f64,
    /// Highest rate that may be offered, requests per second.
    pub most_per_s: f64,
}

impl Goal {
    /// A goal with one quantile limit: at most `allowed` of the requests may take longer than `limit_s`.
    #[must_use]
    pub fn late(allowed: f64, limit_s: f64, budget_s: f64, seed: u64) -> Self {
        let label = format!("p{}={}ms", (1.0 - allowed) * 100.0, limit_s * 1e3);
        Self {
            limits: vec![Limit::late(&label, allowed)],
            limit_s,
            budget_s,
            width: 0.03,
            confidence: 0.95,
            seed,
            start_per_s: 8.0,
            most_per_s: 1e6,
        }
    }

    /// Says what is wrong with the goal, if anything.
    ///
    /// # Errors
    /// One sentence that names the field and what it may be.
    pub fn check(&self) -> Result<(), String> {
        if self.limits.is_empty() || self.limits.len() > LIMITS_MAX {
            return Err(format!(
                "a search takes 1 to {LIMITS_MAX} limits, not {}",
                self.limits.len()
            ));
        }
        for limit in &self.limits {
            let sound = match limit.bound {
                Bound::Late { allowed } => allowed > 0.0 && allowed < 1.0,
                Bound::Mean { limit_s } => limit_s > 0.0 && limit_s.is_finite(),
            };
            if !sound {
                return Err(format!(
                    "limit {}: the share must be above 0 and below 1, a mean above 0",
                    limit.label
                ));
            }
        }
        let positive = [
            ("the longest time limit", self.limit_s),
            ("the budget", self.budget_s),
            ("the width", self.width),
            ("the start rate", self.start_per_s),
            ("the highest rate", self.most_per_s),
        ];
        for (name, value) in positive {
            if !(value > 0.0 && value.is_finite()) {
                return Err(format!("{name} must be above 0, it is {value}"));
            }
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(format!(
                "the confidence must be between 0 and 1, it is {}",
                self.confidence
            ));
        }
        Ok(())
    }

    /// The worst limit's [`Limit::excess`] and its place.
    #[must_use]
    pub fn excess(&self, counts: &Window) -> (f64, usize) {
        self.limits
            .iter()
            .enumerate()
            .map(|(at, limit)| (limit.excess(at, counts), at))
            .fold((0.0, 0), |worst, next| if next.0 > worst.0 { next } else { worst })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1,000 requests 250 belong to the class of limit 1; 25 of them missed it. They took 50 ms on average, the others 10.
    fn counts() -> Window {
        let mut counts = Window { scheduled: 1000, response_sum_s: 20.0, ..Window::default() };
        (counts.late[1], counts.exempt[1], counts.exempt_sum_s[1]) = (25, 750, 7.5);
        counts
    }

    #[test]
    fn a_limit_on_a_class_judges_that_class_alone() {
        let late = Limit::late("p95{class=a}=1s", 0.05);
        assert!((late.excess(1, &counts()) - 2.0).abs() < 1e-12, "10 % where 5 % are allowed");
        let (n, share, allowed) = late.as_share(1, &counts());
        assert!((n - 250.0).abs() < 1e-9 && (share - 25.0).abs() < 1e-9 && allowed == 0.05);
        let mean = Limit::mean("mean{class=a}=25ms", 0.025);
        assert!((mean.excess(1, &counts()) - 2.0).abs() < 1e-12, "50 ms where 25 are allowed");
        assert!((mean.excess(0, &counts()) - 0.8).abs() < 1e-12, "20 ms over all");
        let (n, share, _) = mean.as_share(1, &counts());
        assert!((share / n - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_worst_limit_is_the_one_that_is_named() {
        let mut goal = Goal::late(0.05, 1.0, 60.0, 1);
        goal.limits.push(Limit::late("p95{class=a}=1s", 0.05));
        assert_eq!(goal.excess(&counts()).1, 1);
    }
}
