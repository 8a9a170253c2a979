//! Resources of target, generator and machine while load is on: what is watched, and how it comes into the record.

mod agents;

use crate::embedded;
use crate::usage::usage;
use agents::Elsewhere;
pub use agents::watch_as_agent;
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_engine::run::RunEnd;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::target::Target;
use plimsoll_record::resources::{GENERATOR, RESOURCES, ResourcesResult};
use plimsoll_report::folder::RunFolder;
use plimsoll_resources::resolve::{Resolved, Search, WatchError, resolve};
use plimsoll_resources::sampling::Sampling;
pub use plimsoll_resources::watch::{Wanted, Watch};
use plimsoll_workloads::edit_distance::near_miss;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Variable of the environment with the processes of targets that `plimsoll run` started for a job, apart by blanks.
pub const TARGETS: &str = "PLIMSOLL_TARGET_PIDS";

/// Most names that an error lists.
const LISTED_MAX: usize = 8;

/// Makes sure that `--watch` names things that exist.
///
/// # Errors
/// No process or group has the name; similar names that run are in the message.
pub fn check(watches: &[Watch]) -> Result<()> {
    if watches.is_empty() {
        return Ok(());
    }
    let search = Search { watches, started: &[], addresses: &[], children: None };
    resolve(&search).map(drop).map_err(|(index, error)| wrong(&watches[index], &error))
}

/// Finds what is watched in a run: what the user named, or the targets on this machine; `None` for nothing at all.
///
/// # Errors
/// As [`check`].
pub fn find(watches: &[Watch], plan: &ShardPlan) -> Result<Option<Resolved>> {
    let addresses = addresses_here(&plan.targets);
    let told = std::env::var(TARGETS).unwrap_or_default();
    let told = told.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
    let started: Vec<u32> = told.chain(embedded::running()).collect();
    let search = Search { watches, started: &started, addresses: &addresses, children: None };
    resolve(&search).map_err(|(index, error)| wrong(&watches[index], &error))
}

/// Finds what the user named, and nothing else: without a name, the machine alone.
///
/// # Errors
/// As [`check`].
pub(crate) fn find_named(watches: &[Watch]) -> Result<Resolved> {
    let search = Search { watches, started: &[], addresses: &[], children: None };
    let found = resolve(&search).map_err(|(index, error)| wrong(&watches[index], &error))?;
    let mut found = found.unwrap_or_default();
    // This process makes no load.
    found.subjects.retain(|one| one.name != GENERATOR);
    Ok(found)
}

/// The same for a job that starts its targets while it is watched, under this name, and that may have others on this machine.
///
/// # Errors
/// As [`check`].
pub fn find_with_children(
    watches: &[Watch],
    targets: &[Target],
    name: &str,
) -> Result<Option<Resolved>> {
    let addresses = addresses_here(targets);
    let search = Search { watches, started: &[], addresses: &addresses, children: Some(name) };
    resolve(&search).map_err(|(index, error)| wrong(&watches[index], &error))
}

fn addresses_here(targets: &[Target]) -> Vec<SocketAddr> {
    let here = targets.iter().filter(|target| target.is_this_machine());
    here.flat_map(|target| target.addresses.iter().copied()).collect()
}

/// The error of one value.
fn wrong(watch: &Watch, error: &WatchError) -> anyhow::Error {
    let hint = match error {
        WatchError::NotFound { name, running } => {
            let all: Vec<&str> = running.iter().map(String::as_str).collect();
            let near: Vec<&str> = similar(name, &all);
            match near.is_empty() {
                // Another process of this name would have been found.
                _ if all.contains(&name.as_str()) => {
                    "; this process itself does not count: start the other one first".to_owned()
                }
                true => "; name a running program, a PID, or a control group".to_owned(),
                false => format!("; similar programs run: {}", near.join(", ")),
            }
        }
        WatchError::NoProcess(_) => "; name a running process".to_owned(),
        WatchError::SameName(_) | WatchError::NothingAndMore => String::new(),
    };
    usage(format!("--watch {watch}: {error}{hint}"))
}

/// Names that may have been meant: those that have the word in them, or the other way round, and the nearest one.
fn similar<'a>(word: &str, all: &[&'a str]) -> Vec<&'a str> {
    let word = word.rsplit('/').next().unwrap_or(word).to_lowercase();
    let is_part = |name: &&&str| {
        let name = name.to_lowercase();
        name.len() > 2 && word.len() > 2 && (name.contains(&word) || word.contains(&name))
    };
    let mut found: Vec<&str> = all.iter().filter(is_part).copied().collect();
    found.extend(near_miss(&word, all).filter(|near| !found.contains(near)));
    found.truncate(LISTED_MAX);
    found
}

/// The sampler of a run, or nothing where nothing is watched.
pub struct Watching {
    sampling: Option<Sampling>,
    /// Agents that watch other machines.
    elsewhere: Option<Elsewhere>,
    /// End of the last second, ns.
    reached_ns: AtomicU64,
    /// Number of parts of the run.
    parts: AtomicU32,
}

impl Watching {
    /// Begins to watch; that it cannot be done is a note and not an error.
    pub fn start(
        found: Option<Resolved>,
        folder: Option<&RunFolder>,
        notes: &mut Vec<String>,
    ) -> Self {
        let path = folder.map(|folder| folder.path().join(RESOURCES));
        let start = |found| Sampling::start(found, path.as_deref());
        let sampling = found.and_then(|found| match start(found) {
            Ok(sampling) => Some(sampling),
            Err(error) => {
                notes.push(format!("resources could not be watched: {error}"));
                None
            }
        });
        Self {
            sampling,
            elsewhere: Elsewhere::of_place(folder),
            reached_ns: AtomicU64::new(0),
            parts: AtomicU32::new(0),
        }
    }

    /// The start of a part is agreed, ns on the monotonic clock.
    pub fn counts_from(&self, start_ns: u64) {
        self.parts.fetch_add(1, Ordering::Relaxed);
        self.elsewhere.iter().for_each(|elsewhere| elsewhere.measured_from(start_ns));
        if let Some(sampling) = &self.sampling {
            sampling.measured_from(start_ns);
        }
    }

    /// A second of the run is over.
    pub fn second(&self, interval: &Interval) {
        self.reached_ns.fetch_max(interval.to_ns, Ordering::Relaxed);
        self.elsewhere.iter().for_each(|elsewhere| elsewhere.reached(interval.to_ns));
        if let Some(sampling) = &self.sampling {
            if !sampling.knows_start() {
                // The seconds are those of other processes, which did not report their start.
                sampling.measured_from(now_ns().saturating_sub(interval.to_ns));
            }
            sampling.reached(interval.to_ns);
        }
    }

    /// Takes what the agents that watch have sent up to this time since the start, ns.
    pub fn take_elsewhere(&self, to_ns: u64) {
        self.elsewhere.iter().for_each(|elsewhere| elsewhere.reached(to_ns));
    }

    /// Ends after a time of its own, ns, and gives the section of the record.
    pub fn finish_after(self, measured_ns: u64) -> Option<ResourcesResult> {
        self.finish_with(measured_ns)
    }

    /// Ends with the run, and gives the section of its record.
    pub fn finish(self, end: &RunEnd) -> Option<ResourcesResult> {
        let reached_ns = self.reached_ns.load(Ordering::Relaxed);
        let parts = self.parts.load(Ordering::Relaxed);
        // The last second of a single part also covers the wait for the last replies.
        let measured_ns = match parts {
            0 | 1 => reached_ns.min((end.measured_s * 1e9) as u64),
            _ => reached_ns,
        };
        self.finish_with(measured_ns)
    }

    fn finish_with(self, measured_ns: u64) -> Option<ResourcesResult> {
        let here = self.sampling.map(|sampling| sampling.finish(measured_ns));
        let watchers = self.elsewhere.map(|elsewhere| elsewhere.finish(measured_ns));
        match (here, watchers) {
            (here, None) => here,
            (here, Some(watchers)) => {
                Some(ResourcesResult { watchers, ..here.unwrap_or_default() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_an_error_with_similar_names() {
        let all = ["nginx", "postgres", "java", "sh"];
        assert_eq!(similar("ngnix", &all), ["nginx"]);
        assert_eq!(similar("/usr/sbin/postgresql", &all), ["postgres"]);
        assert_eq!(similar("SQL", &all), Vec::<&str>::new());
        let watch: Watch = "db=postgre".parse().unwrap();
        let running = all.map(str::to_owned).to_vec();
        let error = WatchError::NotFound { name: "postgre".to_owned(), running };
        assert_eq!(
            wrong(&watch, &error).to_string(),
            "--watch db=postgre: no process is called 'postgre', and no control group has this path or unit; similar programs run: postgres"
        );
        let running = vec!["plimsoll".to_owned()];
        let own = WatchError::NotFound { name: "plimsoll".to_owned(), running };
        assert!(wrong(&watch, &own).to_string().ends_with("start the other one first"));
    }

    #[test]
    fn what_does_not_exist_is_rejected_before_any_load() {
        check(&[]).unwrap();
        check(&["none".parse().unwrap()]).unwrap();
        let error = check(&["no-such-program".parse().unwrap()]).unwrap_err().to_string();
        assert!(error.contains("--watch no-such-program: no process is called"), "{error}");
        let error = check(&["2147483646".parse().unwrap()]).unwrap_err().to_string();
        assert!(error.contains("name a running process"), "{error}");
    }
}
