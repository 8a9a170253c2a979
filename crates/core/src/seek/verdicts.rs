//! What a search says at its end, and why.

use super::finding::{Finding, Verdict};
use super::fit::Fit;
use super::search::{Search, Stop, Stretch};

/// Late requests that blocks which are judged together are expected to have.
const EXPECTED: f64 = 4.0;

impl Search<'_> {
    /// Everything that is known, with the verdict.
    pub(super) fn finding(&self, outcome: Result<(), Stop>, invalid: Option<String>) -> Finding {
        let (verdict, reason) = match invalid {
            Some(reason) => (Verdict::Infeasible, reason),
            None => self.verdict(outcome),
        };
        // What rests on too little is not told.
        let is_one = verdict != Verdict::Drifting;
        let mut fit = self.fit.map(|(fit, _)| fit).filter(|_| is_one && self.is_told());
        if let Some(fit) = &mut fit {
            fit.interval_per_s = self.with_drift(fit);
        }
        if let (Verdict::Ok, Some(fit)) = (verdict, &mut fit) {
            // A search that ends as soon as its interval is narrow picks intervals that came out too narrow. What was
            // asked for is what it says (Chow and Robbins 1965).
            let (low, high) = fit.interval_per_s;
            let width = self.goal.width;
            let wide = |side: f64| fit.estimate_per_s * (1.0 + side * width);
            fit.interval_per_s = (low.min(wide(-1.0)), high.max(wide(1.0)));
        }
        Finding {
            verdict,
            reason,
            certified: self.certified.filter(|_| is_one).as_ref().map(|run| self.measured(run)),
            certified_last: self.certified_last,
            failing: self.failing().as_ref().map(|run| self.measured(run)),
            estimate_per_s: fit.map(|fit| fit.estimate_per_s),
            interval_per_s: fit.map(|fit| fit.interval_per_s),
            confidence: self.goal.confidence,
            half_width: fit.map(|fit| fit.half_width()),
            forecast: self.forecast,
            forecast_first: self.forecast_first,
            enough_s: (verdict == Verdict::BudgetTooSmall && fit.is_none())
                .then(|| self.enough_s()),
            capacity_per_s: self.capacity.map(|capacity| capacity.per_s),
            floor_s: self.floor_s.is_finite().then_some(self.floor_s),
            binding: self.fit.map(|(_, limit)| self.goal.limits[limit].label.clone()),
            slope: fit.map(|fit| fit.slope),
            curve: self.curve_by_rate().iter().map(|stretch| self.measured(stretch)).collect(),
            phases: self.phases.clone(),
            changes: self.changes.clone(),
            since_s: self.since_s,
            repeated: self.repeated,
            watch: None,
            elapsed_s: self.elapsed_s,
        }
    }

    fn verdict(&self, outcome: Result<(), Stop>) -> (Verdict, String) {
        let held = self.bracket.0;
        match outcome {
            Err(Stop::Interrupted) => (
                Verdict::Interrupted,
                "the search was interrupted; what it knew by then is reported".to_owned(),
            ),
            Err(Stop::TargetFailed) => (
                Verdict::TargetFailed,
                format!(
                    "the target answered nothing any more, {:.0} s into the search; look at its log",
                    self.elapsed_s
                ),
            ),
            Err(Stop::Infeasible) => (Verdict::Infeasible, self.why_infeasible()),
            Err(Stop::NeverViolated) => (
                Verdict::NeverViolated { at_least_per_s: held },
                format!(
                    "all limits held at {held:.1}/s, the highest rate allowed; the line is above it"
                ),
            ),
            Err(Stop::GeneratorLimited) => (
                Verdict::GeneratorLimited,
                format!(
                    "the generator did not send as planned at {:.1}/s, where the target still held; \
                     give it more cores or connections",
                    self.starved_at_per_s
                ),
            ),
            Err(Stop::Unstable) => (Verdict::Drifting, self.what_changed()),
            Err(Stop::Budget) if self.is_founded() => self.verdict_at_the_end(),
            Err(Stop::Budget) => {
                (Verdict::BudgetTooSmall, self.why_too_small() + self.about_the_headline())
            }
            Ok(()) => self.verdict_at_the_end(),
        }
    }

    fn verdict_at_the_end(&self) -> (Verdict, String) {
        let Some((fit, _)) = self.fit.filter(|_| self.is_founded()) else {
            return (Verdict::BudgetTooSmall, self.why_too_small());
        };
        if let Some(doubt) = self.doubt_below(fit.estimate_per_s) {
            return (Verdict::BudgetTooSmall, format!("no line is reported: {doubt}"));
        }
        if self.non_monotone {
            return (
                Verdict::NonMonotone,
                format!(
                    "limits break at low rates and hold closely below {:.1}/s; the line is that of \
                     the upper side",
                    fit.estimate_per_s
                ),
            );
        }
        if let Some(reason) = self.unsteadiness() {
            return (Verdict::Drifting, reason);
        }
        let told = format!("the line is known to {:.1} %", 100.0 * fit.half_width());
        if self.certified.is_none() {
            return (Verdict::BudgetTooSmall, told + self.about_the_headline());
        }
        if !self.width_reached {
            return (Verdict::BudgetTooSmall, self.why_too_small() + self.about_the_headline());
        }
        (Verdict::Ok, told)
    }

    /// What is to be said of a certified rate that is missing, or not below the estimate.
    fn about_the_headline(&self) -> &'static str {
        let Some((fit, _)) = self.fit.filter(|_| self.is_founded()) else { return "" };
        match &self.certified {
            None => {
                "; no rate is certified, since no run near the line held before the time was over: \
                 give it more"
            }
            Some(run) if run.rate_per_s > fit.estimate_per_s => {
                "; the certified run is a little above the estimate, no run below it held"
            }
            Some(_) => "",
        }
    }

    fn why_infeasible(&self) -> String {
        let broke = |seen: &&Stretch| self.excess(&seen.counts) > 1.0;
        let lowest =
            self.curve.iter().filter(broke).min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
        let Some(seen) = lowest else { return "no rate holds the limits".to_owned() };
        let (excess, limit) = self.goal.excess(&seen.counts);
        let n = seen.counts.scheduled.max(1) as f64;
        let failed = seen.counts.failed as f64 / n;
        let why = if failed > self.goal.limits[limit].allowed() {
            format!("{:.1} % of the requests fail", 100.0 * failed)
        } else {
            format!("requests take {:.1} ms on average", 1e3 * seen.counts.response_sum_s / n)
        };
        format!(
            "{} is broken {excess:.1} times over at {:.2}/s already, where {why}, and no rate that can be judged in \
             this time holds it",
            self.goal.limits[limit].label, seen.rate_per_s,
        )
    }

    fn why_too_small(&self) -> String {
        let known = match self.fit {
            Some((fit, _)) if self.is_told() => {
                format!("the line is known to {:.1} %", 100.0 * fit.half_width())
            }
            _ if self.bracket.0 > 0.0 && self.bracket.1.is_finite() => {
                format!(
                    "short looks put the line at {:.1} to {:.1}/s",
                    self.bracket.0, self.bracket.1
                )
            }
            _ if self.bracket.0 > 0.0 => {
                format!("the limits held at {:.1}/s in a short look", self.bracket.0)
            }
            _ => "nothing is known".to_owned(),
        };
        match self.forecast {
            Some(forecast) if self.is_told() => format!(
                "{known} after {:.0} s; {:.1} % would take about {:.0} s",
                self.elapsed_s,
                100.0 * self.goal.width,
                forecast.total_s
            ),
            _ => format!(
                "{known} after {:.0} s of {:.0} s; an interval takes about {:.0} s",
                self.elapsed_s,
                self.goal.budget_s,
                self.enough_s()
            ),
        }
    }

    /// Whether the line is reported: there is enough for an interval, and the limits hold below it.
    pub(super) fn is_told(&self) -> bool {
        let line = self.fit.map(|(fit, _)| fit.estimate_per_s);
        self.is_founded() && line.is_some_and(|line| self.doubt_below(line).is_none())
    }

    /// How the capacity went up and down, in words.
    fn what_changed(&self) -> String {
        let said: Vec<String> = self
            .changes
            .iter()
            .map(|change| {
                let how = if change.after_per_s > change.before_per_s { "faster" } else { "slower" };
                format!(
                    "{how} after {:.0} to {:.0} s: it completed {:.0}/s under overload, before {:.0}/s",
                    change.from_s, change.until_s, change.after_per_s, change.before_per_s
                )
            })
            .collect();
        format!("the target changed while it was searched: {}", said.join("; "))
    }

    /// Blocks against the fit: when, s, and the late requests beyond what their rate explains, in standard deviations. Blocks
    /// of few requests are taken together: counts of 0 and 1 have no normal distribution.
    pub(super) fn residuals(&self) -> Vec<(f64, f64)> {
        let Some((fit, limit)) = self.fit else { return Vec::new() };
        let mut groups: Vec<(f64, f64, f64)> = Vec::new();
        let mut expected = f64::INFINITY;
        for (at_s, beyond, variance) in self.beyond_fit(limit, &fit) {
            match groups.last_mut() {
                Some(group) if expected < EXPECTED => {
                    group.1 += beyond;
                    group.2 += variance;
                    expected += variance;
                }
                _ => {
                    groups.push((at_s, beyond, variance));
                    expected = variance;
                }
            }
        }
        let deviations = |(at_s, beyond, variance): (f64, f64, f64)| {
            (at_s, beyond / (fit.dispersion * variance).max(1.0).sqrt())
        };
        groups.into_iter().map(deviations).collect()
    }

    /// Variance of the blocks' late counts over the binomial one.
    pub(super) fn residual_dispersion(&self) -> f64 {
        let Some((fit, limit)) = self.fit else { return 1.0 };
        let beyond = self.beyond_fit(limit, &fit);
        let squares: f64 =
            beyond.iter().map(|(_, beyond, variance)| beyond * beyond / variance.max(1.0)).sum();
        squares / (beyond.len() as f64 - 1.0).max(1.0)
    }

    /// Blocks: when, s, late requests beyond what their rate explains, and the variance that independent ones would have.
    fn beyond_fit(&self, limit: usize, fit: &Fit) -> Vec<(f64, f64, f64)> {
        let bound = &self.goal.limits[limit];
        let prior = self.prior(limit, fit.estimate_per_s);
        let beyond = |block: &Stretch| {
            let (n, late, allowed) = bound.as_share(limit, &block.counts);
            let x = (block.rate_per_s / fit.estimate_per_s).ln();
            let p = prior.late_share(x, fit.slope, allowed);
            let spread = p.clamp(0.2 * allowed, 1.0 - 0.2 * allowed);
            (block.at_s, late - n * p, n * spread * (1.0 - spread))
        };
        self.blocks.iter().map(beyond).collect()
    }
}
