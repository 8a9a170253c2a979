//! The life of an engine: started or found, asked whether it lives, started again once it has died.

use super::server::Server;
use super::server_cpu::{listener, tree_cpu_s};
use crate::spec::{EngineSpec, MatrixSpec, Place};
use anyhow::{Context, Result, anyhow, bail};
use plimsoll_core::clock::now_ns;
use plimsoll_core::units::Span;
use plimsoll_job::embedded::Embedded;
use plimsoll_job::signals::Stopped;
use plimsoll_job::temporary::temporary_folder;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;

/// Time that a sign of life is waited for.
const SIGN_OF_LIFE: Span = Span::seconds(5);
/// Longest time that an engine at an address may take until it answers at all.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Times that one engine is started again in a matrix.
const RESTARTS_MAX: u32 = 5;

/// A running engine.
pub struct Engine {
    spec: EngineSpec,
    process: Option<Embedded>,
    /// The way it is asked.
    pub server: Server,
    headers: Vec<String>,
    timeout: Span,
    log: Log,
    restarts: u32,
}

/// File for the stderr of a started engine.
struct Log {
    path: Option<PathBuf>,
    /// Its folder where the matrix has none; it goes with the engine.
    _folder: Option<TempDir>,
}

impl Log {
    /// A file in the record's folder; without a record one for as long as the engine lives, so that it can say why it ended.
    fn new(spec: &EngineSpec, record: Option<&Path>) -> Result<Self> {
        let own = match (record, &spec.place) {
            (None, Place::Serve(_)) => Some(temporary_folder("log")?),
            _ => None,
        };
        let folder = record.or(own.as_ref().map(TempDir::path));
        let path =
            folder.map(|folder| folder.join(format!("engine-{}.log", file_name(&spec.name))));
        Ok(Self { path, _folder: own })
    }

    fn sink(&self) -> Result<Stdio> {
        let Some(path) = &self.path else { return Ok(Stdio::null()) };
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(file.with_context(|| path.display().to_string())?.into())
    }

    /// The last thing that was said, which is most often why it ended.
    fn last_words(&self) -> Option<String> {
        let mut file = File::open(self.path.as_ref()?).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES))).ok()?;
        let mut bytes = Vec::new();
        file.take(LAST_BYTES).read_to_end(&mut bytes).ok()?;
        last_words(&String::from_utf8_lossy(&bytes))
    }
}

/// Part of a log's end that is looked at, bytes.
const LAST_BYTES: u64 = 64 << 10;

/// The last line of a log that says something: frames of a stack below it say where, and not what.
fn last_words(log: &str) -> Option<String> {
    let says = |line: &&str| !line.trim().is_empty() && !line.starts_with([' ', '\t']);
    let last = log.lines().rev().find(says)?;
    let shown = last.trim_start_matches("plimsoll: ").trim_end().chars();
    Some(shown.take(300).map(|c| if c.is_control() { ' ' } else { c }).collect())
}

impl Engine {
    /// Starts an engine, or makes sure that the one at an address answers. Output of a started engine on stderr goes to
    /// a file in `folder`, the record's.
    ///
    /// # Errors
    /// When it does not start or answer.
    pub fn start(spec: &EngineSpec, matrix: &MatrixSpec, folder: Option<&Path>) -> Result<Self> {
        let log = Log::new(spec, folder)?;
        let (process, url) = begin(spec, &log)?;
        let server = Server::new(&url, spec.dialect, &matrix.headers, matrix.timeout)?;
        let headers = matrix.headers.clone();
        let mut engine = Self {
            spec: spec.clone(),
            process,
            server,
            headers,
            timeout: matrix.timeout,
            log,
            restarts: 0,
        };
        engine.wait_until_it_answers()?;
        Ok(engine)
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let until_ns = now_ns() + ANSWERS_WITHIN.as_nanos() as u64;
        loop {
            if self.is_alive()? {
                return Ok(());
            }
            if now_ns() > until_ns {
                let s = ANSWERS_WITHIN.as_secs();
                let target = self.server.target()?;
                if target.addresses.is_empty() {
                    let host = target.host;
                    bail!("unknown host '{host}'; correct the address");
                }
                bail!(
                    "nothing answers at {} within {s} s; start it, or correct the address",
                    self.server.url
                );
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Returns true if it answers at all.
    ///
    /// # Errors
    /// When the user stops the program.
    pub fn is_alive(&mut self) -> Result<bool> {
        let process = self.process.as_mut().map(Embedded::is_alive);
        // One of ours without a process could not be started again.
        if !process.unwrap_or(!self.is_ours()) {
            return Ok(false);
        }
        let answer = self.server.ask_one(&self.spec.dialect.hello(), SIGN_OF_LIFE)?;
        Ok(answer.status != 0)
    }

    /// Returns its name and version; empty if unknown.
    ///
    /// # Errors
    /// When the user stops the program.
    pub fn version(&self) -> Result<String> {
        let answer = self.server.ask_one(&self.spec.dialect.hello(), SIGN_OF_LIFE)?;
        let told = self.spec.dialect.read_version(&answer.body);
        // What the embedded server says there is whom it speaks like.
        let is_own = matches!(&self.spec.place, Place::Serve(arguments)
            if arguments.first().is_some_and(|kind| kind == "search"));
        Ok(match (is_own, told.is_empty()) {
            (false, _) => told,
            (true, true) => format!("plimsoll {}", env!("CARGO_PKG_VERSION")),
            (true, false) => format!("plimsoll {}, as {told}", env!("CARGO_PKG_VERSION")),
        })
    }

    /// Starts it again after its death. Only what this program started can be started again.
    ///
    /// # Errors
    /// When plimsoll did not start it, or it does not start, or has been started again too often.
    pub fn restart(&mut self) -> Result<()> {
        if !self.is_ours() {
            bail!("plimsoll did not start it and cannot restart it");
        }
        if self.restarts == RESTARTS_MAX {
            bail!("it was restarted {RESTARTS_MAX} times");
        }
        self.restarts += 1;
        // The old one's port and data are free before the new one begins.
        self.process = None;
        let (process, url) = begin(&self.spec, &self.log)?;
        self.process = process;
        self.server = Server::new(&url, self.spec.dialect, &self.headers, self.timeout)?;
        self.wait_until_it_answers()
    }

    /// Last words of a dead engine, in quotes after a colon; empty if it said nothing, or plimsoll did not start it.
    #[must_use]
    pub fn last_words(&self) -> String {
        let words = self.log.last_words().filter(|_| self.is_ours());
        words.map_or(String::new(), |words| format!(": '{words}'"))
    }

    /// Returns true if this program started it.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        matches!(self.spec.place, Place::Serve(_))
    }

    /// The CPU time that it has used, s; none where it is on another machine, or another user's.
    #[must_use]
    pub fn cpu_s(&self) -> Option<f64> {
        let pid = match &self.process {
            Some(process) => Some(process.pid()),
            None if self.is_ours() => None,
            None => {
                let target = self.server.target().ok()?;
                target.is_this_machine().then(|| listener(target.port))?
            }
        };
        tree_cpu_s(pid?)
    }
}

fn begin(spec: &EngineSpec, log: &Log) -> Result<(Option<Embedded>, String)> {
    match &spec.place {
        Place::Address(url) => Ok((None, url.clone())),
        Place::Serve(arguments) => {
            let mut arguments = arguments.clone();
            if !arguments.iter().any(|one| one == "--port" || one.starts_with("--port=")) {
                arguments.extend(["--port".to_owned(), "0".to_owned()]);
            }
            let started = Embedded::start_telling(&arguments, &[], log.sink()?);
            let process = started.map_err(|error| match log.last_words() {
                // Its own last words say more than that it said nothing on stdout.
                Some(text) if !error.is::<Stopped>() => anyhow!(text),
                _ => error,
            })?;
            let url = process.url.clone();
            Ok((Some(process), url))
        }
    }
}

/// A name as part of a file's or an index's.
pub fn file_name(name: &str) -> String {
    name.to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn last_words_are_what_went_wrong_and_not_where() {
        let java = "[INFO ] started\njava.lang.OutOfMemoryError: Java heap space\n\tat a.B.c(B.java:1)\n    ... 5 more\n";
        assert_eq!(last_words(java).unwrap(), "java.lang.OutOfMemoryError: Java heap space");
        let own = "plimsoll: cannot listen on 127.0.0.1 port 1\n\n";
        assert_eq!(last_words(own).unwrap(), "cannot listen on 127.0.0.1 port 1");
        assert_eq!(last_words("\n  \n"), None);
        assert_eq!(last_words(&"x".repeat(1000)).unwrap().len(), 300);
    }
}
