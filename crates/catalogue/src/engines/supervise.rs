//! An engine's process from its start to its end, whoever ends it.

use super::log::EngineLog;
use anyhow::{Result, anyhow};
use plimsoll_core::clock::now_ns;
use plimsoll_core::system_error::with_advice;
use plimsoll_job::child::{LOOK_EVERY, stop, wait_within};
use plimsoll_job::exit;
use plimsoll_job::output::print_out;
use plimsoll_job::signals;
use plimsoll_job::temporary::temporary_folder;
use plimsoll_job::usage::usage;
use rustix::process::Signal;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;
use tempfile::TempDir;

/// Longest time that an engine may take until it answers: one that recovers its data takes a while.
const READY_WITHIN: Duration = Duration::from_secs(300);
/// Pause between two looks at an engine that starts.
const STARTING_LOOK: Duration = Duration::from_millis(20);
/// Longest time that it may take to shut down cleanly; whoever waits for `serve` itself waits 10 s.
const PATIENCE: Duration = Duration::from_secs(8);

/// Options of `serve` for any engine.
pub struct Place<'a> {
    /// The engine's word.
    pub kind: &'a str,
    /// The scheme of its address.
    pub scheme: &'a str,
    /// The host of its address, an IPv6 address in brackets.
    pub host: &'a str,
    /// File for a copy of the ready line.
    pub ready_file: Option<&'a Path>,
}

/// A process that is ended when this is dropped.
pub struct Running {
    /// The process.
    pub child: Child,
    /// The signal that ends it in order.
    pub gently: Signal,
}

impl Drop for Running {
    fn drop(&mut self) {
        stop(&mut self.child, self.gently, PATIENCE);
    }
}

/// Waits until the engine answers, says so, and waits for its end. `port` is asked again and again until it knows.
///
/// # Errors
/// When the engine ends by itself, or does not answer.
pub fn supervise(
    place: &Place<'_>,
    mut running: Running,
    log: &EngineLog,
    port: &mut dyn FnMut() -> Result<Option<u16>>,
) -> Result<u8> {
    let end = accompany(place, &mut running, log, port);
    drop(running);
    log.drain();
    end
}

fn accompany(
    place: &Place<'_>,
    running: &mut Running,
    log: &EngineLog,
    port: &mut dyn FnMut() -> Result<Option<u16>>,
) -> Result<u8> {
    let until_ns = now_ns() + READY_WITHIN.as_nanos() as u64;
    let port = loop {
        if let Some(port) = port()? {
            break port;
        }
        if let Some(status) = wait_within(&mut running.child, STARTING_LOOK) {
            // Why it does not start may be what it said last, and still be on its way.
            log.drain();
            port()?;
            return Err(ended(place.kind, &status.to_string(), log));
        }
        if signals::is_stopped() {
            return Ok(exit::FINE);
        }
        if now_ns() > until_ns {
            let text = format!("did not answer within {} s", READY_WITHIN.as_secs());
            return Err(ended(place.kind, &text, log));
        }
    };
    let line = format!("ready {} {}://{}:{port}\n", place.kind, place.scheme, place.host);
    if let Some(path) = place.ready_file {
        std::fs::write(path, &line).map_err(|error| {
            usage(format!("--ready-file {}: {}", path.display(), with_advice(&error)))
        })?;
    }
    print_out(&line)?;
    loop {
        if let Some(status) = wait_within(&mut running.child, LOOK_EVERY) {
            return Err(ended(place.kind, &status.to_string(), log));
        }
        if signals::is_stopped() {
            return Ok(exit::FINE);
        }
    }
}

fn ended(kind: &str, how: &str, log: &EngineLog) -> anyhow::Error {
    // Its last words may still be on their way.
    log.drain();
    let path = log.path();
    // A log in a temporary folder is removed with it.
    let where_to =
        if is_temporary(path) { String::new() } else { format!("; see {}", path.display()) };
    anyhow!("{kind} ended by itself ({how}): {}{where_to}", log.last_words())
}

fn is_temporary(path: &Path) -> bool {
    path.parent()
        .and_then(Path::file_name)
        .is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY))
}

/// The way the names of engines' temporary folders begin.
const TEMPORARY: &str = "plimsoll-engine-";

/// The folder of an engine's data: the user's own, or one that goes when the engine goes.
pub struct DataFolder {
    /// Absolute path.
    pub path: PathBuf,
    temporary: Option<TempDir>,
}

impl DataFolder {
    /// Makes it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(given: Option<&Path>, kind: &str) -> Result<Self> {
        let Some(given) = given else {
            let folder = temporary_folder(&format!("engine-{kind}"))?;
            return Ok(Self { path: folder.path().to_owned(), temporary: Some(folder) });
        };
        let path = std::path::absolute(given)?;
        std::fs::create_dir_all(&path).map_err(|error| {
            usage(format!("--data {}: {error}; name another folder", path.display()))
        })?;
        Ok(Self { path, temporary: None })
    }

    /// Returns true if it goes.
    pub const fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }
}

/// Makes sure that nothing listens on the port; 0 is any free one, which is found and given back.
///
/// # Errors
/// The port is in use.
pub fn free_port(port: u16) -> Result<u16> {
    free_port_on("127.0.0.1", port)
}

/// The same on another address.
///
/// # Errors
/// As [`free_port`].
pub fn free_port_on(host: &str, port: u16) -> Result<u16> {
    let listener = TcpListener::bind((host, port)).map_err(|error| {
        usage(format!(
            "cannot listen on {host} port {port}: {error}; take another --port (0 takes any free one)"
        ))
    })?;
    Ok(listener.local_addr()?.port())
}
