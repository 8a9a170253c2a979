//! Flags of a fleet behind the name of a job: they are those of the job's command.

use clap::Command;
use plimsoll_job::usage::{bus_is_missing, usage};

/// Heading of the flags of a fleet in the help of each job.
const HEADING: &str = "Fleet";
/// A flag of the same kind under another heading.
const PROCESSES: &str = "processes";

/// The words of `flags` for a command of the program that a job runs. Returns `None` if the first one is of another kind.
///
/// # Errors
/// A flag of another kind behind them; `own` is the parser of the command that runs the job.
pub(super) fn fleet_words(
    flags: &[String],
    command: &Command,
    own: &Command,
) -> anyhow::Result<Option<Vec<String>>> {
    let mut words = Vec::new();
    let mut flags = flags.iter();
    while let Some(word) = flags.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word.as_str(), None),
        };
        let name = flag.strip_prefix("--").unwrap_or_default();
        let is_of_fleet = |arg: &&clap::Arg| {
            arg.get_long() == Some(name)
                && (arg.get_help_heading() == Some(HEADING) || name == PROCESSES)
        };
        let Some(arg) = command.get_arguments().find(is_of_fleet) else {
            return if words.is_empty() { Ok(None) } else { Err(misplaced(flag, own)) };
        };
        words.push(word.clone());
        if value.is_none() && arg.get_action().takes_values() {
            let value = flags.next();
            words
                .push(value.ok_or_else(|| usage(format!("{flag}: its value is missing")))?.clone());
        }
    }
    // The command says so too, but only when files are made and a target runs.
    let has = |flag: &str| words.iter().any(|word| word.split('=').next() == Some(flag));
    if has("--agents") && !has("--bus") {
        return Err(bus_is_missing());
    }
    match words.first() {
        Some(first) if !has("--agents") && !has("--processes") => Err(usage(format!(
            "{first} is for a run on agents; add --agents N and --bus nats://HOST:PORT, or leave it out"
        ))),
        _ => Ok(Some(words)),
    }
}

fn misplaced(flag: &str, own: &Command) -> anyhow::Error {
    let is_own = |arg: &clap::Arg| {
        let short = arg.get_short().map(|short| format!("-{short}"));
        let long = arg.get_long().map(|long| format!("--{long}"));
        short.as_deref() == Some(flag) || long.as_deref() == Some(flag)
    };
    match own.get_arguments().any(is_own) {
        true => usage(format!("{flag} stands behind the flags of a fleet; put it before them")),
        false => usage(format!(
            "{flag}: behind the name of a job come flags of plimsoll run, and then those of a fleet, such as --agents; flags of the \
             job's command go into its variables, such as -i extra_args='...'"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn words(flags: &[&str]) -> Result<Option<Vec<String>>, String> {
        let command = Command::new("load").args([
            Arg::new("agents").long("agents").num_args(1).help_heading(HEADING),
            Arg::new("bus").long("bus").num_args(1).help_heading(HEADING),
            Arg::new("rate").long("rate").num_args(1),
        ]);
        let own = Command::new("run").arg(Arg::new("input").short('i').num_args(1));
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        fleet_words(&flags, &command, &own).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_of_a_fleet_are_taken_with_their_values_and_others_are_refused() {
        let taken = words(&["--agents", "2", "--bus=nats://h"]).unwrap().unwrap();
        assert_eq!(taken, ["--agents", "2", "--bus=nats://h"]);
        assert_eq!(words(&["--rate", "3"]), Ok(None), "an unknown option of run");
        for (flags, why) in [
            (&["--agents", "2", "-i", "a=1"][..], "-i stands behind the flags of a fleet"),
            (&["--agents", "2", "--rate", "3"], "--rate: behind the name of a job"),
            (&["--agents"], "--agents: its value is missing"),
            (&["--agents", "2"], "--bus is missing; name the NATS server"),
            (&["--bus", "nats://h"], "--bus is for a run on agents; add --agents N"),
        ] {
            let error = words(flags).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
