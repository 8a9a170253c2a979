//! Real documents: the records of the packages that this machine could install.

use serde_json::{Value, json};
use std::process::Command;

/// How many documents are compared.
pub const DOCUMENTS: usize = 60_000;

/// A package: what it is and needs, its section, who keeps it, and how large it is installed.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// Description, dependencies and tags: words, names and versions as people write them.
    pub body: String,
    /// The description alone.
    pub summary: String,
    pub section: String,
    pub keeper: String,
    pub size: i64,
}

impl Package {
    /// A line of a corpus for `plimsoll search`.
    pub fn line(&self, number: usize) -> Value {
        json!({
            "id": format!("p{number}"), "title": self.keeper, "body": self.body, "category": self.section,
            "author": self.keeper, "score": self.size,
        })
    }
}

/// The first packages that apt knows.
pub fn read() -> Vec<Package> {
    let output = Command::new("apt-cache").arg("dumpavail").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    let found: Vec<Package> = text.split("\n\n").filter_map(package).take(DOCUMENTS).collect();
    assert_eq!(
        found.len(),
        DOCUMENTS,
        "apt knows too few packages to compare engines by; run: apt-get update"
    );
    found
}

fn package(record: &str) -> Option<Package> {
    let mut package = Package::default();
    let mut field = "";
    for line in record.lines() {
        if let Some(more) = line.strip_prefix(' ') {
            if field == "Tag" {
                package.body.push('\n');
                package.body.push_str(more);
            }
            continue;
        }
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        field = name;
        match name {
            "Description" => package.summary = value.to_owned(),
            "Section" => package.section = value.to_owned(),
            "Maintainer" => package.keeper = value.to_owned(),
            "Installed-Size" => package.size = value.parse().unwrap_or(0),
            _ => {}
        }
        if matches!(name, "Description" | "Depends" | "Tag") {
            package.body.push_str(value);
            package.body.push('\n');
        }
    }
    (!package.summary.is_empty()).then_some(package)
}
