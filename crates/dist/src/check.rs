//! `make dist-check`: a release is built again in another folder and compared, and every file of it is tried as a stranger would.
#![allow(clippy::print_stderr)]

mod bill;
mod binaries;
mod container;
mod packages;
mod reproducible;
mod room;
mod shells;

use crate::compile::Target;
use crate::programs::{Toolbox, output};
use crate::release::{self, Names};
use crate::sources::Sources;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Flags of the check.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Only these checks, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
}

/// A release of one target, unpacked.
pub struct Release<'a> {
    sources: &'a Sources,
    toolbox: &'a Toolbox,
    target: &'a Target,
    names: Names,
    /// Folder of its files.
    folder: PathBuf,
    /// Folder of the archive, unpacked.
    archive: PathBuf,
    /// Root of the container image, unpacked.
    image: PathBuf,
    /// Everything that was unpacked, removed at the end.
    work: tempfile::TempDir,
}

impl Release<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The shared binary, and the static one.
    fn binaries(&self) -> [PathBuf; 2] {
        [self.archive.join("plimsoll"), self.image.join("usr/bin/plimsoll")]
    }
}

/// A check returns what it found, in one line.
type Check = fn(&Release<'_>) -> Result<String>;

/// A machine on which a check can be carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Machine {
    /// Any: files are read, and at most one program runs, under an emulator if it must.
    Any,
    /// One with the processor of the release: its programs run in throw-away roots.
    Own,
}

const CHECKS: [(&str, Machine, Check); 15] = [
    ("sums", Machine::Any, binaries::sums),
    ("libraries", Machine::Any, binaries::libraries),
    ("size", Machine::Any, binaries::size),
    ("identity", Machine::Any, binaries::identity),
    ("paths", Machine::Any, binaries::paths),
    ("bill", Machine::Any, bill::bill),
    ("audit", Machine::Any, bill::audit),
    ("pages", Machine::Any, shells::pages),
    ("archive", Machine::Own, packages::archive),
    ("deb", Machine::Own, packages::deb),
    ("rpm", Machine::Own, packages::rpm),
    ("shells", Machine::Any, shells::shells),
    ("image", Machine::Own, container::image),
    ("names", Machine::Own, container::names),
    ("reproducible", Machine::Any, reproducible::reproducible),
];

/// Carries out the checks on the files in `target/dist`, which `make dist` has written.
///
/// # Errors
/// When a check fails; every check is carried out before.
pub fn check(
    sources: &Sources,
    toolbox: &Toolbox,
    targets: &[Target],
    arguments: &CheckArgs,
) -> Result<()> {
    for name in &arguments.only {
        if !CHECKS.iter().any(|(own, ..)| own == name) {
            let known: Vec<&str> = CHECKS.iter().map(|(own, ..)| *own).collect();
            bail!("--only {name}: no such check; expected {}", known.join(", "));
        }
    }
    let is_wanted =
        |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|own| own == name);
    let (mut passed, mut failed, mut left_out) = (0, 0, 0);
    for target in targets {
        let release = unpack(sources, toolbox, target)?;
        for (name, machine, check) in CHECKS.iter().filter(|(name, ..)| is_wanted(name)) {
            if *machine == Machine::Own && target.is_foreign() {
                left_out += 1;
                eprintln!("LEFT OUT {name}: it takes a machine with {}", target.processor);
                continue;
            }
            match check(&release) {
                Ok(found) => {
                    passed += 1;
                    eprintln!("ok      {name}: {found}");
                }
                Err(error) => {
                    failed += 1;
                    eprintln!("FAILED  {name}: {error:#}");
                }
            }
        }
    }
    let unchecked = if left_out > 0 { format!(", {left_out} left out") } else { String::new() };
    eprintln!("{passed} passed, {failed} failed{unchecked}");
    if failed > 0 { bail!("{failed} checks of the release failed") } else { Ok(()) }
}

/// Unpacks archive and image by programs that others wrote.
fn unpack<'a>(
    sources: &'a Sources,
    toolbox: &'a Toolbox,
    target: &'a Target,
) -> Result<Release<'a>> {
    let folder = release::folder(sources);
    let names = Names::of(&sources.version, target);
    let packed = folder.join(&names.archive);
    if !packed.exists() {
        bail!("{} does not exist; run: make dist", packed.display());
    }
    let work = tempfile::tempdir()?;
    let mut tar = Command::new("tar");
    output(tar.arg("-xzf").arg(&packed).arg("-C").arg(work.path()))?;
    let archive = work.path().join(names.archive.trim_end_matches(".tar.gz"));
    let image = container::unpack(&folder.join(&names.image), work.path(), &sources.version)
        .context("unpacking the image")?;
    Ok(Release { sources, toolbox, target, names, folder, archive, image, work })
}

/// Fails with a sentence if something is not as it must be.
fn ensure(holds: bool, sentence: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { bail!(sentence()) }
}

/// All files below a folder, relative to it, sorted.
fn files_below(folder: &Path) -> Result<Vec<String>> {
    let listed =
        output(Command::new("find").arg(".").args(["!", "-type", "d"]).current_dir(folder))?;
    let mut files: Vec<String> =
        listed.lines().map(|line| line.trim_start_matches("./").to_owned()).collect();
    files.sort();
    Ok(files)
}
