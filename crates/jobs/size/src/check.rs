//! `--check`: the predicted configuration is started and measured as the records were, and compared with the prediction.

mod serving;

use crate::answers::Known;
use crate::configuration::Configuration;
use crate::records::Sized;
use crate::sizing::{Check, per_second};
use anyhow::{Context, Result, bail};
use plimsoll_decide::sizing::scaling::{Held, Scaling};
use plimsoll_job::child::{End, follow, plimsoll};
use plimsoll_job::output::note;
use plimsoll_job::usage::usage;
use plimsoll_record::RunRecord;
use plimsoll_report::history::past_runs;
use plimsoll_report::load::{Loaded, load};
use plimsoll_report::number::{percent, significant};
use serving::{Address, Served};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// The prediction that is checked, and the way to measure it.
pub struct Checked<'a> {
    /// The prediction.
    pub held: &'a Held,
    /// Command that starts the target.
    pub serve: &'a str,
    /// Its address, if it does not print one.
    pub target: Option<&'a str>,
    /// Folder of run records.
    pub runs: &'a Path,
}

/// Longest time of one run.
const RUN_WITHIN: Duration = Duration::from_secs(6 * 3600);
/// Time that a run has to end once it is asked to.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures the predicted number of nodes.
///
/// # Errors
/// If the target does not start, or a run fails.
pub fn check(known: &Known<'_>, checked: &Checked<'_>) -> Result<Check> {
    let n = checked.held.n;
    let predicted = checked.held.rate;
    let unit = known.question.unit;
    let commands = commands(known, checked.held)?;
    let command = checked.serve.replace("{n}", &n.to_string()).replace("{nodes}", &n.to_string());
    if command == checked.serve {
        return Err(usage(format!("--serve: write {{nodes}} where the number of {unit} stands")));
    }
    note(&format!("plimsoll: checking {n} {unit}: {command}"));
    let served = Served::start(&command, checked.target)?;
    let mut loaded = Vec::new();
    for (index, (record, words)) in commands.iter().enumerate() {
        loaded.push(run(record, words, &served.address, (index, n, unit), checked.runs)?);
    }
    drop(served);
    let sized: Vec<Sized> =
        loaded.iter().map(|one| Sized { n, unit: None, loaded: one.clone() }).collect();
    let runs = loaded.iter().map(|one| one.folder.display().to_string()).collect();
    let sized: Vec<&Sized> = sized.iter().collect();
    let own = Configuration::of(n, &sized, known.question.limit.as_ref(), unit)
        .with_context(|| format!("the check of {n} {unit} has no rate"))?;
    let pooled = Scaling::of(&own.points, None, unit);
    let measured_per_s = pooled.points().first().map_or(0.0, |point| point.per_s);
    let error = measured_per_s / predicted.per_s - 1.0;
    let inside = predicted.holds(measured_per_s);
    let words = format!(
        "{n} {unit} were measured to hold {}, {} % {} than the {} predicted; this is {} the {} prediction interval, {} to {}",
        per_second(measured_per_s),
        significant(100.0 * error.abs()),
        if error < 0.0 { "less" } else { "more" },
        per_second(predicted.per_s),
        if inside { "inside" } else { "outside of" },
        percent(known.scaling_level()),
        significant(predicted.low_per_s),
        per_second(predicted.high_per_s),
    );
    Ok(Check {
        n,
        serve: command,
        predicted_per_s: predicted.per_s,
        interval_per_s: (predicted.low_per_s, predicted.high_per_s),
        measured_per_s,
        error,
        inside,
        words,
        runs,
    })
}

/// The commands of the records of the largest number of nodes, each with its record. A run at a fixed rate becomes three runs
/// around the prediction.
fn commands<'a>(known: &'a Known<'_>, held: &Held) -> Result<Vec<(&'a RunRecord, Vec<String>)>> {
    let largest = known.configurations.last().context("no configuration")?;
    let first = &largest.runs[0];
    if first.record.command.is_empty() || first.record.job_results.search().is_some() {
        return Err(usage(format!(
            "{}: --check cannot repeat this run; it repeats runs of seek, load and the other jobs with one target",
            first.folder.display()
        )));
    }
    let rate_at = |words: &[String]| {
        words.iter().position(|word| word == "--rate" || word.starts_with("--rate="))
    };
    let is_seek = first.record.job_results.seek().is_some();
    let words = own_words(&first.record);
    let Some(place) = rate_at(&words).filter(|_| !is_seek && known.question.limit.is_some()) else {
        return Ok(vec![(&first.record, words)]);
    };
    let rates = [held.rate.low_per_s * 0.9, held.rate.per_s, held.rate.high_per_s * 1.1];
    let with = |per_s: f64| {
        let mut words = words.clone();
        if words[place] == "--rate" {
            words[place + 1] = format!("{per_s:.3}");
        } else {
            words[place] = format!("--rate={per_s:.3}");
        }
        (&first.record, words)
    };
    Ok(rates.into_iter().map(with).collect())
}

/// The words of a record's command without those that say where its results go.
fn own_words(record: &RunRecord) -> Vec<String> {
    const WITH_VALUE: [&str; 11] = [
        "--label", "--name", "--json", "--html", "--junit", "--csv", "--runs", "--watch", "--live",
        "--otlp", "--stream",
    ];
    let mut words = Vec::new();
    let mut given = record.command.iter().skip(1);
    while let Some(word) = given.next() {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if WITH_VALUE.contains(&name) {
            if name == word {
                given.next();
            }
        } else {
            words.push(word.clone());
        }
    }
    words
}

/// Runs a command against the target, and reads its record.
fn run(
    record: &RunRecord,
    words: &[String],
    address: &Address,
    (index, n, unit): (usize, f64, &str),
    runs: &Path,
) -> Result<Loaded> {
    let before = record.scenario.pointer("/targets/0").and_then(|target| target.as_str());
    let old = Address::of(before.unwrap_or(&record.target.url));
    let name = format!("size-check-{}-{index}", std::process::id());
    let mut words = address.in_place_of(&old, words);
    // A positional list may stand last: flags go before it.
    let flags =
        ["--runs", &runs.display().to_string(), "--name", &name, "--label", &format!("{unit}={n}")]
            .map(ToOwned::to_owned);
    words.splice(1..1, flags);
    let shown = words.join(" ");
    note(&format!("plimsoll: running plimsoll {shown}"));
    let mut command = plimsoll(&words)?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("starting plimsoll {shown}"))?;
    let end = follow(&mut child, RUN_WITHIN, PATIENCE);
    let past = past_runs(runs).map(|past| past.runs).unwrap_or_default();
    let found = past.iter().rfind(|run| run.name == name);
    let folder = match (found, end) {
        (Some(run), End::Exit(_)) => run.folder.clone(),
        (_, end) => bail!("plimsoll {shown} did not leave a record: {end:?}"),
    };
    let loaded = load(&folder)?;
    let kind = loaded.record.verdict.kind;
    if loaded.record.ledger.ok == 0 {
        bail!("{}: the run is {}, and no request succeeded", folder.display(), kind.name());
    }
    Ok(loaded)
}
