//! The step of the release that compares two builds, as its workflow has it.

use super::read;
use crate::process::{Ended, Place, Running};
use saphyr::{LoadableYamlNode, Yaml};
use std::path::Path;
use std::time::Duration;

/// The script of the step.
fn script() -> String {
    let text = read(".github/workflows/release.yml");
    let documents = Yaml::load_from_str(&text).unwrap();
    let steps = documents[0]["jobs"]["attest"]["steps"].as_sequence().unwrap();
    let is_step = |step: &&Yaml| {
        step.as_mapping_get("name")
            .and_then(Yaml::as_str)
            .is_some_and(|name| name.starts_with("Both builds"))
    };
    steps.iter().find(is_step).unwrap()["run"].as_str().unwrap().to_owned()
}

/// Runs the step on two builds for two processors, after a change to one of the second builds.
fn compared(change: impl Fn(&Path)) -> (Place, Ended) {
    let place = Place::new();
    for (order, processor) in [("first", "x"), ("second", "x"), ("first", "arm"), ("second", "arm")]
    {
        let folder = place.path().join(format!("built/{order}-{processor}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("plimsoll-{processor}")), processor).unwrap();
        let mut sums = place.program("sh", ["-c", "sha256sum plimsoll-* > SHA256SUMS"]);
        sums.current_dir(&folder);
        Running::start(sums, b"").wait(Duration::from_secs(20)).expect(0);
    }
    change(&place.path().join("built"));
    // As the forge runs it.
    let step = place.file("step.sh", script());
    let arguments = ["--noprofile", "--norc", "-eo", "pipefail", step.to_str().unwrap()];
    let command = place.program("bash", arguments);
    let ended = Running::start(command, b"").wait(Duration::from_secs(20));
    (place, ended)
}

#[test]
fn equal_builds_become_packages_with_one_list_of_checksums() {
    let (place, ended) = compared(|_| {});
    ended.expect(0);
    let sums = place.read("packages/SHA256SUMS");
    let names: Vec<&str> = sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(names, ["plimsoll-arm", "plimsoll-x"]);
    assert_eq!(place.read("packages/plimsoll-arm"), "arm");
}

#[test]
fn builds_that_differ_or_lack_a_file_stop_the_release() {
    let write = |name: &'static str, text: &'static str| {
        move |built: &Path| std::fs::write(built.join(name), text).unwrap()
    };
    let (_, other) = compared(write("second-arm/plimsoll-arm", "other"));
    assert_ne!(other.code, Some(0));
    let (_, one_more) = compared(write("second-x/more", ""));
    assert_ne!(one_more.code, Some(0));
    let (_, missing) = compared(|built| std::fs::remove_dir_all(built.join("second-x")).unwrap());
    assert_ne!(missing.code, Some(0));
    // Both builds wrong in the same way: the checksums do not hold.
    let (_, both) = compared(|built| {
        for folder in ["first-x", "second-x"] {
            std::fs::write(built.join(folder).join("plimsoll-x"), "y").unwrap();
        }
    });
    assert_ne!(both.code, Some(0));
}
