//! The harness's own judgement: the statements of a run about itself, compared with the truth.

pub mod arrivals;
pub mod record;
pub mod table;

/// The headline figures, as a record's `verdict.bounds` names them.
pub const FIGURES: [&str; 4] = ["p50_ms", "p95_ms", "p99_ms", "ok_per_s"];
/// Requests below which the page shows a dash instead of the percentile; a dash misleads no reader.
pub const SAMPLES_NEEDED: [u64; 4] = [2, 100, 100, 1];

/// One value for each of [`FIGURES`].
pub type Four<T> = [T; 4];

/// An interval, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Range {
    /// A value that is known exactly.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self { low: value, high: value }
    }
}

/// Tolerance of a bound: what the truth itself is not sure of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Share of the truth.
    pub share: f64,
    /// Additional tolerance of a time, ms.
    pub time_ms: f64,
    /// Additional tolerance of a rate, per second.
    pub rate_per_s: f64,
}

/// The statements of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    /// `verdict.kind`.
    pub kind: String,
    /// `verdict.reasons`.
    pub reasons: Vec<String>,
    /// Successful requests.
    pub ok: u64,
    /// The figures.
    pub figures: Four<f64>,
    /// Range that the run reports; `None` if the record has no bounds.
    pub bounds: Option<Four<Range>>,
    /// True if the ledger balances.
    pub balances: bool,
    /// Limits that were judged: name, and whether it held.
    pub limits: Vec<(String, bool)>,
}

/// The three grades of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// The figures are the target's.
    Valid,
    /// They are the target's within the bounds.
    ValidWithin,
    /// They are not the target's.
    NotTheTargets,
}

impl Reported {
    /// The grade of the verdict.
    #[must_use]
    pub fn grade(&self) -> Grade {
        match (self.kind.as_str(), self.reasons.is_empty()) {
            ("valid", true) => Grade::Valid,
            ("valid", false) => Grade::ValidWithin,
            _ => Grade::NotTheTargets,
        }
    }
}

/// The expected statements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truth {
    /// The figures of an ideal generator; `None` where nothing can be said.
    pub figures: Four<Option<Range>>,
    /// True if nothing but the target was wrong: then the verdict must be valid.
    pub healthy: bool,
    /// The kinds of which the verdict must be one; empty: any.
    pub kinds: &'static [&'static str],
    /// The limits whose judgement is known, and whether they hold.
    pub limits: Vec<(String, bool)>,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The grade of its verdict.
    pub grade: Grade,
    /// The verdict's own words.
    pub said: String,
    /// Valid, and a figure is further off than its own bound: which, and by how much.
    pub wrong: Option<String>,
    /// True if it is not valid on a healthy machine.
    pub false_alarm: bool,
    /// Everything else that is not as it must be.
    pub defects: Vec<String>,
}

/// Holds what was reported against the truth.
#[must_use]
pub fn judge(reported: &Reported, truth: &Truth, tolerance: Tolerance) -> Finding {
    let grade = reported.grade();
    let mut defects = Vec::new();
    if !reported.balances || reported.kind == "void" {
        defects.push(format!("the ledger does not balance: {}", reported.reasons.join("; ")));
    }
    if !truth.kinds.is_empty() && !truth.kinds.contains(&reported.kind.as_str()) {
        defects.push(format!("verdict {}, not {}", reported.kind, truth.kinds.join(" or ")));
    }
    for (name, held) in &truth.limits {
        match reported.limits.iter().find(|(other, _)| other == name) {
            None => defects.push(format!("limit {name} was not judged")),
            Some((_, said)) if said != held => {
                let word = |held: bool| if held { "held" } else { "missed" };
                defects.push(format!("limit {name} {}, not {}", word(*said), word(*held)));
            }
            Some(_) => {}
        }
    }
    if grade != Grade::NotTheTargets && reported.bounds.is_none() {
        defects.push("the verdict has no bounds".to_owned());
    }
    let wrong = (grade != Grade::NotTheTargets).then(|| furthest(reported, truth, tolerance));
    let false_alarm = truth.healthy && grade == Grade::NotTheTargets;
    let said = format!("{}: {}", reported.kind, reported.reasons.join("; "));
    Finding { grade, said, wrong: wrong.flatten(), false_alarm, defects }
}

/// The first figure whose truth lies outside its bounds.
fn furthest(reported: &Reported, truth: &Truth, tolerance: Tolerance) -> Option<String> {
    // A record without bounds claims that its figures are exact.
    let bounds = reported.bounds.unwrap_or_else(|| reported.figures.map(Range::exact));
    (0..FIGURES.len()).find_map(|i| {
        let true_range = truth.figures[i]?;
        if reported.ok < SAMPLES_NEEDED[i] {
            return None;
        }
        let absolute = if i == 3 { tolerance.rate_per_s } else { tolerance.time_ms };
        let slack = |value: f64| value * tolerance.share + absolute;
        let (low, high) = (bounds[i].low, bounds[i].high);
        // Written so that bounds which are no numbers are wrong.
        let inside = low <= true_range.high + slack(true_range.high)
            && high >= true_range.low - slack(true_range.low);
        (!inside).then(|| {
            format!(
                "{} {:.3} in [{low:.3}, {high:.3}], in truth {}",
                FIGURES[i],
                reported.figures[i],
                shown(true_range)
            )
        })
    })
}

fn shown(range: Range) -> String {
    if range.low == range.high {
        return format!("{:.3}", range.low);
    }
    format!("{:.3} to {:.3}", range.low, range.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Tolerance = Tolerance { share: 0.01, time_ms: 0.1, rate_per_s: 0.5 };

    fn reported() -> Reported {
        Reported {
            kind: "valid".to_owned(),
            ok: 10_000,
            figures: [10.0, 12.0, 15.0, 100.0],
            bounds: Some([10.0, 12.0, 15.0, 100.0].map(Range::exact)),
            balances: true,
            limits: vec![("p95".to_owned(), true)],
            ..Reported::default()
        }
    }

    fn truth(figures: Four<f64>) -> Truth {
        Truth { figures: figures.map(|f| Some(Range::exact(f))), healthy: true, ..Truth::default() }
    }

    #[test]
    fn a_true_report_is_right() {
        let finding = judge(&reported(), &truth([10.0, 12.1, 15.2, 100.9]), TOLERANCE);
        assert_eq!(
            (finding.grade, finding.wrong, finding.false_alarm),
            (Grade::Valid, None, false)
        );
        assert!(finding.defects.is_empty(), "{:?}", finding.defects);
    }

    #[test]
    fn a_planted_lie_is_found_in_every_figure_and_to_both_sides() {
        for (figure, factor) in [(0, 0.9), (0, 1.1), (1, 0.9), (2, 1.1), (3, 0.9), (3, 1.1)] {
            let mut truth = truth([10.0, 12.0, 15.0, 100.0]);
            let lie = truth.figures[figure].unwrap().low * factor;
            truth.figures[figure] = Some(Range::exact(lie));
            let wrong = judge(&reported(), &truth, TOLERANCE).wrong.unwrap_or_default();
            assert!(wrong.starts_with(FIGURES[figure]), "{figure} {factor}: {wrong}");
        }
    }

    #[test]
    fn bounds_that_hold_the_truth_are_right_and_a_verdict_that_warns_is_no_lie() {
        let far = truth([10.0, 12.0, 11.0, 100.0]);
        let mut within = reported();
        within.reasons = vec!["p99 may be 4.2 ms too high".to_owned()];
        within.bounds.as_mut().unwrap()[2] = Range { low: 10.8, high: 15.0 };
        let finding = judge(&within, &far, TOLERANCE);
        assert_eq!((finding.grade, finding.wrong), (Grade::ValidWithin, None));
        within.bounds.as_mut().unwrap()[2].low = 12.0;
        assert!(judge(&within, &far, TOLERANCE).wrong.is_some());
        let limited = Reported { kind: "generator-limited".to_owned(), ..reported() };
        let finding = judge(&limited, &far, TOLERANCE);
        assert_eq!((finding.grade, finding.wrong), (Grade::NotTheTargets, None));
        assert!(finding.false_alarm);
    }

    #[test]
    fn bounds_that_are_missing_or_no_numbers_are_defects() {
        let none = Reported { bounds: None, ..reported() };
        assert_eq!(judge(&none, &truth(none.figures), TOLERANCE).defects.len(), 1);
        let nan = Range { low: f64::NAN, high: f64::NAN };
        let absurd = Reported { bounds: Some([nan; 4]), ..reported() };
        assert!(judge(&absurd, &truth(absurd.figures), TOLERANCE).wrong.is_some());
    }

    #[test]
    fn a_percentile_that_is_not_shown_misleads_nobody() {
        let few = Reported { ok: 99, ..reported() };
        assert!(judge(&few, &truth([10.0, 1.0, 1.0, 100.0]), TOLERANCE).wrong.is_none());
        assert!(judge(&few, &truth([1.0, 1.0, 1.0, 100.0]), TOLERANCE).wrong.is_some());
    }

    #[test]
    fn limits_kinds_and_books_are_looked_at() {
        let mut truth = truth([10.0, 12.0, 15.0, 100.0]);
        truth.kinds = &["partial"];
        truth.limits = vec![("p95".to_owned(), false), ("errors".to_owned(), true)];
        let unbalanced = Reported { balances: false, ..reported() };
        let defects = judge(&unbalanced, &truth, TOLERANCE).defects;
        assert_eq!(defects.len(), 4, "{defects:?}");
    }
}
