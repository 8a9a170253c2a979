//! Real engines as targets: installed from their makers' own packages, started on loopback, stopped again.

mod account;
mod certificates;
mod jar_engine;
mod jars;
mod java;
mod log;
mod maven;
mod nats;
mod node;
mod postgresql;
mod supervise;
mod unfinished;
mod voltdb;

pub use nats::{NatsServe, NatsTls, serve_nats};
pub use node::{NodeServe, serve_node};
pub use postgresql::{ClusterServe, Durability, Method, serve_cluster};
pub use voltdb::{DatabaseServe, serve_database};

use crate::install::Installed;
use anyhow::Result;
use jar_engine::JarEngine;
use plimsoll_job::usage::usage;
use std::path::{Path, PathBuf};

/// The file that keeps what an engine says, in the folder of its data.
pub const LOG_NAME: &str = "engine.log";
/// The variable that names the folder of installed engines.
const HOME: &str = "PLIMSOLL_HOME";

/// A real engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// OpenSearch, from its makers' jars.
    OpenSearch,
    /// Elasticsearch in its last version under the Apache licence, from its makers' jars.
    Elasticsearch,
    /// The server of the message bus, built from its makers' source.
    Nats,
    /// PostgreSQL, from the distribution's packages.
    Postgresql,
    /// VoltDB, the community's server, from its makers' jars.
    Voltdb,
}

/// State of an engine as `list` and `info` print it.
pub struct EngineState {
    /// The version that is installed, or that would be.
    pub version: String,
    /// Folder of the installation, if there is one.
    pub place: Option<PathBuf>,
    /// Size on the disk, bytes, if plimsoll installed it.
    pub bytes: Option<u64>,
}

impl Engine {
    /// All of them, in the order of the alphabet.
    pub const ALL: [Engine; 5] = [
        Engine::Elasticsearch,
        Engine::Nats,
        Engine::OpenSearch,
        Engine::Postgresql,
        Engine::Voltdb,
    ];

    /// The word for it on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Engine::OpenSearch => "opensearch",
            Engine::Elasticsearch => "elasticsearch",
            Engine::Nats => "nats",
            Engine::Postgresql => "postgresql",
            Engine::Voltdb => "voltdb",
        }
    }

    /// Returns a description for `list` and `info`.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Engine::OpenSearch => {
                "The search engine, one node on loopback: its own jars, resolved by Maven and checked."
            }
            Engine::Elasticsearch => {
                "The search engine in its last version under the Apache licence, one node on loopback: its own \
                 jars, resolved by Maven and checked."
            }
            Engine::Nats => {
                "The message bus between machines, no target of load: built by Go from its makers' source, and checked."
            }
            Engine::Postgresql => {
                "The database, one private cluster on loopback: from the distribution's packages."
            }
            Engine::Voltdb => {
                "The in-memory database in its community edition, one node on loopback with the schema of voter: its \
                 own jars, resolved by Maven and checked."
            }
        }
    }

    /// The engine of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// All names.
    #[must_use]
    pub fn names() -> [&'static str; 5] {
        Self::ALL.map(Engine::name)
    }

    /// Puts it where `serve` finds it.
    ///
    /// # Errors
    /// Java, Maven, Go or a package is missing, the network, the disk, or a file that is not the one it must be.
    pub fn install(self, force: bool) -> Result<Installed> {
        match self.jars() {
            Some(engine) => jars::install(engine, force),
            None if self == Engine::Nats => nats::install(force),
            None => {
                postgresql::find()?;
                Ok(Installed::Before)
            }
        }
    }

    /// Removes what [`Engine::install`] has put there; whether there was anything.
    ///
    /// # Errors
    /// A folder that cannot be removed.
    pub fn clean(self) -> Result<bool> {
        match self.jars() {
            Some(engine) => jars::clean(engine),
            None if self == Engine::Nats => nats::clean(),
            None => Ok(false),
        }
    }

    /// Returns the state of the installation and its folder.
    #[must_use]
    pub fn state(self) -> EngineState {
        match self.jars() {
            Some(engine) => {
                let place = jar_engine::installed(engine).ok();
                let bytes = place.as_deref().map(folder_bytes);
                EngineState { version: engine.version.to_owned(), place, bytes }
            }
            None if self == Engine::Nats => {
                let place = nats::installed();
                let bytes = place.as_deref().map(folder_bytes);
                EngineState { version: nats::version().to_owned(), place, bytes }
            }
            None => match postgresql::find() {
                Ok(found) => {
                    EngineState { version: found.version, place: Some(found.bin), bytes: None }
                }
                Err(_) => EngineState { version: String::new(), place: None, bytes: None },
            },
        }
    }

    fn jars(self) -> Option<&'static JarEngine> {
        match self {
            Engine::OpenSearch => Some(&jar_engine::OPENSEARCH),
            Engine::Elasticsearch => Some(&jar_engine::ELASTICSEARCH),
            Engine::Voltdb => Some(&voltdb::VOLTDB),
            Engine::Nats | Engine::Postgresql => None,
        }
    }
}

/// The folder of installed engines: `$PLIMSOLL_HOME/engines`, or below the user's own data.
///
/// # Errors
/// When the environment names no folder at all.
fn engines_home() -> Result<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = given(HOME)
        .map(PathBuf::from)
        .or_else(|| given("XDG_DATA_HOME").map(|base| Path::new(&base).join("plimsoll")))
        .or_else(|| given("HOME").map(|home| Path::new(&home).join(".local/share/plimsoll")));
    let home = home.ok_or_else(|| {
        usage(format!(
            "no folder for engines: neither {HOME} nor HOME is set; set {HOME} to a folder"
        ))
    })?;
    // Programs are started elsewhere than where the user stands.
    Ok(std::path::absolute(home)?.join("engines"))
}

fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(about) if about.is_dir() => folder_bytes(&entry.path()),
            Ok(about) => about.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Refuses a folder on a disk with less free space than this, bytes.
fn check_room(folder: &Path, needed: u64, what: &str) -> Result<()> {
    // What does not exist yet will be on the disk of what does.
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let Ok(disk) = rustix::fs::statvfs(there) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= needed {
        return Ok(());
    }
    Err(usage(format!(
        "{what} needs {} MB and the disk of {} has {} MB left; make room or name another place",
        needed.div_ceil(1_000_000),
        folder.display(),
        free / 1_000_000
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_found_by_name_and_disks_have_ends() {
        assert!(Engine::names().is_sorted());
        for engine in Engine::ALL {
            assert_eq!(Engine::find(engine.name()), Some(engine));
        }
        assert_eq!(Engine::find("opensarch"), None);
        let dir = tempfile::tempdir().unwrap();
        assert!(check_room(&dir.path().join("not/yet"), 1, "it").is_ok());
        let told = check_room(dir.path(), u64::MAX / 2, "a test").unwrap_err().to_string();
        assert!(told.starts_with("a test needs ") && told.contains("MB left"), "{told}");
    }
}
