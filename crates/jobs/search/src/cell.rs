//! A cell's numbers from its repeats: the rate that stands in the table, or why none stands there.

use super::sessions::{Tally, Window};
use super::spec::OnRefused;
use plimsoll_core::interval::Interval;
use plimsoll_core::outcome::Failure;
use plimsoll_core::search::statistics::{Gain, implied_ms, interval, mean};
use plimsoll_core::verdict::{Evidence, Health, generator_limit};
use plimsoll_record::search::{Cell, CellKey, QueryCell, Repeat};

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
}

/// Facts about a cell besides its repeats.
#[derive(Clone, Debug, Default)]
pub struct CellAbout {
    /// The phase.
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
            own.ok += other.ok;
            own.failed += other.failed;
            own.hits_min = own.hits_min.into_iter().chain(other.hits_min).min();
            own.hits_max = own.hits_max.into_iter().chain(other.hits_max).max();
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
        // Each run ends with nothing under way that the ledger does not tell.
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
    if repeats.iter().any(|one| generator_limited(about, one)) {
        marks.push("generator busy".to_owned());
    }
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

/// Returns whether the generator was the limit of a repeat, as in any run.
fn generator_limited(about: &CellAbout, one: &Measured) -> bool {
    let clients = Some(about.key.users);
    let evidence = Evidence {
        open: false,
        full_speed: true,
        clients,
        health: one.health,
        measured_s: one.elapsed_s,
        ..Evidence::of(&one.totals)
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
mod tests {
    use super::*;
    use crate::sessions::{Parts, QueryTally};

    fn about() -> CellAbout {
        CellAbout {
            key: CellKey { users: 4, ..CellKey::default() },
            queries: vec!["a".to_owned(), "b".to_owned()],
            refused: vec![None, None],
            window: Window::Fixed { warmup_ns: 0, length_ns: 10_000_000_000 },
            think_ms: Some(0.0),
            ..CellAbout::default()
        }
    }

    /// A run in which `ok` requests of 100 ms each ended in the window.
    fn run(ok: u64) -> Measured {
        let mut totals = Interval::new(2);
        for at in 0..ok {
            let class = &mut totals.classes[(at % 2) as usize];
            class.record_ok(100_000_000, 100_000_000);
        }
        totals.ledger.ok = ok;
        let query = QueryTally { ok: ok / 2, failed: 0, hits_min: Some(7), hits_max: Some(7) };
        Measured {
            totals,
            tally: Tally {
                start_ns: 1,
                window_ok: ok,
                window_sum_ns: u128::from(ok) * 100_000_000,
                queries: vec![query; 2],
                ..Tally::default()
            },
            elapsed_s: 12.0,
            server_cpu_s: Some(4.0),
            ..Measured::default()
        }
    }

    #[test]
    fn a_cell_is_the_mean_of_its_repeats_with_an_interval() {
        let cell = cell(&about(), &[run(398), run(400), run(402)]);
        assert_eq!(cell.ok_per_s, Some(40.0));
        let [low, high] = cell.interval_per_s.unwrap();
        assert!(low < 40.0 && high > 40.0 && high - low < 1.1, "{low} {high}");
        assert_eq!((cell.ok, cell.failed, cell.mean_ms), (1200, 0, 100.0));
        // Four users at 40 a second wait 100 ms each: the books are right.
        assert_eq!(cell.implied_ms, Some(100.0));
        assert!((cell.little.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(cell.server_cpu_ms_per_request, Some(10.0));
        assert_eq!(cell.queries[1].hits, Some(7));
        assert_eq!(cell.queries[1].latency_ms.count, 600);
        assert!(cell.marks.is_empty(), "{:?}", cell.marks);
        assert_eq!(cell.elapsed_s, 36.0);
    }

    #[test]
    fn one_failure_withholds_the_number_and_keeps_the_rest() {
        let mut bad = run(400);
        bad.tally.queries[0].failed = 2;
        bad.totals.ledger.failed.timeout = 2;
        bad.first_failure = Some("query 'a': timeout".to_owned());
        let cell = cell(&about(), &[run(400), bad]);
        assert_eq!((cell.ok_per_s, cell.raw_ok_per_s, cell.timed_out), (None, 40.0, 2));
        assert_eq!((cell.implied_ms, cell.little), (None, None), "users were busy failing too");
        let reason = cell.reason.unwrap();
        assert_eq!(reason, "2 of 802 requests failed (timeout 2); first: query 'a': timeout");
    }

    #[test]
    fn a_failure_of_a_warm_up_of_its_own_withholds_the_number_too() {
        let mut warm = run(40);
        warm.tally.queries[1].failed = 1;
        warm.totals.ledger.failed.timeout = 1;
        warm.first_failure = Some("query 'b': timeout".to_owned());
        let cell = cell(&about(), &[run(400).after(warm)]);
        assert_eq!((cell.ok_per_s, cell.raw_ok_per_s, cell.timed_out), (None, 40.0, 1));
        let reason = "1 of 441 requests failed (timeout 1); first: query 'b': timeout";
        assert_eq!(cell.reason.as_deref(), Some(reason));
        // The figures of the window are those of the run itself; all of the time and the work counts.
        assert_eq!((cell.mean_ms, cell.latency_ms.count), (100.0, 400));
        assert_eq!((cell.elapsed_s, cell.ok, cell.server_cpu_s), (24.0, 440, Some(8.0)));
        let fine = super::cell(&about(), &[run(400).after(run(40))]);
        assert_eq!((fine.ok_per_s, fine.queries[0].hits), (Some(40.0), Some(7)));
    }

    #[test]
    fn a_refused_query_withholds_or_is_left_out() {
        let mut about = about();
        about.refused[1] = Some("400: no".to_owned());
        let withheld = cell(&about, &[run(400)]);
        assert_eq!(withheld.reason.as_deref(), Some("query 'b' not answered: 400: no"));
        assert_eq!(withheld.queries[1].refused.as_deref(), Some("400: no"));
        about.on_refused = OnRefused::Skip;
        let skipped = cell(&about, &[run(400)]);
        assert_eq!(skipped.ok_per_s, Some(40.0));
        assert_eq!(skipped.marks, ["1 of 2 queries"]);
        about.refused[0] = Some("400: no".to_owned());
        assert_eq!(cell(&about, &[]).ok_per_s, None, "there is nothing left to count");
    }

    #[test]
    fn what_flatters_is_marked() {
        let mut partial = run(400);
        partial.tally.queries[1] = QueryTally::default();
        partial.tally.queries[0].hits_max = Some(9);
        partial.health.busy = 0.99;
        let cell = cell(&about(), &[partial]);
        assert_eq!(cell.marks, ["only 1 of 2 queries came up", "generator busy", "hits varied"]);
    }

    #[test]
    fn a_cell_that_was_still_warming_up_is_marked_with_how_much() {
        let warmed = |early: u64, late: u64| {
            let mut one = run(early + late);
            one.tally.parts = Parts::new(5_000_000_000, 2);
            (0..early).for_each(|n| one.tally.parts.add(0, n, 100_000_000));
            (0..late).for_each(|n| one.tally.parts.add(0, 6_000_000_000 + n, 100_000_000));
            one
        };
        let cold = cell(&about(), &[warmed(160, 240), warmed(200, 200)]);
        assert_eq!(cold.marks, ["second half 50 % faster: not warm yet"]);
        assert_eq!(cold.ok_per_s, Some(40.0), "the number stands");
        let told: Vec<_> = cold.repeats.iter().map(|one| one.second_half_gain.unwrap()).collect();
        assert!((told[0] - 0.5).abs() < 1e-9 && told[1].abs() < 1e-9, "{told:?}");
        assert!(cell(&about(), &[warmed(190, 210)]).marks.is_empty());
        assert_eq!(cell(&about(), &[run(400)]).repeats[0].second_half_gain, None);
    }

    #[test]
    fn rows_that_ran_out_leave_a_window_half_full() {
        let mut out = run(400);
        out.tally.rows_used_up = true;
        let fixed = cell(&about(), std::slice::from_ref(&out));
        assert!(fixed.reason.unwrap().contains("rows were used up"));
        let to_end = CellAbout { window: Window::ToEnd(40_000_000_000), ..about() };
        assert_eq!(cell(&to_end, &[out]).marks, ["rows used up"]);
    }

    #[test]
    fn a_window_without_an_answer_has_no_rate() {
        let nothing = cell(&about(), &[run(0)]);
        assert!(nothing.reason.unwrap().contains("longer --duration"));
        let mut passes = CellAbout { window: Window::FirstDone, ..about() };
        let mut one = run(100);
        one.tally.first_over_ns = 5_000_000_001;
        assert_eq!(cell(&passes, &[one]).ok_per_s, Some(20.0));
        // Of users who come and go all count, over the profile's own length at least.
        let mut late = run(100);
        late.tally.last_ns = 8_000_000_001;
        let all = |least_ns, one: &Measured| {
            let about = CellAbout { window: Window::ToEnd(least_ns), think_ms: None, ..about() };
            let cell = cell(&about, std::slice::from_ref(one));
            (cell.ok_per_s, cell.implied_ms)
        };
        assert_eq!(all(0, &late), (Some(12.5), None));
        assert_eq!(all(10_000_000_000, &late), (Some(10.0), None));
        passes.marks.push("clamped to 2".to_owned());
        assert_eq!(cell(&passes, &[]).reason.as_deref(), Some("not measured"));
        assert_eq!(cell(&passes, &[]).marks, ["clamped to 2"]);
    }
}
