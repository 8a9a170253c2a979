//! Verdict of a search, with reasons.

use super::finding::{Finding, Verdict};
use super::fit::Fit;
use super::goal::{Bound, Limit};
use super::plant::Window;
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
        let (verdict, reason) = match verdict {
            // Of a target that changed what was known before says nothing.
            Verdict::BudgetTooSmall if !self.changes.is_empty() && !self.is_reported() => {
                (Verdict::Drifting, format!("{}; {reason}", self.what_changed()))
            }
            _ => (verdict, reason),
        };
        // What rests on too little is not reported.
        let is_one = verdict != Verdict::Drifting;
        let mut fit = self.reported().filter(|_| is_one);
        if let (Verdict::Ok, Some(fit)) = (verdict, &mut fit) {
            // A search that ends as soon as its interval is narrow picks intervals that came out too narrow. What was
            // asked for is what it says (Chow and Robbins 1965).
            let (low, high) = fit.interval_per_s;
            let width = self.goal.width;
            let wide = |side: f64| fit.estimate_per_s * (1.0 + side * width);
            fit.interval_per_s = (low.min(wide(-1.0)), high.max(wide(1.0)));
        }
        // The rates that a changed target fails now are unknown.
        let (failing, broke) = if is_one { self.failing(fit.as_ref()) } else { (None, None) };
        Finding {
            verdict,
            reason,
            certified: self
                .certified
                .filter(|_| is_one && verdict != Verdict::Interrupted)
                .as_ref()
                .map(|run| self.measured(run)),
            certified_last: self.certified_last,
            failing: failing.as_ref().map(|run| self.measured(run)),
            broke: broke.as_ref().map(|run| self.measured(run)),
            estimate_per_s: fit.map(|fit| fit.estimate_per_s),
            interval_per_s: fit.map(|fit| fit.interval_per_s),
            confidence: self.goal.confidence,
            half_width: fit.map(|fit| fit.half_width()),
            forecast: self.forecast,
            forecast_first: self.forecast_first,
            capacity_per_s: self.capacity.map(|capacity| capacity.per_s),
            peak_per_s: self.peak.filter(|_| self.is_peak_clear).map(|peak| peak.per_s),
            floor_s: self.floor_s.is_finite().then_some(self.floor_s),
            binding: self.fit.map(|(_, limit)| self.goal.limits[limit].label.clone()),
            slope: fit.map(|fit| fit.slope),
            curve: self.curve_by_rate().iter().map(|stretch| self.measured(stretch)).collect(),
            phases: self.phases.clone(),
            limits: self.goal.limits.clone(),
            steps: self.steps.kept(),
            changes: self.changes.clone(),
            since_s: self.since_s,
            repeated: self.repeated,
            basis: self.basis(fit.as_ref()),
            notes: Vec::new(),
            watch: None,
            elapsed_s: self.elapsed_s,
        }
    }

    fn verdict(&self, outcome: Result<(), Stop>) -> (Verdict, String) {
        let held = self.bracket.0;
        match outcome {
            Err(Stop::Interrupted) => (
                Verdict::Interrupted,
                "the search was interrupted; its results up to then are reported".to_owned(),
            ),
            Err(Stop::TargetFailed) => (
                Verdict::TargetFailed,
                format!(
                    "the target stopped answering {:.0} s into the search; look at its log",
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
                    "the generator did not send as planned at {:.1}/s, where the limits still held; \
                     give it more cores or connections",
                    self.starved_at_per_s
                ),
            ),
            Err(Stop::Unstable) => (Verdict::Drifting, self.what_changed()),
            Err(Stop::Budget) if self.is_founded() => self.verdict_at_the_end(),
            Err(Stop::Budget) => match self.capacity_moved() {
                Some(reason) => (Verdict::Drifting, reason),
                None => (Verdict::BudgetTooSmall, self.why_too_small() + self.about_the_headline()),
            },
            Ok(()) => self.verdict_at_the_end(),
        }
    }

    fn verdict_at_the_end(&self) -> (Verdict, String) {
        let Some((fit, _)) = self.fit.filter(|_| self.is_founded()) else {
            return (Verdict::BudgetTooSmall, self.why_too_small());
        };
        if let Some(doubt) = self.doubt_below(fit.estimate_per_s) {
            // A target that changed is a reason for late requests at low rates, and more time is no remedy.
            return match self.unsteadiness().filter(|_| !self.non_monotone) {
                Some(reason) => (Verdict::Drifting, reason),
                None => (Verdict::BudgetTooSmall, format!("no line is reported: {doubt}")),
            };
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
        let half = self.reported().map_or(f64::INFINITY, |fit| fit.half_width());
        let reported = format!("the line is known to {:.1} %", 100.0 * half);
        if self.certified.is_none() {
            return (Verdict::BudgetTooSmall, reported + self.about_the_headline());
        }
        if !self.width_reached || half > self.goal.width {
            return (Verdict::BudgetTooSmall, self.why_too_small() + self.about_the_headline());
        }
        (Verdict::Ok, reported)
    }

    /// Remark about a certified rate that is missing, or not below the estimate.
    fn about_the_headline(&self) -> &'static str {
        let Some((fit, _)) = self.fit.filter(|_| self.is_founded()) else { return "" };
        match &self.certified {
            None => {
                "; no rate is certified: no run near the line held before the budget ended; \
                 use a longer --budget"
            }
            Some(run) if run.rate_per_s > fit.estimate_per_s => {
                "; the certified run is a little above the estimate, no run below it held"
            }
            Some(_) => "",
        }
    }

    fn why_infeasible(&self) -> String {
        let broke = |seen: &Stretch| self.excess(&seen.counts) > 1.0;
        // As in the table of rates: a rate that was offered twice has one figure.
        let all = self.curve_by_rate().into_iter();
        let lowest = all.filter(broke).min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
        let Some(seen) = lowest else { return "the limits do not hold at any rate".to_owned() };
        let (excess, at) = self.goal.excess(&seen.counts);
        let limit = &self.goal.limits[at];
        format!(
            "{} is broken {excess:.1} times over at {:.2}/s already, where {}, and no rate that can be judged in this \
             time holds it",
            limit.label,
            seen.rate_per_s,
            what_happened(limit, at, &seen.counts),
        )
    }

    fn why_too_small(&self) -> String {
        let reported = self.reported();
        let known = match &reported {
            Some(fit) => format!("the line is known to {:.1} %", 100.0 * fit.half_width()),
            None if self.bracket.0 > 0.0 && self.bracket.1.is_finite() => {
                format!(
                    "short probes show the line between {:.1} and {:.1}/s",
                    self.bracket.0, self.bracket.1
                )
            }
            None if self.bracket.0 > 0.0 => {
                format!("the limits held at {:.1}/s in a short probe", self.bracket.0)
            }
            None => "no rate was judged".to_owned(),
        };
        let needs_s = self.needs_s(reported.as_ref());
        match reported {
            Some(_) => format!(
                "{known} after {:.0} s; {:.1} % would take about {needs_s:.0} s",
                self.elapsed_s,
                100.0 * self.goal.width,
            ),
            None => {
                let width = self.forecast.map_or(String::new(), |forecast| {
                    let total_s = forecast.total_s.max(needs_s);
                    format!(", and about {total_s:.0} s for {:.1} %", 100.0 * self.goal.width)
                });
                // A certified rate is a result; what is missing is the interval.
                let what = match self.certified {
                    Some(_) => "an interval",
                    None => "a search with these limits",
                };
                format!(
                    "{known} after {:.0} s of {:.0} s; {what} needs a --budget of at least {needs_s:.0} s{width}",
                    self.elapsed_s, self.goal.budget_s,
                )
            }
        }
    }

    /// True if the line is reported: there is enough for an interval, and the limits hold below it.
    pub(super) fn is_reported(&self) -> bool {
        let line = self.fit.map(|(fit, _)| fit.estimate_per_s);
        self.is_founded() && line.is_some_and(|line| self.doubt_below(line).is_none())
    }

    /// The line that is reported, with an interval that pays for what seems to move.
    fn reported(&self) -> Option<Fit> {
        let (mut fit, _) = self.fit.filter(|_| self.is_reported())?;
        fit.interval_per_s = self.with_drift(&fit);
        Some(fit)
    }

    /// The way the capacity went up and down, in words.
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

/// Returns the outcomes of the requests that a limit judges, at a rate that breaks it. `at` is its place in the plant.
fn what_happened(limit: &Limit, at: usize, counts: &Window) -> String {
    let whose = limit.class().map_or(String::new(), |class| format!(" of class '{class}'"));
    // Failures are counted over all classes; of a limit on errors they are what misses it.
    let failed = match limit.class() {
        None => counts.failed as f64 / counts.scheduled.max(1) as f64,
        Some(_) if limit.label.starts_with("errors") => counts.late_share(at),
        Some(_) => 0.0,
    };
    if failed > limit.allowed() {
        return format!("{:.1} % of the requests{whose} fail", 100.0 * failed);
    }
    let mean_ms = 1e3 * counts.subject_sum_s(at) / counts.subject(at).max(1) as f64;
    let late = match limit.bound {
        Bound::Late { .. } => {
            format!(
                "{:.1} % of the requests{whose} are late, and they",
                100.0 * counts.late_share(at)
            )
        }
        Bound::Mean { .. } => format!("requests{whose}"),
    };
    format!("{late} take {mean_ms:.1} ms on average")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::made::{Made, goal};

    /// The page has one row for a rate that was offered twice, and the reason names the figure of that row.
    #[test]
    fn the_reason_has_the_figures_of_the_table() {
        let (goal, mut observe) = (goal(300.0), |_: &_| ());
        let mut plant = Made::new(|_| (160.0, 200.0));
        let mut search = Search::new(&mut plant, &goal, &mut observe);
        let stretch = |(scheduled, failed)| {
            let mut counts = Window { scheduled, failed, ..Window::default() };
            counts.late[0] = failed;
            Stretch { rate_per_s: 8.0, counts, seconds: scheduled as f64 / 8.0, at_s: 0.0 }
        };
        search.curve = [(30, 2), (10, 1)].map(stretch).to_vec();
        let reason = search.why_infeasible();
        assert!(reason.contains("at 8.00/s already, where 7.5 % of the requests fail"), "{reason}");
    }

    /// Of 1,000 requests 100 are of the class that the second limit judges: 30 of them are late, and they take 90 ms; the
    /// others take 10 ms. 40 requests fail.
    fn counts() -> Window {
        let mut counts =
            Window { scheduled: 1000, failed: 40, response_sum_s: 18.0, ..Window::default() };
        (counts.late[1], counts.exempt[1], counts.exempt_sum_s[1]) = (30, 900, 9.0);
        (counts.late[0], counts.late[2], counts.exempt[2]) = (70, 30, 900);
        counts
    }

    #[test]
    fn a_limit_on_a_class_that_no_rate_holds_speaks_of_that_class() {
        let of_class = Limit::late("p95{class=fuzzy}=50ms", 0.05);
        assert_eq!(
            what_happened(&of_class, 1, &counts()),
            "30.0 % of the requests of class 'fuzzy' are late, and they take 90.0 ms on average"
        );
        let errors = Limit::late("errors{class=fuzzy}=1%", 0.01);
        assert_eq!(
            what_happened(&errors, 2, &counts()),
            "30.0 % of the requests of class 'fuzzy' fail"
        );
        let mean = Limit::mean("mean{class=fuzzy}=50ms", 0.05);
        assert_eq!(
            what_happened(&mean, 1, &counts()),
            "requests of class 'fuzzy' take 90.0 ms on average"
        );
    }

    #[test]
    fn a_limit_on_all_requests_says_whether_they_fail_or_are_slow() {
        let strict = Limit::late("p99=50ms", 0.01);
        assert_eq!(what_happened(&strict, 0, &counts()), "4.0 % of the requests fail");
        let late = Limit::late("p95=50ms", 0.05);
        assert_eq!(
            what_happened(&late, 0, &counts()),
            "7.0 % of the requests are late, and they take 18.0 ms on average"
        );
    }
}
