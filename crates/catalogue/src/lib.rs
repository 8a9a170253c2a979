//! The catalogue: jobs in TOML, compiled in or of users' own, and how they are run.
//!
//! ```
//! let job = plimsoll_catalogue::find("voter").unwrap();
//! assert!(plimsoll_catalogue::names().contains(&job.name.as_str()));
//! ```

mod commands;
pub mod engines;
pub mod hooks;
pub mod install;
pub mod job;
pub mod near_miss;
pub mod plan;
mod quickstart;
pub mod runner;
mod sheet;
mod step;
mod system_check;
pub mod vars;

use anyhow::Result;
pub use commands::{
    COMMANDS_OF_FILES, CheckArgs, CleanArgs, CommandLine, InfoArgs, InstallArgs, ListArgs, RunArgs,
    command_line,
};
use job::Job;
use plimsoll_job::usage::usage;
use std::path::Path;

/// The jobs of the folder `jobs`, by the name of their file.
const FILES: [(&str, &str); 6] = [
    ("fbench", include_str!("../jobs/fbench.toml")),
    ("feedsim_autoscale", include_str!("../jobs/feedsim_autoscale.toml")),
    ("feedsim_default", include_str!("../jobs/feedsim_default.toml")),
    ("feedsim_mini", include_str!("../jobs/feedsim_mini.toml")),
    ("search-table", include_str!("../jobs/search-table.toml")),
    ("voter", include_str!("../jobs/voter.toml")),
];

/// The job that is code, since its second rate depends on the result of its first.
pub const QUICKSTART: &str = "quickstart";
/// Description of the quickstart.
pub const QUICKSTART_IS: &str = "A real search server, a real text and a real query mix, measured closed and open in half a minute.";

/// The names of all jobs, in the order of the alphabet.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = FILES.iter().map(|(name, _)| *name).chain([QUICKSTART]).collect();
    names.sort_unstable();
    names
}

/// All jobs that are TOML.
///
/// # Errors
/// Never, unless a file of the catalogue is wrong, which a test finds.
pub fn all() -> Result<Vec<Job>> {
    FILES.iter().map(|(name, text)| Job::parse(text, &format!("jobs/{name}.toml"))).collect()
}

/// A job of the catalogue.
///
/// # Errors
/// No such job; names the one that was probably meant.
pub fn find(name: &str) -> Result<Job> {
    match FILES.iter().find(|(known, _)| *known == name) {
        Some((known, text)) => Job::parse(text, &format!("jobs/{known}.toml")),
        None if Path::new(name).is_file() => Err(usage(format!(
            "'{name}' is a file, but not of a job: the name of such a file ends in .toml"
        ))),
        None => Err(near_miss::unknown("job", name, &names())),
    }
}

/// Returns true if a file holds a job, and not a scenario: it has a table `[job]`.
#[must_use]
pub fn is_job(text: &str) -> bool {
    match toml::from_str::<toml::Table>(text) {
        Ok(table) => table.get("job").is_some_and(toml::Value::is_table),
        // What is no TOML is read as what it was most likely meant to be, so that the message fits.
        Err(_) => text.lines().any(|line| line.trim() == "[job]"),
    }
}

/// Reads a job of a user's own.
///
/// # Errors
/// A file that cannot be read, or is wrong.
pub fn read(path: &Path) -> Result<Job> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| usage(format!("{shown}: {error}; name a job file")))?;
    if !is_job(&text) {
        return Err(usage(format!(
            "{shown}: this file is not a job: it has no table [job]; plimsoll run --dry-run {shown} prints a scenario"
        )));
    }
    Job::parse(&text, &shown.to_string())
}

/// A job of the catalogue, or of a file that ends in `.toml`.
///
/// # Errors
/// As [`find`] and [`read`].
pub fn named(name: &str) -> Result<Job> {
    let path = Path::new(name);
    if path.extension().is_some_and(|extension| extension == "toml") {
        read(path)
    } else {
        find(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_of_the_catalogue_is_sound_and_has_its_files_name() {
        for ((name, _), job) in FILES.iter().zip(all().unwrap()) {
            assert_eq!(*name, job.name);
            assert!(!job.description.is_empty() && !job.tags.is_empty(), "{name}");
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs");
        let files = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(files, FILES.len(), "a file of jobs/ is not compiled in");
        let sorted = names();
        assert!(sorted.is_sorted(), "{sorted:?}");
    }

    #[test]
    fn a_job_and_a_scenario_are_told_apart() {
        assert!(is_job("[job]\nname = \"x\"\n") && is_job("[job]\nbroken"));
        assert!(!is_job("job = \"x\"\ntargets = []\n") && !is_job("targets = [\n"));
        let told = find("feedsim_autoscal").unwrap_err().to_string();
        assert!(told.contains("did you mean 'feedsim_autoscale'?"), "{told}");
    }
}
