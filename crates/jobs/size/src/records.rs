//! Records as they are named on the command line, with their numbers of nodes.

use anyhow::Result;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_job::usage::usage;
use plimsoll_record::RunRecord;
use plimsoll_report::find::Handle;
use plimsoll_report::history::past_runs;
use plimsoll_report::load::{Loaded, load};
use plimsoll_report::plain::printable;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Words for what is counted, which are also keys of labels.
pub const UNITS: [&str; 3] = ["nodes", "workers", "cores"];

/// A run and its number of nodes: `4=RUN`.
#[derive(Clone, Debug, PartialEq)]
pub struct At {
    /// Number of nodes.
    pub n: f64,
    /// Run.
    pub run: String,
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write N=RUN, such as 4=runs/FOLDER";
        let (n, run) = text.split_once('=').ok_or(form)?;
        let n: u32 = n.trim().parse().ok().filter(|n| *n > 0).ok_or_else(|| {
            format!("'{}' is not a number of nodes above 0; {form}", printable(n))
        })?;
        if run.is_empty() {
            return Err(format!("the run is missing; {form}"));
        }
        Ok(Self { n: f64::from(n), run: run.to_owned() })
    }
}

/// A record with its number of nodes.
#[derive(Clone, Debug)]
pub struct Sized {
    /// Number of nodes.
    pub n: f64,
    /// The word for them that its label has.
    pub unit: Option<&'static str>,
    /// The record.
    pub loaded: Loaded,
}

/// Reads the records.
///
/// # Errors
/// If one is not there, has no number of nodes, or does not belong to the others.
pub fn read(at: &[At], runs: &[String], dir: &Path) -> Result<Vec<Sized>> {
    let mut found = Vec::new();
    for one in at {
        let loaded = load(&folder(&one.run, dir)?)?;
        found.push(Sized { n: one.n, unit: None, loaded });
    }
    for run in runs {
        let loaded = load(&folder(run, dir)?)?;
        let (n, unit) = match labelled(&loaded.record) {
            Some((n, unit)) => (n, Some(unit)),
            None if at.is_empty() && runs.len() == 1 => (1.0, None),
            None => {
                return Err(usage(format!(
                    "{}: the record does not say how many nodes it measured; write --at N={}, or label runs with --label nodes=N",
                    printable(run),
                    printable(run)
                )));
            }
        };
        found.push(Sized { n, unit, loaded });
    }
    if found.is_empty() {
        return Err(usage(
            "name records: plimsoll size --at 1=RUN --at 2=RUN --at 4=RUN, or a single RUN",
        ));
    }
    found.iter().try_for_each(check)?;
    for other in &found[1..] {
        fit_together(&found[0].loaded, &other.loaded)?;
    }
    Ok(found)
}

/// The folder of the run that a word names: a path, an id, a name or a label.
fn folder(word: &str, dir: &Path) -> Result<PathBuf> {
    let path = Path::new(word);
    if path.exists() || word.contains('/') {
        return Ok(path.to_owned());
    }
    let past = past_runs(dir).map(|past| past.runs).unwrap_or_default();
    let found = past.iter().rfind(|run| Handle::from(*run).matches(word));
    found.map(|run| run.folder.clone()).ok_or_else(|| {
        usage(format!(
            "there is no run '{}' in {}; 'plimsoll runs' lists them, and a folder can be named too",
            printable(word),
            dir.display()
        ))
    })
}

/// The number of nodes in a record's labels.
fn labelled(record: &RunRecord) -> Option<(f64, &'static str)> {
    UNITS.iter().find_map(|unit| {
        let n: u32 = record.labels.get(*unit)?.parse().ok().filter(|n| *n > 0)?;
        Some((f64::from(n), *unit))
    })
}

/// A record whose run is not valid: one line, and exit code 3.
#[derive(Debug)]
pub struct NotValid(String);

impl fmt::Display for NotValid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotValid {}

/// Refuses a record whose figures are not the target's.
fn check(one: &Sized) -> Result<()> {
    let verdict = &one.loaded.record.verdict;
    let has_line = one.loaded.record.job_results.seek().is_some_and(|found| {
        found.finding.estimate_per_s.is_some() && found.finding.interval_per_s.is_some()
    });
    match verdict.kind {
        VerdictKind::Valid | VerdictKind::Imported => Ok(()),
        VerdictKind::BudgetTooSmall if has_line => Ok(()),
        kind => {
            let reason = verdict.reasons.first().map_or("measure again", String::as_str);
            let folder = one.loaded.folder.display();
            let kind = kind.name();
            Err(NotValid(format!(
                "{folder}: the run is {kind}, so its figures are not used; {reason}"
            ))
            .into())
        }
    }
}

/// Refuses records that do not measure the same.
fn fit_together(a: &Loaded, b: &Loaded) -> Result<()> {
    let differ = |what: &str, of: &dyn Fn(&Loaded) -> Option<String>| {
        let (one, other) = (of(a), of(b));
        let both = one.zip(other).filter(|(one, other)| one != other);
        both.map_or(Ok(()), |(one, other)| {
            Err(usage(format!(
                "the records do not measure the same: {what} '{}' in {}, '{}' in {}; name records that differ in the number of nodes only",
                printable(&one),
                a.folder.display(),
                printable(&other),
                b.folder.display()
            )))
        })
    };
    differ("job", &|one| Some(one.record.job.clone()))?;
    differ("target", &|one| kind_of_address(&one.record.target.url))?;
    for field in ["queries", "method", "body", "body_file", "rows", "http2"] {
        differ(field, &|one| one.record.scenario.get(field).map(Value::to_string))?;
    }
    differ("served by", &|one| {
        let resources = one.record.job_results.resources()?;
        let target = resources.targets().next()?;
        Some(target.name.clone())
    })
}

/// Scheme and path of an address: hosts and ports of the same service may differ.
fn kind_of_address(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    Some(format!("{scheme}://.../{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_nodes_stands_before_its_run() {
        assert_eq!("4=runs/a".parse::<At>(), Ok(At { n: 4.0, run: "runs/a".to_owned() }));
        for wrong in ["runs/a", "0=runs/a", "x=runs/a", "4="] {
            assert!(wrong.parse::<At>().unwrap_err().contains("write N=RUN"), "{wrong}");
        }
    }

    #[test]
    fn addresses_differ_in_host_and_port_only() {
        assert_eq!(kind_of_address("http://a:1/x"), kind_of_address("http://b:2/x"));
        assert_ne!(kind_of_address("http://a:1/x"), kind_of_address("http://a:1/y"));
    }
}
