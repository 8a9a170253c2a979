//! The installation: built by the machine's Go from the source of the pinned version, and checked.

use super::pin::{self, PIN, PROGRAM, STAMP, folder, hash, installed, tag, version};
use crate::engines::java::in_path;
use crate::engines::unfinished::{Unfinished, lock, remove_unfinished, unfinished};
use crate::engines::{check_room, engines_home};
use crate::install::Installed;
use anyhow::{Context, Result, anyhow, bail};
use plimsoll_job::child::{End, follow, program};
use plimsoll_job::output::note;
use plimsoll_job::signals::Stopped;
use plimsoll_job::usage::usage;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The module, and its path up to the version.
const MODULE: &str = "github.com/nats-io/nats-server/v2";
/// Oldest Go that can fetch the Go that the module asks for; later ones say themselves what they lack.
const GO_OLDEST: (u32, u32) = (1, 21);
/// The Go that the pinned version needs.
const GO_NEEDED: &str = "1.26";
/// Free space for the program; Go's own caches take 400 MB more, in the user's folder.
const ROOM_BYTES: u64 = 100_000_000;
/// Longest build: one with an empty cache takes two minutes of CPU time.
const LIMIT: Duration = Duration::from_secs(1800);
/// Longest time for Go to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(5);
/// Words of Go if it cannot reach its proxy.
const UNREACHABLE: [&str; 7] = [
    "dial tcp",
    "no such host",
    "connection refused",
    "i/o timeout",
    "proxyconnect",
    "module lookup disabled",
    "network is unreachable",
];

/// Installs the server, unless this version of it is there.
///
/// # Errors
/// Go is missing or too old, the network, the disk, or a program that is not the one it must be: one line each.
pub fn install(force: bool) -> Result<Installed> {
    if !force && installed().is_some() {
        return Ok(Installed::Before);
    }
    let go = find_go()?;
    let (folder, home) = (folder()?, engines_home()?);
    check_room(&home, ROOM_BYTES, "installing nats")?;
    std::fs::create_dir_all(&home).map_err(|error| {
        usage(format!("{}: {error}; set PLIMSOLL_HOME to another folder", home.display()))
    })?;
    let _lock = lock(&home.join(".nats.lock"))?;
    // Another process may have done it in the meantime.
    if !force && installed().is_some() {
        return Ok(Installed::Before);
    }
    remove_unfinished(&home, "nats")?;
    let work = Unfinished::new(&home, "nats")?;
    note(&format!("plimsoll: building nats-server {} with Go; this takes a minute or two", tag()));
    build(&go, &work.path)?;
    verify(&go, &work.path.join(PROGRAM))?;
    let _ = std::fs::remove_file(work.path.join("go.log"));
    std::fs::write(work.path.join(STAMP), PIN)?;
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::rename(&work.path, &folder).with_context(|| folder.display().to_string())?;
    Ok(Installed::Now)
}

/// Removes the server; whether it was there.
///
/// # Errors
/// A folder that cannot be removed.
pub fn clean() -> Result<bool> {
    let (folder, home) = (folder()?, engines_home()?);
    if !folder.exists() && unfinished(&home, "nats").is_empty() {
        return Ok(false);
    }
    let path = home.join(".nats.lock");
    let lock = lock(&path)?;
    remove_unfinished(&home, "nats")?;
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .map_err(|error| usage(format!("{}: {error}", folder.display())))?;
    }
    let _ = std::fs::remove_file(&path);
    drop(lock);
    // An empty folder is of no use; one that is not empty stays.
    let _ = std::fs::remove_dir(&home);
    Ok(true)
}

fn advice() -> String {
    format!("install Go {GO_NEEDED} or later, or put a nats-server 2.10 or later into PATH")
}

/// Finds the machine's Go, and checks its version.
fn find_go() -> Result<PathBuf> {
    let go = in_path("go").ok_or_else(|| {
        usage(format!("installing nats needs Go, which builds nats-server; {}", advice()))
    })?;
    let said = Command::new(&go).args(["env", "GOVERSION"]).stdin(Stdio::null()).output();
    let said = said.with_context(|| format!("starting Go ({})", go.display()))?;
    let text = String::from_utf8_lossy(&said.stdout);
    let found = text.trim().trim_start_matches("go");
    let mut parts = found.split(['.', 'r', 'b', ' ']).map(|part| part.parse::<u32>().unwrap_or(0));
    if (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < GO_OLDEST {
        let shown: String = found.chars().filter(char::is_ascii_graphic).take(40).collect();
        let shown = if shown.is_empty() { "unknown".to_owned() } else { shown };
        return Err(too_old(&format!("Go ({}) has version {shown}", go.display())));
    }
    Ok(go)
}

fn too_old(what: &str) -> anyhow::Error {
    usage(format!("{what}, which is too old for nats-server {}; {}", tag(), advice()))
}

/// Builds it into a folder. The module proxy and its settings are for the user's own environment to say.
fn build(go: &Path, work: &Path) -> Result<()> {
    let said = work.join("go.log");
    let out = File::create(&said)?;
    let mut command = program(go);
    command
        .args(["install", "-trimpath", &format!("{MODULE}@{}", tag())])
        .env("GOBIN", work)
        // Without C the same source gives a program that needs no library.
        .env("CGO_ENABLED", "0")
        // Meant for another system, they would give a program for that one.
        .env_remove("GOOS")
        .env_remove("GOARCH")
        .current_dir(work)
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out);
    let mut child = command.spawn().with_context(|| format!("starting Go ({})", go.display()))?;
    match follow(&mut child, LIMIT, PATIENCE) {
        End::Exit(Some(0)) => Ok(()),
        End::Stopped => Err(Stopped { during: "while nats-server was built".to_owned() }.into()),
        End::TimedOut => {
            bail!("Go did not build nats-server {} within {LIMIT:?}; try again", tag())
        }
        _ => {
            let text = std::fs::read(&said).unwrap_or_default();
            Err(complaint(&String::from_utf8_lossy(&text)))
        }
    }
}

/// Returns the reason why Go failed, in one line.
fn complaint(said: &str) -> anyhow::Error {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut lines = lines.filter(|line| !line.starts_with("go: downloading"));
    if let Some(line) = lines.clone().find(|line| line.contains("requires go")) {
        return too_old(&format!("the Go here is not new enough ({line})"));
    }
    let line = lines.next().unwrap_or("it said nothing");
    let line: String = line.chars().take(300).collect();
    if UNREACHABLE.iter().any(|sign| said.contains(sign)) {
        return anyhow!(
            "nats: Go cannot reach its module proxy (no network, or GOPROXY must be set): {line}"
        );
    }
    anyhow!("nats: Go cannot build nats-server {}: {line}", tag())
}

/// Checks that the program was built from the pinned source, and that it prints the pinned version.
fn verify(go: &Path, built: &Path) -> Result<()> {
    let said = Command::new(go)
        .args(["version", "-m"])
        .arg(built)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting Go ({})", go.display()))?;
    check_source(&String::from_utf8_lossy(&said.stdout))?;
    let printed = pin::printed_version(built).unwrap_or_default();
    if printed != version() {
        bail!(
            "nats: the program that was built prints version '{printed}' and not {}; nothing was installed",
            version()
        );
    }
    Ok(())
}

/// Checks the module and its hash in what `go version -m` prints.
fn check_source(printed: &str) -> Result<()> {
    let module = printed.lines().find_map(|line| line.trim().strip_prefix("mod\t"));
    let words: Vec<&str> = module.unwrap_or_default().split('\t').collect();
    match words[..] {
        [MODULE, version, sum] if version == tag() && sum == hash() => Ok(()),
        _ => bail!(
            "nats: the source of nats-server {} is not the one that plimsoll knows (its hash differs); nothing was \
             installed",
            tag()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_source_is_not_installed() {
        let line =
            |version: &str, sum: &str| format!("x: go1.26\n\tmod\t{MODULE}\t{version}\t{sum}\n");
        assert!(check_source(&line(tag(), hash())).is_ok());
        for printed in [line(tag(), "h1:x"), line("v2.0.0", hash()), String::new()] {
            let error = check_source(&printed).unwrap_err().to_string();
            assert!(error.contains("nothing was installed"), "{error}");
        }
    }

    #[test]
    fn the_lines_of_go_become_one() {
        let said =
            "go: downloading x\ngo: x@v1: Get \"https://proxy\": dial tcp 127.0.0.1:9: refused\n";
        let error = complaint(said).to_string();
        assert!(error.contains("GOPROXY") && error.lines().count() == 1, "{error}");
        let said = "go: x@v2 requires go >= 1.26.0 (running go 1.24.1; GOTOOLCHAIN=local)\n";
        let error = complaint(said).to_string();
        assert!(error.contains("too old") && error.contains("running go 1.24.1"), "{error}");
        assert!(complaint("").to_string().ends_with("it said nothing"));
    }
}
