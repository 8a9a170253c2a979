//! The coordinator's side of a job that agents carry out: those of a bus, or processes that it starts.

mod processes;

use crate::build;
use crate::flags::FleetFlags;
use crate::words::{Packed, To, pack};
use anyhow::Result;
use clap::ArgMatches;
use plimsoll_bus::Bus as _;
use plimsoll_fleet::hall::{Wanted, find, process_number};
use plimsoll_fleet::message::{Here, Members, Role};
use plimsoll_fleet::place::{CoordinatorPost, Place, Refused, Setting, take_place};
use plimsoll_job::exit::NOT_VALID;
use plimsoll_job::output::note;
use plimsoll_job::signals;
use plimsoll_job::usage::{one_line, usage};
use std::sync::Arc;
use std::time::Duration;

/// Most agents of a run.
pub(crate) const AGENTS_MAX: u32 = 10_000;

/// Returns true if a command is to be carried out by agents or by several processes.
#[must_use]
pub fn is_asked(matches: &ArgMatches) -> bool {
    FleetFlags::of(matches).is_some()
}

/// Runs a job as the coordinator of the agents that its flags ask for. `command` is the job's parser, `words` are those of the
/// command line from the name of the command on.
///
/// # Errors
/// No bus, too few agents, another build, or what the job itself says.
pub fn coordinated(
    matches: &ArgMatches,
    command: &clap::Command,
    words: &[String],
    job: impl FnOnce() -> Result<u8>,
) -> Result<u8> {
    let Some(flags) = FleetFlags::of(matches) else { return job() };
    let agents = match (flags.agents, flags.processes) {
        (Some(_), Some(_)) => {
            return Err(usage("--agents and --processes exclude each other; give one"));
        }
        (None, Some(processes)) => return processes::run(processes, command, words, job),
        (agents, None) => agents.unwrap_or(0),
    };
    if !(1..=AGENTS_MAX).contains(&agents) {
        return Err(usage(format!("--agents: use a number from 1 to {AGENTS_MAX}")));
    }
    if flags.at.is_of_process() {
        return Err(usage("--agents needs a NATS server: --bus nats://HOST:PORT"));
    }
    let packed = pack(command, words, To::Agents)?;
    conduct(Arc::new(begin(&flags, agents, packed)?), job)
}

/// Runs a job as the coordinator of agents that were found.
fn conduct(post: Arc<CoordinatorPost>, job: impl FnOnce() -> Result<u8>) -> Result<u8> {
    take_place(Place::Coordinator(post.clone()));
    let done = job();
    release(&post, &done);
    done
}

/// Ends the run of agents whose coordinator has come to its end without them.
pub(crate) fn release(post: &CoordinatorPost, done: &Result<u8>) {
    match done {
        Err(error) => post.abort(&format!("the coordinator ended: {}", one_line(error))),
        // A job that came to its end before its load leaves its agents at the start line.
        Ok(_) if !post.is_finished() => post.abort("the coordinator ended before the load began"),
        Ok(_) => {}
    }
}

/// Says which machines are watched.
pub(crate) fn note_watchers(found: &[Here]) {
    let watching = found.iter().filter(|here| here.role == Role::Watch);
    let names: Vec<String> =
        watching.map(|here| format!("{} on {}", here.name, here.host)).collect();
    if !names.is_empty() {
        note(&format!("plimsoll: watched by agent {}", names.join(", ")));
    }
}

/// Finds the agents, and gives each its part.
fn begin(flags: &FleetFlags, agents: u32, packed: Packed) -> Result<CoordinatorPost> {
    let own = process_number();
    let bus = flags.at.connect(&format!("plimsoll coordinator {own:016x}"), Duration::ZERO)?;
    let inbox = bus.subscribe(&flags.at.fleet.inbox(own))?;
    // So that the wait can be stopped.
    signals::stop_flag()?;
    let watchers = flags.watchers.unwrap_or(0) as usize;
    let within = Duration::from_nanos(flags.agents_within.ns);
    let wanted = Wanted { agents: agents as usize, watchers, within };
    let found = find(
        &*bus,
        (&flags.at.fleet, own),
        &build::own()?,
        wanted,
        &signals::is_stopped,
        &mut |line| note(&format!("plimsoll: {line}")),
    );
    let agents =
        found.map_err(|error| Refused { why: error.to_string(), code: Some(NOT_VALID) })?;
    note_watchers(&agents);
    Ok(CoordinatorPost::start(Setting {
        bus,
        fleet: flags.at.fleet.clone(),
        own,
        inbox,
        members: Members::Agents,
        agents,
        watchers,
        run: format!("{own:016x}"),
        words: packed.words,
        files: packed.files,
    })?)
}
