//! The result of sizing, as data: `plimsoll.size/1`.

use plimsoll_decide::sizing::Prediction;
use plimsoll_decide::sizing::scaling::Source;
use plimsoll_report::number::significant;
use serde::Serialize;
use serde_json::{Map, Value};

/// Returns a rate as people read it.
pub fn per_second(per_s: f64) -> String {
    format!("{}/s", significant(per_s))
}

/// Name and version of the form.
pub const SCHEMA: &str = "plimsoll.size/1";

/// Everything that sizing says.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sizing {
    /// Name and version of the form.
    pub schema: &'static str,
    /// Word for what is counted: `nodes`, `workers`, `cores` or `users`.
    pub unit: &'static str,
    /// The limit; null if the highest throughput was measured.
    pub slo: Option<String>,
    /// Rate that was asked for, requests per second.
    pub rate_per_s: Option<f64>,
    /// Growth for which there must be room, as a share of the rate.
    pub headroom: f64,
    /// Probability with which a further measurement lies in a prediction interval.
    pub level: f64,
    /// Numbers of nodes that were measured, fewest first.
    pub measured: Vec<Measured>,
    /// Rate that each number of nodes holds, as far as it is known.
    pub held: Vec<Row>,
    /// Rival models that were fitted; empty if nothing is predicted.
    pub models: Vec<Model>,
    /// Number of nodes beyond which the rate falls, if the points show one.
    pub peak: Option<Peak>,
    /// Answers, in the order in which they are printed.
    pub answers: Vec<Answer>,
    /// Reason why a question was declined; null if all were answered.
    pub declined: Option<String>,
    /// Assumptions of the answers, a sentence each.
    pub assumptions: Vec<String>,
    /// Result of `--check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
}

/// A number of nodes that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Number.
    pub n: f64,
    /// Rate that it holds, requests per second.
    pub per_s: f64,
    /// Standard error of the rate as a share of it; null if unknown.
    pub error: Option<f64>,
    /// Source of the rate, in words.
    pub source: String,
    /// Folders of the records.
    pub runs: Vec<String>,
}

/// The rate that a number of nodes holds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Number.
    pub n: f64,
    /// Rate, requests per second; of rival models that of the worst.
    pub per_s: f64,
    /// 90 % prediction interval, requests per second.
    pub interval_per_s: (f64, f64),
    /// `measured`, `interpolated` or `predicted`.
    pub source: &'static str,
    /// The model with the lowest prediction, if predicted.
    pub worst: Option<&'static str>,
    /// Highest prediction of a model over the lowest, less 1, if predicted.
    pub disagreement: Option<f64>,
}

impl Row {
    /// Makes a row.
    pub fn of(n: f64, rate: Prediction, source: &Source) -> Self {
        let (source, worst, disagreement) = match source {
            Source::Measured => ("measured", None, None),
            Source::Interpolated => ("interpolated", None, None),
            Source::Extrapolated { worst, disagreement } => {
                ("predicted", Some(worst.name()), Some(*disagreement))
            }
        };
        let interval_per_s = (rate.low_per_s, rate.high_per_s);
        Self { n, per_s: rate.per_s, interval_per_s, source, worst, disagreement }
    }
}

/// A model that was fitted.
#[derive(Clone, Debug, Serialize)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    /// Its parameters, in words.
    pub parameters: String,
    /// Sum of its squared residuals, in squared standard errors.
    pub squares: f64,
    /// True if the points rule it out.
    pub ruled_out: bool,
    /// Its prediction for the largest number of nodes in the table, requests per second.
    pub per_s: f64,
    /// 90 % prediction interval of that, requests per second.
    pub interval_per_s: (f64, f64),
}

/// A peak.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Peak {
    /// Number of nodes.
    pub n: f64,
    /// κ of the universal scalability law.
    pub kappa: f64,
    /// Its interval at the level of 99.99 %.
    pub kappa_interval: (f64, f64),
}

/// An answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Its question: `nodes`, `one-lost`, `more-traffic`, `first-resource`, `twice-the-cores` or `peak`.
    pub question: &'static str,
    /// False if it was declined.
    pub answered: bool,
    /// The answer in words.
    pub words: String,
    /// Figures of the answer.
    #[serde(flatten)]
    pub figures: Map<String, Value>,
}

impl Answer {
    /// Returns an answer without figures.
    pub fn new(question: &'static str, words: impl Into<String>) -> Self {
        Self { question, answered: true, words: words.into(), figures: Map::new() }
    }

    /// Returns a question that is declined.
    pub fn declined(question: &'static str, words: impl Into<String>) -> Self {
        Self { answered: false, ..Self::new(question, words) }
    }

    /// Adds a figure.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.figures.insert(name.to_owned(), value.into());
        self
    }
}

/// Result of measuring the predicted configuration.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// Number of nodes.
    pub n: f64,
    /// Command that started the target.
    pub serve: String,
    /// Predicted rate, requests per second.
    pub predicted_per_s: f64,
    /// 90 % prediction interval, requests per second.
    pub interval_per_s: (f64, f64),
    /// Measured rate, requests per second.
    pub measured_per_s: f64,
    /// Measured over predicted rate, less 1.
    pub error: f64,
    /// True if the measured rate lies in the interval.
    pub inside: bool,
    /// The result in words.
    pub words: String,
    /// Folders of the records.
    pub runs: Vec<String>,
}
