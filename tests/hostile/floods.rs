//! Floods of plimsoll's own servers: bounded memory, and honest clients are still served.

use crate::machine::Share;
use crate::process::PATIENCE;
use plimsoll_hostile::floods::{self, Flood, Measure};
use std::path::Path;

/// `make flood` has 10,000 connections, and says how fast an answer and an end come: here other tests have the machine, too.
const MEASURE: Measure = Measure { seconds: 1, connections: 300, patience: PATIENCE };

/// Floods a server with everything that it is given, a second each.
fn play(server: &str, chosen: impl Fn(&Flood) -> bool) {
    let _share = Share::busy();
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
    let all: Vec<Flood> = floods::all();
    let all = all.iter().filter(|flood| flood.server.starts_with(server) && chosen(flood));
    let mut faults = Vec::new();
    let mut count = 0;
    for flood in all {
        let place = tempfile::tempdir().unwrap();
        let found = flood.play(program, place.path(), MEASURE).unwrap();
        count += 1;
        let own = flood.faults(&found);
        if !own.is_empty() {
            faults.push(format!("{} ({}): {own:?}\n{}", flood.name, flood.server, found.output));
        }
    }
    assert!(count > 2, "{count} floods of {server}");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// Floods that are no less hard for a moment.
fn is_quick(flood: &Flood) -> bool {
    [
        "silent connections",
        "heads without end",
        "pipelined requests, replies not read",
        "chunk extensions without end",
        "HTTP/2: streams opened and reset",
        "HTTP/2: replies behind closed windows",
        "queries nested 50,000 deep",
        "regular expressions, wildcards and fuzzy words",
        "sizes and buckets of 2^31",
        "gzip bombs as bodies",
        "documents nested 400,000 deep",
        "deep and wide YQL and selections",
        "logins of 2^31 - 1 bytes",
        "frames of 2^32 - 1 bytes",
        "requests whose replies are not read",
        "calls whose answers are not read",
        "tokens guessed without end",
        "scrapes whose replies are not read",
    ]
    .contains(&flood.name)
}

#[test]
fn a_minimal_server_withstands_floods() {
    play("serve null", is_quick);
}

#[test]
fn the_search_server_withstands_floods() {
    play("serve search", is_quick);
}

#[test]
fn the_ranking_server_withstands_floods() {
    play("serve rank", is_quick);
}

#[test]
fn the_voter_database_withstands_floods() {
    play("serve voter", is_quick);
}

#[test]
fn the_live_page_of_a_run_withstands_floods() {
    play("load --live", is_quick);
}
