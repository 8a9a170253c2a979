//! Hostile servers: the client ends in its time, within its memory, and prints nothing that steers a terminal.

use crate::machine::Share;
use plimsoll_hostile::case::Case;
use plimsoll_hostile::peers;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Length of a run.
const LENGTH: Duration = Duration::from_millis(300);
/// Cases at a time: nearly all of them wait for timeouts.
const AT_ONCE: usize = 4;

/// Plays all cases of a protocol beside other tests.
fn play(group: &str) {
    play_with(Share::busy(), group);
}

fn play_with(_share: Share, group: &str) {
    let cases: Vec<Case> = peers::all().into_iter().filter(|case| case.group == group).collect();
    assert!(cases.len() > 2, "there are no cases of {group}");
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
    let next = AtomicUsize::new(0);
    let faults = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let place = tempfile::tempdir().unwrap();
                    peers::provide(place.path()).unwrap();
                    let found = case.play(program, place.path(), LENGTH).unwrap();
                    let own = case.faults(&found);
                    if !own.is_empty() {
                        let text = &found.ended.output;
                        faults.lock().unwrap().push(format!("{}: {own:?}\n{text}", case.name));
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn servers_of_http1_cannot_exhaust_a_client() {
    play("HTTP/1.1");
}

#[test]
fn servers_of_http2_cannot_exhaust_a_client() {
    play("HTTP/2");
}

#[test]
fn servers_of_tls_cannot_exhaust_a_client() {
    play("TLS");
}

#[test]
fn servers_of_postgresql_cannot_exhaust_a_client() {
    play("PostgreSQL");
}

#[test]
fn servers_of_voltdb_cannot_exhaust_a_client() {
    play("VoltDB");
}

/// Replies of a gigabyte are read through: beside other tests that takes minutes.
#[test]
fn document_apis_cannot_exhaust_a_visit() {
    play_with(Share::whole(), "visit");
}

#[test]
fn document_apis_cannot_exhaust_a_feed() {
    play_with(Share::whole(), "feed");
}

#[test]
fn receivers_of_metrics_cannot_exhaust_a_client() {
    play("OTLP");
}

#[test]
fn other_jobs_meet_hostile_servers() {
    play("other jobs");
}
