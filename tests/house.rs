//! The house itself: the newcomer's commands, and which room may know which.

mod circles;
mod walks;
pub(crate) mod wording;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The most lines of a crate, tests included.
const LINES_MAX: usize = 20_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All Rust sources under a folder, with their text.
fn sources(dir: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

#[test]
fn two_commands_do_all_the_set_up() {
    let readme = read("README.md");
    let first = readme.split("```").nth(1).unwrap().trim();
    assert_eq!(first, "make run\nmake test", "the first thing that README.md says to type");
    let makefile = read("Makefile");
    for target in ["run", "test", "check", "bench"] {
        assert!(makefile.contains(&format!("\n{target}:")), "no target {target} in the Makefile");
    }
    assert!(makefile.contains("\nrun: build\n\t$(BIN) run quickstart\n"));
    // What a test needs is installed before the tests run.
    assert!(makefile.contains("\ntest: test-tools\n"));
    for program in ["nginx", "openssl", "curl"] {
        assert!(makefile.contains(&format!("{program}:")), "{program} is nobody's to install");
    }
    let ci = read(".ci/run");
    for step in ["make check", "make test", "fuzz", "minimum", "licences"] {
        let is_step =
            |line: &str| line.starts_with("step ") && line.ends_with(&format!("\" {step}"));
        assert!(ci.lines().any(is_step), "CI does not run {step}");
    }
    assert!(makefile.contains("@./.ci/clients\n"), "nobody installs Vespa's clients");
    for program in [".ci/run", ".ci/tests", ".ci/tools", ".ci/clients"] {
        let mode = std::fs::metadata(root().join(program)).unwrap().permissions().mode();
        assert!(mode & 0o111 != 0, "{program} cannot be executed");
    }
}

/// Whoever searches for the word that the field uses finds it in the glossary, and in the chapter that explains it.
#[test]
fn words_of_the_field_lead_to_their_chapter() {
    let glossary = read("docs/glossary.md").to_lowercase();
    for (word, chapter) in [
        ("coordinated omission", "docs/load.md"),
        ("open model", "docs/load.md"),
        ("closed model", "docs/load.md"),
        ("in flight", "docs/load.md"),
        ("backoff", "docs/load.md"),
        ("backoff", "docs/feed.md"),
        ("retry", "docs/load.md"),
        ("intended start", "docs/load.md"),
        ("virtual user", "docs/users.md"),
        ("saturation", "docs/seek.md"),
        ("percentile", "docs/report.md"),
        ("histogram", "docs/run-record.md"),
    ] {
        assert!(glossary.contains(word), "{word}: not in docs/glossary.md");
        assert!(read(chapter).to_lowercase().contains(word), "{word}: not in {chapter}");
    }
}

#[test]
fn the_compiler_is_the_machines_own() {
    let workspace: toml::Value = read("Cargo.toml").parse::<toml::Table>().unwrap().into();
    assert_eq!(workspace["workspace"]["package"]["rust-version"].as_str(), Some("1.90"));
    assert_eq!(workspace["workspace"]["package"]["license"].as_str(), Some("Apache-2.0"));
    assert!(read("LICENSE").contains("Version 2.0, January 2004"));
    for file in ["rust-toolchain", "rust-toolchain.toml"] {
        assert!(!root().join(file).exists(), "{file} ties the build to one compiler");
    }
}

/// The folders of all crates, under `crates`.
fn rooms() -> BTreeSet<String> {
    let under = |folder: &str| {
        let entries = std::fs::read_dir(root().join("crates").join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.map(|name| format!("{folder}{name}")).collect::<Vec<_>>()
    };
    let folders = under("").into_iter().chain(under("servers/")).chain(under("jobs/"));
    folders.filter(|room| root().join("crates").join(room).join("Cargo.toml").is_file()).collect()
}

#[test]
fn each_room_has_a_page_of_its_own_that_points_at_files() {
    for room in rooms() {
        let room = root().join("crates").join(room);
        let page = std::fs::read_to_string(room.join("README.md"))
            .unwrap_or_else(|error| panic!("{}/README.md: {error}", room.display()));
        assert!(page.lines().count() <= 16, "{}: a page of ten lines", room.display());
        let links: Vec<&str> =
            page.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(links.len() >= 3, "{}: it points at nothing", room.display());
        for link in links {
            assert!(room.join(link).exists(), "{}/README.md: {link} is not there", room.display());
        }
    }
}

#[test]
fn measurements_are_benches_and_not_ignored_tests() {
    for (path, text) in sources(&root().join("crates")) {
        let mut reasons = text.lines().filter(|line| line.trim_start().starts_with("#[ignore"));
        let measures = reasons.find(|line| line.contains("measure") || line.contains("figures"));
        assert_eq!(measures, None, "{}: make it a bench", path.display());
    }
}

#[test]
fn each_library_has_an_example_that_compiles() {
    for room in rooms() {
        let library = read(&format!("crates/{room}/src/lib.rs"));
        let page: Vec<&str> = library.lines().take_while(|line| line.starts_with("//!")).collect();
        let is_example = |line: &&str| matches!(*line, "//! ```" | "//! ```no_run");
        assert!(page.iter().any(is_example), "crates/{room}/src/lib.rs: no example");
    }
}

/// The crates of the house that a crate depends on, not counting those of its tests.
fn arrows(room: &str) -> BTreeSet<String> {
    let manifest: toml::Table = read(&format!("crates/{room}/Cargo.toml")).parse().unwrap();
    let names = manifest["dependencies"].as_table().unwrap().keys();
    names.filter_map(|name| name.strip_prefix("plimsoll-")).map(str::to_owned).collect()
}

/// Each crate of the house, and the crates that it may use.
const ARROWS: &[(&str, &str)] = &[
    ("core", ""),
    ("wire", "core"),
    ("engine", "core wire"),
    ("record", "core"),
    ("workloads", "core record wire"),
    ("disk", "core"),
    ("report", "core record decide disk"),
    ("html", "report"),
    ("import", "core record report"),
    ("decide", "core"),
    ("outlets", "core record"),
    ("live", "core"),
    ("bus", "core"),
    ("fleet", "bus core engine record wire"),
    ("resources", "core record"),
    ("scan", ""),
    ("jobs/visit", "core record wire engine workloads report job"),
    ("jobs/feed", "core record wire engine workloads report job"),
    ("jobs/voter", "core record wire engine workloads report job"),
    ("jobs/search", "core record wire engine workloads report resources job disk"),
    ("jobs/load", "core record wire engine workloads report job voter"),
    ("jobs/fbench", "core record wire engine workloads report job"),
    ("jobs/seek", "core record wire engine workloads report job load voter feed"),
    ("jobs/size", "core record decide report job"),
    ("jobs/rank", "core record wire engine workloads report job"),
    ("jobs/ab", "core decide record engine report job"),
    ("jobs/agent", "bus core engine fleet job"),
    ("jobs/mix", "core record wire engine workloads report job feed"),
    ("catalogue", "core record wire engine workloads report job load feed mix"),
    ("jobs/job", "core record wire engine fleet workloads report html outlets live resources"),
    ("servers/serving", "core"),
    ("servers/probe", "serving"),
    ("servers/stations", "core serving"),
    ("servers/ranker", "core wire serving"),
    ("servers/voterdb", "core wire serving disk"),
    ("servers/front", "core serving disk"),
    ("servers/index", "core scan disk"),
    ("servers/documents", "core wire serving"),
    ("servers/vespa", "core wire serving front index documents disk"),
    ("servers/elastic", "core scan serving front index disk"),
    ("zoo", "core decide"),
    ("dist", "core"),
    ("sabotage", "core decide wire engine zoo"),
    ("simulate", "core wire engine workloads feed visit zoo"),
    ("hostile", "core engine zoo"),
    (
        "fuzzing",
        "bus cli catalogue core documents elastic fbench feed fleet html import job live outlets ranker record report search serving vespa visit voter voterdb wire workloads zoo",
    ),
    (
        "cli",
        "core workloads record decide job catalogue agent rank ab seek size fbench load search voter feed visit report import serving front stations ranker voterdb vespa elastic",
    ),
];

#[test]
fn arrows_point_down_only() {
    assert_eq!(rooms(), ARROWS.iter().map(|(room, _)| (*room).to_owned()).collect());
    for (room, allowed) in ARROWS {
        for arrow in arrows(room) {
            assert!(allowed.split(' ').any(|one| one == arrow), "{room} may not know {arrow}");
        }
    }
}

#[test]
fn core_and_wire_have_no_sockets_and_no_threads() {
    for room in ["core", "wire"] {
        for (path, text) in sources(&root().join("crates").join(room).join("src")) {
            for word in ["std::net", "TcpStream", "thread::spawn", "async fn", "rustix::net"] {
                assert!(!text.contains(word), "{word} in {}", path.display());
            }
        }
    }
    // A defect of the generator must not hide behind the same defect in the target.
    for (path, text) in sources(&root().join("crates/servers")) {
        assert!(!text.contains("plimsoll_engine"), "{}", path.display());
    }
}

#[test]
fn no_crate_has_more_than_20_000_lines() {
    for room in rooms() {
        let files = sources(&root().join("crates").join(&room));
        let lines: usize = files.iter().map(|(_, text)| text.lines().count()).sum();
        assert!(lines <= LINES_MAX, "crates/{room} has {lines} lines");
    }
}
