//! User whose processes and files an engine's are, if the engine does not run as root.

use anyhow::Result;
use plimsoll_job::usage::usage;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Account for processes that own nothing, which every Linux system has.
const NOBODY: &str = "nobody";

/// An account that is not root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account that an engine must take since this process is root's; `None` when it is not. It is the one
    /// named, or else `nobody`.
    ///
    /// # Errors
    /// When the machine has neither.
    pub fn instead_of_root(name: &str) -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = Self::of(&passwd, name).or_else(|| Self::of(&passwd, NOBODY));
        found.map(Some).ok_or_else(|| {
            usage(format!(
                "PostgreSQL does not run as root and there is no user '{name}' or '{NOBODY}'; \
                 run plimsoll as another user"
            ))
        })
    }

    fn of(passwd: &str, name: &str) -> Option<Self> {
        let fields = |line: &str| -> Option<Self> {
            let mut fields = line.split(':');
            let own = fields.next().filter(|own| *own == name)?;
            let uid = fields.nth(1)?.parse().ok().filter(|uid| *uid != 0)?;
            Some(Self { name: own.to_owned(), uid, gid: fields.next()?.parse().ok()? })
        };
        passwd.lines().find_map(fields)
    }

    /// Has a program run under it.
    pub fn take_on(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Gives it a file or an empty folder.
    ///
    /// # Errors
    /// When the file system does not let it.
    pub fn own(&self, path: &Path) -> Result<()> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .map_err(|error| usage(format!("{}: {error}; name another folder", path.display())))
    }

    /// Makes sure that it can reach a folder.
    ///
    /// # Errors
    /// Names the folder above that is closed to it.
    pub fn check_reach(&self, path: &Path) -> Result<()> {
        for above in path.ancestors().skip(1) {
            let Ok(about) = above.metadata() else { continue };
            let bit = match (about.uid() == self.uid, about.gid() == self.gid) {
                (true, _) => 0o100,
                (_, true) => 0o010,
                _ => 0o001,
            };
            if about.mode() & bit == 0 {
                return Err(usage(format!(
                    "--data {}: PostgreSQL runs as user '{}' instead of root, and that user cannot enter {}; \
                     name a folder below /var/tmp, or leave --data out",
                    path.display(),
                    self.name,
                    above.display()
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_and_root_is_none() {
        let passwd = format!(
            "root:x:0:0::/root:/bin/sh\n{NOBODY}:x:65534:65534::/:/no\npostgres:x:101:103:a,b:/x:/y\n"
        );
        let passwd = passwd.as_str();
        let account = Account::of(passwd, "postgres").unwrap();
        assert_eq!((account.uid, account.gid), (101, 103));
        assert_eq!(Account::of(passwd, "root"), None);
        assert_eq!(Account::of(passwd, "post"), None);
        let dir = tempfile::tempdir().unwrap();
        let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(dir.path(), only_owner).unwrap();
        let inside = dir.path().join("a/b");
        let stranger = Account { name: "x".to_owned(), uid: 4_000_000, gid: 4_000_000 };
        let told = stranger.check_reach(&inside).unwrap_err().to_string();
        assert!(told.contains(dir.path().to_str().unwrap()), "{told}");
        let owner = dir.path().metadata().unwrap();
        let own = Account { name: "x".to_owned(), uid: owner.uid(), gid: owner.gid() };
        own.check_reach(&dir.path().join("a")).unwrap();
    }
}
