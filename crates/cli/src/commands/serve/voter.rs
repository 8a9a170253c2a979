//! `plimsoll serve voter`: the voter database's flags.

use super::listening::{ListenArgs, beside, listen, ready_line, warn_if_reachable};
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::system_error::with_advice;
use plimsoll_core::units::Size;
use plimsoll_job::exit;
use plimsoll_job::output::note;
use plimsoll_job::usage::usage;
use plimsoll_voterdb::{Durability, Server, VoterConfig, VoterError};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Variable with users, as an alternative to the command line, which other users of the machine can read.
const USERS_VARIABLE: &str = "PLIMSOLL_VOTER_USERS";
/// Longest file of users, bytes.
const USERS_BYTES_MAX: u64 = 16 << 20;

#[derive(Args, Debug)]
pub struct VoterArgs {
    #[command(flatten)]
    listen: ListenArgs,
    /// Folder of command log and snapshots [default: no data is kept]
    ///
    /// They are kept across restarts.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Partitions, one thread each [default: one per processor]
    #[arg(long, value_name = "N")]
    partitions: Option<usize>,
    /// Acknowledgement of a vote: none, async or sync
    ///
    /// none: once it is in memory; async: the same, and in the command log some milliseconds later; sync: once it is in the
    /// command log on the disk. async and sync need --data.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHEN",
        default_value = "none"
    )]
    durability: DurabilityFlag,
    /// User who may log in [default: every user]
    ///
    /// May be repeated.
    #[arg(long, value_name = "NAME:PASSWORD")]
    user: Vec<String>,
    /// File of users, one NAME:PASSWORD per line
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// Threads that read and write sockets
    #[arg(long, value_name = "N", default_value_t = 1)]
    network_threads: usize,
    /// Port of the HTTP JSON API [default: no API]
    ///
    /// On the same address; 0 takes any free one and prints it.
    #[arg(long, value_name = "N")]
    http_port: Option<u16>,
    /// Calls in flight per network thread
    ///
    /// Above it, the thread reads no socket until 80 % are left.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pending_calls: usize,
    /// Bytes of the calls in flight, with the same effect
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    pending_bytes: Size,
    /// Length of the command log before a snapshot
    ///
    /// Above it, a snapshot replaces the log.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    log_max: Size,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DurabilityFlag {
    None,
    Async,
    Sync,
}

impl From<DurabilityFlag> for Durability {
    fn from(flag: DurabilityFlag) -> Self {
        match flag {
            DurabilityFlag::None => Self::None,
            DurabilityFlag::Async => Self::Async,
            DurabilityFlag::Sync => Self::Sync,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A wrong configuration, a folder that cannot be used, or an address that cannot be bound.
pub fn run(args: &VoterArgs) -> Result<u8> {
    let config = args.config()?;
    config.validate().map_err(|error| usage(error.to_string()))?;
    let (listener, stop) = listen(&args.listen)?;
    let server = Server::open(config).map_err(|error| match error {
        VoterError::Config(text) | VoterError::Data(text) => usage(text),
        error => anyhow::Error::from(error),
    })?;
    let kept = server.kept();
    if kept.torn_bytes > 0 {
        let bytes = kept.torn_bytes;
        note(&format!(
            "{bytes} bytes at the end of the log were never acknowledged and are cut off"
        ));
    }
    let http = args.http_port.map(|port| beside(&args.listen, port, "--http-port")).transpose()?;
    warn_if_reachable("voter", &[listener.local_addr()?]);
    let mut urls = vec![format!("volt://{}", listener.local_addr()?)];
    if let Some(http) = &http {
        urls.push(format!("http://{}", http.local_addr()?));
    }
    ready_line("voter", &urls, &args.listen)?;
    server.telling(note).serve(listener, http, &stop)?;
    Ok(exit::FINE)
}

impl VoterArgs {
    fn config(&self) -> Result<VoterConfig> {
        let mut config = VoterConfig {
            network_threads: self.network_threads,
            durability: self.durability.into(),
            data: self.data.clone(),
            users: self.all_users()?,
            pending_calls: self.pending_calls,
            pending_bytes: usize::try_from(self.pending_bytes.bytes).unwrap_or(usize::MAX),
            log_bytes_max: self.log_max.bytes,
            ..VoterConfig::default()
        };
        if let Some(partitions) = self.partitions {
            config.partitions = partitions;
        }
        Ok(config)
    }

    /// The users of the flags, of the file and of the environment.
    fn all_users(&self) -> Result<Vec<(String, String)>> {
        let mut users = Vec::new();
        for (place, text) in (1..).zip(&self.user) {
            users.push(user(text, &format!("--user (number {place})"))?);
        }
        if let Some(path) = &self.users {
            let shown = path.display();
            let text = read(path).map_err(|why| usage(format!("--users {shown}: {why}")))?;
            for (line, text) in (1..).zip(text.lines()) {
                if !text.trim().is_empty() {
                    users.push(user(text, &format!("{shown}:{line}"))?);
                }
            }
        }
        if let Ok(text) = std::env::var(USERS_VARIABLE) {
            for text in text.split(',').filter(|text| !text.is_empty()) {
                users.push(user(text, USERS_VARIABLE)?);
            }
        }
        Ok(users)
    }
}

/// A file of users. One that is too long is none, and something without an end must not be read to it.
fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| with_advice(&error))?;
    let read = file.take(USERS_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| format!("{error}; give a file of UTF-8 text"))?;
    if text.len() as u64 > USERS_BYTES_MAX {
        return Err("is longer than 16 MiB; give a file with one NAME:PASSWORD a line".to_owned());
    }
    Ok(text)
}

/// A name and a password. The given text is not repeated, since it may be a password.
fn user(text: &str, place: &str) -> Result<(String, String)> {
    match text.split_once(':') {
        Some((name, password)) if !name.is_empty() => Ok((name.to_owned(), password.to_owned())),
        _ => Err(usage(format!("{place}: the name is missing; write NAME:PASSWORD"))),
    }
}
