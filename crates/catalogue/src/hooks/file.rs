//! `file`: files and folders that exist for the time of the run.

use super::Hook;
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Dir,
    File,
}

/// One of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    #[serde(rename = "type")]
    kind: Kind,
    path: PathBuf,
}

pub struct Files {
    wanted: Vec<Wanted>,
    /// Files created here, which may therefore be deleted.
    made: Vec<Wanted>,
}

impl Files {
    pub fn new(wanted: Vec<Wanted>) -> Self {
        Self { wanted, made: Vec::new() }
    }
}

impl Hook for Files {
    fn before(&mut self, folder: &Path) -> Result<(), String> {
        for wanted in &self.wanted {
            let made = match wanted.kind {
                Kind::Dir => std::fs::create_dir(&wanted.path),
                Kind::File => std::fs::File::create_new(&wanted.path).map(drop),
            };
            match made {
                Ok(()) => self.made.push(wanted.clone()),
                // A path that was there before stays.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let problem = format!("{}: {error}", wanted.path.display());
                    return Err([Some(problem), self.after(folder).err()]
                        .into_iter()
                        .flatten()
                        .collect());
                }
            }
        }
        Ok(())
    }

    fn after(&mut self, _folder: &Path) -> Result<(), String> {
        let mut problems = String::new();
        for made in self.made.drain(..).rev() {
            let gone = match made.kind {
                Kind::Dir => std::fs::remove_dir_all(&made.path),
                Kind::File => std::fs::remove_file(&made.path),
            };
            if let Err(error) = gone {
                problems.push_str(&format!("{}: {error} ", made.path.display()));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_was_made_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("old")).unwrap();
        let wanted = json!([
            {"type": "dir", "path": path("old")},
            {"type": "dir", "path": path("new")},
            {"type": "file", "path": path("new/file")},
        ]);
        let mut files = Files::new(serde_json::from_value(wanted).unwrap());
        files.before(dir.path()).unwrap();
        assert!(path("new/file").is_file());
        files.after(dir.path()).unwrap();
        assert!(path("old").exists() && !path("new").exists());
        let lost =
            json!([{"type": "dir", "path": path("a")}, {"type": "file", "path": path("no/x")}]);
        assert!(Files::new(serde_json::from_value(lost).unwrap()).before(dir.path()).is_err());
        assert!(!path("a").exists(), "a file made before it failed is gone too");
    }
}
