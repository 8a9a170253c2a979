//! The seconds of a run as lines of JSON, for a program that reads along.

mod lines;
mod sums;
mod write;

pub use lines::{ClassSecond, End, Line, SCHEMA, Second, SoFar, Start};
pub use sums::{Model, Sums, closed};

use crate::facts::Facts;
use crate::queue::{Queue, Tally};
use plimsoll_core::interval::Interval;
use plimsoll_record::RunRecord;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use write::Lines;

/// Most lines that wait for a slow reader: two minutes.
pub const WAITING_MAX: usize = 120;
/// Longest wait for a reader after the end of the run.
pub const LAST_WAIT: Duration = Duration::from_millis(1_500);

/// Writes the seconds of a run.
#[derive(Debug)]
pub struct Stream {
    queue: Queue,
    sums: Sums,
}

impl Stream {
    /// A stream into a file, which is emptied, or to stdout for `-`.
    ///
    /// # Errors
    /// When the file cannot be made, or the system has no thread left.
    pub fn open(path: &Path, model: Model) -> io::Result<Self> {
        let to: Box<dyn Write + Send> = match path == Path::new("-") {
            true => Box::new(io::stdout()),
            false => Box::new(File::create(path)?),
        };
        let queue = Queue::start("stream", WAITING_MAX, Lines::new(to))?;
        Ok(Self { queue, sums: Sums::new(model) })
    }

    /// Writes the first line.
    pub fn begin(&self, facts: &Facts) {
        self.put(&Line::Start(Start::of(facts)));
    }

    /// Writes the line of a second. Never waits for the reader.
    pub fn second(&mut self, facts: &Facts, second: &Interval, now_us: u64) {
        self.sums.add(second);
        let line = lines::second(facts, second, &mut self.sums, now_us);
        self.put(&Line::Second(Box::new(line)));
    }

    /// Writes the last line, waits for the reader at most [`LAST_WAIT`], and returns the fate of all lines.
    #[must_use]
    pub fn end(self, facts: &Facts, record: &RunRecord) -> Tally {
        self.put(&Line::End(Box::new(End::of(facts, record))));
        self.queue.finish(LAST_WAIT)
    }

    fn put(&self, line: &Line) {
        // Texts and numbers in memory: there is nothing that could fail.
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        self.queue.put(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::verdict::VerdictKind;
    use serde_json::Value;

    pub(super) fn second(number: u64, ok: u64) -> Interval {
        let mut second = Interval::new(2);
        second.from_ns = number * 1_000_000_000;
        second.to_ns = second.from_ns + 1_000_000_000;
        second.in_flight = 1;
        second.ledger.scheduled = ok + 1;
        second.ledger.sent = ok + 1;
        second.ledger.ok = ok;
        second.counters.ended_in_time = ok;
        second.counters.ok_in_time = ok;
        for request in 0..ok {
            let part = &mut second.classes[request as usize % 2];
            part.ledger.sent += 1;
            part.ledger.ok += 1;
            part.record_ok(5_000_000, 4_000_000);
            second.lag.record(20_000);
        }
        second
    }

    #[test]
    fn a_line_a_second_between_a_first_and_a_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seconds.ndjson");
        let facts = Facts {
            run_id: "0a1b2c3d".to_owned(),
            classes: vec!["a".to_owned(), "b</script>".to_owned()],
            phases: vec!["steady".to_owned()],
            ..Facts::default()
        };
        let mut stream = Stream::open(&path, Model::default()).unwrap();
        stream.begin(&facts);
        for number in 0..3 {
            stream.second(&facts, &second(number, 100), 1_795_600_000_000_000);
        }
        let mut record = plimsoll_record::read(RECORD).unwrap();
        record.verdict.kind = VerdictKind::Partial;
        let tally = stream.end(&facts, &record);
        assert_eq!((tally.put, tally.lost(), tally.is_complete), (5, 0, true));
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["start", "second", "second", "second", "end"]);
        assert_eq!(lines[0]["schema"], SCHEMA);
        let third = &lines[3];
        assert_eq!((&third["from_s"], &third["phase"]), (&2.0.into(), &"steady".into()));
        assert_eq!(
            (&third["ledger"]["ok"], &third["so_far"]["ledger"]["ok"]),
            (&100.into(), &300.into())
        );
        assert_eq!(third["rate"]["ok_per_s"], 100.0);
        assert_eq!(third["classes"]["b</script>"]["ok"], 50);
        assert_eq!(third["so_far"]["verdict"], "valid");
        assert_eq!(third["response_ms"]["count"], 100);
        assert_eq!(lines[4]["verdict"]["kind"], "partial");
        assert_eq!(lines[4]["ledger"]["ok"].as_u64(), Some(record.ledger.ok));
    }

    /// A record of a load.
    pub(super) const RECORD: &[u8] = include_bytes!("../../tests/load.json");

    #[test]
    fn a_file_that_cannot_be_made_is_an_error_and_a_full_one_a_loss() {
        let nowhere = Path::new("/nowhere/at/all");
        assert!(Stream::open(nowhere, Model::default()).is_err());
        let mut stream = Stream::open(Path::new("/dev/full"), Model::default()).unwrap();
        stream.second(&Facts::default(), &second(0, 10), 0);
        let tally = stream.end(&Facts::default(), &plimsoll_record::read(RECORD).unwrap());
        assert_eq!((tally.put, tally.lost()), (2, 2));
        let error = tally.error.unwrap().to_lowercase();
        assert!(error.contains("no space left"), "{error}");
    }
}
