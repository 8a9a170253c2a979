//! Licences of all dependencies, by cargo-deny and `deny.toml`, without a network.

use super::{linter, read, root};
use crate::process::{Place, Running};
use std::time::Duration;

/// Returns exit code and output of cargo-deny for the workspace with other rules.
fn checked(rules: &str) -> (i32, String) {
    let place = Place::new();
    let rules = place.file("deny.toml", rules);
    let manifest = root().join("Cargo.toml");
    let arguments = ["--locked", "--offline", "--config", rules.to_str().unwrap()];
    let checks = ["check", "licenses", "bans", "sources"];
    let manifest = ["--manifest-path", manifest.to_str().unwrap()];
    let program = linter("DENY", "bin/cargo-deny");
    let command = place.program(program, arguments.into_iter().chain(manifest).chain(checks));
    let ended = Running::start(command, b"").wait(Duration::from_secs(60));
    (ended.code.unwrap_or(-1), ended.stdout + &ended.stderr)
}

#[test]
fn each_dependency_has_a_licence_that_is_allowed_and_a_known_source() {
    let (code, said) = checked(&read("deny.toml"));
    assert!(code == 0 && said.contains("bans ok, licenses ok, sources ok"), "{code}: {said}");
    assert!(
        !said.contains("license-not-encountered"),
        "deny.toml allows more than is used: {said}"
    );
}

/// A licence that only dependencies of tests have is checked too.
#[test]
fn a_licence_that_is_not_allowed_is_found() {
    for licence in ["Zlib", "MIT-0"] {
        let rules = read("deny.toml").replace(&format!("    \"{licence}\",\n"), "");
        let (code, said) = checked(&rules);
        assert!(code != 0 && said.contains("licenses FAILED"), "{licence}: {code}: {said}");
    }
}
