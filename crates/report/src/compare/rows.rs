//! The rows of a comparison: a figure of all runs, and the answer about each run against the first.

use super::mark;
use crate::figures::{Figure, Unit, name};
use crate::past::Run;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_decide::between::{Answer, Between, LIKE_RUNS_LEAST};
use plimsoll_decide::rule::{Judged, Rule};
use serde::Serialize;

/// Share of answers that are wrong by chance; of the answers that rules need, all together.
pub const ERROR: f64 = 0.05;

/// A figure of all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the metric, as `--fail-on` has it.
    pub metric: &'static str,
    /// The part of the run that it is of; empty for the run as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Value of each run; `None` if it has none.
    pub values: Vec<Option<f64>>,
    /// Each run but the first, against the first.
    pub against: Vec<Against>,
}

impl Row {
    /// Returns the metric and what it is of.
    #[must_use]
    pub fn name(&self) -> String {
        name(self.metric, &self.of)
    }
}

/// One run against the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// Mark of the run.
    pub mark: String,
    /// Its value over that of the first run; `None` if one of them has none, or the first is 0.
    pub ratio: Option<f64>,
    /// Interval of the ratio.
    pub interval: Option<[f64; 2]>,
    /// Confidence of the interval, 0 to 1.
    pub confidence: f64,
    /// `better`, `worse`, `same`, `cannot tell`; `None` for a metric that no rule names, if there are rules.
    pub answer: Option<&'static str>,
    /// The answer in words.
    pub words: String,
    /// Like runs that the variance between runs is known from.
    pub like_runs: usize,
}

/// A rule, and what the runs say of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleResult {
    /// The rule as `--fail-on` has it.
    pub rule: String,
    /// The row that it was judged on.
    pub row: String,
    /// Mark of the run.
    pub mark: String,
    /// `holds`, `cannot tell` or `fails`.
    pub judged: &'static str,
    /// The reason.
    pub words: String,
    /// For the exit code.
    #[serde(skip)]
    pub outcome: Option<Judged>,
}

/// The material of rows.
pub struct Basis<'a> {
    /// The runs that are compared, the first one first.
    pub runs: &'a [Run],
    /// Valid runs of the past, without those that are compared.
    pub past: &'a [Run],
    /// Rules of the user.
    pub rules: &'a [Rule],
    /// Largest relative change that counts as none.
    pub margin: f64,
    /// Reason why two runs cannot be compared without like runs.
    pub window: &'a dyn Fn(usize) -> String,
}

impl Basis<'_> {
    /// All rows, in the order of the first run's figures.
    pub fn rows(&self) -> Vec<Row> {
        let mut figures: Vec<&Figure> = Vec::new();
        for figure in self.runs.iter().flat_map(|run| &run.figures) {
            if !figures.iter().any(|known| known.is_same(figure)) {
                figures.push(figure);
            }
        }
        // Figures of the parts of a run stand after those of the whole.
        figures.sort_by_key(|figure| !figure.of.is_empty());
        let named = figures.iter().filter(|figure| self.is_named(figure)).count();
        let answers = (named * (self.runs.len() - 1)).max(1);
        let error = if self.rules.is_empty() { ERROR } else { ERROR / answers as f64 };
        figures.into_iter().map(|figure| self.row(figure, error)).collect()
    }

    fn is_named(&self, figure: &Figure) -> bool {
        self.rules.iter().any(|rule| rule.metric == figure.metric)
    }

    fn row(&self, figure: &Figure, error: f64) -> Row {
        let against =
            (1..self.runs.len()).map(|index| self.against(figure, index, error)).collect();
        let value = |run: &Run| Some(run.figure(figure)?.value);
        Row {
            metric: figure.metric,
            of: figure.of.clone(),
            unit: figure.unit,
            values: self.runs.iter().map(value).collect(),
            against,
        }
    }

    fn against(&self, figure: &Figure, index: usize, error: f64) -> Against {
        let (first, other) = (&self.runs[0], &self.runs[index]);
        let (a, b) = (first.figure(figure), other.figure(figure));
        let ratio = a.zip(b).filter(|(a, _)| a.value > 0.0).map(|(a, b)| b.value / a.value);
        let groups = self.groups(figure, index);
        let like_runs = groups.iter().map(Vec::len).max().unwrap_or(0);
        let mut against = Against {
            mark: mark(index),
            ratio,
            interval: None,
            confidence: 1.0 - error,
            answer: None,
            words: String::new(),
            like_runs,
        };
        if !self.rules.is_empty() && !self.is_named(figure) {
            "-".clone_into(&mut against.words);
            return against;
        }
        let cannot = |why: String| ("cannot tell", format!("cannot tell: {why}"));
        let (answer, words) = match (self.obstacle(index, a, b), a.zip(b)) {
            (Some(why), _) => cannot(why),
            (None, Some((a, b)))
                if [a, b].iter().all(|one| one.counts.is_some_and(|c| c[0] == 0)) =>
            {
                against.interval = Some([1.0, 1.0]);
                ("same", "same: none in either".to_owned())
            }
            (None, Some((a, b))) => match (a.log(), b.log(), Between::of(&groups)) {
                (Some(a), Some(b), Some(between)) => {
                    let interval = between.interval(b.0 - a.0, error, a.1 + b.1);
                    against.interval = Some([interval.0, interval.1]);
                    let answer = Answer::of(interval, figure.better(), self.margin);
                    self.words(answer, interval)
                }
                (_, _, None) => cannot((self.window)(index)),
                _ => cannot("a value is 0".to_owned()),
            },
            (None, None) => cannot("a value is unknown".to_owned()),
        };
        (against.answer, against.words) = (Some(answer), words);
        against
    }

    /// Reason why nothing is claimed about two runs, whatever their figures are.
    fn obstacle(&self, index: usize, a: Option<&Figure>, b: Option<&Figure>) -> Option<String> {
        for at in [0, index] {
            let run = &self.runs[at];
            match run.verdict {
                VerdictKind::Valid => {}
                VerdictKind::Imported => {
                    return Some(format!("another tool measured {}", mark(at)));
                }
                kind => return Some(format!("{} is {}", mark(at), kind.name())),
            }
        }
        if self.runs[0].likeness.machine != self.runs[index].likeness.machine {
            return Some("the machines differ".to_owned());
        }
        let missing = [(0, a), (index, b)].into_iter().find(|(_, figure)| figure.is_none());
        missing.map(|(at, _)| format!("{} has no such figure", mark(at)))
    }

    /// Logarithms of the figure in the runs that are like one of the two. A run that is like the first and compared with it may be
    /// the changed one: it is in no group.
    fn groups(&self, figure: &Figure, index: usize) -> Vec<Vec<f64>> {
        let (first, other) = (&self.runs[0], &self.runs[index]);
        let group = |run: &Run| -> Vec<f64> {
            let like = self.past.iter().filter(|past| past.likeness == run.likeness);
            let log = |run: &Run| Some(run.figure(figure)?.log()?.0);
            let own = Some(run).filter(|run| run.verdict == VerdictKind::Valid);
            like.chain(own).filter_map(log).collect()
        };
        let mut groups = vec![group(first)];
        if other.likeness != first.likeness {
            groups.push(group(other));
        }
        groups
    }

    fn words(&self, answer: Answer, (low, high): (f64, f64)) -> (&'static str, String) {
        match answer {
            Answer::Better => ("better", "better".to_owned()),
            Answer::Worse => ("worse", "worse".to_owned()),
            Answer::Same => ("same", format!("same within {} %", percent(self.margin))),
            Answer::CannotTell => {
                let change = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
                let change = if high.is_finite() && high < 100.0 {
                    format!("{} to {} %", change(low), change(high))
                } else {
                    format!("from {} % up", change(low))
                };
                ("cannot tell", format!("cannot tell: the change is {change}"))
            }
        }
    }

    /// Judges each rule on each row of its metric.
    pub fn judge(&self, rows: &[Row]) -> Vec<RuleResult> {
        let mut results = Vec::new();
        for rule in self.rules {
            for row in rows.iter().filter(|row| row.metric == rule.metric) {
                results.extend(row.against.iter().map(|against| result(rule, row, against)));
            }
        }
        results
    }
}

fn result(rule: &Rule, row: &Row, against: &Against) -> RuleResult {
    let judged = rule.judge(against.interval.map(|[low, high]| (low, high)));
    let (word, words) = match (judged, against.interval) {
        (Judged::Holds, _) => ("holds", against.words.clone()),
        (Judged::Fails, _) => ("fails", change_of(against)),
        (Judged::CannotTell, Some(_)) if !against.words.starts_with("cannot tell") => {
            ("cannot tell", change_of(against))
        }
        (Judged::CannotTell, _) => {
            ("cannot tell", against.words.trim_start_matches("cannot tell: ").to_owned())
        }
    };
    RuleResult {
        rule: rule.to_string(),
        row: row.name(),
        mark: against.mark.clone(),
        judged: word,
        words,
        outcome: Some(judged),
    }
}

impl Against {
    /// Returns the change with its interval, %.
    #[must_use]
    pub fn change(&self) -> String {
        change_of(self)
    }
}

/// The change with its interval, %.
pub fn change_of(against: &Against) -> String {
    let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
    match (against.ratio, against.interval) {
        (Some(ratio), Some([low, high])) => {
            format!("{} % ({} to {} %)", percent(ratio), percent(low), percent(high))
        }
        (Some(ratio), None) => format!("{} %", percent(ratio)),
        _ => "the first value is 0".to_owned(),
    }
}

/// A share in percent, with as many digits as it needs.
pub fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// Words for too few like runs.
pub fn too_few(like_runs: usize) -> String {
    let known = match like_runs {
        0 => "none is known".to_owned(),
        1 => "1 is known".to_owned(),
        more => format!("{more} are known"),
    };
    format!("{LIKE_RUNS_LEAST} valid runs like A, which may be one of them, are needed; {known}")
}
