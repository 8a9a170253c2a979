//! The machine's Java: found, and fit for an engine.

use super::jar_engine::JarEngine;
use anyhow::Result;
use plimsoll_job::usage::usage;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The way Java comes to a machine.
const INSTALL: &str = "apt-get install default-jdk-headless";

/// A Java that an engine can use.
pub struct Java {
    /// The folder with `java` and `javac`.
    bin: PathBuf,
}

impl Java {
    /// The Java of `JAVA_HOME`, or else the first one in `PATH`.
    ///
    /// # Errors
    /// None there, or one that is too old or too new for the engine.
    pub fn find(engine: &JarEngine) -> Result<Self> {
        let name = engine.name;
        let home = std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
        let java = match home.map(|home| Path::new(&home).join("bin/java")) {
            Some(java) if java.is_file() => java,
            Some(java) => {
                return Err(usage(format!(
                    "{name} needs Java and JAVA_HOME has none ({}); correct it or unset it",
                    java.display()
                )));
            }
            None => in_path("java")
                .ok_or_else(|| usage(format!("{name} needs Java; install it: {INSTALL}")))?,
        };
        let found = version(&java)?;
        let (oldest, newest) = engine.java;
        if !(oldest..=newest).contains(&found) {
            let wrong = if found < oldest { "too old" } else { "too new" };
            return Err(usage(format!(
                "Java {found} ({}) is {wrong} for {name} {}, which runs on {oldest} to {newest}; \
                 install one (such as openjdk-17-jdk-headless) and set JAVA_HOME to it",
                java.display(),
                engine.version
            )));
        }
        // `java` in PATH is a link, and only beside the real one are the other programs.
        let real = java.canonicalize().unwrap_or(java);
        let bin = real.parent().unwrap_or(Path::new("/usr/bin")).to_owned();
        Ok(Self { bin })
    }

    /// The program itself.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.bin.join("java")
    }

    /// A tool of the development kit.
    ///
    /// # Errors
    /// When only the runtime is installed.
    pub fn tool(&self, name: &str) -> Result<PathBuf> {
        let tool = self.bin.join(name);
        if tool.is_file() {
            return Ok(tool);
        }
        Err(usage(format!(
            "{} has java and no {name}: only the runtime is installed; install the rest: {INSTALL}",
            self.bin.display()
        )))
    }
}

/// A program in `PATH`.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// The feature version of a Java: from the file beside it where there is one, since that takes no second.
fn version(java: &Path) -> Result<u32> {
    let real = java.canonicalize().unwrap_or_else(|_| java.to_owned());
    let release = real.parent().and_then(Path::parent).map(|home| home.join("release"));
    let from_file = release.and_then(|file| std::fs::read_to_string(file).ok()).and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
        feature_version(line.trim_matches('"'))
    });
    if let Some(version) = from_file {
        return Ok(version);
    }
    let shown = java.display();
    let said =
        Command::new(java).arg("-version").stdin(Stdio::null()).output().map_err(|error| {
            usage(format!("{shown} cannot be run: {error}; install Java: {INSTALL}"))
        })?;
    // The first quoted word of a line such as: openjdk version "17.0.15" 2025-04-15
    let text = String::from_utf8_lossy(&said.stderr);
    text.split('"').nth(1).and_then(feature_version).ok_or_else(|| {
        usage(format!("{shown} -version prints no version; install a usual Java: {INSTALL}"))
    })
}

/// 17 of `17.0.15`, 8 of `1.8.0_292`, 21 of `21-ea`.
fn feature_version(text: &str) -> Option<u32> {
    let mut parts = text.split(['.', '-', '+', '_']).map(str::parse::<u32>);
    match parts.next()?.ok()? {
        1 => parts.next()?.ok(),
        feature => Some(feature),
    }
}

#[cfg(test)]
mod tests {
    use super::feature_version;

    #[test]
    fn versions_of_all_ages() {
        for (text, version) in
            [("17.0.15", 17), ("1.8.0_292", 8), ("21-ea", 21), ("11", 11), ("25+36", 25)]
        {
            assert_eq!(feature_version(text), Some(version), "{text}");
        }
        assert_eq!(feature_version("x"), None);
    }
}
