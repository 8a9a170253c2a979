//! The archive, the .deb and the .rpm, installed, run as an ordinary user, and removed.

use super::room::{NOBODY, Room};
use super::{Release, binaries, ensure, files_below};
use crate::elf::Needs;
use crate::programs::output;
use crate::rpm::requirements;
use anyhow::{Context, Result};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "/usr/bin/plimsoll";

/// The archive: its files, and its program in an empty root.
pub fn archive(release: &Release<'_>) -> Result<String> {
    let files = files_below(&release.archive)?;
    for name in [
        "plimsoll",
        "LICENSE",
        "THIRD-PARTY.txt",
        "README.md",
        "man/man1/plimsoll.1",
        "completions/plimsoll",
        "completions/_plimsoll",
        "completions/plimsoll.fish",
        "book/index.html",
    ] {
        ensure(files.iter().any(|file| file == name), || format!("the archive has no {name}"))?;
    }
    let used = binaries::in_empty_root(release)?;
    Ok(format!("{} files; in an empty root, without /etc: {used}", files.len()))
}

/// A root for packages: a folder that all users may read.
fn root() -> Result<tempfile::TempDir> {
    let root = tempfile::tempdir()?;
    std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755))?;
    std::fs::create_dir(root.path().join("tmp"))?;
    std::fs::set_permissions(root.path().join("tmp"), PermissionsExt::from_mode(0o1777))?;
    Ok(root)
}

/// Runs the installed program as an ordinary user: quickstart, search server, and a run by two processes, which are agents.
pub(super) fn used(root: &Path, needs: Option<&Needs>, user: u64, folder: &str) -> Result<String> {
    let room = Room { root, user, proc: true };
    if let Some(needs) = needs {
        room.own_folder(folder)?;
        room.add_libraries(needs)?;
    }
    let inside = format!("/{folder}");
    let quickstart = room.quickstart(&inside, PROGRAM).context("quickstart")?;
    let server = room.serve(&inside, PROGRAM, &["search"]).context("serve search")?;
    let searches = format!("{}/search/?query=test", server.url.trim_end_matches('/'));
    let flags = ["load", &searches, "--clients", "2", "--requests", "200"];
    let load = room.measure(&inside, PROGRAM, &flags).context("load of serve search")?;
    let flags = [&flags[..], &["--processes", "2"]].concat();
    let shared = room.measure(&inside, PROGRAM, &flags).context("load by two processes")?;
    Ok(format!(
        "quickstart as user {user}: {quickstart}; serve search: {load}; by two processes: {shared}"
    ))
}

/// Installs the .deb into a root by dpkg, uses it, and removes it.
pub fn deb(release: &Release<'_>) -> Result<String> {
    let root = root()?;
    let admin = root.path().join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(admin.join(folder))?;
    }
    // The only package that is there before is the C library of this machine, so that dpkg judges the dependency.
    let libc = output(Command::new("dpkg-query").args(["--status", "libc6"]))?;
    std::fs::write(admin.join("status"), format!("{}\n", libc.trim_end()))?;
    for kind in ["list", "md5sums"] {
        std::fs::write(admin.join(format!("info/libc6:{}.{kind}", release.target.debian())), "")?;
    }
    let file = release.file(&release.names.deb);
    let dpkg = |words: &[&str]| -> Result<String> {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.path().display()));
        dpkg.args(["--log=/dev/null", "--force-script-chrootless"]).args(words);
        dpkg.env("PATH", format!("/usr/sbin:/sbin:{}", std::env::var("PATH").unwrap_or_default()));
        output(&mut dpkg)
    };
    dpkg(&["--install", &file.to_string_lossy()])?;
    let broken = dpkg(&["--audit"])?;
    ensure(broken.trim().is_empty(), || broken.clone())?;
    let changed = dpkg(&["--verify", "plimsoll"])?;
    ensure(changed.trim().is_empty(), || changed.clone())?;
    let installed = root.path().join("usr/bin/plimsoll");
    let same = std::fs::read(&installed)? == std::fs::read(&release.binaries()[0])?;
    ensure(same, || "the .deb has another binary than the archive".to_owned())?;
    let used = used(root.path(), Some(&Needs::of(&installed)?), NOBODY, "home")?;
    dpkg(&["--purge", "plimsoll"])?;
    let left = left(root.path())?;
    ensure(left.is_empty(), || format!("left after removal: {left:?}"))?;
    Ok(format!("installed, {used}; removed"))
}

/// Files of plimsoll in a root, apart from what its user wrote and what package managers note.
fn left(root: &Path) -> Result<Vec<String>> {
    let mut files = files_below(root)?;
    files.retain(|path| !["var/", "home/", "tmp/"].iter().any(|top| path.starts_with(top)));
    files.retain(|path| path.contains("plimsoll"));
    Ok(files)
}

/// Installs the .rpm into a root by rpm, uses it, and removes it.
pub fn rpm(release: &Release<'_>) -> Result<String> {
    let root = root()?;
    let file = release.file(&release.names.rpm);
    let file = file.to_string_lossy();
    let rpm = |words: &[&str]| -> Result<String> {
        let mut rpm = Command::new("rpm");
        rpm.arg("--root").arg(root.path()).args(["--dbpath", "/var/lib/rpm"]).args(words);
        output(&mut rpm)
    };
    rpm(&["--initdb"])?;
    rpm(&["--checksig", "--nosignature", &file])?;
    let binary = &release.binaries()[0];
    let needs = Needs::of(binary)?;
    let listed = rpm(&["--query", "--requires", "--package", &file])?;
    for wanted in requirements(&needs) {
        ensure(listed.lines().any(|line| line == wanted), || format!("no requirement {wanted}"))?;
    }
    // The database of the root is empty: libraries of this machine are not known to it.
    rpm(&["--install", "--nodeps", "--nosignature", &file])?;
    let changed = rpm(&["--verify", "--nodeps", "plimsoll"])?;
    ensure(changed.trim().is_empty(), || changed.clone())?;
    let same = std::fs::read(root.path().join("usr/bin/plimsoll"))? == std::fs::read(binary)?;
    ensure(same, || "the .rpm has another binary than the archive".to_owned())?;
    let room = Room { root: root.path(), user: NOBODY, proc: true };
    room.own_folder("home")?;
    room.add_libraries(&needs)?;
    let used = room.load("/home", PROGRAM)?;
    rpm(&["--erase", "plimsoll"])?;
    let left = left(root.path())?;
    ensure(left.is_empty(), || format!("left after removal: {left:?}"))?;
    Ok(format!("installed, {used}; removed"))
}
