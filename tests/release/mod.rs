//! What a release needs: crates that can be published, workflows that hold what they promise, a changelog with the version.

mod comparing;
mod crates;
mod licences;
mod notes;
mod paths;
mod workflows;

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the output of cargo in the repository.
#[track_caller]
fn cargo(arguments: &[&str]) -> String {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let ended = Command::new(program).args(arguments).current_dir(root()).output().unwrap();
    let complaint = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "cargo {}: {complaint}", arguments.join(" "));
    String::from_utf8(ended.stdout).unwrap()
}

/// A linter that `.ci/linters` has installed, beside the folders of the builds.
fn linter(variable: &str, program: &str) -> PathBuf {
    let script = read(".ci/linters");
    let wanted = script.lines().find_map(|line| line.strip_prefix(&format!("{variable}=")));
    let wanted = wanted.unwrap();
    let folder = format!("clients/{}", variable.to_lowercase());
    let places = Path::new(env!("CARGO_BIN_EXE_plimsoll")).ancestors();
    let is_wanted = |place: &PathBuf| {
        std::fs::read_to_string(place.join("installed")).is_ok_and(|v| v.trim_end() == wanted)
    };
    let found = places.map(|place| place.join(&folder)).find(is_wanted);
    let place = found.unwrap_or_else(|| {
        panic!("{program} {wanted} is not installed; run: make test-tools, or ./.ci/linters")
    });
    place.join(program)
}
