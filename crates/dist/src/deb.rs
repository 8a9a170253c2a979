//! The package for Debian and Ubuntu.

use crate::compile::{GLIBC, Target};
use crate::contents::Contents;
use crate::sources::Sources;
use crate::tree::{Tree, gzip};
use anyhow::Result;
use md5::{Digest, Md5};
use std::fmt::Write;

/// One line about plimsoll, as package managers show it.
pub const SUMMARY: &str = "measure how much load serving systems hold, and why";

/// Longer text about plimsoll.
pub const DESCRIPTION: &str = "\
plimsoll measures search, recommendation and database systems: fixed rates, closed clients, profiles, and the highest rate that
keeps every limit. It judges its own results, and says when they are not to be believed. Search servers, ranking servers and a
transaction store to try it on are embedded.";

/// Maintainers, in the form that packages need. There is no such host.
pub const MAINTAINER: &str = "The plimsoll maintainers <maintainers@plimsoll.invalid>";

/// Returns the package.
///
/// # Errors
/// When a path is too long for the format.
pub fn package(sources: &Sources, contents: &Contents, target: &Target) -> Result<Vec<u8>> {
    let mut data = contents.installed("usr/share/zsh/vendor-completions")?;
    data.add("usr/share/doc/plimsoll/copyright", copyright(contents));
    let mut control = Tree::default();
    control.add("control", control_file(sources, &data, target));
    control.add("md5sums", sums(&data));
    let mut archive = ar::Builder::new(Vec::new());
    for (name, bytes) in [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&control.tar(sources.epoch, &[])?)?),
        ("data.tar.gz", gzip(&data.tar(sources.epoch, &[])?)?),
    ] {
        let mut header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        header.set_mode(0o100_644);
        header.set_mtime(sources.epoch);
        archive.append(&header, &bytes[..])?;
    }
    Ok(archive.into_inner()?)
}

fn control_file(sources: &Sources, data: &Tree, target: &Target) -> String {
    let lines: Vec<String> = DESCRIPTION.lines().map(|line| format!(" {line}")).collect();
    format!(
        "Package: plimsoll\nVersion: {}-1\nArchitecture: {}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {}\nDepends: libc6 (>= {GLIBC})\nSection: net\nPriority: optional\n\
         Description: {SUMMARY}\n{}\n",
        sources.version,
        target.debian(),
        data.size().div_ceil(1024),
        lines.join("\n")
    )
}

/// The file by which Debian states licences, in its own form.
fn copyright(contents: &Contents) -> String {
    let indented: Vec<String> = contents
        .licence
        .lines()
        .map(|line| if line.trim().is_empty() { " .".to_owned() } else { format!(" {line}") })
        .collect();
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: plimsoll\n\
         Comment: The licences of the libraries in the program are in THIRD-PARTY.txt.gz beside this file.\n\n\
         Files: *\nCopyright: the plimsoll maintainers\nLicense: Apache-2.0\n\n\
         License: Apache-2.0\n{}\n",
        indented.join("\n")
    )
}

fn sums(data: &Tree) -> String {
    let mut text = String::new();
    for (path, file) in &data.files {
        let digest = Md5::digest(&file.bytes);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        _ = writeln!(text, "{hex}  {path}");
    }
    text
}
