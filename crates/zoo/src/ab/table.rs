//! The tables of docs/ab-error-rates.md.

use super::block::{METRICS, Side, measured, schedule};
use super::machine::Machine;
use super::models::{Model, RATE_PER_S};
use super::rivals::{self, Claim, Rival};
use super::session::{ERROR, Outcome, Plant, SESSION_S, Session};
use crate::parallel::map;
use plimsoll_core::rng::Rng;
use plimsoll_decide::pairs::{Finding, Kind};
use std::fmt::Write;

/// Where the search for the maximum rate begins, requests/s; it is near 1,000.
const BEGIN_PER_S: f64 = 700.0;
/// Rivals and clear differences have a fifth of the sessions.
const FEW: u64 = 5;
/// Length of the run that gives a model its limit, s.
const LIMIT_RUN_S: f64 = 5_000.0;

/// A number of sessions out of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Sessions with the property.
    pub count: u64,
    /// All sessions.
    pub of: u64,
}

impl Share {
    /// Counts those that have the property.
    pub fn of<T>(all: &[T], is: impl Fn(&T) -> bool) -> Self {
        Self { count: all.iter().filter(|one| is(one)).count() as u64, of: all.len() as u64 }
    }

    /// Returns the share in percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        100.0 * self.count as f64 / self.of as f64
    }

    /// Returns the upper 95 % bound in percent: the share with which so few sessions have a probability of 5 %.
    #[must_use]
    pub fn bound_percent(self) -> f64 {
        let (mut low, mut high) = (self.count as f64 / self.of as f64, 1.0);
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            if at_most(self.count, self.of, middle) > 0.05 { low = middle } else { high = middle }
        }
        100.0 * high
    }
}

/// Probability of at most `count` of `of` with this probability each.
fn at_most(count: u64, of: u64, p: f64) -> f64 {
    let mut log = of as f64 * (-p).ln_1p();
    let mut sum = log.exp();
    for k in 0..count {
        log += ((of - k) as f64 / (k + 1) as f64).ln() + p.ln() - (-p).ln_1p();
        sum += log.exp();
    }
    sum
}

/// Sessions of one model.
pub struct Row {
    model: Model,
    alike: Vec<Outcome>,
    slower_service: Vec<Outcome>,
    slower_response: Vec<Outcome>,
    clear: Vec<Outcome>,
    alike_rate: Vec<Outcome>,
    slower_rate: Vec<Outcome>,
    /// ln(B/A) of the maximum rates on a machine without drift.
    rate_truth: f64,
    rivals_alike: Vec<[Claim; 5]>,
    rivals_slower: Vec<[Claim; 5]>,
}

impl Row {
    /// Carries out the sessions of a model, from `first_seed` on.
    #[must_use]
    pub fn of(model: Model, sessions: u64, first_seed: u64) -> Self {
        let session = move |model, plant, at| Session {
            model,
            plant,
            seed: first_seed + at,
            budget_s: SESSION_S,
            may_end_early: true,
        };
        let fixed = |plant, count| map(count, |at| session(model, plant, at).at_fixed_rate());
        let queue = model.as_queue();
        let limit_s = limit_s(queue, 1.0, RATE_PER_S);
        let rate =
            |plant| map(sessions, |at| session(queue, plant, at).max_rate(limit_s, BEGIN_PER_S));
        let few = (sessions / FEW).max(1);
        let rival = |plant| map(few, |at| rivals::claims(model, plant, first_seed + at));
        let slower_response = fixed(Plant::RESPONSE, sessions);
        // Without a queue, a longer service is a longer response.
        let slower_service =
            if model.queue { fixed(Plant::SERVICE, sessions) } else { slower_response.clone() };
        Self {
            model,
            alike: fixed(Plant::NONE, sessions),
            slower_service,
            slower_response,
            clear: fixed(Plant::CLEAR, few),
            alike_rate: rate(Plant::NONE),
            slower_rate: rate(Plant::SERVICE),
            rate_truth: rate_truth(queue, limit_s),
            rivals_alike: rival(Plant::NONE),
            rivals_slower: rival(Plant::SERVICE),
        }
    }

    /// Returns the sessions that claim a difference between equal sides: in any of the four metrics, in each, in the maximum rate.
    #[must_use]
    pub fn false_claims(&self) -> Vec<Share> {
        let any = Share::of(&self.alike, |one| one.findings.iter().any(differs));
        let each =
            (0..METRICS.len()).map(|at| Share::of(&self.alike, |one| differs(&one.findings[at])));
        let rate = Share::of(&self.alike_rate, |one| differs(&one.findings[0]));
        std::iter::once(any).chain(each).chain([rate]).collect()
    }

    /// Returns the sessions that find the planted 5 %: in each of the four metrics, in the maximum rate.
    #[must_use]
    pub fn found(&self) -> Vec<Share> {
        let is_worse =
            |all: &[Outcome], at: usize| Share::of(all, |one| one.findings[at].kind == Kind::Worse);
        let each = (0..METRICS.len()).map(|at| is_worse(&self.slower_service, at));
        each.chain([is_worse(&self.slower_rate, 0)]).collect()
    }

    /// Returns the intervals that hold the truth: four metrics of equal sides, four of response times that are 5 % longer, the
    /// maximum rate of equal sides, and of a service that is 5 % longer.
    #[must_use]
    pub fn covered(&self) -> Vec<Share> {
        let covers = |all: &[Outcome], at: usize, truth: f64| {
            let ratio = truth.exp();
            Share::of(all, |one| one.findings[at].low <= ratio && ratio <= one.findings[at].high)
        };
        let longer = Plant::RESPONSE.response.ln();
        let alike = (0..METRICS.len()).map(|at| covers(&self.alike, at, 0.0));
        let slower = (0..METRICS.len()).map(|at| covers(&self.slower_response, at, longer));
        let rates =
            [covers(&self.alike_rate, 0, 0.0), covers(&self.slower_rate, 0, self.rate_truth)];
        alike.chain(slower).chain(rates).collect()
    }
}

/// Returns true for a claim of a difference.
#[must_use]
pub fn differs(finding: &Finding) -> bool {
    matches!(finding.kind, Kind::Better | Kind::Worse)
}

/// p95 of a queue on a machine without drift, s.
fn limit_s(queue: Model, factor: f64, rate_per_s: f64) -> f64 {
    let mut rng = Rng::new(7);
    let arrivals = schedule(rate_per_s, LIMIT_RUN_S, &mut rng);
    let side = Side { model: queue, factor, response_factor: 1.0 };
    let responses = side.responses(&arrivals, 0.0, &mut Machine::steady(), &mut rng);
    measured(responses)[1].unwrap_or(f64::NAN)
}

/// ln(B/A) of the rates with p95 at the limit; that of A is 1,000/s. By bisection on long runs.
fn rate_truth(queue: Model, limit_s_of_a: f64) -> f64 {
    let (mut low, mut high) = (0.8 * RATE_PER_S, RATE_PER_S);
    for _ in 0..10 {
        let middle = 0.5 * (low + high);
        if limit_s(queue, Plant::SERVICE.service, middle) < limit_s_of_a {
            low = middle;
        } else {
            high = middle;
        }
    }
    (0.5 * (low + high) / RATE_PER_S).ln()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

fn head(out: &mut String, title: &str, columns: &[&str]) {
    let _ = writeln!(out, "\n{title}\n\n| model | {} |", columns.join(" | "));
    let _ = writeln!(out, "|---|{}", "--:|".repeat(columns.len()));
}

fn line(out: &mut String, name: &str, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().collect();
    let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
}

/// Returns all tables in Markdown.
#[must_use]
pub fn markdown(rows: &[Row]) -> String {
    let mut out = String::new();
    false_claims(&mut out, rows);
    found(&mut out, rows);
    covered(&mut out, rows);
    rivals(&mut out, rows);
    out
}

fn false_claims(out: &mut String, rows: &[Row]) {
    let title = "**False claims.** Share of sessions between two equal sides that claim a difference, % (upper 95 % bound).";
    let columns = ["block, s", "pairs", "any of four", "p50", "p95", "p99", "mean", "max rate"];
    head(out, title, &columns);
    for row in rows {
        let block = mean(row.alike.iter().map(|one| one.plan.block_s));
        let pairs = mean(row.alike.iter().map(|one| one.findings[0].pairs as f64));
        let shares = row.false_claims();
        let share =
            shares.iter().map(|one| format!("{:.1} ({:.1})", one.percent(), one.bound_percent()));
        let cells = [format!("{block:.1}"), format!("{pairs:.0}")].into_iter().chain(share);
        line(out, row.model.name, cells);
    }
}

fn found(out: &mut String, rows: &[Row]) {
    let title = "**Found.** Share of sessions that call B worse if its service times are 5 % longer, %; mean virtual time of a \
                 session, s; the same for 20 %; and minutes that a difference of 5 % in response times, or its absence, takes.";
    let columns = [
        "p50",
        "p95",
        "p99",
        "mean",
        "max rate",
        "time, s",
        "20 %: all four",
        "20 %: time, s",
        "p50, min",
        "p95, min",
        "p99, min",
    ];
    head(out, title, &columns);
    for row in rows {
        let shares = row.found().into_iter().map(|one| format!("{:.1}", one.percent()));
        let time = mean(row.slower_service.iter().map(|one| one.took_s));
        let worse = |one: &Outcome| one.findings.iter().all(|finding| finding.kind == Kind::Worse);
        let clear = Share::of(&row.clear, worse).percent();
        let clear_time = mean(row.clear.iter().map(|one| one.took_s));
        let needed = (0..3).map(|at| format!("{:.1}", needed_min(row, at)));
        let times = [format!("{time:.0}"), format!("{clear:.1}"), format!("{clear_time:.0}")];
        line(out, row.model.name, shares.chain(times).chain(needed));
    }
}

/// Time in which 95 of 100 sessions would find 5 % at the last look of four metrics, from the mean standard error, minutes.
fn needed_min(row: &Row, metric: usize) -> f64 {
    let square = mean(row.alike.iter().map(|one| {
        let finding = &one.findings[metric];
        // Half the interval is 1.96 standard errors and a little more.
        let error = (finding.high / finding.low).ln() / (2.0 * 1.99);
        error * error * finding.pairs as f64
    }));
    // Quantiles of the normal distribution: half of 0.82 * 5 % / 4, and 95 %.
    let pairs = square * ((2.57 + 1.645) / 1.05f64.ln()).powi(2);
    pairs * 2.0 * mean(row.alike.iter().map(|one| one.plan.block_s)) / 60.0
}

fn covered(out: &mut String, rows: &[Row]) {
    let title = "**Intervals.** Share of 95 % intervals that hold the true ratio, %: of equal sides, and of response times (max \
                 rate: service times) that are 5 % longer.";
    let columns = [
        "p50",
        "p95",
        "p99",
        "mean",
        "5 %: p50",
        "5 %: p95",
        "5 %: p99",
        "5 %: mean",
        "max rate",
        "5 %: max rate",
    ];
    head(out, title, &columns);
    for row in rows {
        line(out, row.model.name, row.covered().iter().map(|one| format!("{:.1}", one.percent())));
    }
}

fn rivals(out: &mut String, rows: &[Row]) {
    let title = "**Others.** Share of sessions with a false claim / that find the 5 % and nothing else, %, if A runs for 90 s and \
                 then B.";
    head(out, title, &Rival::ALL.map(Rival::name));
    for row in rows {
        let cell = |at: usize| {
            let wrong = Share::of(&row.rivals_alike, |one| one[at] != Claim::No);
            let found = Share::of(&row.rivals_slower, |one| one[at] == Claim::Slower);
            format!("{:.0} / {:.0}", wrong.percent(), found.percent())
        };
        line(out, row.model.name, (0..Rival::ALL.len()).map(cell));
    }
    let _ = writeln!(out, "\nLevel of the tests: {:.0} %.", 100.0 * ERROR);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_bounds_are_those_of_clopper_and_pearson() {
        // 1 - 0.05^(1/100), and two of the printed tables.
        assert!((Share { count: 0, of: 100 }.bound_percent() - 2.951).abs() < 0.01);
        assert!((Share { count: 5, of: 100 }.bound_percent() - 10.225).abs() < 0.01);
        assert!((Share { count: 50, of: 1_000 }.bound_percent() - 6.29).abs() < 0.02);
    }
}
