//! A plot of a page: its data, and the table that says the same.

use super::table::Table;
use std::sync::Arc;

/// Plot with its twin.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Name of the plot on the page: lower-case letters, digits and hyphens.
    pub id: String,
    /// Headline.
    pub caption: String,
    /// Data.
    pub kind: PlotKind,
    /// Table of at most [`Plot::TWIN_ROWS_MAX`] rows with what the plot shows.
    pub twin: Table,
    /// True if a static picture stands in the page, for readers without scripts. Lines and curves can have one.
    pub is_pictured: bool,
}

impl Plot {
    /// Most rows of a twin.
    pub const TWIN_ROWS_MAX: usize = 40;
}

/// Kind of a plot, with its data.
#[derive(Clone, Debug, PartialEq)]
pub enum PlotKind {
    /// Lines over a common x: time, a rate, a number of users.
    Lines(Lines),
    /// Percentiles on the HDR scale; the x of each line is `1 / (1 - quantile)`.
    Curve(Lines),
    /// Points over a common x.
    Scatter(Lines),
    /// Counts of times over time.
    Heat(Heat),
    /// Values by two names, such as a matrix.
    Grid(Grid),
}

/// Numbers with a name, which plots may share.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// Name; the same name stands for the same numbers on a page.
    pub name: String,
    /// Numbers; `None` is a gap.
    pub numbers: Arc<[Option<f64>]>,
}

impl Values {
    /// Returns numbers with a name.
    #[must_use]
    pub fn new(name: &str, numbers: impl IntoIterator<Item = Option<f64>>) -> Self {
        Self { name: name.to_owned(), numbers: numbers.into_iter().collect() }
    }

    /// Returns numbers without a gap.
    #[must_use]
    pub fn of(name: &str, numbers: impl IntoIterator<Item = f64>) -> Self {
        Self::new(name, numbers.into_iter().map(Some))
    }
}

/// Lines or points over x.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// The x of all lines that have none of their own.
    pub x: Option<Values>,
    /// Meaning and unit of x.
    pub x_label: String,
    /// True if x is on a logarithmic scale.
    pub x_is_log: bool,
    /// True if x is the time of the run: such plots share cursor and zoom.
    pub is_time: bool,
    /// Axes of y, the one at the left first.
    pub y: Vec<YAxis>,
    /// Lines.
    pub lines: Vec<Line>,
    /// Stretches of x with a meaning, such as phases.
    pub bands: Vec<Band>,
    /// Single positions of x with a meaning.
    pub marks: Vec<Mark>,
    /// Levels of y with a meaning, such as limits.
    pub levels: Vec<Level>,
}

/// Axis of y.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YAxis {
    /// Unit of its lines.
    pub unit: String,
    /// True if it is logarithmic.
    pub is_log: bool,
}

impl YAxis {
    /// Returns a linear axis.
    #[must_use]
    pub fn linear(unit: &str) -> Self {
        Self { unit: unit.to_owned(), is_log: false }
    }

    /// Returns a logarithmic axis.
    #[must_use]
    pub fn log(unit: &str) -> Self {
        Self { unit: unit.to_owned(), is_log: true }
    }
}

/// Line of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub label: String,
    /// Its y.
    pub y: Values,
    /// Its own x, if it does not have that of the plot.
    pub x: Option<Values>,
    /// Colour by meaning: `offered`, `ok`, `failed`, `p99`, `series-1`, ...
    pub tone: &'static str,
    /// Index of its axis in [`Lines::y`].
    pub axis: usize,
    /// Label of the line down to which the space is filled.
    pub below: Option<String>,
    /// True if its points stand for themselves and no line joins them.
    pub is_dots: bool,
}

impl Line {
    /// Returns a line on the first axis.
    #[must_use]
    pub fn new(label: &str, tone: &'static str, y: Values) -> Self {
        Self { label: label.to_owned(), y, x: None, tone, axis: 0, below: None, is_dots: false }
    }

    /// Puts the line on another axis.
    #[must_use]
    pub fn on(mut self, axis: usize) -> Self {
        self.axis = axis;
        self
    }

    /// Fills the space between the line and the one with this label.
    #[must_use]
    pub fn down_to(mut self, label: &str) -> Self {
        self.below = Some(label.to_owned());
        self
    }

    /// Gives the line its own x.
    #[must_use]
    pub fn over(mut self, x: Values) -> Self {
        self.x = Some(x);
        self
    }
}

/// Stretch of x.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Start.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Meaning.
    pub label: String,
}

/// Position of x.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Position.
    pub x: f64,
    /// Meaning.
    pub label: String,
    /// Colour by meaning.
    pub tone: &'static str,
}

/// Level of y.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Level, in the unit of its axis.
    pub y: f64,
    /// Meaning.
    pub label: String,
    /// Index of its axis in [`Lines::y`].
    pub axis: usize,
}

/// Counts by time and size.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// Time of each column.
    pub x: Values,
    /// Unit of the rows.
    pub unit: String,
    /// Edges of the rows, ascending, one more than there are rows.
    pub edges: Vec<f64>,
    /// For each column the rows that hold a count, ascending, with it.
    pub columns: Vec<Vec<(usize, u64)>>,
}

/// Values by two names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Unit of the values.
    pub unit: String,
    /// For each row a value and its text for each column; `None` where there is none.
    pub cells: Vec<Vec<Option<(f64, String)>>>,
}
