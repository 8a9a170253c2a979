//! The voter benchmark: against the embedded database and against PostgreSQL, counted to the last vote.

mod clients;
mod kill;
mod overload;
mod postgresql;
mod presets;
mod wrong;

use crate::process::{Ended, Place, Target};
use crate::record::Record;

/// What three votes of one telephone come to, by how often it may vote: the limit is judged where there are votes.
pub const LIMITS: [(i64, [i64; 3]); 3] = [(0, [0, 2, 2]), (1, [0, 2, 2]), (2, [0, 0, 2])];

/// A database of plimsoll's own, and nothing else on the command line.
fn database(place: &Place, flags: &[&str]) -> Target {
    place.serve(&[&["voter", "--port", "0"], flags].concat())
}

/// A run whose record is its output. A generator that had no time to spare is told, and no fault of the votes.
#[track_caller]
pub fn run(place: &Place, args: &[&str]) -> Record {
    let ended = place.run([args, &["--json", "-", "--no-record"]].concat());
    let record = Record::of(&ended);
    let limited = record.verdict() == "generator-limited" && ended.code == Some(3);
    assert!(limited || ended.code == Some(0), "{}\n{}", ended.stdout, ended.stderr);
    record.expect_balanced();
    record.expect_schema();
    record
}

/// Every accepted vote is a row of this run, and nothing else is.
#[track_caller]
pub fn expect_exact(record: &Record) {
    assert_eq!(record.text("/voter/check"), "ok", "{:#}", record.0["voter"]);
    let grown = record.count("/voter/rows_after") - record.count("/voter/rows_before");
    assert_eq!(grown, record.count("/voter/accepted"));
    assert_eq!(record.count("/voter/unknown"), 0);
    assert_eq!(record.ok(), record.count("/voter/accepted") + rejected(record));
}

pub fn rejected(record: &Record) -> u64 {
    record.count("/voter/rejected/contestant") + record.count("/voter/rejected/limit")
}

/// One line on stderr, not counting the words about the phases.
#[track_caller]
fn line(ended: &Ended) -> &str {
    let lines: Vec<&str> =
        ended.stderr.lines().filter(|line| line.starts_with("plimsoll: ")).collect();
    assert_eq!(lines.len(), 1, "{}", ended.stderr);
    lines[0]
}
