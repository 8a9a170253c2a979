//! `plimsoll load`: every model, every kind of failure, and the books.

mod admission;
mod connections;
mod failures;
mod http2;
mod intervals;
mod judging;
mod models;
mod observing;
mod replies;
mod sources;
mod stopping;
mod truth;
mod users;
mod watching;

use crate::process::{Ended, Place};
use crate::record::Record;
use crate::server::Server;

/// Arrivals in milliseconds after the first.
fn arrivals_ms(server: &Server) -> Vec<f64> {
    let mut at: Vec<u64> = server.seen().iter().map(|seen| seen.at_ns).collect();
    at.sort_unstable();
    at.iter().map(|t| (t - at[0]) as f64 / 1e6).collect()
}

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

/// For runs that have times of their own to keep, against a server that answers at once. Many tests
/// share the machine, and its host may take a core away for longer than the millisecond of lag that
/// is tolerated then: plimsoll is right to say so, and counts must hold all the same.
///
/// Not for runs whose answers take their time, nor for runs that wait for slots: a tenth of the
/// response time is tolerated, and waiting for the target is never the generator's lag.
#[track_caller]
fn record_on_time_or_late(place: &Place, url: &str, flags: &[&str], code: i32) -> Record {
    on_time_or_late(load(place, url, flags), code)
}

/// The record of a run that ended with `code`, or said that the generator itself was late.
#[track_caller]
fn on_time_or_late(ended: Ended, code: i32) -> Record {
    let record = Record::of(&ended);
    let reasons = record.0["verdict"]["reasons"].to_string();
    let late =
        record.verdict() == "generator-limited" && reasons.contains("the generator was late");
    ended.expect(if late { 3 } else { code });
    record.expect_balanced();
    record
}
