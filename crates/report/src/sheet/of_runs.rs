//! One figure of several runs as a plot: a line through the runs, dots that count and dots that do not, and their median.

use super::plot::{Level, Line, Lines, Mark, Plot, PlotKind, Values, YAxis};
use super::table::Table;

/// The figure of each run in their order; `None` where a run has none, or is not in this list.
pub struct OfRuns {
    /// Name of the line.
    pub name: String,
    /// Runs that the line passes through.
    pub line: Vec<Option<f64>>,
    /// Runs that count.
    pub counted: Vec<Option<f64>>,
    /// The others.
    pub others: Vec<Option<f64>>,
    /// Median of the runs that count, and as it is shown.
    pub median: Option<(f64, String)>,
    /// Positions with a meaning.
    pub marks: Vec<Mark>,
}

impl OfRuns {
    /// Returns the plot with this id and caption.
    #[must_use]
    pub fn plot(self, id: &str, caption: String, twin: Table) -> Plot {
        let x = Values::of(&format!("{id}-n"), (1..=self.line.len()).map(|number| number as f64));
        let values =
            |name: &str, numbers: Vec<Option<f64>>| Values::new(&format!("{id}-{name}"), numbers);
        let dots = |label: &str, tone, y| Line { is_dots: true, ..Line::new(label, tone, y) };
        let lines = vec![
            Line::new(&self.name, "neutral", values("value", self.line)),
            dots("counted", "good", values("counted", self.counted)),
            dots("not counted", "bad", values("not-counted", self.others)),
        ];
        let known = |line: &Line| line.y.numbers.iter().any(Option::is_some);
        let level =
            |(y, shown): (f64, String)| Level { y, label: format!("median {shown}"), axis: 0 };
        let lines = Lines {
            x: Some(x),
            x_label: "number of the run, oldest first".to_owned(),
            y: vec![YAxis::linear("")],
            lines: lines.into_iter().filter(known).collect(),
            levels: self.median.map(level).into_iter().collect(),
            marks: self.marks,
            ..Lines::default()
        };
        Plot { id: id.to_owned(), caption, kind: PlotKind::Lines(lines), twin, is_pictured: true }
    }
}
