//! One hostile server, the command that meets it, and what must hold.

use crate::peer::{Part, Peer};
use crate::process::{Ended, run_until, unprintable};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Bytes of memory that a client may have at most, unless its case says otherwise.
pub const MEMORY_MAX: u64 = 160 << 20;
/// Longest time for which a client may run after the end of its run, before it is killed.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Text that a server sends once it has made a client say something else than it wanted.
pub const INJECTED: &str = "the-request-was-split";
/// Most bytes of what a command leaves: a search writes the texts that it asks for.
const RECORD_BYTES_MAX: u64 = 96 << 20;

/// A hostile server and the command that meets it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Protocol of the server.
    pub group: &'static str,
    /// Its action.
    pub name: &'static str,
    /// Its action, with each connection.
    pub part: Part,
    /// Arguments of plimsoll, between blanks: PORT, DURATION and SECONDS are filled in. A word in brackets (`[a b]`) is one argument.
    pub line: &'static str,
    /// A text that the output must have.
    pub says: &'static str,
    /// Most memory that the client may have, bytes.
    pub memory_max: u64,
    /// The command has no length of its own, and is interrupted.
    pub is_interrupted: bool,
}

impl Case {
    /// A case with the memory that most clients need.
    #[must_use]
    pub const fn new(
        (group, name): (&'static str, &'static str),
        part: Part,
        line: &'static str,
        says: &'static str,
    ) -> Self {
        Self { group, name, part, line, says, memory_max: MEMORY_MAX, is_interrupted: false }
    }

    /// The same with more memory.
    #[must_use]
    pub const fn within(self, memory_max: u64) -> Self {
        Self { memory_max, ..self }
    }

    /// The same for a command that lasts as long as the server goes on: it is interrupted after the length of a run.
    #[must_use]
    pub const fn interrupted(self) -> Self {
        Self { is_interrupted: true, ..self }
    }

    fn arguments(&self, port: u16, length: Duration) -> Vec<String> {
        let seconds = length.as_secs().max(1).to_string();
        let filled = self.line.replace("PORT", &port.to_string()).replace("SECONDS", &seconds);
        words(&filled.replace("DURATION", &format!("{}ms", length.as_millis())))
    }

    /// Lets `program` meet the server in the folder `place`, for a run of this length.
    ///
    /// # Errors
    /// When a port, a folder or the program is missing.
    pub fn play(&self, program: &Path, place: &Path, length: Duration) -> std::io::Result<Found> {
        let peer = Peer::start(self.part)?;
        let mut command = Command::new(program);
        command.args(self.arguments(peer.port(), length)).current_dir(place);
        command.env("PGPASSWORD", "hostile-peer-password").env_remove("COLUMNS");
        let interrupt = self.is_interrupted.then_some(length + Duration::from_secs(1));
        let ended = run_until(command, length + PATIENCE, interrupt)?;
        Ok(Found {
            ended,
            sent: peer.sent(),
            connections: peer.connections(),
            place: place.to_owned(),
        })
    }

    /// The faults of a result; empty if there are none.
    #[must_use]
    pub fn faults(&self, found: &Found) -> Vec<String> {
        let Found { ended, .. } = found;
        let mut faults = Vec::new();
        if ended.was_killed {
            faults.push(format!("did not end within {:?} after its run", PATIENCE));
        } else if !matches!(ended.code, Some(0..=9 | 64)) {
            faults.push(format!("ended with {:?}", ended.code));
        }
        if ended.peak_bytes > self.memory_max {
            let mib = |bytes: u64| bytes >> 20;
            let (peak, most) = (mib(ended.peak_bytes), mib(self.memory_max));
            faults.push(format!("{peak} MiB of memory, more than {most} MiB"));
        }
        if let Some(text) = unprintable(&ended.output) {
            faults.push(format!("printed what is not printable: {text}"));
        }
        if ended.output.contains(INJECTED) {
            faults.push("sent a request that the server had written".to_owned());
        }
        if !ended.output.contains(self.says) {
            faults.push(format!("did not say {:?}", self.says));
        }
        if found.record_bytes() > RECORD_BYTES_MAX {
            faults.push(format!("a record of {} bytes", found.record_bytes()));
        }
        faults
    }
}

/// A line as arguments.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, behind) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').unwrap_or((inner, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    words
}

/// The result of a case.
#[derive(Clone, Debug)]
pub struct Found {
    /// The client.
    pub ended: Ended,
    /// Bytes that it took from the server.
    pub sent: u64,
    /// Connections that it opened.
    pub connections: u64,
    place: PathBuf,
}

impl Found {
    /// Bytes of the files that the client has left.
    #[must_use]
    pub fn record_bytes(&self) -> u64 {
        bytes_of(&self.place)
    }
}

fn bytes_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_of(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_at_blanks_and_brackets_keep_a_word_whole() {
        assert_eq!(words("load  --check [body~a b] x"), ["load", "--check", "body~a b", "x"]);
    }

    fn honest(_: &mut crate::peer::Wire) -> std::io::Result<()> {
        Ok(())
    }

    #[test]
    fn each_fault_is_named() {
        let case = Case::new(("g", "n"), honest, "x", "fine").within(100 << 20);
        let ended = Ended { code: Some(0), output: "all is fine\n".to_owned(), ..Ended::default() };
        let place = std::path::PathBuf::from("/nowhere/at/all");
        let found = Found { ended, sent: 0, connections: 0, place };
        assert!(case.faults(&found).is_empty());
        let wrong = |change: fn(&mut Ended)| {
            let mut found = found.clone();
            change(&mut found.ended);
            case.faults(&found).concat()
        };
        assert!(wrong(|ended| ended.was_killed = true).contains("did not end"));
        assert!(wrong(|ended| ended.code = Some(101)).contains("ended with Some(101)"));
        assert!(wrong(|ended| ended.code = None).contains("ended with None"));
        assert!(wrong(|ended| ended.peak_bytes = 101 << 20).contains("101 MiB"));
        assert!(wrong(|ended| ended.output += "\u{1b}[m").contains("printable"));
        assert!(wrong(|ended| ended.output = String::new()).contains("did not say"));
    }
}
