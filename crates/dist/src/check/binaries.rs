//! The binaries themselves: checksums, libraries, size, description, traces of this machine.

use super::room::{NOBODY, Room};
use super::{Release, ensure};
use crate::elf::Needs;
use crate::image::sha256;
use crate::programs::output;
use crate::release::SUMS;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Largest size of a binary, bytes.
const SIZE_MAX: u64 = 30_000_000;
/// Page that documents the libraries.
const PAGE: &str = "docs/install.md";

/// Checksums by the program that a stranger uses.
pub fn sums(release: &Release<'_>) -> Result<String> {
    let mut sha256sum = Command::new("sha256sum");
    let listed =
        output(sha256sum.args(["--check", "--strict", SUMS]).current_dir(&release.folder))?;
    let count = listed.lines().count();
    let files = std::fs::read_dir(&release.folder)?.count() - 1;
    ensure(count == files, || format!("{SUMS} has {count} of {files} files"))?;
    Ok(format!("{count} files"))
}

/// Libraries and versions of symbols, as the page documents them.
pub fn libraries(release: &Release<'_>) -> Result<String> {
    let [shared, fixed] = release.binaries();
    let page = release.sources.read(PAGE)?;
    let wanted = Needs::documented(&page, &release.target.name).context(PAGE)?;
    let found = Needs::of(&shared)?;
    ensure(found == wanted, || {
        format!(
            "{PAGE} documents other libraries than the archive's binary needs:\n{}",
            found.rows()
        )
    })?;
    let none = Needs::of(&fixed)?;
    ensure(none == Needs::default(), || format!("the image's binary needs libraries: {none:?}"))?;
    let names: Vec<&str> = found.versions.keys().map(String::as_str).collect();
    Ok(format!("{} for the archive, none for the image", names.join(", ")))
}

/// Size of both binaries, which have no symbols.
pub fn size(release: &Release<'_>) -> Result<String> {
    let mut sizes = Vec::new();
    for binary in release.binaries() {
        let bytes = std::fs::metadata(&binary)?.len();
        ensure(bytes <= SIZE_MAX, || format!("{} has {bytes} bytes", binary.display()))?;
        let sections = output(Command::new("readelf").args(["--wide", "--sections"]).arg(&binary))?;
        ensure(!sections.contains(" .symtab "), || format!("{} has symbols", binary.display()))?;
        sizes.push(format!("{:.1} MB", bytes as f64 / 1e6));
    }
    Ok(sizes.join(" and "))
}

/// The binaries describe the sources that they were built from.
pub fn identity(release: &Release<'_>) -> Result<String> {
    let lock = std::fs::read(release.sources.root.join("Cargo.lock"))?;
    let mut described = Vec::new();
    for binary in release.binaries() {
        let text = run(release, &binary)?;
        let build: Value = serde_json::from_str(&text).context("plimsoll version --json")?;
        for (field, wanted) in [
            ("version", release.sources.version.as_str()),
            ("commit", release.sources.commit.as_str()),
            ("profile", "dist"),
            ("target", &release.target.name),
            ("lock_sha256", &sha256(&lock)),
        ] {
            ensure(build[field] == wanted, || {
                format!("{field} is {}, not {wanted}", build[field])
            })?;
        }
        let modified = build.get("modified").and_then(Value::as_bool);
        ensure(modified == release.sources.modified, || format!("modified is {modified:?}"))?;
        let notes = output(Command::new("readelf").args(["--wide", "--notes"]).arg(&binary))?;
        let id = build_id(&notes).with_context(|| format!("{} has no build id", binary.display()));
        described.push(id?.to_owned());
    }
    Ok(format!("commit {}, build ids {}", release.sources.commit, described.join(" and ")))
}

/// The build id in what readelf prints of notes: in a line of its own, or behind the kind of the note.
fn build_id(notes: &str) -> Option<&str> {
    notes.lines().find_map(|line| Some(line.split_once("Build ID: ")?.1.trim()))
}

fn run(release: &Release<'_>, binary: &Path) -> Result<String> {
    output(release.target.command(binary)?.args(["version", "--json"]))
}

/// No file of the release names a folder of this machine.
pub fn paths(release: &Release<'_>) -> Result<String> {
    let home = std::env::var("HOME").unwrap_or_default();
    let folders = [
        release.sources.root.to_string_lossy().into_owned(),
        format!("{home}/.cargo"),
        format!("{home}/.rustup"),
    ];
    for place in [&release.archive, &release.image] {
        for folder in &folders {
            let mut grep = Command::new("grep");
            grep.args(["--recursive", "--files-with-matches", "--text", "--fixed-strings", folder]);
            let found = crate::programs::ended(grep.arg(place))?;
            let names = String::from_utf8_lossy(&found.stdout);
            ensure(names.trim().is_empty(), || format!("{folder} is in {}", names.trim()))?;
        }
    }
    Ok("no folder of this machine".to_owned())
}

/// The archive's binary in a root that has the documented libraries and nothing else, not even `/etc`, `/proc` and `/dev`.
pub fn in_empty_root(release: &Release<'_>) -> Result<String> {
    let root = tempfile::tempdir()?;
    let room = Room { root: root.path(), user: NOBODY, proc: false };
    room.own_folder("home")?;
    let [shared, _] = release.binaries();
    room.add_libraries(&Needs::of(&shared)?)?;
    std::fs::copy(&shared, root.path().join("plimsoll"))?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(root.path(), mode)?;
    room.run("/home", "/plimsoll", &["version"])?;
    room.load("/home", "/plimsoll")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_in_the_lines_of_each_readelf() {
        let narrow = "  GNU  0x14\tNT_GNU_BUILD_ID\n    Build ID: 05ce2f\n";
        let wide = "  GNU  0x14\tNT_GNU_BUILD_ID (unique)\t    Build ID: 05ce2f\n";
        assert_eq!((build_id(narrow), build_id(wide)), (Some("05ce2f"), Some("05ce2f")));
        assert_eq!(build_id("  GNU  0x10\tNT_GNU_ABI_TAG\n"), None);
    }
}
