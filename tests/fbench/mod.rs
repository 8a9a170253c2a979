//! `plimsoll fbench` against the facts about the original program.

mod cycle;
mod failures;
mod files;
mod output;
mod requests;
mod tls;

use crate::process::{Ended, Place};
use crate::server::Server;

/// Runs fbench with `flags` against a server; nothing is kept besides stdout.
fn fbench(place: &Place, server: &Server, flags: &[&str]) -> Ended {
    let port = server.port();
    let mut args = vec!["fbench"];
    args.extend(flags);
    args.extend(["--no-record", "127.0.0.1", &port]);
    place.run(args)
}

/// The number after a label of the summary.
#[track_caller]
fn figure(ended: &Ended, label: &str) -> f64 {
    let line = ended.stdout.lines().find(|line| line.starts_with(label));
    let line =
        line.unwrap_or_else(|| panic!("no '{label}' in\n{}\n{}", ended.stdout, ended.stderr));
    let number = line[label.len()..].split_ascii_whitespace().next().unwrap_or_default();
    number.parse().unwrap_or_else(|_| panic!("no number in '{line}'"))
}

/// Successful and failed requests.
#[track_caller]
fn counts(ended: &Ended) -> (u64, u64) {
    let ok = figure(ended, "successful requests:");
    let failed = figure(ended, "failed requests:");
    (ok as u64, failed as u64)
}

/// `n` query lines, `/q0` to `/q<n-1>`.
fn lines(n: usize) -> String {
    (0..n).map(|i| format!("/q{i}\n")).collect()
}
