//! All files of a release in one folder.
#![allow(clippy::print_stderr)]

use crate::compile::{Built, Target, compile, libc_version};
use crate::contents::Contents;
use crate::elf::Needs;
use crate::image::{image, sha256};
use crate::programs::Toolbox;
use crate::sources::Sources;
use crate::tree::{Tree, gzip};
use crate::{deb, graph, rpm, sbom};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Names of the files of a release.
pub struct Names {
    /// The archive.
    pub archive: String,
    /// The package for Debian.
    pub deb: String,
    /// The package for Fedora.
    pub rpm: String,
    /// The container image.
    pub image: String,
    /// The bill of materials.
    pub bill: String,
}

impl Names {
    /// Returns the names for a version and a target.
    #[must_use]
    pub fn of(version: &str, target: &Target) -> Self {
        let (name, processor) = (&target.name, &target.processor);
        Self {
            archive: format!("plimsoll-{version}-{name}.tar.gz"),
            deb: format!("plimsoll_{version}-1_{}.deb", target.debian()),
            rpm: format!("plimsoll-{version}-1.{processor}.rpm"),
            image: format!("plimsoll-{version}-{processor}-image.tar"),
            bill: format!("plimsoll-{version}-{name}.cdx.json"),
        }
    }
}

/// File with the checksums of all others.
pub const SUMS: &str = "SHA256SUMS";

/// Folder of the files of a release, below its sources.
#[must_use]
pub fn folder(sources: &Sources) -> PathBuf {
    sources.root.join("target/dist")
}

/// Builds and packs a release of some targets into `target/dist` of its sources, which is emptied before.
///
/// # Errors
/// When a build fails, or a file cannot be written.
pub fn make(sources: &Sources, toolbox: &Toolbox, targets: &[Target]) -> Result<()> {
    for target in targets {
        eprintln!("== binaries for {}", target.name);
        compile(sources, toolbox, target)?;
    }
    repack(sources, targets)
}

/// Packs the binaries of the last build.
///
/// # Errors
/// When there are none, or a file cannot be written.
pub fn repack(sources: &Sources, targets: &[Target]) -> Result<()> {
    let mut release = Tree::default();
    for target in targets {
        eprintln!("== packages for {}", target.name);
        pack(sources, &Built::of(sources, target), target, &mut release)?;
    }
    let mut sums = String::new();
    for (name, file) in &release.files {
        _ = writeln!(sums, "{}  {name}", sha256(&file.bytes));
    }
    release.add(SUMS, sums);
    write(&release, &folder(sources))
}

/// Adds the files of one target.
fn pack(sources: &Sources, built: &Built, target: &Target, release: &mut Tree) -> Result<()> {
    let packages = graph::packages(&sources.root, &target.name)?;
    let contents = Contents::gather(sources, &packages, built, target)?;
    let needs = Needs::of(&built.shared)?;
    let names = Names::of(&sources.version, target);
    let top = names.archive.trim_end_matches(".tar.gz");
    let mut archive = Tree::default();
    archive.graft(top, &contents.archive());
    release.add(names.archive.clone(), gzip(&archive.tar(sources.epoch, &[])?)?);
    release.add(names.deb, deb::package(sources, &contents, target)?);
    release.add(names.rpm, rpm::package(sources, &contents, &needs, target)?);
    release.add(names.image, image(sources, &contents, target, &libc_version(target)?)?);
    release.add(names.bill, sbom::cyclonedx(sources, &packages, &target.name)?);
    Ok(())
}

fn write(release: &Tree, folder: &Path) -> Result<()> {
    let at = || folder.display().to_string();
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(at)?;
    }
    std::fs::create_dir_all(folder).with_context(at)?;
    for (name, file) in &release.files {
        std::fs::write(folder.join(name), &file.bytes).with_context(|| name.clone())?;
        eprintln!("{:>12}  {name}", file.bytes.len());
    }
    Ok(())
}
