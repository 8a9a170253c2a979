//! The crates as they are published: what each says of itself, what it depends on, and which files are in its package.
//! `make package` builds each from its package; these tests find in seconds what would fail there.

use super::{cargo, paths, read, root};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Categories of the registry that are in use here. The registry drops others without an error.
const CATEGORIES: [&str; 18] = [
    "algorithms",
    "command-line-utilities",
    "database",
    "database-implementations",
    "development-tools::profiling",
    "development-tools::testing",
    "filesystem",
    "mathematics",
    "network-programming",
    "os::linux-apis",
    "parser-implementations",
    "simulation",
    "text-processing",
    "visualization",
    "web-programming::http-client",
    "web-programming::http-server",
    "encoding",
    "data-structures",
];
/// Most bytes of the files of a package. Larger is a file that was forgotten, except for the corpus that the program contains.
const MOST: u64 = 1_200_000;
const CORPUS: (&str, u64) = ("plimsoll-workloads", 3_800_000);
/// It asks for the commit of the repository around it, and does without.
const MAY_LOOK_AROUND: &str = "crates/cli/build.rs";

struct Package(Value);

impl Package {
    fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.text("name")
    }

    fn words(&self, field: &str) -> Vec<&str> {
        self.0[field].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
    }

    fn is_published(&self) -> bool {
        // An empty list of registries is `publish = false`.
        self.0["publish"].is_null()
    }

    fn home(&self) -> PathBuf {
        Path::new(self.text("manifest_path")).parent().unwrap().to_owned()
    }

    /// Its dependencies that are crates of this workspace.
    fn own(&self) -> impl Iterator<Item = &Value> {
        self.0["dependencies"].as_array().unwrap().iter().filter(|one| one["path"].is_string())
    }
}

fn packages() -> Vec<Package> {
    let text = cargo(&["metadata", "--no-deps", "--format-version", "1", "--locked", "--offline"]);
    let mut all: Value = serde_json::from_str(&text).unwrap();
    let Value::Array(packages) = all["packages"].take() else { panic!("no packages: {text}") };
    packages.into_iter().map(Package).collect()
}

fn published() -> Vec<Package> {
    packages().into_iter().filter(Package::is_published).collect()
}

/// Returns true if users of the published crate need a dependency. A dependency of tests without a version is left out of the manifest.
fn is_kept(dependency: &Value) -> bool {
    dependency["kind"] != "dev" || dependency["req"] != "*"
}

#[test]
fn crates_that_the_program_needs_are_published_and_no_others() {
    let packages = packages();
    let find = |name: &str| packages.iter().find(|one| one.name() == name).unwrap();
    let mut needed = BTreeSet::from(["plimsoll"]);
    let mut new = vec!["plimsoll"];
    while let Some(name) = new.pop() {
        for dependency in find(name).own().filter(|one| is_kept(one)) {
            let name = find(dependency["name"].as_str().unwrap()).name();
            if needed.insert(name) {
                new.push(name);
            }
        }
    }
    let is: BTreeSet<&str> =
        packages.iter().filter(|one| one.is_published()).map(Package::name).collect();
    let missing: Vec<_> = needed.difference(&is).collect();
    assert!(
        missing.is_empty(),
        "published crates need them; take 'publish = false' out: {missing:?}"
    );
    let idle: Vec<_> = is.difference(&needed).collect();
    assert!(idle.is_empty(), "no published crate needs them; add 'publish = false': {idle:?}");
}

#[test]
fn dependencies_within_the_workspace_have_a_path_and_the_version_of_the_workspace() {
    let all = packages();
    let is_published = |name: &str| all.iter().any(|one| one.name() == name && one.is_published());
    let wanted = format!("={}", env!("CARGO_PKG_VERSION"));
    for package in all.iter().filter(|one| one.is_published()) {
        assert_eq!(package.text("version"), env!("CARGO_PKG_VERSION"), "{}", package.name());
        for dependency in package.own() {
            let name = dependency["name"].as_str().unwrap();
            let place = format!("{}: {name}", package.name());
            if is_kept(dependency) {
                assert_eq!(dependency["req"], wanted.as_str(), "{place}: see Cargo.toml");
            } else {
                // A test of this repository, which needs more than the published crates have.
                assert!(name == package.name() || !is_published(name), "{place}: add its version");
            }
        }
    }
}

#[test]
fn each_published_crate_says_what_it_is() {
    let packages = published();
    assert!(packages.len() >= 30, "{} crates", packages.len());
    let address = packages[0].text("repository").to_owned();
    for package in &packages {
        let name = package.name();
        let description = package.text("description");
        assert!((30..200).contains(&description.len()), "{name}: description '{description}'");
        assert!(description.ends_with('.'), "{name}: description '{description}'");
        assert!(package.text("license").contains("Apache-2.0"), "{name}: no licence");
        assert_eq!(package.text("rust_version"), "1.90", "{name}");
        assert!(address.starts_with("https://"), "repository '{address}'");
        assert_eq!(package.text("repository"), address, "{name}");
        assert_eq!(package.text("readme"), "README.md", "{name}: a readme in its own folder");
        let words = package.words("keywords");
        assert!((3..=5).contains(&words.len()), "{name}: keywords {words:?}");
        for word in words {
            let is_valid = |c: char| c.is_ascii_alphanumeric() || "-_+".contains(c);
            assert!(word.len() <= 20 && word.chars().all(is_valid), "{name}: keyword '{word}'");
        }
        let categories = package.words("categories");
        assert!((1..=5).contains(&categories.len()), "{name}: categories {categories:?}");
        for category in categories {
            assert!(CATEGORIES.contains(&category), "{name}: category '{category}'");
        }
        let licence = std::fs::read_to_string(package.home().join("LICENSE"));
        assert!(
            licence.is_ok_and(|text| text == read("LICENSE")),
            "{name}: ln -s ../../LICENSE {}",
            package.home().display()
        );
    }
    let descriptions: BTreeSet<&str> = packages.iter().map(|p| p.text("description")).collect();
    assert_eq!(descriptions.len(), packages.len(), "two crates have the same description");
}

/// The files of a package that are in the repository, relative to the folder of the crate.
fn files(package: &Package) -> Vec<PathBuf> {
    let list =
        cargo(&["package", "--list", "--allow-dirty", "--offline", "--package", package.name()]);
    // Cargo.lock and two others are made for the package.
    list.lines().map(PathBuf::from).filter(|file| package.home().join(file).exists()).collect()
}

#[test]
fn packages_hold_what_they_need_and_are_small() {
    let mut faults = Vec::new();
    let mut checked = 0;
    for package in published() {
        let (name, home) = (package.name(), package.home().canonicalize().unwrap());
        let files = files(&package);
        for needed in ["Cargo.toml", "README.md", "LICENSE"] {
            assert!(files.contains(&PathBuf::from(needed)), "{name}: its package has no {needed}");
        }
        let sizes = files.iter().map(|file| home.join(file).metadata().unwrap().len());
        let size: u64 = sizes.sum();
        let most = if name == CORPUS.0 { CORPUS.1 } else { MOST };
        assert!(
            size <= most,
            "{name}: {size} bytes in its package; exclude what users do not need"
        );
        let sources = files.iter().filter(|file| file.extension().is_some_and(|one| one == "rs"));
        for file in sources.map(|file| home.join(file)) {
            if file.ends_with(MAY_LOOK_AROUND) {
                continue;
            }
            checked += 1;
            faults.extend(paths::that_leave(
                &home,
                &file,
                &std::fs::read_to_string(&file).unwrap(),
            ));
        }
    }
    assert!(checked > 600, "only {checked} sources");
    assert!(
        faults.is_empty(),
        "no such file in the package; move it into the crate, or make a symlink there:\n{}",
        faults.join("\n")
    );
}

#[test]
fn programs_and_libraries_are_within_their_crates() {
    let mut outside = Vec::new();
    for package in published() {
        for target in package.0["targets"].as_array().unwrap() {
            let source = Path::new(target["src_path"].as_str().unwrap());
            if !source.canonicalize().unwrap().starts_with(package.home().canonicalize().unwrap()) {
                outside.push(format!("{} {}", target["kind"][0].as_str().unwrap(), target["name"]));
            }
        }
    }
    // Cargo leaves them out of the package of `plimsoll`: they run the whole program, and stay with the repository.
    outside.sort();
    assert_eq!(outside, ["bench \"peers\"", "test \"all\""]);
}

/// A symlink takes the place of a copy that grows old. `cargo package` puts the file there.
#[test]
fn symlinks_of_the_crates_lead_to_files_of_the_repository() {
    let base = root().canonicalize().unwrap();
    let mut seen = 0;
    for line in walk(&base.join("crates")) {
        let to = line.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", line.display()));
        assert!(to.starts_with(&base), "{} leads out of the repository", line.display());
        assert!(std::fs::read_link(&line).unwrap().is_relative(), "{}", line.display());
        seen += 1;
    }
    assert!(seen > 30, "{seen} symlinks");
}

/// All symlinks under a folder; they are not followed.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            found.push(path);
        } else if path.is_dir() && !path.ends_with("target") {
            found.extend(walk(&path));
        }
    }
    found
}

#[test]
fn licences_of_contents_are_beside_them() {
    let packed = std::fs::read(root().join("crates/workloads/corpora/wordnet.tsv.zst")).unwrap();
    let lines = std::io::BufReader::new(zstd::Decoder::new(&packed[..]).unwrap());
    let first = std::io::BufRead::lines(lines).next().unwrap().unwrap();
    let header: Value = serde_json::from_str(&first).unwrap();
    let kept = read("crates/workloads/corpora/LICENSE-WordNet");
    assert_eq!(header["licence"].as_str().unwrap().trim_end(), kept.trim_end());
    let html = published().into_iter().find(|one| one.name() == "plimsoll-html").unwrap();
    assert_eq!(html.text("license"), "Apache-2.0 AND MIT", "it contains uPlot");
    assert!(read("crates/html/assets/uplot/LICENSE").starts_with("The MIT License"));
}

/// A dependency that is added in `crates` is in two lists of versions; the second is forgotten easily.
#[test]
fn lists_of_versions_are_complete() {
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml", "tests/voltdb/clients/rust/Cargo.toml"] {
        let arguments = ["metadata", "--format-version", "1", "--locked", "--offline"];
        cargo(&[&arguments[..], &["--manifest-path", manifest]].concat());
    }
}
