//! Flags of the bus, and of a job that agents carry out.

use anyhow::Result;
use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, FromArgMatches as _};
use plimsoll_bus::{Bounds, Bus, BusAddress, CredentialWords, Credentials, CredentialsError};
use plimsoll_bus::{ConnectError, Nats, NatsOptions, Tls, UnixBus};
use plimsoll_core::system_error::with_advice;
use plimsoll_core::units::Span;
use plimsoll_fleet::hall::FleetName;
use plimsoll_job::usage::{bus_is_missing, unreachable, usage};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Variables of the environment with secrets of the bus.
const TOKEN: &str = "PLIMSOLL_BUS_TOKEN";
const PASSWORD: &str = "PLIMSOLL_BUS_PASSWORD";

/// The bus, and the credentials for it.
#[derive(Args, Clone, Debug, Default)]
pub struct BusFlags {
    /// NATS server over which coordinator and agents talk: nats://HOST:PORT
    ///
    /// tls://HOST:PORT for TLS. A token comes from --bus-token-file or PLIMSOLL_BUS_TOKEN, the password of --bus-user from
    /// PLIMSOLL_BUS_PASSWORD.
    #[arg(long, value_name = "URL", help_heading = "Fleet")]
    pub bus: Option<BusAddress>,
    /// Name of the fleet
    ///
    /// Coordinators use agents of their own fleet only.
    #[arg(long, value_name = "NAME", default_value_t, help_heading = "Fleet")]
    pub fleet: FleetName,
    /// File with the token for the bus
    ///
    /// By default, the token comes from PLIMSOLL_BUS_TOKEN.
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub bus_token_file: Option<PathBuf>,
    /// User of the bus
    #[arg(long, value_name = "NAME", help_heading = "Fleet")]
    pub bus_user: Option<String>,
    /// File with the NKey seed for the bus
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub bus_nkey: Option<PathBuf>,
    /// Credentials file for the bus, as nsc writes it
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub bus_creds: Option<PathBuf>,
    /// PEM file of authorities to trust for the bus; turns TLS on
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub bus_cacert: Option<PathBuf>,
    /// PEM file of the client's certificate for the bus; needs --bus-key
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub bus_cert: Option<PathBuf>,
    /// PEM file of the client's private key for the bus
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub bus_key: Option<PathBuf>,
}

impl BusFlags {
    /// Connects to the bus; a server that is not there yet is waited for.
    ///
    /// # Errors
    /// One line that says why there is no connection.
    pub fn connect(&self, name: &str, wait_for_server: Duration) -> Result<Arc<dyn Bus>> {
        let address = self.bus.clone().ok_or_else(bus_is_missing)?;
        if let Some(path) = address.socket() {
            let bus = UnixBus::connect(path, Bounds::default(), wait_for_server);
            let bus = bus.map_err(|error| {
                unreachable(format!("--bus {address}: {}", with_advice(&error)))
            })?;
            return Ok(Arc::new(bus));
        }
        if self.bus_cert.is_some() != self.bus_key.is_some() {
            return Err(usage("--bus-cert and --bus-key belong together; give both"));
        }
        let words = CredentialWords {
            user: self.bus_user.clone(),
            password: self.bus_user.as_ref().and_then(|_| std::env::var(PASSWORD).ok()),
            token: self.token()?,
            nkey_file: self.bus_nkey.clone(),
            creds_file: self.bus_creds.clone(),
        };
        let has_variable = self.bus_token_file.is_none() && words.token.is_some();
        let credentials = Credentials::choose(words, &address)
            .map_err(|error| usage(format!("{error}{}", hint(error, has_variable))))?;
        let tls = Tls {
            ca: self.bus_cacert.clone(),
            certificate: self.bus_cert.clone(),
            key: self.bus_key.clone(),
            is_first: false,
        };
        let options =
            NatsOptions { credentials, tls, wait_for_server, ..NatsOptions::new(address, name) };
        let nats = Nats::connect(&options).map_err(|error| match error {
            ConnectError::File { .. } => usage(error.to_string()),
            _ => unreachable(error.to_string()),
        })?;
        Ok(Arc::new(nats))
    }

    /// Socket of the bus of a process that `--processes` of another one has started.
    #[must_use]
    pub fn socket(&self) -> Option<PathBuf> {
        self.bus.as_ref().and_then(BusAddress::socket).map(Path::to_owned)
    }

    /// Returns true for the bus of a process that `--processes` of another one has started.
    #[must_use]
    pub fn is_of_process(&self) -> bool {
        self.socket().is_some()
    }

    /// The token of the file, or that of the environment. A file is named on purpose, so it goes first.
    fn token(&self) -> Result<Option<String>> {
        let Some(file) = &self.bus_token_file else { return Ok(std::env::var(TOKEN).ok()) };
        let text = std::fs::read_to_string(file).map_err(|error| {
            usage(format!("--bus-token-file {}: {}", file.display(), with_advice(&error)))
        })?;
        Ok(Some(text.trim().to_owned()))
    }
}

/// Returns the end of the line about wrong credentials: the variable of the environment that takes part. `has_variable`: the token
/// comes from there.
fn hint(error: CredentialsError, has_variable: bool) -> String {
    match error {
        CredentialsError::Several if has_variable => {
            format!("; the environment variable {TOKEN} has a token: unset it, or use only that")
        }
        CredentialsError::Invalid if has_variable => {
            format!("; the token is that of the environment variable {TOKEN}")
        }
        CredentialsError::Incomplete => {
            format!("; the password of --bus-user is that of the environment variable {PASSWORD}")
        }
        CredentialsError::Several | CredentialsError::Invalid => String::new(),
    }
}

/// Flags that a job has beside its own if agents can carry it out.
#[derive(Args, Clone, Debug, Default)]
pub struct FleetFlags {
    /// Number of agents that carry out the run, each an exact part of it
    ///
    /// Rates, clients, users and requests are those of the whole run; --threads are those of each agent. This process
    /// coordinates: it sends no load.
    #[arg(long, value_name = "N", help_heading = "Fleet")]
    pub agents: Option<u32>,
    /// Number of processes that carry out the run on this machine
    ///
    /// Each has an exact part of it. Rates, clients, users and requests are those of the whole run; --threads are those of each
    /// process. This process starts them and coordinates: it sends no load. With 1, it carries out the run itself.
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub processes: Option<u32>,
    /// Least number of agents that watch [default: 0]
    ///
    /// All free agents with --role watch take part; the run waits for at least N of them. Their machines are in the record and on the
    /// page, on the clock of the run.
    #[arg(long, value_name = "N", help_heading = "Fleet")]
    pub watchers: Option<u32>,
    /// Longest wait for the agents
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Fleet")]
    pub agents_within: Span,
    /// The bus.
    #[command(flatten)]
    pub at: BusFlags,
}

/// Adds the flags of a fleet to a command.
#[must_use]
pub fn with_fleet(command: clap::Command) -> clap::Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    // The flags bring a text of their own along, in the place of the command's.
    FleetFlags::augment_args(command)
        .about(Resettable::from(about))
        .long_about(Resettable::from(long_about))
}

/// Flags that ask for agents or processes. The other flags of a fleet describe the agents.
const ASKING: [&str; 2] = ["agents", "processes"];

/// A flag that has a value in each command line of a command with the flags of a fleet. A release build of the parser does not
/// tell flags that a command does not have from those that were not given.
const ALWAYS_THERE: &str = "agents_within";

/// Checks that flags of a fleet come with the agents that they describe. A job without agents would ignore them, and run here.
///
/// # Errors
/// The first flag that has no agents, and what to add.
pub fn check_fleet(matches: &ArgMatches) -> Result<()> {
    let has = |id: &str| matches.ids().any(|known| known.as_str() == id);
    let is_given = |id: &str| has(id) && matches.value_source(id) == Some(ValueSource::CommandLine);
    // Other commands have flags of the same names: an agent itself has a bus.
    if !has(ALWAYS_THERE) || is_given("agents") {
        return Ok(());
    }
    let all = FleetFlags::augment_args(clap::Command::new("fleet"));
    let describes = |flag: &&Arg| !ASKING.contains(&flag.get_id().as_str());
    let mut alone =
        all.get_arguments().filter(describes).filter(|flag| is_given(flag.get_id().as_str()));
    let Some(flag) = alone.next().and_then(Arg::get_long) else { return Ok(()) };
    Err(usage(match (is_given("processes"), is_given("bus")) {
        (true, _) if flag == "bus" => {
            "--processes starts processes on this machine and needs no --bus; leave it out, or use --agents".to_owned()
        }
        (true, _) => format!(
            "--{flag} is for agents, and --processes starts processes on this machine; leave it out, or use --agents"
        ),
        (false, true) => format!("--{flag} is for a run on agents; add --agents N, or leave it out"),
        (false, false) => format!(
            "--{flag} is for a run on agents; add --agents N and --bus nats://HOST:PORT, or leave it out"
        ),
    }))
}

impl FleetFlags {
    /// The flags as the parser found them; none if the command does not have them, or neither agents nor processes are asked for.
    #[must_use]
    pub fn of(matches: &ArgMatches) -> Option<Self> {
        let is_given = |name| matches.try_get_one::<u32>(name).is_ok_and(|value| value.is_some());
        if !is_given("agents") && !is_given("processes") {
            return None;
        }
        Self::from_arg_matches(matches).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(words: &[&str]) -> Result<(), String> {
        let words = [&["load"], words].concat();
        let matches = with_fleet(clap::Command::new("load")).try_get_matches_from(words).unwrap();
        check_fleet(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn wrong_credentials_name_the_variable_that_takes_part() {
        for (error, has_variable, variable) in [
            (CredentialsError::Several, true, TOKEN),
            (CredentialsError::Invalid, true, TOKEN),
            (CredentialsError::Incomplete, false, PASSWORD),
        ] {
            let hint = hint(error, has_variable);
            assert!(hint.contains(variable), "{error:?}: {hint}");
        }
        for error in [CredentialsError::Several, CredentialsError::Invalid] {
            assert_eq!(hint(error, false), "", "of a file or a URL");
        }
    }

    /// Every flag that describes agents, whichever are added later.
    #[test]
    fn a_flag_that_describes_agents_needs_them() {
        let all = with_fleet(clap::Command::new("load"));
        let mut seen = 0;
        for flag in all.get_arguments().filter(|flag| !ASKING.contains(&flag.get_id().as_str())) {
            let flag = format!("--{}", flag.get_long().unwrap());
            let value = match flag.as_str() {
                "--bus" => "nats://h:1",
                "--agents-within" => "5s",
                _ => "1",
            };
            let line = checked(&[&flag, value]).unwrap_err();
            assert!(
                line.starts_with(&format!("{flag} is for a run on agents; add --agents N")),
                "{line}"
            );
            assert_eq!(line.contains("--bus nats://"), flag != "--bus", "{line}");
            let line = checked(&[&flag, value, "--processes", "2"]).unwrap_err();
            assert!(
                line.contains(&flag) && line.contains("leave it out, or use --agents"),
                "{line}"
            );
            checked(&[&flag, value, "--agents", "2"]).unwrap();
            seen += 1;
        }
        assert!(seen > 9, "{seen}");
        checked(&[]).unwrap();
        checked(&["--processes", "2"]).unwrap();
        // An agent is on a bus, and asks for none.
        let agent = BusFlags::augment_args(clap::Command::new("agent"));
        check_fleet(&agent.try_get_matches_from(["agent", "--bus", "nats://h"]).unwrap()).unwrap();
    }
}
