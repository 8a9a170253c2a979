//! One job in several processes: the coordinator puts their results together, and shares its findings with them.

use crate::signals;
use anyhow::{Context as _, Result, bail};
use plimsoll_core::schedule::Slice;
use plimsoll_engine::health::machine;
pub use plimsoll_fleet::place::is_coordinator;
use plimsoll_fleet::place::{Place, Refused, place, within};
use plimsoll_record::fleet::Members;
use plimsoll_report::forms::{PartResults, Parts};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Result of one part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<T> {
    /// Index of the part.
    pub index: u32,
    /// Name of its agent; empty if the whole run takes place here.
    pub agent: String,
    /// The result.
    pub value: T,
}

/// Results of all parts of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered<T> {
    /// Those that are there, in the order of the slices.
    pub parts: Vec<Part<T>>,
    /// Index and name of each agent that was lost before it had sent its result: the rest is not the whole.
    pub missing: Vec<(u32, String)>,
}

impl<T> Gathered<T> {
    /// The missing results in a line; none if all are there.
    #[must_use]
    pub fn lacks(&self) -> Option<String> {
        let members = members();
        let names: Vec<&str> = self.missing.iter().map(|(_, name)| members.short(name)).collect();
        let all = self.missing.len() + self.parts.len();
        (!names.is_empty()).then(|| {
            let names = names.join(", ");
            let (missing, word) = (self.missing.len(), members.word());
            format!("the results of {missing} of {all} {word} are missing: {names}")
        })
    }
}

/// Puts the results of all parts of a run together, after its last phase. `own` makes that of this process; a coordinator has
/// none, and gets those of its agents.
///
/// # Errors
/// The error of `own`, or a result that is too long to be sent.
pub fn gather<T: Serialize + DeserializeOwned>(
    own: impl FnOnce() -> Result<T>,
) -> Result<Gathered<T>> {
    let alone = |value| Gathered {
        parts: vec![Part { index: 0, agent: String::new(), value }],
        missing: Vec::new(),
    };
    match place() {
        Place::Alone => Ok(alone(own()?)),
        Place::Agent(post) => {
            let value = own()?;
            post.part(serde_json::to_value(&value)?)?;
            Ok(alone(value))
        }
        Place::Coordinator(post) => {
            let mut gathered = Gathered { parts: Vec::new(), missing: Vec::new() };
            for (index, part) in (0..).zip(post.parts(&signals::is_stopped)) {
                let Some(value) = part.value else {
                    gathered.missing.push((index, part.name));
                    continue;
                };
                let value = serde_json::from_value(value)
                    .with_context(|| format!("the results of {}", part_title(&part.name)))?;
                gathered.parts.push(Part { index, agent: part.name, value });
            }
            Ok(gathered)
        }
    }
}

/// The first results of the parts of a run that is over, as [`gather`] returned them to its coordinator.
///
/// # Errors
/// Results of another form.
pub fn kept<T: DeserializeOwned>(parts: &Parts) -> Result<Gathered<T>> {
    let one = |part: &PartResults| {
        let value = part.results.first().cloned().unwrap_or_default();
        let value = serde_json::from_value(value)
            .with_context(|| format!("the results of agent {}", part.agent))?;
        Ok(Part { index: part.index, agent: part.agent.clone(), value })
    };
    let there: Result<Vec<Part<T>>> = parts.there.iter().map(one).collect();
    Ok(Gathered { parts: there?, missing: parts.missing.clone() })
}

/// Does something once for all parts of a run, before its first phase: here, or at the coordinator, whose agents wait for it and
/// get the result.
///
/// # Errors
/// The error of `make`, or the end of the run.
pub fn share<T: Serialize + DeserializeOwned>(make: impl FnOnce() -> Result<T>) -> Result<T> {
    match place() {
        Place::Alone => make(),
        Place::Agent(post) => Ok(serde_json::from_value(post.shared()?)?),
        Place::Coordinator(post) => {
            let value = make()?;
            post.share(&serde_json::to_value(&value)?)?;
            Ok(value)
        }
    }
}

/// Waits for the next finding of the coordinator that leads this agent.
///
/// # Errors
/// The run has ended, or this process is no agent.
pub fn hear<T: Serialize + DeserializeOwned>() -> Result<T> {
    share(|| bail!("no coordinator leads this process"))
}

/// Notes that an agent was lost before the next phase began, for a coordinator whose job keeps what earlier phases measured.
///
/// # Errors
/// The error itself if it is another one: one of this process, or one that an agent reported with an exit code.
pub fn note_lost(error: anyhow::Error) -> Result<()> {
    let Place::Coordinator(post) = place() else { return Err(error) };
    let refused = error.downcast::<Refused>()?;
    if refused.code.is_some() {
        return Err(refused.into());
    }
    if !signals::is_stopped() {
        post.is_not_whole(&refused.why);
    }
    Ok(())
}

/// Waits until each agent has prepared its part, before the coordinator's job begins with something that takes long. An agent says
/// so with a result of nothing.
///
/// # Errors
/// An agent cannot carry out its part; its own reason and exit code.
pub fn wait_until_prepared() -> Result<()> {
    let gathered = gather(|| Ok(()))?;
    let Place::Coordinator(post) = place() else { return Ok(()) };
    match (gathered.lacks(), post.first_gone()) {
        (None, _) => Ok(()),
        (Some(_), Some(refused)) => Err(refused.into()),
        (Some(lacks), None) => Err(Refused { why: lacks, code: None }.into()),
    }
}

/// Names of the agents that are on other machines than their coordinator.
#[must_use]
pub fn agents_elsewhere() -> Vec<String> {
    match place() {
        Place::Coordinator(post) => post.elsewhere(&machine().hostname),
        _ => Vec::new(),
    }
}

/// One of two groups of agents with a load of its own, at their coordinator.
#[derive(Clone, Copy)]
pub struct Group {
    place: &'static Place,
}

impl Group {
    /// The group of a place, which must be that of a coordinator.
    #[must_use]
    pub const fn at(place: &'static Place) -> Self {
        Self { place }
    }

    /// The group of what this thread does.
    #[must_use]
    pub fn here() -> Self {
        Self { place: place() }
    }

    /// Does something for these agents, on this thread.
    pub fn within<T>(self, action: impl FnOnce() -> T) -> T {
        within(self.place, action)
    }

    /// Ends their schedule before its time, since the other group has come to its end.
    pub fn end_early(self) {
        if let Place::Coordinator(post) = self.place {
            post.end_early();
        }
    }

    /// Lets them end their load in order.
    pub fn stop(self) {
        if let Place::Coordinator(post) = self.place {
            post.stop();
        }
    }

    /// Ends their run at once.
    pub fn abort(self, why: &str) {
        if let Place::Coordinator(post) = self.place {
            post.abort(why);
        }
    }
}

/// Returns true for an agent whose coordinator has ended its schedule before its time, so that what is left is no failure.
#[must_use]
pub fn was_ended_early() -> bool {
    match place() {
        Place::Agent(post) => post.was_ended_early(),
        _ => false,
    }
}

/// Returns true in a run by agents, for its coordinator and for each agent.
#[must_use]
pub fn has_agents() -> bool {
    !matches!(place(), Place::Alone)
}

/// Returns true if this process carries out a part of a run for a coordinator.
#[must_use]
pub fn is_agent() -> bool {
    matches!(place(), Place::Agent(_))
}

/// Number of parts of the run to which this process belongs.
#[must_use]
pub fn parts_in_all(slice: Slice) -> u32 {
    match place() {
        Place::Coordinator(post) => u32::try_from(post.agents()).unwrap_or(u32::MAX),
        _ => slice.of,
    }
}

/// Returns true for the coordinator of processes that it has started on this machine.
#[must_use]
pub fn has_processes() -> bool {
    members() == Members::Processes
}

/// Kind of the parts of a run, at its coordinator.
fn members() -> Members {
    match place() {
        Place::Coordinator(post) => post.members(),
        _ => Members::Agents,
    }
}

/// The part with this name in a sentence, at the coordinator: `agent a`, or `process 2`.
#[must_use]
pub fn part_title(name: &str) -> String {
    members().title(name)
}

/// The word for the parts of a run, at its coordinator: agents or processes.
#[must_use]
pub fn parts_word() -> &'static str {
    members().word()
}

/// Reason why the coordinator counts this part as lost, if it does.
#[must_use]
pub fn trouble_of(part: u32) -> Option<String> {
    let Place::Coordinator(post) = place() else { return None };
    post.trouble_of(part as usize)
}

/// Place of a file or folder that each part of a run writes for itself, with the part in its name. An agent has it below its folder
/// of records: `dump.ndjson` is `runs/dump-0-of-2.ndjson`. A process of the same machine is given an absolute path, and stays beside
/// it.
///
/// # Errors
/// When an agent cannot make its folder of records.
pub fn own_place(path: &Path, runs: Option<&Path>, slice: Slice) -> Result<PathBuf> {
    let (Place::Agent(_), Some(runs)) = (place(), runs) else { return Ok(path.to_owned()) };
    if is_sink(path) {
        return Ok(path.to_owned());
    }
    if path.is_absolute() {
        return Ok(path.with_file_name(name_of_part(path, slice)));
    }
    std::fs::create_dir_all(runs).with_context(|| runs.display().to_string())?;
    Ok(runs.join(name_of_part(path, slice)))
}

/// Returns true for the one path that takes everything and keeps nothing.
#[must_use]
pub fn is_sink(path: &Path) -> bool {
    path == Path::new("/dev/null")
}

fn name_of_part(path: &Path, slice: Slice) -> OsString {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Everything after the first dot says what is in it.
    let (stem, rest) = match name.char_indices().skip(1).find(|(_, sign)| *sign == '.') {
        Some((dot, _)) => name.split_at(dot),
        None => (&*name, ""),
    };
    format!("{stem}-{}-of-{}{rest}", slice.index, slice.of).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_is_in_the_name_and_the_form_stays_at_its_end() {
        let slice = Slice { index: 1, of: 3 };
        let name = |path: &str| name_of_part(Path::new(path), slice).into_string().unwrap();
        assert_eq!(name("dump.ndjson.zst"), "dump-1-of-3.ndjson.zst");
        assert_eq!(name("dump"), "dump-1-of-3");
        assert_eq!(name(".hidden"), ".hidden-1-of-3");
        let alone = own_place(Path::new("a/b"), Some(Path::new("runs")), slice).unwrap();
        assert_eq!(alone, Path::new("a/b"), "a part that is no agent writes where it is asked to");
    }

    #[test]
    fn without_agents_the_whole_is_one_part() {
        let gathered = gather(|| Ok(7)).unwrap();
        assert_eq!(gathered.parts[0].value, 7);
        assert_eq!((gathered.lacks(), share(|| Ok(3)).unwrap()), (None, 3));
        let gathered = Gathered { missing: vec![(1, "b".to_owned())], ..gathered };
        let lacks = "the results of 1 of 2 agents are missing: b";
        assert_eq!(gathered.lacks().as_deref(), Some(lacks));
    }
}
