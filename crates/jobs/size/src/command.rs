//! `plimsoll size`: flags, and the way from records to an answer.

use crate::answers::{Known, Question, answer, users};
use crate::check::{Checked, check};
use crate::configuration::{Configuration, Limit, users_of};
use crate::records::{At, NotValid, Sized, UNITS, read};
use crate::sizing::Sizing;
use crate::{page, text};
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::slo::Slo;
use plimsoll_core::units::Rate;
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{note, print_out};
use plimsoll_job::usage::{one_line, usage};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Runs of 1, 2, 3 and 4 nodes by their names; how many nodes for 700 requests per second?
    plimsoll size --at 1=one --at 2=two --at 3=three --at 4=four --rate 700 --headroom 30%
  Runs that say themselves how many workers they had (--label workers=2), or searches:
    plimsoll size one two three four --rate 1500
  Runs with few and many clients on each number of nodes, and a limit on their times:
    plimsoll size --at 1=slow-1 --at 1=fast-1 --at 2=slow-2 --at 2=fast-2 \\
      --slo p95=40ms --rate 300
  One search: what does one node hold, and what do 10 % more requests cost?
    plimsoll size runs/20261122T101500.000Z-seek-1a2b3c4d --rate 120
  Measure the predicted number of workers, and print the error of the prediction:
    plimsoll size one two three four --nodes 8 --check \\
      --serve 'plimsoll serve queue --servers {nodes} --service exponential:4ms --port 0'
  As a web page:
    plimsoll size one two three four --rate 1000 --format html > size.html

Between measured numbers of nodes the measured curve is interpolated. Beyond the largest one, at
most twice as far, rival models are fitted, and the answer is the worst of them with a 90 %
prediction interval. This needs at least 4 numbers of nodes, the largest at least 4 times the
smallest.

Exit codes: 0 answered (--check: inside the interval), 2 a question about the number of nodes was
declined, or the check was outside of the interval, 3 a run is not valid, 64 wrong usage.";

const SHORT: &str = "plimsoll size --help explains each option and has examples.";

/// Predict how many nodes a rate needs, from records
///
/// From searches of the load line, matrices of users, or runs on several numbers of nodes, workers or cores.
#[derive(Args, Debug)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub struct SizeArgs {
    /// Records whose labels say the number of nodes, or one record
    ///
    /// The label is nodes=N, workers=N or cores=N (--label of the run). A run is named by its folder, its id, its name or a label.
    #[arg(value_name = "RUN")]
    records: Vec<String>,
    /// Record and its number of nodes, such as 4=RUN; may be repeated
    ///
    /// Several records of one number are repeats, or runs at several rates.
    #[arg(long, value_name = "N=RUN", help_heading = "Records")]
    at: Vec<At>,
    /// Unit to count: nodes, workers or cores [default: as labelled]
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WORD",
        help_heading = "Records"
    )]
    unit: Option<Unit>,
    /// Folder of run records
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Records")]
    runs: PathBuf,

    /// Requests per second that must be held
    #[arg(long, value_name = "PER_S", help_heading = "Question")]
    rate: Option<Rate>,
    /// Limit on a percentile, such as p95=100ms
    ///
    /// The default is the limit of the searches. Runs need several rates around the limit. Without a limit, the highest
    /// throughput of the runs is what their nodes hold.
    #[arg(long, value_name = "LIMIT", help_heading = "Question")]
    slo: Option<String>,
    /// Growth of --rate for which there must be room
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = share, help_heading = "Question")]
    headroom: f64,
    /// Number of nodes whose rate is asked for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Question")]
    nodes: Option<u32>,

    /// Measure the predicted number of nodes too, and print the error
    #[arg(long, requires = "serve", help_heading = "Check")]
    check: bool,
    /// Command that starts the target, with {nodes} for the number of nodes
    ///
    /// It prints 'ready KIND URL' as plimsoll serve does, or --target names the address. It is ended with SIGTERM.
    #[arg(long, value_name = "COMMAND", requires = "check", help_heading = "Check")]
    serve: Option<String>,
    /// Address of the target that --serve starts [default: that of its ready line]
    #[arg(long, value_name = "URL", requires = "check", help_heading = "Check")]
    target: Option<String>,

    /// Output format: text, json or html
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        default_value = "text",
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Html,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Unit {
    Nodes,
    Workers,
    Cores,
}

/// A share in percent, as a number.
fn share(text: &str) -> Result<f64, String> {
    let wrong = || "write a share in percent, such as 30%".to_owned();
    let percent: f64 =
        text.strip_suffix('%').ok_or_else(wrong)?.trim().parse().map_err(|_| wrong())?;
    if (0.0..=1000.0).contains(&percent) {
        Ok(percent / 100.0)
    } else {
        Err("use 0% to 1000%".to_owned())
    }
}

impl Job for SizeArgs {
    const NAME: &'static str = "size";

    fn run(&self, _program: &Program) -> Result<u8> {
        if self.rate.is_none() && self.headroom > 0.0 {
            return Err(usage("--headroom is the growth of --rate; give both, or leave it out"));
        }
        let sized = match read(&self.at, &self.records, &self.runs) {
            Err(error) if error.is::<NotValid>() => {
                note(&format!("plimsoll: {}", one_line(&error)));
                return Ok(exit::NOT_VALID);
            }
            read => read?,
        };
        let question = self.question(&sized)?;
        let configurations = configurations(&sized, &question)?;
        let known = Known::of(&configurations, &question);
        let mut sizing = answer(&known);
        self.users(&sized, &mut sizing);
        if self.check {
            self.measure(&known, &mut sizing)?;
        }
        print_out(&match self.format {
            Format::Text => text::render(&sizing),
            Format::Json => serde_json::to_string_pretty(&sizing)? + "\n",
            Format::Html => plimsoll_job::results::html(&page::sheet(&sizing)),
        })?;
        let outside = sizing.check.as_ref().is_some_and(|check| !check.inside);
        let missed = outside || (sizing.declined.is_some() && sizing.check.is_none());
        Ok(if missed { exit::SLO_MISSED } else { exit::FINE })
    }
}

impl SizeArgs {
    fn question(&self, sized: &[Sized]) -> Result<Question> {
        if let Some(rate) = self.rate
            && rate.per_s <= 0.0
        {
            return Err(usage("--rate: use a rate above 0, in requests per second"));
        }
        let labels: Vec<&'static str> = sized.iter().filter_map(|one| one.unit).collect();
        let unit = match self.unit {
            Some(Unit::Nodes) => UNITS[0],
            Some(Unit::Workers) => UNITS[1],
            Some(Unit::Cores) => UNITS[2],
            None => labels.first().copied().unwrap_or(UNITS[0]),
        };
        if let Some(other) = labels.iter().find(|label| **label != labels[0]) {
            return Err(usage(format!(
                "some runs have the label {}=N and others {other}=N; name records with one of them",
                labels[0]
            )));
        }
        let limit = match &self.slo {
            Some(text) => {
                let slo: Slo = text.parse().map_err(|error| usage(format!("--slo: {error}")))?;
                Some(Limit::of(&slo, text)?)
            }
            None => limit_of(sized)?,
        };
        let nodes = self.nodes.map(f64::from);
        Ok(Question {
            rate_per_s: self.rate.map(|rate| rate.per_s),
            headroom: self.headroom,
            limit,
            unit,
            nodes,
        })
    }

    /// Adds what a single matrix says about its users.
    fn users(&self, sized: &[Sized], sizing: &mut Sizing) {
        if let [one] = sized
            && let Some(search) = one.loaded.record.job_results.search()
        {
            let engines: Vec<&str> =
                search.cells.iter().map(|cell| cell.key.engine.as_str()).collect();
            if engines.windows(2).all(|pair| pair[0] == pair[1]) {
                sizing.answers.push(users(&users_of(search)));
            }
        }
    }

    /// Measures the predicted number of nodes.
    fn measure(&self, known: &Known<'_>, sizing: &mut Sizing) -> Result<()> {
        let answered = sizing.answers.iter().find(|answer| answer.question == "nodes");
        let answered = answered.and_then(|answer| answer.figures.get("nodes")?.as_f64());
        let Some(n) = known.question.nodes.or(answered) else {
            return Err(usage(match &sizing.declined {
                Some(reason) => format!("--check has no number of nodes to measure: {reason}"),
                None => "--check needs a number of nodes: give --nodes N, or --rate".to_owned(),
            }));
        };
        let held = known.scaling.held(n).map_err(|reason| usage(format!("--check: {reason}")))?;
        let checked = Checked {
            held: &held,
            serve: self.serve.as_deref().unwrap_or_default(),
            target: self.target.as_deref(),
            runs: &self.runs,
        };
        sizing.check = Some(check(known, &checked)?);
        Ok(())
    }
}

/// The limit of searches, if all records are searches with one limit on a percentile.
fn limit_of(sized: &[Sized]) -> Result<Option<Limit>> {
    let mut found: Option<(Limit, String)> = None;
    for one in sized {
        let Some(seek) = one.loaded.record.job_results.seek() else { return Ok(None) };
        let folder = one.loaded.folder.display();
        let binding = seek.finding.binding.as_ref();
        let label = match seek.finding.limits.as_slice() {
            [only] => &only.label,
            _ => binding.ok_or_else(|| {
                usage(format!("{folder}: the search had several limits; name one with --slo"))
            })?,
        };
        let slo: Slo = label.parse().map_err(|_| {
            usage(format!("{folder}: the search had the limit {label}; sizing needs a limit on a percentile of all requests"))
        })?;
        let limit = Limit::of(&slo, label)?;
        match &found {
            Some((first, other)) if *first != limit => {
                return Err(usage(format!(
                    "{other} had the limit {}, {folder} had {}; name searches with the same limit",
                    first.text, limit.text
                )));
            }
            Some(_) => {}
            None => found = Some((limit, folder.to_string())),
        }
    }
    Ok(found.map(|(limit, _)| limit))
}

/// The records by number of nodes, fewest first.
fn configurations(sized: &[Sized], question: &Question) -> Result<Vec<Configuration>> {
    let mut ns: Vec<f64> = sized.iter().map(|one| one.n).collect();
    ns.sort_by(f64::total_cmp);
    ns.dedup();
    let of = |n: &f64| {
        let own: Vec<&Sized> = sized.iter().filter(|one| one.n == *n).collect();
        Configuration::of(*n, &own, question.limit.as_ref(), question.unit)
    };
    ns.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn headroom_is_a_share_in_percent() {
        assert_eq!(share("30%"), Ok(0.3));
        for wrong in ["30", "x%", "-1%", "", "1e9%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
