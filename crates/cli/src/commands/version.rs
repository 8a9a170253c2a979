//! `plimsoll version`: the build of this program, as run records have it.

use anyhow::Result;
use clap::Args;
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::print_out;
use plimsoll_job::tool;
use plimsoll_record::Tool;
use std::fmt::Write;

const EXAMPLES: &str = "\
Examples:
  Version, commit, target, features and compiler:
    plimsoll version
  The same for programs, as in each run record under \"tool\":
    plimsoll version --json";

/// Print version, commit, target, features and compiler of this build
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct VersionArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Job for VersionArgs {
    const NAME: &'static str = "version";

    fn run(&self, _: &Program) -> Result<u8> {
        let build = tool::own();
        match self.json {
            true => print_out(&format!("{}\n", serde_json::to_string_pretty(&build)?))?,
            false => print_out(&text(&build))?,
        }
        Ok(exit::FINE)
    }
}

/// Returns the build that the variables of the build script describe.
pub fn build() -> Tool {
    let features = env!("PLIMSOLL_FEATURES").split(',').filter(|name| !name.is_empty());
    Tool {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("PLIMSOLL_COMMIT").to_owned(),
        modified: env!("PLIMSOLL_MODIFIED").parse().ok(),
        profile: env!("PLIMSOLL_PROFILE").to_owned(),
        target: env!("PLIMSOLL_TARGET").to_owned(),
        features: Some(features.map(str::to_owned).collect()),
        rustc: env!("PLIMSOLL_RUSTC").to_owned(),
        lock_sha256: env!("PLIMSOLL_LOCK_SHA256").to_owned(),
    }
}

fn text(build: &Tool) -> String {
    let commit = match (build.commit.as_str(), build.modified) {
        ("", _) => "unknown".to_owned(),
        (commit, Some(true)) => format!("{commit}, with changes"),
        (commit, _) => commit.to_owned(),
    };
    let features = build.features.as_deref().unwrap_or_default().join(", ");
    let mut text = format!("plimsoll {}\n", build.version);
    for (name, value) in [
        ("commit", commit.as_str()),
        ("profile", &build.profile),
        ("target", &build.target),
        ("features", if features.is_empty() { "none" } else { &features }),
        ("rustc", &build.rustc),
        ("Cargo.lock", &format!("sha256 {}", build.lock_sha256)),
    ] {
        _ = writeln!(text, "  {name:<10}  {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_commit_and_changes_to_a_commit_are_named() {
        let build = build();
        let shown = |commit: &str, modified| {
            text(&Tool { commit: commit.to_owned(), modified, ..build.clone() })
        };
        assert!(shown("", None).contains("commit      unknown\n"), "{}", shown("", None));
        assert!(shown("abc", Some(true)).contains("  abc, with changes\n"));
        assert!(
            shown("abc", Some(false)).contains("  abc\n") && shown("abc", None).contains("  abc\n")
        );
        let bare = text(&Tool { features: Some(Vec::new()), ..build });
        assert!(bare.contains("features    none\n"), "{bare}");
    }
}
