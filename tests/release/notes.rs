//! `.ci/release-notes`, which the workflow of a release calls, and what it reads.

use super::{read, root};
use crate::process::{Ended, Place, Running};
use std::process::Command;
use std::time::Duration;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn notes(script: &std::path::Path, tag: &str) -> Ended {
    let mut command = Command::new(script);
    command.arg(tag);
    Running::start(command, b"").wait(Duration::from_secs(20))
}

#[test]
fn the_changelog_has_the_notes_of_the_version() {
    let _place = Place::new();
    let script = root().join(".ci/release-notes");
    let ended = notes(&script, &format!("v{VERSION}")).expect(0);
    assert!(ended.stdout.starts_with(|c: char| c != '\n'), "{}", ended.stdout);
    assert!(ended.stdout.lines().count() > 10, "{}", ended.stdout);
    assert!(!ended.stdout.contains("\n## "), "more than one section: {}", ended.stdout);
    assert!(read("CHANGELOG.md").contains(&ended.stdout));
}

/// A repository with a version and a changelog of its own.
fn asked_with(place: &Place, version: &str, changelog: &str) -> Ended {
    let ci = place.path().join(".ci");
    std::fs::create_dir_all(&ci).unwrap();
    let script = ci.join("release-notes");
    // A copy could not be executed while a process that another test starts has the descriptor that wrote it.
    let _ = std::fs::remove_file(&script);
    std::os::unix::fs::symlink(root().join(".ci/release-notes"), &script).unwrap();
    place.file("Cargo.toml", format!("[workspace.package]\nversion = \"{version}\"\n\n[x]\n"));
    place.file("CHANGELOG.md", changelog);
    notes(&script, "v1.2.3")
}

#[test]
fn a_tag_that_is_not_the_version_or_has_no_notes_is_refused() {
    let place = Place::new();
    let good = "# C\n\n## [Unreleased]\n\n- c\n\n## [1.2.3] - 2026-01-02\n\n- b\n\n## [1.0.0] - 2025-01-01\n\n- a\n";
    assert_eq!(asked_with(&place, "1.2.3", good).expect(0).stdout, "- b\n");
    let other = asked_with(&place, "1.2.4", good).expect(1);
    assert!(other.stderr.contains("Cargo.toml has version 1.2.4, not 1.2.3"), "{}", other.stderr);
    let undated = asked_with(&place, "1.2.3", &good.replace(" - 2026-01-02", "")).expect(1);
    assert!(undated.stderr.contains("expected '## [1.2.3] - YYYY-MM-DD'"), "{}", undated.stderr);
    let empty = asked_with(&place, "1.2.3", &good.replace("- b\n", "")).expect(1);
    assert!(empty.stderr.contains("section of 1.2.3 is empty"), "{}", empty.stderr);
}
