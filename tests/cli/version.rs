//! What a build says of itself: `plimsoll version`, each run record, and the build script that finds it out.

use crate::process::{PATIENCE, Place, Running};
use crate::record::Record;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

#[allow(dead_code)]
#[path = "../../crates/cli/build.rs"]
mod build_script;

use build_script::{
    Origin, Repository, features, of_file, origin_of, parts_of, profile_of, root_of,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The origin of these sources: of their package or archive, or of the repository.
pub fn origin() -> Origin {
    origin_of(&root())
}

/// The build as `plimsoll version` prints it.
fn build(place: &Place) -> Value {
    serde_json::from_str(&place.run(["version", "--json"]).expect(0).stdout).unwrap()
}

#[test]
fn a_build_names_commit_changes_profile_target_features_compiler_and_lock() {
    let place = Place::new();
    let build = build(&place);
    let origin = origin();
    assert_eq!(build["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(build["commit"], origin.commit);
    assert_eq!(build.get("modified").and_then(Value::as_bool), origin.modified);
    let rustc = Running::start(place.program("rustc", ["-vV"]), b"").wait(PATIENCE).expect(0);
    let host = rustc.stdout.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    assert_eq!(build["target"], host);
    let first = rustc.stdout.lines().next().unwrap();
    assert_eq!(format!("rustc {}", build["rustc"].as_str().unwrap()), first);
    let folder = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let profile = if folder.ends_with("debug") { "dev" } else { "release" };
    assert_eq!(build["profile"], profile);
    let lock = std::fs::read(root().join("Cargo.lock")).unwrap();
    let hash: String = Sha256::digest(lock).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(build["lock_sha256"], hash);
    let all = json!(["elastic", "ranker", "servers", "stations", "vespa", "voterdb"]);
    assert_eq!(build["features"], all);
    let text = place.run(["version"]).expect(0).stdout;
    for word in [&hash, host, profile, "stations", &origin.commit] {
        assert!(text.contains(word), "no {word} in\n{text}");
    }
}

#[test]
fn the_record_names_the_build_and_the_processors_of_a_pinned_process() {
    let (place, server) = (Place::new(), crate::server::Server::ok());
    let args = ["load", &server.url(), "--clients", "1", "--requests", "3", "--json", "-"];
    let free = Record::of(&place.run(args).expect(0));
    free.expect_schema();
    assert_eq!(free.0["tool"], build(&place));
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let mask = rustix::thread::sched_getaffinity(None).unwrap();
    let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| mask.is_set(cpu)).unwrap();
    let first = first.to_string();
    let pinned = [&["-c", &first, env!("CARGO_BIN_EXE_plimsoll")], &args[..]].concat();
    let pinned = Running::start(place.program("taskset", pinned), b"").wait(PATIENCE).expect(0);
    let pinned = Record::of(&pinned);
    pinned.expect_schema();
    assert_eq!(pinned.0["tool"], free.0["tool"]);
    assert_eq!(pinned.count("/machine/cpus"), free.count("/machine/cpus"));
    if online.trim() != "0" {
        assert!(free.count("/machine/cpus") > 1, "{online}: {}", free.0["machine"]);
        assert_eq!(pinned.count("/machine/cpus_allowed"), 1);
    }
}

fn git(root: &Path, arguments: &[&str]) {
    let mut git = std::process::Command::new("git");
    let ended = git
        .args(["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"])
        .args(["-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .current_dir(root)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

/// A repository like this one, with one commit.
fn repository(place: &Place) -> PathBuf {
    let root = place.path().join("sources");
    for (path, text) in [
        ("Cargo.toml", "[workspace]\n"),
        ("Cargo.lock", "version = 4\n"),
        (".archive", include_str!("../../.archive")),
        (".gitattributes", include_str!("../../.gitattributes")),
        ("docs/README.md", "# The book\n"),
        ("crates/core/Cargo.toml", "[package]\n"),
        ("crates/core/src/lib.rs", "mod clock;\n"),
        ("crates/core/tests/all.rs", "// Nothing.\n"),
        ("crates/servers/front/Cargo.toml", "[package]\n"),
        ("crates/servers/front/src/lib.rs", "mod api;\n"),
        ("crates/zoo/Cargo.toml", "[package]\n"),
        ("crates/cli/Cargo.toml", "[package]\n"),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    git(&root, &["init", "--quiet"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "--quiet", "--message", "first"]);
    root
}

#[test]
fn a_build_is_modified_if_a_file_of_the_program_differs_from_the_commit() {
    let place = Place::new();
    let root = repository(&place);
    assert_eq!(root_of(&root.join("crates/cli")), root.join("crates/cli/../.."));
    assert_eq!(
        parts_of(&root),
        [
            "Cargo.toml",
            "Cargo.lock",
            "crates/cli/Cargo.toml",
            "crates/core/Cargo.toml",
            "crates/core/src",
            "crates/servers/front/Cargo.toml",
            "crates/servers/front/src",
        ]
    );
    let clean = origin_of(&root);
    assert_eq!((clean.commit.len(), clean.modified), (40, Some(false)));
    for (path, is_part) in [
        ("docs/README.md", false),
        ("crates/core/tests/all.rs", false),
        ("crates/zoo/Cargo.toml", false),
        ("crates/core/src/new.rs", true),
        ("crates/servers/front/src/lib.rs", true),
    ] {
        std::fs::write(root.join(path), "changed\n").unwrap();
        assert_eq!(origin_of(&root).modified, Some(is_part), "{path}");
        git(&root, &["add", "."]);
        assert_eq!(origin_of(&root).modified, Some(is_part), "{path}, added");
        git(&root, &["commit", "--quiet", "--message", path]);
        let after = origin_of(&root);
        assert_eq!(after.modified, Some(false), "{path}, committed");
        assert_ne!(after.commit, clean.commit);
    }
}

#[test]
fn an_archive_and_a_package_know_their_commit_and_other_sources_do_not() {
    let place = Place::new();
    let root = repository(&place);
    let commit = origin_of(&root).commit;
    // In the repository, the file of an archive names no commit.
    assert_eq!(of_file(&root), None);
    git(&root, &["archive", "--output", "../archive.tar", "HEAD"]);
    std::fs::create_dir(place.path().join("unpacked")).unwrap();
    let tar = place.program("tar", ["-x", "-f", "archive.tar", "-C", "unpacked"]);
    Running::start(tar, b"").wait(PATIENCE).expect(0);
    let unpacked = place.path().join("unpacked");
    assert_eq!(of_file(&unpacked), Some(Origin { commit: commit.clone(), modified: None }));
    assert!(Repository::at(&unpacked).is_none());
    let package = place.path().join("package/plimsoll-0.1.0");
    std::fs::create_dir_all(&package).unwrap();
    assert_eq!((of_file(&package), root_of(&package)), (None, package.clone()));
    for (dirty, modified) in [("", false), (",\n    \"dirty\": true", true)] {
        let text = format!(
            "{{\n  \"git\": {{\n    \"sha1\": \"{commit}\"{dirty}\n  }},\n  \"path_in_vcs\": \"crates/cli\"\n}}"
        );
        std::fs::write(package.join(".cargo_vcs_info.json"), text).unwrap();
        let wanted = Origin { commit: commit.clone(), modified: Some(modified) };
        assert_eq!(of_file(&package), Some(wanted));
        assert_eq!(root_of(&package), package);
    }
}

#[test]
fn profile_and_features_are_those_of_the_build() {
    let profile = |path: &str| profile_of(Path::new(path));
    assert_eq!(profile("/t/debug/build/plimsoll-1f/out").as_deref(), Some("dev"));
    assert_eq!(profile("/t/release/build/plimsoll-1f/out").as_deref(), Some("release"));
    let cross = "/t/x86_64-unknown-linux-gnu/dist/build/plimsoll-1f/out";
    assert_eq!(profile(cross).as_deref(), Some("dist"));
    assert_eq!(profile("/elsewhere/out"), None);
    assert_eq!(features("vespa,default,ranker"), "ranker,vespa");
    assert_eq!((features("default"), features("")), (String::new(), String::new()));
}

#[test]
fn a_crate_that_is_not_published_is_no_part_of_the_program() {
    let root = root_of(Path::new(env!("CARGO_MANIFEST_DIR")));
    let parts = parts_of(&root);
    let manifests = parts.iter().filter(|part| part.ends_with("/Cargo.toml"));
    let is_private = |part: &&String| {
        let text = std::fs::read_to_string(root.join(part)).unwrap();
        text.contains("publish = false")
    };
    assert_eq!(manifests.clone().filter(is_private).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(manifests.count() > 20);
}
