//! The embedded engine killed while it writes a shard's log anew: whatever was acknowledged is there.

use crate::dice::{Dice, rounds};
use crate::exchange::Exchange;
use crate::process::{Place, Target};
use plimsoll_core::clock::now_ns;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Documents, each written again and again; of about 4 MB in all, so that the log is worth shortening after a few
/// hundred requests, and takes its time.
const DOCUMENTS: usize = 200;
const WORDS: usize = 2_000;
/// Documents of one request.
const BULK: usize = 20;
const PATIENCE: Duration = Duration::from_secs(60);

fn serve(place: &Place) -> Target {
    place.serve(&["search", "--data", "data", "--durability", "sync"])
}

/// The lines of a request that writes the documents from `first` on, each with the number `stamp`.
fn bulk(first: usize, stamp: u64) -> String {
    let words = "many words ".repeat(WORDS);
    let mut lines = String::new();
    for id in first..first + BULK {
        // Writing into a string does not fail.
        let _ = writeln!(lines, "{{\"index\":{{\"_id\":\"{id}\"}}}}");
        let _ = writeln!(lines, "{}", json!({"stamp": stamp, "words": words}));
    }
    lines
}

/// Which number each document has.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Acknowledged.
    sure: u64,
    /// Asked for, when the server went.
    open: Option<u64>,
}

/// Writes until the server is gone.
fn write(target: &Target, known: &mut [Known], stamp: &mut u64) {
    let Some(mut server) = Exchange::connect(&target.host, target.port) else { return };
    loop {
        for first in (0..DOCUMENTS).step_by(BULK) {
            *stamp += 1;
            let own = &mut known[first..first + BULK];
            own.iter_mut().for_each(|one| one.open = Some(*stamp));
            let Some((status, body)) = server.ask("POST /kill/_bulk", &bulk(first, *stamp)) else {
                return;
            };
            let reply: Value = serde_json::from_str(&body).unwrap();
            assert_eq!((status, &reply["errors"]), (200, &Value::Bool(false)), "{body}");
            own.fill(Known { sure: *stamp, open: None });
        }
    }
}

/// Whether a log is being written anew somewhere below `folder`.
fn is_shortening(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let path = entry.path();
        path.to_string_lossy().ends_with(".log.new") || (path.is_dir() && is_shortening(&path))
    })
}

/// Waits until a log is being written anew; says whether that was seen.
fn wait_for_shortening(place: &Place) -> bool {
    let (folder, begun_ns) = (place.path().join("data"), now_ns());
    while !is_shortening(&folder) {
        if now_ns() - begun_ns > PATIENCE.as_nanos() as u64 {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    true
}

#[test]
fn what_was_acknowledged_survives_while_the_log_is_written_anew() {
    let place = Place::new();
    let (mut dice, mut stamp) = (Dice::new(), 0);
    let mut known = vec![Known::default(); DOCUMENTS];
    let settings = r#"{"settings":{"number_of_shards":1},"mappings":{"properties":{"words":{"type":"text"}}}}"#;
    let first = serve(&place);
    let mut server = Exchange::connect(&first.host, first.port).unwrap();
    assert_eq!(server.ask("PUT /kill", settings).unwrap().0, 200);
    drop(first);
    for round in 0..rounds().div_ceil(2) {
        let target = serve(&place);
        let was_seen = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                was_seen.store(wait_for_shortening(&place), Ordering::Relaxed);
                // In its middle, at its end, or soon after.
                let pause = dice.sleep(Duration::from_millis(30));
                target.process.signal(Signal::KILL);
                eprintln!("round {round}: killed {pause:?} after the new log was begun");
            });
            write(&target, &mut known, &mut stamp);
        });
        assert!(was_seen.load(Ordering::Relaxed), "the log was never written anew in {PATIENCE:?}");
        target.process.wait(PATIENCE);
        let target = serve(&place);
        let mut server = Exchange::connect(&target.host, target.port).unwrap();
        for (id, known) in known.iter_mut().enumerate() {
            let (_, body) = server.ask(&format!("GET /kill/_doc/{id}"), "").unwrap();
            let reply: Value = serde_json::from_str(&body).unwrap();
            let found = reply["_source"]["stamp"].as_u64().unwrap_or(0);
            let may_be = found == known.sure || Some(found) == known.open;
            assert!(may_be, "document {id} has {found}, and should have {known:?}");
            *known = Known { sure: found, open: None };
        }
        let there = known.iter().filter(|known| known.sure > 0).count();
        assert_eq!(server.ask("POST /kill/_refresh", "").unwrap().0, 200);
        let query = r#"{"query":{"match":{"words":"many"}}}"#;
        let (_, body) = server.ask("POST /kill/_count", query).unwrap();
        let reply: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(reply["count"], there, "{body}");
        assert!(!is_shortening(&place.path().join("data")), "half a log is left behind");
        target.process.signal(Signal::TERM);
        target.process.wait(PATIENCE);
    }
}
