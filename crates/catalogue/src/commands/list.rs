//! `plimsoll list`: the jobs, and the engines that can be targets.

use super::info::engine_json;
use crate::engines::Engine;
use crate::job::Job;
use crate::near_miss::unknown;
use crate::{QUICKSTART, QUICKSTART_IS, all};
use anyhow::Result;
use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use plimsoll_job::exit;
use plimsoll_job::job::{self, Program};
use plimsoll_job::output::print_out;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

const LIST_EXAMPLES: &str = "\
Examples:
  All jobs:                  plimsoll list
  By scope:                  plimsoll list --by-scope
  Those with a tag:          plimsoll list recommendation
  For programs:              plimsoll list --json";

/// List the jobs, and the engines that can be targets
#[derive(Args, Debug)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ListArgs {
    /// Only jobs with this tag
    #[arg(value_name = "TAG")]
    tag: Option<String>,
    /// Group by scope
    ///
    /// The kind of system that a job measures.
    #[arg(short = 's', long)]
    by_scope: bool,
    /// Group by component
    ///
    /// The part of a machine that a job loads.
    #[arg(short = 'c', long, conflicts_with = "by_scope")]
    by_component: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["by_scope", "by_component"])]
    json: bool,
}

/// Entry of `list` for a job.
struct Listed {
    name: String,
    tags: BTreeMap<String, Vec<String>>,
    description: String,
}

fn listed() -> Result<Vec<Listed>> {
    let listed = |job: Job| Listed { name: job.name, tags: job.tags, description: job.description };
    let mut jobs: Vec<Listed> = all()?.into_iter().map(listed).collect();
    let tags = [("scope", vec!["search"]), ("component", vec!["cpu", "memory", "network"])];
    let tags = tags
        .map(|(group, words)| (group.to_owned(), words.into_iter().map(str::to_owned).collect()));
    jobs.push(Listed {
        name: QUICKSTART.to_owned(),
        tags: tags.into(),
        description: QUICKSTART_IS.to_owned(),
    });
    jobs.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(jobs)
}

impl job::Job for ListArgs {
    const NAME: &'static str = "list";

    fn run(&self, _program: &Program) -> Result<u8> {
        list(self)
    }
}

/// Runs `list`.
///
/// # Errors
/// A tag that no job has.
fn list(args: &ListArgs) -> Result<u8> {
    let mut jobs = listed()?;
    let has = |job: &Listed, tag: &str| job.tags.values().flatten().any(|own| own == tag);
    if let Some(tag) = &args.tag {
        let mut known: Vec<&str> =
            jobs.iter().flat_map(|job| job.tags.values().flatten()).map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        if !known.contains(&tag.as_str()) {
            return Err(unknown("tag", tag, &known));
        }
        jobs.retain(|job| has(job, tag));
    }
    if args.json {
        let about = |job: &Listed| json!({"name": job.name, "tags": job.tags, "description": job.description});
        let jobs: Vec<Value> = jobs.iter().map(about).collect();
        let engines: Vec<Value> = Engine::ALL.iter().map(|engine| engine_json(*engine)).collect();
        let all = json!({"schema": "plimsoll.jobs/1", "jobs": jobs, "engines": engines});
        print_out(&format!("{all:#}\n"))?;
        return Ok(exit::FINE);
    }
    let group = match (args.by_scope, args.by_component) {
        (true, _) => Some("scope"),
        (_, true) => Some("component"),
        _ => None,
    };
    let mut out = String::new();
    match group {
        None => {
            table(&mut out, jobs.iter());
            if args.tag.is_none() {
                engines_table(&mut out);
            }
        }
        Some(group) => {
            let words = |job: &Listed| job.tags.get(group).cloned().unwrap_or_default();
            let mut all: Vec<String> = jobs.iter().flat_map(words).collect();
            all.sort_unstable();
            all.dedup();
            for word in all {
                // Writing to a text cannot fail.
                let _ = writeln!(out, "{group}: {word}");
                table(&mut out, jobs.iter().filter(|job| words(job).contains(&word)));
                out.push('\n');
            }
        }
    }
    print_out(&out)?;
    Ok(exit::FINE)
}

fn table<'a>(out: &mut String, jobs: impl Iterator<Item = &'a Listed>) {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(100);
    table.set_header(["Job", "Tags", "Description"]);
    for job in jobs {
        let tags: Vec<&str> = job.tags.values().flatten().map(String::as_str).collect();
        table.add_row([job.name.as_str(), &tags.join(", "), &job.description]);
    }
    write_table(out, &table);
}

fn write_table(out: &mut String, table: &Table) {
    for line in table.lines() {
        // Writing to a text cannot fail.
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn engines_table(out: &mut String) {
    out.push('\n');
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(100);
    table.set_header(["Engine", "Version", "Installed"]);
    for engine in Engine::ALL {
        let state = engine.state();
        let installed = match &state.place {
            Some(place) => place.display().to_string(),
            None => format!("no; plimsoll install {}", engine.name()),
        };
        table.add_row([engine.name(), &state.version, &installed]);
    }
    write_table(out, &table);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    #[test]
    fn lists_every_job() {
        let listed: Vec<String> = listed().unwrap().into_iter().map(|job| job.name).collect();
        assert_eq!(listed, names());
    }
}
