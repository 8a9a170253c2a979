//! VoltDB's own clients for Java and Python and the crate for Rust, as `.ci/clients` installs them: against the embedded
//! server, and against VoltDB itself, so that none passes by accident.

use super::asking::Asking;
use crate::documents::clients::python;
use crate::engines::install;
use crate::process::{PATIENCE, Place, Running, Target, find_program};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Votes of each client at the embedded server.
const VOTES: u64 = 50_000;
/// The same at VoltDB itself, which shows what the programs are worth.
const VOTES_OF_THE_REAL: u64 = 10_000;
/// The clients and the first telephone number of each.
const CLIENTS: [(&str, u64); 4] = [
    ("voltdbclient-13.2.2", 2_120_000_000),
    ("voltdbclient-10.0", 4_150_000_000),
    ("python", 6_170_000_000),
    ("rust", 3_050_000_000),
];

/// The folder in which the clients' programs are written.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/voltdb/clients")
}

/// A file of an installed client.
#[track_caller]
fn installed(name: &str) -> PathBuf {
    // Beside the Python environment, in which the others are.
    let path = python().ancestors().nth(2).unwrap().join(name);
    assert!(path.exists(), "{} is not there; run: make test-tools", path.display());
    path
}

/// The program of a client, compiled where that is needed.
fn program(place: &Place, client: &str) -> Command {
    let none: [&str; 0] = [];
    match client {
        "python" => {
            let mut command = place.program(python(), [sources().join("votes.py")]);
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            command
        }
        "rust" => place.program(installed("rust/release/votes"), none),
        client => {
            let jars = installed(&format!("java/{client}")).join("*");
            let source = sources().join("Votes.java");
            let mut compiler = place.program(find_program("javac"), ["-d", client, "-cp"]);
            compiler.arg(&jars).arg(source);
            Running::start(compiler, b"").wait(PATIENCE).expect(0);
            let mut command = place.program(find_program("java"), ["-Xmx256m"]);
            command.args(["--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED", "-cp"]);
            command.arg(format!("{client}:{}", jars.display())).arg("Votes");
            command
        }
    }
}

/// Has every client vote, and compares what it was told with what is in the tables.
fn all_vote(place: &Place, target: &Target, votes: u64) {
    let mut volt = Asking::to(target.port);
    // Of those who are refused: each hundredth votes for nobody, each fiftieth is one telephone that may vote twice.
    let (nobody, over) = (votes / 100, votes / 50 - 2);
    let accepted = votes - nobody - over;
    for (number, (client, phone)) in CLIENTS.into_iter().enumerate() {
        let mut command = program(place, client);
        command.args([u64::from(target.port), votes, phone].map(|word| word.to_string()));
        let ended = Running::start(command, b"").wait(PATIENCE).expect(0);
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        let wanted = json!({
            "contestants": 6, "accepted": accepted, "no_contestant": nobody, "over_limit": over,
            "failed": 0, "counted": accepted,
        });
        assert_eq!(told, wanted, "{client} at {}: {}", target.url, ended.stderr);
        let rows = volt.sql("SELECT COUNT(*) FROM votes").long();
        assert_eq!(rows as u64, accepted * (number as u64 + 1), "after {client}");
        let range = format!(
            "SELECT COUNT(*) FROM votes WHERE phone_number >= {phone} AND phone_number < {}",
            phone + 10_000_000
        );
        assert_eq!(volt.sql(&range).long() as u64, accepted, "{client}");
    }
}

#[test]
fn four_clients_vote_at_the_embedded_server() {
    let place = Place::busy();
    let target = place.serve(&["voter"]);
    all_vote(&place, &target, VOTES);
}

#[test]
fn the_same_clients_vote_at_voltdb() {
    install("voltdb");
    let place = Place::busy();
    let target = place.serve(&["voltdb", "--heap", "256MiB"]);
    all_vote(&place, &target, VOTES_OF_THE_REAL);
}
