//! A library that a process is started with (`LD_PRELOAD`): its wall clock is stepped, its machine seems to be suspended, its
//! `/proc/stat` is another file, or it loses memory and descriptors. The machine and its other processes notice nothing.

use super::live::run;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The source, compiled on the machine: there is no other way to ship a library without a binary.
const SOURCE: &str = include_str!("interposer.c");

/// Things that a process is made to believe, or to lose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interposed {
    /// Steps of the wall clock: when, since the start, and by how much, s.
    pub steps: Vec<(Duration, i64)>,
    /// Suspensions of the machine: when, since the start, and how long, s.
    pub suspends: Vec<(Duration, u32)>,
    /// True if `/proc/stat` is the file `stat` in the folder of the run.
    pub has_own_stat: bool,
    /// Bytes of memory lost each second.
    pub leaked_bytes_per_s: u32,
    /// A descriptor is lost every time this has passed.
    pub descriptor_every: Option<Duration>,
}

impl Interposed {
    /// Compiles the library into `folder`, and has a command use it.
    ///
    /// # Errors
    /// When there is no C compiler (`cc`), with its words.
    pub fn apply(&self, command: &mut Command, folder: &Path) -> Result<(), String> {
        if *self == Self::default() {
            return Ok(());
        }
        let set = |command: &mut Command, name: &str, value: String| {
            if !value.is_empty() {
                command.env(format!("PLIMSOLL_INTERPOSED_{name}"), value);
            }
        };
        let moves = |moves: Vec<(Duration, i64)>| {
            let one = |(at, by): &(Duration, i64)| format!("{}:{by}", at.as_secs_f64());
            moves.iter().map(one).collect::<Vec<_>>().join(",")
        };
        let suspends = self.suspends.iter().map(|(at, by)| (*at, i64::from(*by))).collect();
        command.env("LD_PRELOAD", library(folder)?);
        set(command, "STEPS", moves(self.steps.clone()));
        set(command, "SUSPENDS", moves(suspends));
        if self.has_own_stat {
            set(command, "STAT", stat_file(folder).display().to_string());
        }
        if self.leaked_bytes_per_s > 0 {
            set(command, "LEAK", self.leaked_bytes_per_s.to_string());
        }
        if let Some(every) = self.descriptor_every {
            set(command, "FILES", every.as_millis().to_string());
        }
        Ok(())
    }
}

/// The file that is read in place of `/proc/stat`.
#[must_use]
pub fn stat_file(folder: &Path) -> PathBuf {
    folder.join("stat")
}

fn library(folder: &Path) -> Result<PathBuf, String> {
    let (source, library) = (folder.join("interposer.c"), folder.join("interposer.so"));
    std::fs::write(&source, SOURCE).map_err(|error| format!("{}: {error}", source.display()))?;
    let paths = [library.display().to_string(), source.display().to_string()];
    let flags = ["-shared", "-fPIC", "-O1", "-pthread", "-o", &paths[0], &paths[1]];
    run("cc", &flags)
        .map_err(|error| format!("{error}; install a C compiler (apt install gcc)"))?;
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(interposed: &Interposed, program: &str, args: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(stat_file(folder.path()), "another machine\n").unwrap();
        let mut command = Command::new(program);
        command.args(args);
        interposed.apply(&mut command, folder.path()).unwrap();
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    #[test]
    fn a_process_sees_another_wall_clock_and_another_proc_stat() {
        let date = |interposed: &Interposed| -> i64 {
            said(interposed, "date", &["+%s"]).trim().parse().unwrap()
        };
        let now = date(&Interposed::default());
        let at_once = Duration::ZERO;
        let back = Interposed { steps: vec![(at_once, -3_600)], ..Interposed::default() };
        assert!((-3_600..-3_500).contains(&(date(&back) - now)));
        let both = Interposed {
            steps: vec![(at_once, 3_600)],
            suspends: vec![(at_once, 60), (Duration::from_secs(900), 5)],
            ..Interposed::default()
        };
        assert!((3_660..3_760).contains(&(date(&both) - now)));
        let fed = Interposed { has_own_stat: true, ..Interposed::default() };
        assert_eq!(said(&fed, "cat", &["/proc/stat"]), "another machine\n");
        assert!(said(&Interposed::default(), "cat", &["/proc/stat"]).starts_with("cpu"));
    }
}
