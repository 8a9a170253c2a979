//! Jars by the machine's Maven: which it resolves, and why it could not.

use super::jar_engine::{Artifact, JarEngine};
use super::java::in_path;
use anyhow::{Context, Result, anyhow, bail};
use plimsoll_job::child::{End, follow, program};
use plimsoll_job::signals::Stopped;
use plimsoll_job::usage::usage;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// The goal that copies jars, in a version of its own so that it is the same tomorrow.
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies";
/// Longest time for all jars.
const LIMIT: Duration = Duration::from_secs(1800);
/// Longest time that Maven may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(5);
/// Messages of Maven if it cannot reach its repository.
const UNREACHABLE: [&str; 10] = [
    "Unknown host",
    "Name or service not known",
    "Temporary failure in name resolution",
    "Connection refused",
    "Network is unreachable",
    "No route to host",
    "timed out",
    "Connection reset",
    "offline mode",
    "Could not transfer",
];

/// The machine's Maven.
///
/// # Errors
/// None in `PATH`.
pub fn find(engine: &JarEngine) -> Result<PathBuf> {
    in_path("mvn").ok_or_else(|| {
        usage(format!(
            "installing {} needs Maven, which fetches its jars; install it: apt-get install maven",
            engine.name
        ))
    })
}

/// Fetches the jars of an engine and all they need into `work/jars`. Where from, and through which proxy, is for
/// the user's own settings of Maven to say.
///
/// # Errors
/// When Maven does not get them all, in one line.
pub fn fetch(maven: &Path, engine: &JarEngine, work: &Path) -> Result<()> {
    std::fs::write(work.join("pom.xml"), project(engine))?;
    let said = work.join("maven.log");
    let out = std::fs::File::create(&said)?;
    let mut command = program(maven);
    command
        .args(["--batch-mode", "--quiet", GOAL, "-DoutputDirectory=jars"])
        .current_dir(work)
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out);
    let mut child =
        command.spawn().with_context(|| format!("starting Maven ({})", maven.display()))?;
    match follow(&mut child, LIMIT, PATIENCE) {
        End::Exit(Some(0)) => Ok(()),
        End::Stopped => Err(Stopped { during: "while jars were fetched".to_owned() }.into()),
        End::TimedOut => {
            bail!("Maven did not fetch the jars of {} within {LIMIT:?}; try again", engine.name)
        }
        _ => {
            let text = std::fs::read(&said).unwrap_or_default();
            Err(anyhow!(complaint(engine.name, &String::from_utf8_lossy(&text))))
        }
    }
}

/// Reason why Maven failed, in one line.
fn complaint(name: &str, said: &str) -> String {
    let line = said.lines().map(str::trim).find(|line| line.contains("ERROR")).unwrap_or_default();
    let line = line.trim_start_matches("[ERROR]").split(" -> [Help").next().unwrap_or_default();
    let line = line.trim();
    if UNREACHABLE.iter().any(|sign| said.contains(sign)) {
        format!(
            "{name}: Maven has no way to its repository (no network, or a proxy or mirror that \
             ~/.m2/settings.xml must name): {line}"
        )
    } else {
        format!("{name}: Maven cannot fetch the jars: {line}")
    }
}

/// A project that needs the engine.
fn project(engine: &JarEngine) -> String {
    let mut dependencies = String::new();
    for Artifact { group, name, version } in engine.artifacts {
        // Writing to a text cannot fail.
        let _ = writeln!(
            dependencies,
            "<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>\
             <version>{version}</version></dependency>"
        );
    }
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\n\
         <groupId>plimsoll</groupId><artifactId>{}</artifactId><version>1</version><packaging>pom</packaging>\n\
         <dependencies>\n{dependencies}</dependencies></project>\n",
        engine.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mavens_many_lines_become_one() {
        let said = "[WARN] x\n[ERROR] Failed to execute goal on project opensearch: Could not resolve: \
                    Unknown host nowhere.invalid -> [Help 1]\n[ERROR] \n[ERROR] To see the full stack\n";
        let told = complaint("opensearch", said);
        assert!(told.contains("no network") && told.ends_with("nowhere.invalid"), "{told}");
        let told = complaint("opensearch", "[ERROR] The goal is missing -> [Help 2]\n");
        assert_eq!(told, "opensearch: Maven cannot fetch the jars: The goal is missing");
        assert_eq!(complaint("x", "").lines().count(), 1);
    }
}
