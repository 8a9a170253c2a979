//! Vespa's own clients, as `.ci/clients` installs them.

use crate::process::{Ended, Place, Running, Target};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest wait for a client.
pub const LONG: Duration = Duration::from_secs(120);

/// Where the clients are: beside the folders of the builds.
fn installed() -> PathBuf {
    let script = include_str!("../../.ci/clients");
    let wanted = script.lines().find_map(|line| line.strip_prefix("WANTED=")).unwrap();
    let wanted = wanted.trim_matches('"');
    let binary = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
    let places = binary.ancestors().map(|folder| folder.join("clients"));
    let is_wanted = |place: &PathBuf| {
        std::fs::read_to_string(place.join("installed"))
            .is_ok_and(|versions| versions.trim_end() == wanted)
    };
    places.into_iter().find(is_wanted).unwrap_or_else(|| {
        panic!("the real clients ({wanted}) are not installed; run: make test-tools")
    })
}

/// Python with pyvespa.
pub fn python() -> PathBuf {
    installed().join("bin/python")
}

/// The binary of the command line. Not the script of the same name, which ends with 0 whatever happened.
fn vespa_binary() -> PathBuf {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let machine = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    let ending = format!("_{system}_{machine}");
    let pattern = installed().join("lib/python3*/site-packages/vespacli/go-binaries/*/bin/vespa");
    let found = glob::glob(pattern.to_str().unwrap()).unwrap().flatten().find(|path| {
        let folder = path.parent().and_then(Path::parent).unwrap();
        folder.to_str().is_some_and(|name| name.ends_with(&ending))
    });
    found.unwrap_or_else(|| panic!("vespacli has no binary for {system} on {machine}"))
}

/// A call of `vespa` with the server at `url` as its target. Its home is the test's folder.
pub fn vespa_command<S: AsRef<OsStr>>(
    place: &Place,
    url: &str,
    args: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = place.program(vespa_binary(), args);
    command.args(["-t", url, "--color", "never"]).env("HOME", place.path());
    for variable in ["VESPA_CLI_HOME", "VESPA_CLI_CACHE_DIR", "VESPA_CLI_ENDPOINTS"] {
        command.env_remove(variable);
    }
    command
}

/// Runs `vespa` to its end.
pub fn vespa<S: AsRef<OsStr>>(
    place: &Place,
    target: &Target,
    args: impl IntoIterator<Item = S>,
) -> Ended {
    Running::start(vespa_command(place, &target.url, args), b"").wait(LONG)
}

/// The statistics of `vespa feed`.
pub struct Fed(serde_json::Value);

impl Fed {
    #[track_caller]
    pub fn of(ended: &Ended) -> Self {
        let json = serde_json::from_str(&ended.stdout);
        Self(json.unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr)))
    }

    #[track_caller]
    pub fn count(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or_else(|| panic!("no {name} in {}", self.0))
    }

    /// Replies with this status.
    pub fn status(&self, status: u16) -> u64 {
        let counts = &self.0["http.response.code.counts"];
        counts[status.to_string()].as_u64().unwrap_or(0)
    }

    /// All operations were answered with 200 in the end, none of them lost on the way.
    #[track_caller]
    pub fn expect_ok(&self, operations: usize) -> &Self {
        assert_eq!(self.count("feeder.operation.count"), operations as u64, "{}", self.0);
        assert_eq!(self.count("feeder.ok.count"), operations as u64, "{}", self.0);
        assert_eq!(self.count("http.exception.count"), 0, "{}", self.0);
        self
    }
}

/// Feeds a file with `vespa feed`.
#[track_caller]
pub fn vespa_feed(place: &Place, target: &Target, file: &str) -> Fed {
    Fed::of(&vespa(place, target, ["feed", file]).expect(0))
}
