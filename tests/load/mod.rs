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
#[track_caller]
fn record(place: &Place, url: &str, flags: &[&str], code: i32) -> Record {
    let record = Record::of(&load(place, url, flags).expect(code));
    record.expect_balanced();
    record
}
