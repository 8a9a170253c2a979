//! The walks of a request in ARCHITECTURE.md: from the flags of each job to its page, in a few files that exist.

use super::{read, root};
use std::collections::BTreeSet;

/// The most files of a walk.
const FILES_MAX: usize = 12;

/// Texts between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The files that a text names, by their path under `crates`.
fn files(text: &str) -> BTreeSet<&str> {
    quoted(text).filter(|name| name.ends_with(".rs") && name.contains("/src/")).collect()
}

#[test]
fn one_request_of_each_job_passes_at_most_twelve_files() {
    let page = read("ARCHITECTURE.md");
    let part = page.split("## From flag to page").nth(1).unwrap();
    let part = part.split("\n## ").next().unwrap();
    let (before, table) = part.split_once("|---").unwrap();
    let engine = files(before.split_once("All jobs, in the middle:").unwrap().1);
    assert_eq!(engine.len(), 4, "{engine:?}, and the codec");
    let mut jobs = BTreeSet::new();
    for row in table.lines().skip(1).take_while(|row| row.starts_with('|')) {
        let job = quoted(row).next().unwrap();
        let walk: BTreeSet<&str> = files(row).union(&engine).copied().collect();
        assert!(walk.len() <= FILES_MAX, "{job}: {} files", walk.len());
        assert!(walk.iter().any(|file| file.starts_with("wire/")), "{job}: no codec");
        for file in walk {
            assert!(root().join("crates").join(file).is_file(), "{job}: there is no {file}");
        }
        jobs.insert(job);
    }
    let rooms = super::rooms();
    let rooms = rooms.iter().filter_map(|room| room.strip_prefix("jobs/"));
    assert_eq!(
        jobs,
        rooms.filter(|room| !["agent", "job", "size"].contains(room)).collect(),
        "a walk for each job"
    );
}

#[test]
fn files_and_folders_that_the_map_names_are_there() {
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(page);
        let is_path = |name: &&str| {
            ["crates/", "tests/", "docs/", "engines/"].iter().any(|top| name.starts_with(top))
                && !name.contains(['*', '{', ' '])
                && !name.contains("NAME")
        };
        for name in quoted(&text).filter(is_path) {
            assert!(root().join(name).exists(), "{page}: there is no {name}");
        }
    }
}
