//! The licences of all that is in the program, as one text.

use crate::graph::Package;
use crate::sources::Sources;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Beginnings of the names of files that hold a licence, in capitals.
const FILES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Parts of the program that are no packages.
const PARTS: &str = "\
The standard library of Rust is MIT OR Apache-2.0, copyright the Rust project's contributors. Binaries that were linked by zig
contain LLVM's libunwind: Apache-2.0 WITH LLVM-exception.

The binary of the container image contains parts of the GNU C library, which is under the GNU Lesser General Public License,
version 2.1 or later. Its sources are those of the package glibc of the distribution that the image was built on; the file of
the image names its version in the label io.plimsoll.libc. plimsoll's sources, and the command `make dist`, link the program
again with another version of that library.
";

/// MIT licence for packages that name it and do not contain it.
const MIT: &str = include_str!("MIT.txt");

/// Returns the licences of all packages that are linked into the program, and of its other parts.
///
/// # Errors
/// When a package has neither a file with its licence nor one of the licences that are known here.
pub fn third_party(sources: &Sources, packages: &[Package]) -> Result<String> {
    let linked: Vec<&Package> = packages.iter().filter(|own| own.linked && own.foreign).collect();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in &linked {
        let found = texts_of(package, &linked, sources)
            .with_context(|| format!("licence of {} {}", package.name.0, package.name.1))?;
        for text in found {
            texts.entry(text).or_default().push(format!("{} {}", package.name.0, package.name.1));
        }
    }
    let plots = normal(&sources.read("crates/html/assets/uplot/LICENSE")?);
    texts.entry(plots).or_default().push("uPlot, in the HTML report".to_owned());
    let mut page = format!(
        "Licences of the software that plimsoll {} contains\n{}\n\n{PARTS}\n\
         The bundled text is from WordNet 3.0 under its own licence; `plimsoll corpus info` prints it.\n\n\
         Packages, and their licences by SPDX:\n\n",
        sources.version,
        "=".repeat(60)
    );
    for package in &linked {
        _ = writeln!(page, "  {} {}: {}", package.name.0, package.name.1, package.licence);
    }
    for (text, packages) in &texts {
        _ = write!(page, "\n{}\n{}\n\n{text}", "=".repeat(100), packages.join("\n"));
    }
    Ok(page)
}

/// Lines without blanks at their ends, so that equal texts are one.
fn normal(text: &str) -> String {
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned() + "\n"
}

fn texts_of(package: &Package, all: &[&Package], sources: &Sources) -> Result<Vec<String>> {
    let own = files(&package.folder)?;
    if !own.is_empty() {
        return Ok(own);
    }
    // A package of a repository whose main package has the file.
    let is_sibling = |other: &&&Package| {
        other.repository.is_some()
            && other.repository == package.repository
            && other.licence == package.licence
    };
    for sibling in all.iter().filter(is_sibling) {
        let texts = files(&sibling.folder)?;
        if !texts.is_empty() {
            return Ok(texts);
        }
    }
    let choices: Vec<&str> = package.licence.split(" OR ").collect();
    if choices.contains(&"Apache-2.0") {
        return Ok(vec![normal(&sources.read("LICENSE")?)]);
    }
    if choices.contains(&"MIT") {
        let holders = match package.authors.as_slice() {
            [] => format!("the authors of {}", package.name.0),
            authors => authors.join(", "),
        };
        return Ok(vec![format!("MIT License\n\nCopyright (c) {holders}\n\n{MIT}")]);
    }
    bail!("it has no file with its licence, and '{}' is not known here", package.licence)
}

/// The texts of all files of a package that hold a licence.
fn files(folder: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_text = !name.ends_with(".RS") && !name.ends_with(".HTML");
        if is_text && FILES.iter().any(|start| name.starts_with(start)) && entry.path().is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        Ok(normal(&String::from_utf8_lossy(&bytes)))
    };
    let texts: Result<Vec<String>> = paths.iter().map(read).collect();
    Ok(texts?.into_iter().filter(|text| text.trim().len() > 20).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::packages;

    #[test]
    fn every_package_of_the_program_has_a_licence_with_its_text() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sources = Sources::at(&root).unwrap();
        let packages = packages(&root, "x86_64-unknown-linux-gnu").unwrap();
        let page = third_party(&sources, &packages).unwrap();
        let blocks: Vec<&str> = page.split(&"=".repeat(100)).skip(1).collect();
        for package in packages.iter().filter(|own| own.linked && own.foreign) {
            let line = format!("\n{} {}\n", package.name.0, package.name.1);
            let texts = blocks.iter().filter(|block| block.contains(&line)).count();
            assert!(texts > 0, "no text for {:?}", package.name);
            let listed = format!("  {} {}: {}\n", package.name.0, package.name.1, package.licence);
            assert!(page.contains(&listed), "{listed}");
        }
        assert!(page.contains("uPlot") && page.contains("GNU Lesser General Public License"));
        let root = root.canonicalize().unwrap();
        assert!(!page.contains(root.to_str().unwrap()), "a path of this machine");
    }

    #[test]
    fn a_package_without_a_file_has_the_licence_that_it_names() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sources = Sources::at(&root).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let package = |licence: &str| Package {
            name: ("bare".to_owned(), "1.0.0".to_owned()),
            linked: true,
            foreign: true,
            checksum: None,
            licence: licence.to_owned(),
            authors: Vec::new(),
            description: String::new(),
            repository: None,
            folder: folder.path().to_owned(),
            uses: std::collections::BTreeSet::new(),
        };
        let text = |licence: &str| third_party(&sources, &[package(licence)]);
        let mit = text("MIT").unwrap();
        assert!(
            mit.contains("Copyright (c) the authors of bare") && mit.contains("free of charge")
        );
        assert!(text("Apache-2.0 OR MIT").unwrap().contains("Version 2.0, January 2004"));
        let error = format!("{:#}", text("BSL-1.0").unwrap_err());
        assert!(error.contains("licence of bare 1.0.0") && error.contains("BSL-1.0"), "{error}");
        std::fs::write(folder.path().join("COPYING.md"), "Do with it whatever you like.\r\n")
            .unwrap();
        assert!(text("BSL-1.0").unwrap().contains("bare 1.0.0\n\nDo with it whatever you like.\n"));
    }
}
