//! A cell's numbers from its repeats: the rate that stands in the table, or why none stands there.

use super::sessions::{Tally, Window};
use super::spec::OnRefused;
use crate::statistics::{Gain, implied_ms, interval, mean};
use plimsoll_core::interval::Interval;
use plimsoll_core::outcome::Failure;
use plimsoll_core::verdict::{Evidence, Health, generator_limit};
use plimsoll_job::together::part_title;
use plimsoll_record::search::{Cell, CellKey, QueryCell, Repeat};
use std::collections::BTreeSet;

/// Result of one repeat.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Measurements of the engine after the warm-up.
    pub totals: Interval,
    /// Measurements of the warm-up.
    pub warmup: Option<Interval>,
    /// Counts of the users.
    pub tally: Tally,
    /// From the first request to the last reply, s.
    pub elapsed_s: f64,
    /// Part of that time that was warm-up, s.
    pub warming_s: f64,
    /// CPU time of the server, s, where it can be known.
    pub server_cpu_s: Option<f64>,
    /// CPU time of this program, s.
    pub generator_cpu_s: f64,
    /// The generator's own health.
    pub health: Health,
    /// The first failure: its kind, and what the engine said.
    pub first_failure: Option<String>,
    /// Reason why it was given up before its end.
    pub given_up: Option<String>,
    /// True if a part of it is missing, because an agent was lost: the cell is not finished.
    pub is_cut: bool,
    /// Names of the agents whose generator was the limit; none if the load came from this process.
    pub limited: Option<Vec<String>>,
    /// Names of the agents whose users began too late for a common start.
    pub late: Vec<String>,
}

/// Facts about a cell besides its repeats.
#[derive(Clone, Debug, Default)]
pub struct CellAbout {
    /// Engine, size, distance, shards and users of the cell.
    pub key: CellKey,
    /// Names of the queries.
    pub queries: Vec<String>,
    /// For each of them why it was not asked, if so.
    pub refused: Vec<Option<String>>,
    /// Action for refused queries.
    pub on_refused: OnRefused,
    /// Window that the rate counts.
    pub window: Window,
    /// Mean think time of users, ms; none where their number and their rate imply no mean, since they come and go or
    /// keep a pace.
    pub think_ms: Option<f64>,
    /// Marks that a reader must see beside the number.
    pub marks: Vec<String>,
    /// True if requests are filled with rows.
    pub filled: bool,
}

impl Measured {
    /// The same with a warm-up before it that was a run of its own: its failures are the cell's, and its times are not.
    #[must_use]
    pub fn after(mut self, warm: Self) -> Self {
        let mut before = warm.totals;
        before.merge(&warm.warmup.unwrap_or_default());
        match &mut self.warmup {
            Some(own) => own.merge(&before),
            None => self.warmup = Some(before),
        }
        for (own, other) in self.tally.queries.iter_mut().zip(&warm.tally.queries) {
            own.beside(other);
        }
        self.warming_s += warm.elapsed_s;
        self.elapsed_s += warm.elapsed_s;
        self.server_cpu_s =
            self.server_cpu_s.zip(warm.server_cpu_s).map(|(own, other)| own + other);
        self.generator_cpu_s += warm.generator_cpu_s;
        self.first_failure = warm.first_failure.or(self.first_failure);
        self
    }
}

fn window_ns(about: &CellAbout, one: &Measured) -> u64 {
    let since_start = |ns: u64| ns.saturating_sub(one.tally.start_ns);
    match about.window {
        Window::Fixed { length_ns, .. } => length_ns,
        Window::FirstDone => since_start(one.tally.first_over_ns),
        Window::ToEnd(least_ns) => since_start(one.tally.last_ns).max(least_ns),
    }
}

/// Speed-up of the second half of a repeat's window over the first.
fn gained(about: &CellAbout, one: &Measured) -> Option<Gain> {
    one.tally.parts.gain(window_ns(about, one))
}

fn failed(one: &Measured) -> u64 {
    one.tally.queries.iter().map(|query| query.failed).sum()
}

fn succeeded(one: &Measured) -> u64 {
    one.tally.queries.iter().map(|query| query.ok).sum()
}

fn repeat(about: &CellAbout, one: &Measured) -> Repeat {
    let window_s = window_ns(about, one) as f64 / 1e9;
    let ok = one.tally.window_ok;
    Repeat {
        ok_per_s: if window_s > 0.0 { ok as f64 / window_s } else { 0.0 },
        ok,
        failed: failed(one),
        window_s,
        mean_ms: if ok > 0 { one.tally.window_sum_ns as f64 / ok as f64 / 1e6 } else { 0.0 },
        elapsed_s: one.elapsed_s,
        second_half_gain: gained(about, one).map(|gain| gain.share),
    }
}

/// Puts a cell together.
#[must_use]
pub fn cell(about: &CellAbout, repeats: &[Measured]) -> Cell {
    let each: Vec<Repeat> = repeats.iter().map(|one| repeat(about, one)).collect();
    let rates: Vec<f64> = each.iter().map(|one| one.ok_per_s).collect();
    let mut all = Interval::new(about.queries.len());
    repeats.iter().for_each(|one| all.merge(&one.totals));
    let window_ok: u64 = each.iter().map(|one| one.ok).sum();
    let window_sum_ns: u128 = repeats.iter().map(|one| one.tally.window_sum_ns).sum();
    let mean_ms = if window_ok > 0 { window_sum_ns as f64 / window_ok as f64 / 1e6 } else { 0.0 };
    let raw = mean(&rates);
    // Users whose requests fail are busy with those too: the others alone imply nothing.
    let thinks = about.think_ms.filter(|_| each.iter().all(|one| one.failed == 0));
    let implied = thinks.and_then(|think| implied_ms(about.key.users, raw, think));
    let cpu_s: Option<f64> = repeats.iter().map(|one| one.server_cpu_s).sum();
    let ok: u64 = repeats.iter().map(succeeded).sum();
    let reason = why_withheld(about, repeats);
    let mut cell = Cell {
        key: about.key.clone(),
        ok_per_s: reason.is_none().then_some(raw),
        reason,
        marks: about.marks.clone(),
        interval_per_s: interval(&rates),
        ok,
        failed: each.iter().map(|one| one.failed).sum(),
        timed_out: timed_out(repeats),
        raw_ok_per_s: raw,
        latency_ms: all.all_classes().response.summary(),
        mean_ms,
        implied_ms: implied,
        little: implied.filter(|_| mean_ms > 0.0).map(|implied| implied / mean_ms),
        server_cpu_s: cpu_s,
        server_cpu_ms_per_request: cpu_s.filter(|_| ok > 0).map(|s| s * 1e3 / ok as f64),
        generator_cpu_s: repeats.iter().map(|one| one.generator_cpu_s).sum(),
        generator_busiest: repeats.iter().map(|one| one.health.busy).fold(0.0, f64::max),
        queries: queries(about, repeats, &all),
        elapsed_s: each.iter().map(|one| one.elapsed_s).sum(),
        repeats: each,
    };
    cell.marks.extend(own_marks(about, repeats, &cell));
    cell
}

/// The journal's part of a cell: everything that was measured in it, as one interval.
#[must_use]
pub fn totals(repeats: &[Measured], queries: usize) -> Interval {
    let mut all = Interval::new(queries);
    for one in repeats {
        // Requests in flight at the end of a run are in its ledger.
        all.in_flight = 0;
        all.merge(&one.totals);
    }
    all
}

fn timed_out(repeats: &[Measured]) -> u64 {
    count_failed(repeats, Failure::Timeout)
}

fn count_failed(repeats: &[Measured], kind: Failure) -> u64 {
    repeats
        .iter()
        .flat_map(|one| one.warmup.iter().chain([&one.totals]))
        .map(|interval| interval.ledger.failed.get(kind))
        .sum()
}

/// Reason why a cell has no number in the table.
fn why_withheld(about: &CellAbout, repeats: &[Measured]) -> Option<String> {
    let refused: Vec<(&String, &String)> = about
        .queries
        .iter()
        .zip(&about.refused)
        .filter_map(|(q, r)| Some((q, r.as_ref()?)))
        .collect();
    let all_refused = !refused.is_empty() && refused.len() == about.queries.len();
    if let Some((query, why)) = refused.first()
        && (about.on_refused == OnRefused::Withhold || all_refused)
    {
        let others = match refused.len() {
            1 => String::new(),
            n => format!(" (and {} more of {})", n - 1, about.queries.len()),
        };
        return Some(format!("query '{query}' not answered: {why}{others}"));
    }
    if let Some(why) = repeats.iter().find_map(|one| one.given_up.as_ref()) {
        return Some(why.clone());
    }
    let failures: u64 = repeats.iter().map(failed).sum();
    if failures > 0 {
        let all = failures + repeats.iter().map(succeeded).sum::<u64>();
        let kinds: Vec<String> = Failure::ALL
            .iter()
            .map(|kind| (kind.name(), count_failed(repeats, *kind)))
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        let first = repeats.iter().find_map(|one| one.first_failure.as_ref());
        let first = first.map_or(String::new(), |text| format!("; first: {text}"));
        return Some(format!("{failures} of {all} requests failed ({}){first}", kinds.join(", ")));
    }
    if repeats.is_empty() {
        return Some("not measured".to_owned());
    }
    if matches!(about.window, Window::Fixed { .. })
        && repeats.iter().any(|one| one.tally.rows_used_up)
    {
        return Some(
            "the rows were used up before the end of the window; use more rows, or order = \"circular\""
                .to_owned(),
        );
    }
    repeats.iter().any(|one| one.tally.window_ok == 0).then(|| match about.window {
        Window::Fixed { length_ns, .. } => {
            let window_s = length_ns as f64 / 1e9;
            format!("no request ended in the window of {window_s} s; use a longer --duration")
        }
        Window::FirstDone => "no user finished the list".to_owned(),
        Window::ToEnd(_) => "no request succeeded".to_owned(),
    })
}

/// Marks that follow from the numbers themselves.
fn own_marks(about: &CellAbout, repeats: &[Measured], cell: &Cell) -> Vec<String> {
    let mut marks = Vec::new();
    let listed = about.queries.len();
    let asked = about.refused.iter().filter(|refused| refused.is_none()).count();
    if asked < listed && cell.reason.is_none() {
        marks.push(format!("{asked} of {listed} queries"));
    }
    if cell.reason.is_some() {
        return marks;
    }
    let seen = cell.queries.iter().filter(|query| query.ok > 0).count();
    if seen < asked {
        marks.push(format!("only {seen} of {asked} queries came up"));
    }
    marks.extend(generator_busy(about, repeats));
    let late = names(repeats.iter().flat_map(|one| &one.late));
    marks.extend(late.map(|names| format!("late start: {names}")));
    // Where requests are filled with rows, each asks something else.
    if !about.filled && cell.queries.iter().any(|query| query.hits_varied) {
        marks.push("hits varied".to_owned());
    }
    if repeats.iter().any(|one| one.tally.rows_used_up) {
        marks.push("rows used up".to_owned());
    }
    let gains = repeats.iter().filter_map(|one| gained(about, one));
    if let Some(most) = gains.filter(|gain| gain.is_clear).map(|gain| gain.share).reduce(f64::max) {
        marks.push(format!("second half {:.0} % faster: not warm yet", most * 100.0));
    }
    marks
}

/// The mark of a cell whose generator was the limit, with the names of its agents.
fn generator_busy(about: &CellAbout, repeats: &[Measured]) -> Option<String> {
    let here = |one: &Measured| {
        one.limited.is_none()
            && is_generator_limited(about.key.users, &one.totals, (one.health, one.elapsed_s))
    };
    match names(repeats.iter().flat_map(|one| one.limited.iter().flatten())) {
        Some(names) => Some(format!("generator busy: {names}")),
        None => repeats.iter().any(here).then(|| "generator busy".to_owned()),
    }
}

/// Parts of the run in a line, each once; none if there are none.
fn names<'a>(all: impl Iterator<Item = &'a String>) -> Option<String> {
    let all: BTreeSet<String> = all.map(|name| part_title(name)).collect();
    (!all.is_empty()).then(|| Vec::from_iter(all).join(", "))
}

/// Returns whether the generator was the limit of a run, as in any run; with this many users, over a time in s.
#[must_use]
pub fn is_generator_limited(
    users: u32,
    totals: &Interval,
    (health, measured_s): (Health, f64),
) -> bool {
    let evidence = Evidence {
        open: false,
        full_speed: true,
        clients: Some(users),
        health,
        measured_s,
        ..Evidence::of(totals)
    };
    generator_limit(&evidence).is_some()
}

fn queries(about: &CellAbout, repeats: &[Measured], all: &Interval) -> Vec<QueryCell> {
    about
        .queries
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let own = || repeats.iter().filter_map(|one| one.tally.queries.get(index));
            let least = own().filter_map(|query| query.hits_min).min();
            let most = own().filter_map(|query| query.hits_max).max();
            QueryCell {
                name: name.clone(),
                ok: own().map(|query| query.ok).sum(),
                failed: own().map(|query| query.failed).sum(),
                hits: least.filter(|_| least == most),
                hits_varied: least != most,
                latency_ms: all
                    .classes
                    .get(index)
                    .map(|class| class.response.summary())
                    .unwrap_or_default(),
                refused: about.refused.get(index).cloned().flatten(),
            }
        })
        .collect()
}

/// A cell that could not be measured at all.
#[must_use]
pub fn withheld(key: &CellKey, reason: &str) -> Cell {
    Cell { key: key.clone(), reason: Some(reason.to_owned()), ..Cell::default() }
}

#[cfg(test)]
mod tests;
