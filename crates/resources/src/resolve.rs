//! Finds what is to be watched: what `--watch` names, or the targets that can be found without it.

use crate::groups::Groups;
use crate::listening::processes_at;
use crate::process_files::ProcessFiles;
use crate::subject::{Identity, Roots, Subject, is_called};
use crate::watch::{Wanted, Watch};
use plimsoll_record::resources::GENERATOR;
use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;
use std::path::Path;
use thiserror::Error;

/// Things to look for.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The values of `--watch`; without any, the targets that can be found.
    pub watches: &'a [Watch],
    /// Processes of targets that plimsoll started.
    pub started: &'a [u32],
    /// Addresses of targets that are on this machine.
    pub addresses: &'a [SocketAddr],
    /// Name for the processes that this one will start, if they are targets.
    pub children: Option<&'a str>,
}

/// Things that were found.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// Things to watch, the generator last.
    pub subjects: Vec<Subject>,
    /// Targets that were not found.
    pub remarks: Vec<String>,
}

/// A value of `--watch` that names nothing. Each message is complete but for the flag.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WatchError {
    /// No process has this number.
    #[error("no process has the number {0}")]
    NoProcess(u32),
    /// No process has this name, and no control group this path.
    #[error("no process is called '{name}', and no control group has this path or unit")]
    NotFound {
        /// The name.
        name: String,
        /// Names of all processes that run.
        running: Vec<String>,
    },
    /// Two values have the same name in the record.
    #[error("two watched things are called '{0}'; give one of them a label: LABEL=NAME")]
    SameName(String),
    /// `none` beside others.
    #[error("'none' watches nothing, and cannot be used with other values")]
    NothingAndMore,
}

/// Finds what is to be watched. Returns `None` if nothing is, not even the generator.
///
/// # Errors
/// The place of the wrong value among `watches`, and what is wrong with it.
pub fn resolve(search: &Search<'_>) -> Result<Option<Resolved>, (usize, WatchError)> {
    let mut finder = Finder {
        files: ProcessFiles::new(Path::new("/proc")),
        groups: Groups::of_machine(),
        found: Resolved::default(),
    };
    for (index, watch) in search.watches.iter().enumerate() {
        let is_nothing = watch.wanted == Wanted::Nothing;
        if is_nothing && search.watches.len() == 1 {
            return Ok(None);
        }
        if is_nothing {
            return Err((index, WatchError::NothingAndMore));
        }
        finder.watch(watch).map_err(|error| (index, error))?;
    }
    if search.watches.is_empty() {
        search.started.iter().for_each(|&pid| finder.started(pid));
        search.addresses.iter().for_each(|&address| finder.listening(address));
        if let Some(name) = search.children {
            finder.found.subjects.push(Subject {
                name: finder.unique(name),
                found_by: "started by plimsoll".to_owned(),
                program: String::new(),
                roots: Roots::StartedBy(std::process::id()),
            });
        }
    }
    let own = std::process::id();
    if let Some(identity) = finder.identity(own) {
        let program = finder.comm(own);
        finder.found.subjects.push(Subject {
            name: GENERATOR.to_owned(),
            found_by: "plimsoll itself".to_owned(),
            program,
            roots: Roots::Processes(vec![identity]),
        });
    }
    Ok(Some(finder.found))
}

/// Programs that pass on what comes to a container's port: their time is not that of the server in it.
const HANDED_ON_BY: [&str; 6] =
    ["docker-proxy", "rootlessport", "rootlesskit", "slirp4netns", "pasta", "conmon"];

/// Returns true if a process is one of those, by its name in `/proc/PID/comm`, which has at most 15 characters.
#[must_use]
pub fn hands_on(name: &str) -> bool {
    HANDED_ON_BY.iter().any(|program| name.trim_end() == &program[..program.len().min(15)])
}

struct Finder {
    files: ProcessFiles,
    groups: Option<Groups>,
    found: Resolved,
}

impl Finder {
    fn identity(&mut self, pid: u32) -> Option<Identity> {
        let stat = self.files.stat(pid).ok().filter(|stat| !stat.has_ended)?;
        Some(Identity { pid, started_ticks: stat.started_ticks })
    }

    fn comm(&mut self, pid: u32) -> String {
        self.files.stat(pid).map(|stat| stat.comm).unwrap_or_default()
    }

    /// Adds what the user names.
    fn watch(&mut self, watch: &Watch) -> Result<(), WatchError> {
        let (program, roots) = match &watch.wanted {
            Wanted::Nothing => return Ok(()),
            Wanted::Pid(pid) => {
                let identity = self.identity(*pid).ok_or(WatchError::NoProcess(*pid))?;
                (self.comm(*pid), Roots::Processes(vec![identity]))
            }
            Wanted::Named(name) => self.named(name)?,
        };
        let own = match &watch.wanted {
            // A number says nothing to a reader.
            Wanted::Pid(_) => program.clone(),
            Wanted::Named(name) => short_name(name),
            Wanted::Nothing => String::new(),
        };
        let name = watch.label.clone().unwrap_or(own);
        if name == GENERATOR || self.found.subjects.iter().any(|one| one.name == name) {
            return Err(WatchError::SameName(name));
        }
        let found_by = format!("--watch {watch}");
        self.found.subjects.push(Subject { name, found_by, program, roots });
        Ok(())
    }

    /// A control group, or else processes with this name.
    fn named(&mut self, name: &str) -> Result<(String, Roots), WatchError> {
        if let Some(group) = self.groups.as_ref().and_then(|groups| groups.find(name)) {
            return Ok((group.clone(), Roots::Group(group)));
        }
        let own = std::process::id();
        let mut running = BTreeSet::new();
        for pid in self.files.pids() {
            let Ok(stat) = self.files.stat(pid) else { continue };
            let argument = self.files.first_argument(pid);
            if pid != own && !stat.has_ended && is_called(&stat.comm, &argument, name) {
                return Ok((stat.comm, Roots::Named(name.to_owned())));
            }
            // Threads of the kernel have no arguments.
            if !argument.is_empty() {
                running.insert(stat.comm);
            }
        }
        Err(WatchError::NotFound { name: name.to_owned(), running: running.into_iter().collect() })
    }

    /// The program of a process, and a name for it: `plimsoll serve KIND ...` is known by its kind.
    fn called(&mut self, pid: u32) -> (String, String) {
        let arguments = self.files.arguments(pid);
        let program = self.comm(pid);
        let name = match arguments.get(1..3) {
            Some([serve, kind]) if serve == "serve" => self.unique(&format!("serve-{kind}")),
            _ => self.unique(&program),
        };
        (program, name)
    }

    /// Adds a target that plimsoll started, unless it has ended.
    fn started(&mut self, pid: u32) {
        let Some(identity) = self.identity(pid) else { return };
        let (program, name) = self.called(pid);
        let found_by = "started by plimsoll".to_owned();
        let roots = Roots::Processes(vec![identity]);
        self.found.subjects.push(Subject { name, found_by, program, roots });
    }

    /// Adds the processes that listen on an address, unless they are watched already.
    fn listening(&mut self, address: SocketAddr) {
        let identities = processes_at(&mut self.files, address);
        let Some(first) = identities.first().copied() else {
            self.found.remarks.push(format!(
                "no process was found that listens on {address}; it may belong to another user or run in a container; name \
                 it with --watch"
            ));
            return;
        };
        if self.is_watched(first.pid) {
            return;
        }
        let (program, name) = self.called(first.pid);
        if hands_on(&program) {
            self.found.remarks.push(format!(
                "{program} listens on {address} and passes on to a container, which is not watched; name its control group or \
                 its process with --watch"
            ));
            return;
        }
        let found_by = format!("listens on {address}");
        let roots = Roots::Listening(address, identities);
        self.found.subjects.push(Subject { name, found_by, program, roots });
    }

    /// True if a process, or one above it, is one of those that are watched.
    fn is_watched(&mut self, pid: u32) -> bool {
        let watched: HashSet<u32> = self
            .found
            .subjects
            .iter()
            .flat_map(|subject| match &subject.roots {
                Roots::Processes(processes) | Roots::Listening(_, processes) => &processes[..],
                Roots::Named(_) | Roots::StartedBy(_) | Roots::Group(_) => &[],
            })
            .map(|identity| identity.pid)
            .collect();
        let mut at = pid;
        while at > 1 {
            if watched.contains(&at) {
                return true;
            }
            at = self.files.stat(at).map_or(0, |stat| stat.parent);
        }
        false
    }

    /// The name, with a number if another thing has it.
    fn unique(&self, name: &str) -> String {
        let is_free = |name: &String| {
            name != GENERATOR && !self.found.subjects.iter().any(|one| one.name == *name)
        };
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
    }
}

/// The last part of a path.
fn short_name(name: &str) -> String {
    let name = name.trim_end_matches('/');
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::process::{Child, Command, Stdio};

    /// A sleeping process under a name of its own; ended when dropped.
    struct Sleeper {
        child: Child,
        _dir: tempfile::TempDir,
    }

    impl Sleeper {
        fn called(name: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let program = dir.path().join(name);
            std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
            let child = Command::new(&program).arg("600").stdin(Stdio::null()).spawn().unwrap();
            let pid = child.id();
            let sleeper = Self { child, _dir: dir };
            // Until it has become the other program it has the name of this one.
            let mut files = ProcessFiles::new(Path::new("/proc"));
            while !files.first_argument(pid).ends_with(name) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            sleeper
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    fn search(watches: &[&str]) -> Result<Option<Resolved>, (usize, WatchError)> {
        let watches: Vec<Watch> = watches.iter().map(|text| text.parse().unwrap()).collect();
        resolve(&Search { watches: &watches, started: &[], addresses: &[], children: None })
    }

    fn names(found: &Resolved) -> Vec<&str> {
        found.subjects.iter().map(|subject| subject.name.as_str()).collect()
    }

    #[test]
    fn a_name_a_pid_and_a_label_find_a_process() {
        let sleeper = Sleeper::called("watched-by-name");
        let found = search(&["watched-by-name", "x=watched-by-name"]).unwrap().unwrap();
        assert_eq!(names(&found), ["watched-by-name", "x", GENERATOR]);
        assert_eq!(found.subjects[1].found_by, "--watch x=watched-by-name");
        let pid = sleeper.child.id().to_string();
        let found = search(&[&pid]).unwrap().unwrap();
        assert_eq!(found.subjects[0].program, "watched-by-name");
        let Roots::Processes(processes) = &found.subjects[0].roots else { panic!("{found:?}") };
        assert_eq!(processes[0].pid, sleeper.child.id());
    }

    #[test]
    fn a_value_that_names_nothing_is_an_error_with_its_place() {
        let (index, error) = search(&["1", "no-such-thing"]).unwrap_err();
        let WatchError::NotFound { name, running } = &error else { panic!("{error}") };
        assert_eq!((index, name.as_str()), (1, "no-such-thing"));
        assert!(running.iter().any(|name| name.starts_with("plimsoll_resour")), "{running:?}");
        let (_, error) = search(&["2147483646"]).unwrap_err();
        assert_eq!(error.to_string(), "no process has the number 2147483646");
        assert_eq!(search(&["1", "none"]).unwrap_err(), (1, WatchError::NothingAndMore));
        let same = search(&["x=1", "x=1"]).unwrap_err();
        assert_eq!(same, (1, WatchError::SameName("x".to_owned())));
        assert!(search(&["none"]).unwrap().is_none());
    }

    #[test]
    fn the_process_that_listens_is_found_once_and_a_missing_one_is_a_remark() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Nobody is at port 1 of this machine's own network.
        let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let addresses = [address, address, nobody];
        let found =
            resolve(&Search { watches: &[], started: &[], addresses: &addresses, children: None });
        let found = found.unwrap().unwrap();
        assert_eq!(found.subjects.len(), 2, "{found:?}");
        assert_eq!(found.subjects[0].found_by, format!("listens on {address}"));
        assert_eq!(found.remarks.len(), 1);
        assert!(found.remarks[0].contains("127.0.0.1:1") && found.remarks[0].contains("--watch"));
        // What plimsoll started is not listed again for its port.
        let own = [std::process::id()];
        let found =
            resolve(&Search { watches: &[], started: &own, addresses: &[address], children: None });
        assert_eq!(found.unwrap().unwrap().subjects.len(), 2);
        // With the flag, only what it names.
        let watches = ["1".parse().unwrap()];
        let found = resolve(&Search {
            watches: &watches,
            started: &own,
            addresses: &[address],
            children: None,
        });
        assert_eq!(found.unwrap().unwrap().subjects.len(), 2);
    }
}
