//! Real engines: installed, started, asked, and ended however their parents end.

mod clients;
mod install;
mod kill;
mod nodes;
mod parity;
mod postgresql;
mod postgresql_tls;

use crate::process::{Ended, Place, Running};
use std::sync::OnceLock;
use std::time::Duration;

/// Longest installation: jars come over the network once.
const INSTALL_LIMIT: Duration = Duration::from_secs(900);

/// Makes sure that an engine is installed; the first of all tests to ask pays for it.
#[track_caller]
pub fn install(engine: &'static str) {
    static OPENSEARCH: OnceLock<()> = OnceLock::new();
    static ELASTICSEARCH: OnceLock<()> = OnceLock::new();
    static VOLTDB: OnceLock<()> = OnceLock::new();
    static NATS: OnceLock<()> = OnceLock::new();
    let once = match engine {
        "opensearch" => &OPENSEARCH,
        "elasticsearch" => &ELASTICSEARCH,
        "nats" => &NATS,
        _ => &VOLTDB,
    };
    once.get_or_init(|| {
        let place = Place::new();
        let ended = Running::start(place.plimsoll(["install", engine]), b"").wait(INSTALL_LIMIT);
        assert_eq!(
            ended.code,
            Some(0),
            "{engine} is not installed; make test-tools gets what it needs: {}",
            ended.stderr
        );
    });
}

/// One line on stderr that holds all of `words`; nothing on stdout; this exit code.
#[track_caller]
pub fn refused(ended: Ended, code: i32, words: &[&str]) {
    let ended = ended.expect(code);
    assert_eq!(ended.stderr.lines().count(), 1, "not one line:\n{}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "no {word:?} in {}", ended.stderr);
    }
    assert_eq!(ended.stdout, "");
}
