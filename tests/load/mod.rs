//! `plimsoll load`: every model, every kind of failure, and the books.

mod admission;
mod connections;
mod failures;
mod judging;
mod models;
mod replies;
mod stopping;
mod truth;

use crate::process::{Ended, Place};
use crate::record::Record;

/// Runs `load URL` with flags and the record on stdout.
fn load(place: &Place, url: &str, flags: &[&str]) -> Ended {
    let mut args = vec!["load", url, "--json", "-"];
    args.extend(flags);
    place.run(args)
}

/// The same, with the exit code that is expected and balanced books.
///
/// Many tests share the machine: where plimsoll says that it could not keep its own times (exit
/// code 3, `generator-limited`), that is right, and counts must hold all the same.
#[track_caller]
fn record(place: &Place, url: &str, flags: &[&str], code: i32) -> Record {
    let ended = load(place, url, flags);
    let record = Record::of(&ended);
    if ended.code != Some(3) || record.verdict() != "generator-limited" || code == 4 {
        ended.expect(code);
    }
    record.expect_balanced();
    record
}
