//! A feed and a load at the same time, each by its own group of the agents.

use crate::build;
use crate::coordinate::{AGENTS_MAX, note_watchers, release};
use crate::flags::FleetFlags;
use crate::words::{Packed, To, pack};
use anyhow::{Context as _, Result};
use clap::{Args, FromArgMatches as _};
use plimsoll_bus::Bus as _;
use plimsoll_fleet::hall::{Wanted, find, process_number};
use plimsoll_fleet::message::{Here, Members, Role};
use plimsoll_fleet::place::{CoordinatorPost, Place, Refused, Setting, start_together, take_place};
use plimsoll_job::exit::NOT_VALID;
use plimsoll_job::job::{Program, Roles};
use plimsoll_job::output::note;
use plimsoll_job::signals;
use plimsoll_job::together::Group;
use plimsoll_job::usage::usage;
use std::sync::Arc;
use std::time::Duration;

/// Flags of a run of two groups.
#[derive(Args, Debug)]
struct RoleFlags {
    #[command(flatten)]
    fleet: FleetFlags,
    /// Number of the agents that feed [default: 1]
    #[arg(long, value_name = "N")]
    feed_agents: Option<u32>,
}

/// Runs a feed and a load at the same time: the first agents feed, and the others load.
///
/// # Errors
/// Wrong flags, too few agents, or what the job says.
pub fn run_roles(roles: &Roles<'_>, program: &Program) -> Result<u8> {
    let flags = flags_of(roles.flags)?;
    if flags.fleet.processes.is_some() {
        return Err(usage(
            "--processes cannot carry out a mix; use --agents N and --bus, or leave it out",
        ));
    }
    let feeding = flags.feed_agents.or(roles.feed_agents).unwrap_or(1);
    let Some(agents) = flags.fleet.agents else {
        return Err(usage(
            "a mix on a bus needs --agents N: the first agent feeds, and the others load",
        ));
    };
    if !(1..=AGENTS_MAX).contains(&agents) {
        return Err(usage(format!("--agents: use a number from 1 to {AGENTS_MAX}")));
    }
    if feeding == 0 || feeding >= agents {
        return Err(usage(format!(
            "{agents} agents, of which {feeding} feed: at least one must feed and one must load; use --agents {} or more",
            feeding.max(1).saturating_add(1)
        )));
    }
    let parser = (program.parser)();
    let packed = |words: &[String]| -> Result<Packed> {
        let name = words.first().map_or("", String::as_str);
        pack(parser.find_subcommand(name).context("its command")?, words, To::Agents)
    };
    let (feed, load) = (packed(roles.feed)?, packed(roles.load)?);
    let [feeders, loaders] = begin(&flags.fleet, (agents, feeding), [feed, load])?;
    start_together(&loaders, &feeders);
    // A place holds for all that the process does.
    let place: &'static Place = Box::leak(Box::new(Place::Coordinator(feeders.clone())));
    take_place(Place::Coordinator(loaders.clone()));
    let done = (roles.job)(Group::at(place));
    for post in [&loaders, &feeders] {
        release(post, &done);
    }
    done
}

fn flags_of(flags: &[String]) -> Result<RoleFlags> {
    let command = RoleFlags::augment_args(clap::Command::new("run").no_binary_name(true));
    let found =
        command.try_get_matches_from(flags).and_then(|found| RoleFlags::from_arg_matches(&found));
    found.map_err(|error| {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        usage(format!(
            "{}; a mix takes the flags of a fleet behind the file: --agents, --feed-agents, --bus",
            line.trim_start_matches("error: ")
        ))
    })
}

/// Finds the agents, and gives each its part: the feed to the first ones, and the load to the others.
fn begin(
    flags: &FleetFlags,
    (agents, feeding): (u32, u32),
    [feed, load]: [Packed; 2],
) -> Result<[Arc<CoordinatorPost>; 2]> {
    let own = process_number();
    let bus = flags.at.connect(&format!("plimsoll coordinator {own:016x}"), Duration::ZERO)?;
    // Both groups have the same inbox: each takes what comes from its own agents.
    let inboxes =
        [bus.subscribe(&flags.at.fleet.inbox(own))?, bus.subscribe(&flags.at.fleet.inbox(own))?];
    signals::stop_flag()?;
    let watchers = flags.watchers.unwrap_or(0) as usize;
    let within = Duration::from_nanos(flags.agents_within.ns);
    let found = find(
        &*bus,
        (&flags.at.fleet, own),
        &build::own()?,
        Wanted { agents: agents as usize, watchers, within },
        &signals::is_stopped,
        &mut |line| note(&format!("plimsoll: {line}")),
    );
    let mut feeders =
        found.map_err(|error| Refused { why: error.to_string(), code: Some(NOT_VALID) })?;
    note_watchers(&feeders);
    let loaders = feeders.split_off(feeding as usize);
    note_groups(&feeders, &loaders);
    let [feed_inbox, load_inbox] = inboxes;
    let start = |agents, inbox, packed: Packed, watchers, run| -> Result<Arc<CoordinatorPost>> {
        Ok(Arc::new(CoordinatorPost::start(Setting {
            bus: bus.clone(),
            fleet: flags.at.fleet.clone(),
            own,
            inbox,
            members: Members::Agents,
            agents,
            watchers,
            run,
            words: packed.words,
            files: packed.files,
        })?))
    };
    Ok([
        start(feeders, feed_inbox, feed, 0, format!("{own:016x}-feed"))?,
        start(loaders, load_inbox, load, watchers, format!("{own:016x}"))?,
    ])
}

/// Says which agent does what.
fn note_groups(feeders: &[Here], loaders: &[Here]) {
    let names = |group: &[Here]| {
        let of_load = group.iter().filter(|here| here.role == Role::Load);
        of_load.map(|here| here.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    note(&format!(
        "plimsoll: the feed is by agent {}, the load by {}",
        names(feeders),
        names(loaders)
    ));
}
