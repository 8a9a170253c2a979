//! Tables beside the answers: rates by number of nodes, models, measurements, assumptions; and the users of a matrix.

use super::Known;
use crate::configuration::Configuration;
use crate::sizing::{Answer, Measured, Model, Peak, Row, per_second};
use plimsoll_decide::sizing::fit::{self, Fitted};
use plimsoll_decide::sizing::models::Kind;
use plimsoll_decide::sizing::scaling::Scaling;
use plimsoll_decide::sizing::{BETWEEN_RUNS, Point};
use plimsoll_report::number::{percent, significant};

/// Most rows of the table.
const ROWS_MAX: usize = 16;

impl Known<'_> {
    /// The numbers of nodes of the table.
    pub(super) fn rows(&self, answers: &[Answer]) -> Vec<Row> {
        let all = self.scaling.candidates();
        let measured = |n: f64| self.scaling.points().iter().any(|point| point.n == n);
        let asked: Vec<f64> =
            answers.iter().filter_map(|answer| answer.figures.get("nodes")?.as_f64()).collect();
        let every = all.len().div_ceil(ROWS_MAX).max(1);
        let shown: Vec<f64> = all
            .iter()
            .enumerate()
            .filter(|(i, n)| {
                i % every == 0
                    || measured(**n)
                    || asked.contains(n)
                    || i + 1 == all.len()
                    || self.question.nodes == Some(**n)
            })
            .map(|(_, n)| *n)
            .collect();
        let held = self.scaling.all(&shown).unwrap_or_default();
        held.iter().map(|one| Row::of(one.n, one.rate, &one.source)).collect()
    }

    pub(super) fn assumptions(&self, rows: &[Row]) -> Vec<String> {
        let unit = self.question.unit;
        let mut said = vec![format!(
            "Requests, {unit} and machines are like those of the records, and requests are spread evenly over the {unit}."
        )];
        if self
            .configurations
            .iter()
            .any(|one| one.points.iter().any(|point| point.error.is_some()))
        {
            said.push(format!(
                "Two runs of the same target differ by {} (standard error) beyond what their own seconds show.",
                percent(BETWEEN_RUNS)
            ));
        } else {
            said.push("The errors of the measured rates are unknown; those of the best model stand for them.".to_owned());
        }
        if rows.iter().any(|row| row.source == "predicted") {
            said.push(format!(
                "Beyond {} the rate follows one of the models that the points do not rule out.",
                self.counted(self.scaling.points().last().map_or(0.0, |point| point.n))
            ));
        }
        if self.question.limit.is_some() {
            said.push(
                "The percentile of a number that was not measured is that of the nearest measured one at the same share of the rate it holds."
                    .to_owned(),
            );
        }
        said
    }
}

/// Returns the parameters of a model in words.
fn parameters(fitted: &Fitted) -> String {
    let [first, second] = fitted.parameters.map(significant);
    match fitted.kind {
        Kind::Linear => String::new(),
        Kind::Amdahl => format!("σ {first}"),
        Kind::Usl => format!("σ {first}, κ {second}"),
        Kind::Queue => format!("limit of {first} mean service times"),
    }
}

/// A model with its prediction for the largest number of nodes.
pub(super) fn model(fitted: &Fitted) -> Option<Model> {
    let prediction = fitted.predictions.first()?;
    Some(Model {
        name: fitted.kind.name(),
        parameters: parameters(fitted),
        squares: fitted.squares,
        ruled_out: fitted.ruled_out,
        per_s: prediction.per_s,
        interval_per_s: (prediction.low_per_s, prediction.high_per_s),
    })
}

/// A peak as it is written.
pub(super) fn peak(peak: fit::Peak) -> Peak {
    Peak { n: peak.n, kappa: peak.kappa, kappa_interval: peak.kappa_interval }
}

/// The measurements.
pub(super) fn measured(known: &Known<'_>) -> Vec<Measured> {
    let points = known.scaling.points();
    let one = |configuration: &Configuration| {
        let point = points.iter().find(|point| point.n == configuration.n)?;
        Some(Measured {
            n: point.n,
            per_s: point.per_s,
            error: point.error.map(|error| error.share),
            source: configuration.source.clone(),
            runs: configuration.runs.iter().map(|run| run.folder.display().to_string()).collect(),
        })
    };
    known.configurations.iter().filter_map(one).collect()
}

/// Returns the answer about the users of a matrix: how the rate grows with them.
pub fn users(points: &[Point]) -> Answer {
    const QUESTION: &str = "users";
    let scaling = Scaling::of(points, None, "users");
    let (Some(last), declines) = (scaling.points().last(), scaling.declines()) else {
        return Answer::declined(QUESTION, "the matrix has no rate");
    };
    if let Some(reason) = declines {
        return Answer::declined(
            QUESTION,
            format!("the rate of more users is not predicted: {reason}"),
        );
    }
    let most = scaling.most();
    let fit = scaling.fit(&[]).ok();
    let peak = fit.and_then(|fit| fit.peak).map_or("no peak is seen".to_owned(), |peak| {
        format!("the rate falls beyond about {} users", significant(peak.n))
    });
    let Ok(held) = scaling.held(most) else {
        return Answer::declined(QUESTION, "the rate of more users is not predicted");
    };
    Answer::new(
        QUESTION,
        format!(
            "{} users get {}; {most} users would get {} to {}; {peak}",
            last.n,
            per_second(last.per_s),
            significant(held.rate.low_per_s),
            per_second(held.rate.high_per_s)
        ),
    )
    .with("per_s", held.rate.per_s)
}
