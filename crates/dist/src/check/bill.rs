//! The bill of materials by a validator that others wrote, and the same data in the binaries.

use super::{Release, ensure};
use crate::graph;
use crate::programs::{output, run};
use anyhow::{Context, Result};
use flate2::read::ZlibDecoder;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::Command;

const VALIDATOR: &str = "cyclonedx-python-lib[json-validation]==11.12.0";
const SCRIPT: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(str(fault) if fault else 0)
";

/// The bill fits CycloneDX's schema.
pub fn bill(release: &Release<'_>) -> Result<String> {
    let folder = release.sources.root.join("target/dist-tools/bill");
    let python = folder.join("bin/python");
    if !folder.join("installed").exists() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(&python).args(pip).arg(VALIDATOR))?;
        std::fs::write(folder.join("installed"), VALIDATOR)?;
    }
    let file = release.file(&release.names.bill);
    output(Command::new(&python).args(["-c", SCRIPT]).arg(&file))?;
    let bill: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let count = bill["components"].as_array().map_or(0, Vec::len);
    Ok(format!("{count} components fit the schema of CycloneDX 1.5"))
}

/// The binaries hold the list of their packages, in the form of cargo-auditable.
pub fn audit(release: &Release<'_>) -> Result<String> {
    let packages = graph::packages(&release.sources.root, &release.target.name)?;
    let linked: BTreeSet<_> =
        packages.iter().filter(|own| own.linked).map(|own| own.name.clone()).collect();
    for binary in release.binaries() {
        let listed = listed(&binary)?;
        let missing: Vec<_> = linked.difference(&listed).collect();
        ensure(missing.is_empty(), || format!("{}: not listed: {missing:?}", binary.display()))?;
    }
    Ok(format!("{} packages are listed in both binaries", linked.len()))
}

/// Packages that a binary lists as part of itself.
fn listed(binary: &Path) -> Result<BTreeSet<graph::Name>> {
    let mut text = String::new();
    ZlibDecoder::new(&section(binary, ".dep-v0")?[..]).read_to_string(&mut text)?;
    let list: Value = serde_json::from_str(&text).context("the list of packages")?;
    let packages = list["packages"].as_array().context("no packages in the list")?;
    let is_linked = |own: &&Value| own.get("kind").is_none_or(|kind| kind == "runtime");
    let name = |own: &Value| {
        let field = |name: &str| own[name].as_str().unwrap_or_default().to_owned();
        (field("name"), field("version"))
    };
    Ok(packages.iter().filter(is_linked).map(name).collect())
}

/// The bytes of a section of a binary, for any processor.
fn section(binary: &Path, name: &str) -> Result<Vec<u8>> {
    let listed = output(Command::new("readelf").args(["--wide", "--sections"]).arg(binary))?;
    let line = listed.lines().find_map(|line| line.split_once(&format!(" {name} ")));
    let (_, rest) = line.with_context(|| format!("{} has no {name}", binary.display()))?;
    // Kind, address, offset, size, and more.
    let number = |word: Option<&str>| usize::from_str_radix(word.unwrap_or_default(), 16);
    let mut words = rest.split_whitespace().skip(2);
    let (offset, size) = (number(words.next())?, number(words.next())?);
    let bytes = std::fs::read(binary)?;
    Ok(bytes.get(offset..offset + size).context("a section outside of the file")?.to_vec())
}
