//! The packages that the program is made of, for one target.

use crate::programs::{cargo_program, output};
use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package by name and version.
pub type Name = (String, String);

/// A package.
#[derive(Clone, Debug)]
pub struct Package {
    /// Name and version.
    pub name: Name,
    /// True if its code is in the program; false if it only takes part in the build.
    pub linked: bool,
    /// True if it comes from a registry; false for a crate of plimsoll.
    pub foreign: bool,
    /// SHA-256 of its archive in the registry.
    pub checksum: Option<String>,
    /// Its licence, as an SPDX expression.
    pub licence: String,
    /// Its authors, where it names them.
    pub authors: Vec<String>,
    /// One line about it.
    pub description: String,
    /// Address of its sources.
    pub repository: Option<String>,
    /// Its folder on this machine.
    pub folder: PathBuf,
    /// Packages that it uses, of those of the program.
    pub uses: BTreeSet<Name>,
}

/// Returns the packages of the program for a target, sorted.
///
/// # Errors
/// When Cargo does not understand the workspace, or a package is not on this machine and cannot be fetched.
pub fn packages(root: &Path, target: &str) -> Result<Vec<Package>> {
    let linked = tree(root, target, "normal,no-proc-macro")?;
    let all = tree(root, target, "normal,build")?;
    let metadata = metadata(root, target)?;
    let names: BTreeMap<&str, Name> = metadata
        .packages
        .iter()
        .map(|own| (own.id.repr.as_str(), (own.name.to_string(), own.version.to_string())))
        .collect();
    let uses = uses(&metadata, &names);
    let checksums = checksums(root)?;
    let mut found = Vec::new();
    for own in &metadata.packages {
        let name = &names[own.id.repr.as_str()];
        if !all.contains(name) {
            continue;
        }
        let expression =
            own.license.clone().with_context(|| format!("{} has no licence", own.name))?;
        let used = uses.get(name).into_iter().flatten();
        found.push(Package {
            linked: linked.contains(name),
            foreign: own.source.is_some(),
            checksum: checksums.get(name).cloned(),
            licence: spdx(&expression),
            authors: own.authors.clone(),
            description: own.description.clone().unwrap_or_default(),
            repository: own.repository.clone(),
            folder: own.manifest_path.parent().context("a manifest in no folder")?.into(),
            uses: used.filter(|name| all.contains(*name)).cloned().collect(),
            name: name.clone(),
        });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// An expression as SPDX writes it: old packages have a slash between licences of which one may be chosen.
fn spdx(expression: &str) -> String {
    let parts: Vec<&str> = expression.split('/').map(str::trim).collect();
    parts.join(" OR ")
}

/// Names of the packages in the tree of the program, along edges of some kinds.
fn tree(root: &Path, target: &str, edges: &str) -> Result<BTreeSet<Name>> {
    let flags =
        ["tree", "--locked", "--package", "plimsoll", "--prefix", "none", "--format", "{p}"];
    let mut cargo = Command::new(cargo_program());
    cargo.args(flags).args(["--edges", edges, "--target", target]).current_dir(root);
    let listed = output(&mut cargo)?;
    let name = |line: &str| {
        let (name, rest) = line.split_once(" v")?;
        let version = rest.split_whitespace().next()?;
        Some((name.to_owned(), version.to_owned()))
    };
    Ok(listed.lines().filter_map(name).collect())
}

fn metadata(root: &Path, target: &str) -> Result<Metadata> {
    let mut command = MetadataCommand::new();
    command.cargo_path(cargo_program()).manifest_path(root.join("Cargo.toml"));
    let options = ["--locked", "--filter-platform", target].map(str::to_owned);
    command.other_options(options.to_vec());
    command.exec().context("cargo metadata")
}

/// Packages that each package uses, not counting its tests.
fn uses(metadata: &Metadata, names: &BTreeMap<&str, Name>) -> BTreeMap<Name, BTreeSet<Name>> {
    use cargo_metadata::DependencyKind::Development;
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let used = nodes.map(|node| {
        let real =
            node.deps.iter().filter(|one| one.dep_kinds.iter().any(|k| k.kind != Development));
        let used = real.map(|one| names[one.pkg.repr.as_str()].clone()).collect();
        (names[node.id.repr.as_str()].clone(), used)
    });
    used.collect()
}

/// Checksums of all packages in `Cargo.lock`.
fn checksums(root: &Path) -> Result<BTreeMap<Name, String>> {
    let path = root.join("Cargo.lock");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lock: toml::Table = text.parse().context("Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let checksum = |package: &toml::Value| {
        let field = |name: &str| package.get(name)?.as_str().map(str::to_owned);
        Some(((field("name")?, field("version")?), field("checksum")?))
    };
    Ok(packages.filter_map(checksum).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_made_of_its_own_crates_and_of_those_that_it_links() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let packages = packages(&root, "x86_64-unknown-linux-gnu").unwrap();
        let find = |name: &str| packages.iter().find(|own| own.name.0 == name);
        let serde = find("serde").unwrap();
        assert!(serde.linked && serde.foreign && serde.checksum.as_ref().unwrap().len() == 64);
        assert_eq!(serde.licence, "MIT OR Apache-2.0");
        let core = find("plimsoll-core").unwrap();
        assert!(core.linked && !core.foreign && core.checksum.is_none());
        let derive = find("serde_derive").unwrap();
        assert!(!derive.linked && derive.uses.iter().any(|(name, _)| name == "syn"));
        // Tests, tools of the house and other systems are in no program.
        for absent in ["insta", "proptest", "plimsoll-zoo", "plimsoll-dist", "rpm", "windows-sys"] {
            assert!(find(absent).is_none(), "{absent}");
        }
        assert_eq!(spdx("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(spdx("Apache-2.0 / MIT"), "Apache-2.0 OR MIT");
    }
}
