//! `perf stat` of the whole machine while a run goes, as CSV.

use plimsoll_core::clock::wall_us;
use plimsoll_job::child::{program, stop};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// File made from its output.
pub const FILE: &str = "perf-stat.csv";
const RAW: &str = "perf-stat.raw";
const EVENTS: [&str; 6] = [
    "cycles",
    "instructions",
    "cache-misses",
    "branch-misses",
    "context-switches",
    "cpu-migrations",
];
/// Longest time that it may take to fail at once: no rights, no counters, no such event.
const FAILS_WITHIN: Duration = Duration::from_millis(400);
/// Beginning of its stderr in which the reason of a failure is, bytes.
const SAID_BYTES: u64 = 4096;

/// A running `perf stat`.
pub struct PerfStat {
    child: Child,
    started_s: f64,
}

impl PerfStat {
    /// Starts it.
    ///
    /// # Errors
    /// When it is not installed, or ends at once; its own words then.
    pub fn start(folder: &Path, interval: Duration, more: &[String]) -> Result<Self, String> {
        let events: Vec<&str> =
            EVENTS.iter().copied().chain(more.iter().map(String::as_str)).collect();
        let mut command = program("perf");
        command
            .args(["stat", "-a", "-x", ",", "-I", &interval.as_millis().to_string()])
            .args(["-e", &events.join(","), "-o"])
            .arg(folder.join(RAW));
        Self::run(&mut command)
    }

    /// Runs a command that goes on until [`PerfStat::finish`].
    fn run(command: &mut Command) -> Result<Self, String> {
        // A file has room for all that it prints. A program that fills a pipe waits until the pipe is read.
        let files = tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file)));
        let (stderr, said) = files.map_err(|error| {
            format!("no temporary file can be created: {error}; set TMPDIR to another folder")
        })?;
        let started_s = wall_us() as f64 / 1e6;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .map_err(|error| format!("{error}; install perf to have it"))?;
        std::thread::sleep(FAILS_WITHIN);
        match child.try_wait() {
            Ok(None) => Ok(Self { child, started_s }),
            _ => {
                let line = first_line(said).unwrap_or_else(|| "it ended at once".to_owned());
                Err(format!("does not work here: {line}"))
            }
        }
    }

    /// Stops it and makes the CSV.
    ///
    /// # Errors
    /// When its output cannot be read or has another form.
    pub fn finish(mut self, folder: &Path) -> Result<(), String> {
        stop(&mut self.child, Signal::INT, Duration::from_secs(3));
        let shown = |error: std::io::Error| format!("{RAW}: {error}");
        let raw = std::fs::read_to_string(folder.join(RAW)).map_err(shown)?;
        let table = pivot(&raw, self.started_s).ok_or("perf stat counted nothing here")?;
        std::fs::write(folder.join(FILE), table).map_err(shown)
    }
}

/// Returns the first line of a text that is not empty.
fn first_line(mut text: File) -> Option<String> {
    let mut bytes = Vec::new();
    text.rewind().and_then(|()| text.take(SAID_BYTES).read_to_end(&mut bytes)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// From `seconds,value,unit,event,...` lines to one row a moment with a column an event.
///
/// An event that could not be counted is left empty. `None` when nothing was counted.
fn pivot(raw: &str, started_s: f64) -> Option<String> {
    let mut moments: Vec<(f64, BTreeMap<&str, &str>)> = Vec::new();
    let mut events: Vec<&str> = Vec::new();
    let mut counted = false;
    for line in raw.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let (Some(Ok(at_s)), Some(&value), Some(&event)) =
            (fields.first().map(|at| at.parse::<f64>()), fields.get(1), fields.get(3))
        else {
            continue;
        };
        if !events.contains(&event) {
            events.push(event);
        }
        if moments.last().is_none_or(|(last_s, _)| *last_s != at_s) {
            moments.push((at_s, BTreeMap::new()));
        }
        if let Some((_, row)) = moments.last_mut()
            && value.parse::<f64>().is_ok()
        {
            counted = true;
            row.insert(event, value);
        }
    }
    let mut out = format!("index,timestamp,{}\n", events.join(","));
    for (index, (at_s, row)) in moments.iter().enumerate() {
        let cells: Vec<&str> =
            events.iter().map(|event| row.get(event).copied().unwrap_or("")).collect();
        // Writing to a text cannot fail.
        let _ = writeln!(out, "{index},{:.3},{}", started_s + at_s, cells.join(","));
    }
    counted.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::clock::now_ns;

    #[test]
    fn perf_with_much_output_does_not_wait_for_a_reader() {
        let folder = tempfile::tempdir().unwrap();
        let raw = folder.path().join(RAW);
        let script = "head -c 1000000 /dev/zero >&2; echo 1.000,500,,cycles >\"$0.new\"; \
                      mv \"$0.new\" \"$0\"; exec sleep 60";
        let mut command = program("sh");
        command.args(["-c", script]).arg(&raw);
        let running = PerfStat::run(&mut command).unwrap();
        let until_ns = now_ns() + 30_000_000_000;
        while !raw.exists() && now_ns() < until_ns {
            std::thread::sleep(Duration::from_millis(10));
        }
        running.finish(folder.path()).unwrap();
        let table = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(table.starts_with("index,timestamp,cycles\n0,"), "{table}");
    }

    #[test]
    fn the_reason_of_a_failure_is_the_first_line_that_is_not_empty() {
        let said = |text: &str| {
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            first_line(file)
        };
        assert_eq!(said("\n  no permission \nmore\n"), Some("no permission".to_owned()));
        assert_eq!(said(&"x".repeat(1_000_000)).map(|line| line.len()), Some(4096));
        assert_eq!(said(""), None);
    }

    #[test]
    fn events_become_columns() {
        let raw = "# started on Sat Nov 21\n\n\
            \u{20}    1.000,500,,cycles,100,100.00,,\n     1.000,<not supported>,,cache-misses,0,0.00,,\n\
            \u{20}    2.000,600,,cycles,100,100.00,,\n     2.000,7,,cache-misses,0,0.00,,\n";
        let table = pivot(raw, 100.0).unwrap();
        assert_eq!(table, "index,timestamp,cycles,cache-misses\n0,101.000,500,\n1,102.000,600,7\n");
        assert_eq!(pivot("     1.000,<not supported>,,cycles,0,0.00,,\n", 0.0), None);
    }
}
