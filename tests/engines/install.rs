//! What stands in the way of an installation is told in one line.

use super::{INSTALL_LIMIT, install, refused};
use crate::process::{Place, Running, engines_home, find_program};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A call of plimsoll that knows no programs but those in `bin`.
fn with_programs(place: &Place, args: &[&str], bin: &Path) -> Command {
    let mut command = place.plimsoll(args);
    command.env("PATH", bin).env_remove("JAVA_HOME");
    command.env("PLIMSOLL_HOME", place.path().join("home"));
    command
}

fn run(command: Command) -> crate::process::Ended {
    Running::start(command, b"").wait(INSTALL_LIMIT)
}

/// A folder with links to the machine's own programs.
fn linked(place: &Place, name: &str, programs: &[&str]) -> PathBuf {
    let bin = place.path().join(name);
    std::fs::create_dir(&bin).unwrap();
    for program in programs {
        symlink(find_program(program).canonicalize().unwrap(), bin.join(program)).unwrap();
    }
    bin
}

#[test]
fn what_is_missing_is_named_with_its_package() {
    let place = Place::new();
    let none = linked(&place, "none", &[]);
    for engine in ["opensearch", "elasticsearch", "voltdb"] {
        let ended = run(with_programs(&place, &["install", engine], &none));
        refused(ended, 64, &[engine, "needs Java", "apt-get install default-jdk-headless"]);
        let ended = run(with_programs(&place, &["serve", engine], &none));
        refused(ended, 64, &["not installed", &format!("run: plimsoll install {engine}")]);
    }
    let only_java = linked(&place, "only-java", &["java"]);
    let ended = run(with_programs(&place, &["install", "opensearch"], &only_java));
    refused(ended, 64, &["needs Maven", "apt-get install maven"]);
    let mut postgresql = with_programs(&place, &["install", "postgresql"], &none);
    postgresql.env("PLIMSOLL_POSTGRES_BIN", &none);
    refused(run(postgresql), 64, &["PLIMSOLL_POSTGRES_BIN", "apt-get install postgresql"]);
    assert!(!place.path().join("home").exists(), "something was made for nothing");
}

#[test]
fn a_java_of_the_wrong_age_is_told() {
    let place = Place::new();
    for (version, word) in [("1.8.0_292", "Java 8"), ("25.0.1", "Java 25")] {
        let name = word.replace(' ', "");
        let home = place.path().join(&name);
        std::fs::create_dir_all(home.join("bin")).unwrap();
        place.script(&format!("{name}/bin/java"), "#!/bin/sh\nexit 1\n");
        std::fs::write(home.join("release"), format!("JAVA_VERSION=\"{version}\"\n")).unwrap();
        let mut command = place.plimsoll(["install", "opensearch"]);
        command.env("PLIMSOLL_HOME", place.path().join("home")).env("JAVA_HOME", &home);
        let age = if word == "Java 8" { "too old" } else { "too new" };
        refused(run(command), 64, &[word, age, "runs on 11 to 21", "JAVA_HOME"]);
    }
}

/// Maven itself, with settings that lead nowhere.
#[test]
fn no_way_to_the_repository_is_told() {
    let place = Place::new();
    std::fs::create_dir(place.path().join(".m2")).unwrap();
    place.file(
        ".m2/settings.xml",
        "<settings><mirrors><mirror><id>nowhere</id><mirrorOf>*</mirrorOf>\
         <url>http://127.0.0.1:9/</url></mirror></mirrors></settings>",
    );
    let mut command = place.plimsoll(["install", "elasticsearch"]);
    command.env("PLIMSOLL_HOME", place.path().join("home"));
    command.env("MAVEN_OPTS", format!("-Duser.home={}", place.path().display()));
    let ended = run(command).expect(1);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("fetching elasticsearch"), "{lines:?}");
    assert!(lines[1].contains("no network") && lines[1].contains("settings.xml"), "{lines:?}");
    let left: Vec<_> = std::fs::read_dir(place.path().join("home/engines")).unwrap().collect();
    assert!(left.len() <= 1, "more than the lock was left: {left:?}");
}

#[test]
fn a_jar_that_is_another_one_is_named_and_nothing_installed() {
    install("opensearch");
    let place = Place::new();
    let bin = linked(&place, "bin", &["java", "sh", "cp"]);
    let jars = engines_home().join("engines/opensearch-2.19.1/jars");
    place.script(
        "bin/mvn",
        &format!("#!/bin/sh\ncp -r {} jars && echo more >>jars/jna-5.13.0.jar\n", jars.display()),
    );
    let ended = run(with_programs(&place, &["install", "opensearch"], &bin)).expect(1);
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.contains("jna-5.13.0.jar is not the file that plimsoll knows"), "{last}");
    let ended = run(with_programs(&place, &["serve", "opensearch"], &bin));
    refused(ended, 64, &["not installed"]);
}

#[test]
fn engines_are_listed_told_and_removed() {
    install("opensearch");
    let place = Place::new();
    let text = place.run(["list"]).expect(0).stdout;
    assert!(text.contains("opensearch") && text.contains("2.19.1"), "{text}");
    let all = place.run(["list", "--json"]).expect(0).stdout;
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    let names: Vec<_> = all["engines"].as_array().unwrap().iter().map(|e| &e["name"]).collect();
    assert_eq!(names, ["elasticsearch", "nats", "opensearch", "postgresql", "voltdb"]);
    let told = place.run(["info", "opensearch"]).expect(0).stdout;
    let home = engines_home().display().to_string();
    assert!(told.contains("opensearch 2.19.1") && told.contains(&home), "{told}");
    let again = place.run(["install", "opensearch"]).expect(0);
    assert_eq!(again.stdout, "opensearch: installed before\n");
    assert!(again.took.as_secs() < 5, "{:?}", again.took);
    refused(place.run(["install", "opensarch"]), 64, &["did you mean 'opensearch'?"]);
    // Another home has nothing; its cleaning leaves this one alone.
    let mut clean = place.plimsoll(["clean", "opensearch"]);
    clean.env("PLIMSOLL_HOME", place.path().join("home"));
    assert_eq!(run(clean).expect(0).stdout, "opensearch: nothing to remove\n");
    let home = place.path().join("other");
    let installed = home.join("engines/opensearch-2.19.1");
    std::fs::create_dir_all(&installed).unwrap();
    let mut clean = place.plimsoll(["clean", "opensearch"]);
    clean.env("PLIMSOLL_HOME", &home);
    assert_eq!(run(clean).expect(0).stdout, "opensearch: removed\n");
    assert!(!installed.exists());
}
