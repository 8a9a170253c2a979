//! `plimsoll runs`: the list of run records, the removal of old ones, and names, labels and files of a run.

use crate::process::Place;
use crate::record::Record;
use crate::server::Server;
use serde_json::Value;
use std::path::PathBuf;

/// Runs `load` with a few requests and these flags.
fn load(place: &Place, server: &Server, flags: &[&str]) {
    let url = server.url();
    let args = ["load", url.as_str(), "--clients", "1", "--requests", "4", "--quiet"];
    let ended = place.run([&args[..], flags].concat());
    // 3 if other programs took its processor.
    assert!([Some(0), Some(2), Some(3)].contains(&ended.code), "{}", ended.stderr);
}

/// The folders of runs, oldest first.
fn folders(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path().join("runs")).unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn listed(place: &Place) -> Vec<Value> {
    let json: Value =
        serde_json::from_str(&place.run(["runs", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(json["schema"], "plimsoll.runs/1");
    json["runs"].as_array().unwrap().clone()
}

#[test]
fn runs_are_listed_newest_first_with_name_result_and_verdict() {
    let (place, server) = (Place::new(), Server::ok());
    load(&place, &server, &[]);
    load(&place, &server, &["--name", "after: 2", "--label", "commit=3f2a", "--label", "host=a b"]);
    let runs = listed(&place);
    assert_eq!(runs.len(), 2);
    assert_eq!((&runs[0]["name"], &runs[1]["name"]), (&"after: 2".into(), &"".into()));
    assert_eq!(runs[0]["labels"], serde_json::json!({"commit": "3f2a", "host": "a b"}));
    let folder = runs[0]["folder"].as_str().unwrap();
    assert!(folder.contains("-load-after--2-"), "{folder}");
    let text = place.run(["runs"]).expect(0).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("id ") && lines[0].contains("name"), "{text}");
    assert!(lines[1].contains("after: 2") && lines[1].contains(" ok/s"), "{text}");
    assert!(lines[1].starts_with(runs[0]["run_id"].as_str().unwrap()), "{text}");
    let record = std::fs::read_to_string(place.path().join(folder).join("run.json")).unwrap();
    let record = Record(serde_json::from_str(&record).unwrap());
    record.expect_schema();
    assert_eq!(record.text("/name"), "after: 2");
    assert_eq!(record.text("/labels/commit"), "3f2a");
}

#[test]
fn old_records_are_removed_and_other_folders_stay() {
    let (place, server) = (Place::new(), Server::ok());
    for _ in 0..3 {
        load(&place, &server, &[]);
    }
    let other = place.path().join("runs/notes");
    std::fs::create_dir(&other).unwrap();
    place.file("runs/notes/run.json", "{\"schema\":\"other/1\"}");
    let all = folders(&place);
    let shown = place.run(["runs", "prune", "--keep", "1", "--dry-run"]).expect(0);
    assert!(shown.stdout.contains("2 of 3 run records would be removed"), "{}", shown.stdout);
    assert_eq!(folders(&place), all, "a dry run removes nothing");
    let none = place.run(["runs", "prune", "--older-than", "1d"]).expect(0);
    assert!(none.stdout.contains("0 of 3 run records removed"), "{}", none.stdout);
    let ended = place.run(["runs", "prune", "--keep", "1"]).expect(0);
    for folder in &all[..2] {
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert!(ended.stdout.contains(name) && !folder.exists(), "{}", ended.stdout);
    }
    assert!(all[2].exists() && other.join("run.json").exists());
    assert!(
        ended.stderr.contains("left out") && ended.stderr.contains("notes"),
        "{}",
        ended.stderr
    );
}

#[test]
fn wrong_rules_are_rejected_in_one_line() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("runs")).unwrap();
    for (args, word) in [
        (&["runs", "prune"][..], "--keep"),
        (&["runs", "prune", "--keep", "1", "--older-than", "1d"], "--older-than"),
        (&["runs", "prune", "--older-than", "30"], "30d"),
        (&["runs", "prune", "--older-than", "soon"], "30d"),
        (&["runs", "--runs", "nowhere"], "nowhere"),
    ] {
        let ended = place.run(args).expect(64);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(word), "{args:?}: {}", ended.stderr);
    }
    assert!(place.run(["runs"]).expect(0).stderr.contains("no run record in runs"));
}

#[test]
fn a_run_is_printed_by_the_beginning_of_its_id() {
    let (place, server) = (Place::new(), Server::ok());
    load(&place, &server, &["--slo", "p95=1ns"]);
    load(&place, &server, &[]);
    // Two ids that begin alike.
    for (folder, id) in folders(&place).iter().zip(["1a2b3c4d", "1a2b9999"]) {
        let file = folder.join("run.json");
        let mut record: Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        record["run_id"] = id.into();
        std::fs::write(file, record.to_string()).unwrap();
    }
    let text = place.run(["report", "1a2b3"]).expect(0).stdout;
    assert!(text.contains("MISSED p95"), "{text}");
    let code = place.run(["report", "1A2B3C4D", "--exit-code"]).code;
    assert!([Some(2), Some(3)].contains(&code), "{code:?}");
    for (id, word) in [
        ("1a2b", "1a2b3c4d (load, "),
        ("1a2b", "1a2b9999 (load, "),
        ("0badcafe", "there is no run '0badcafe' in runs; 'plimsoll runs' lists the ids"),
        ("beef", "unknown run or job 'beef'"),
        ("1a2", "unknown run or job '1a2'"),
    ] {
        let ended = place.run(["report", id]).expect(64);
        assert_eq!(ended.stderr.lines().count(), 1, "{id}: {}", ended.stderr);
        assert!(ended.stderr.contains(word), "{id}: {}", ended.stderr);
    }
}

/// The elements of an XML file by name, as a reader finds them.
fn count_of(xml: &str, element: &str) -> usize {
    let mut reader = quick_xml::Reader::from_str(xml);
    let mut found = 0;
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Start(e) | quick_xml::events::Event::Empty(e) => {
                found += usize::from(e.name().as_ref() == element.as_bytes());
            }
            quick_xml::events::Event::Eof => return found,
            _ => {}
        }
    }
}

#[test]
fn a_run_writes_junit_and_csv_itself() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("old.xml", "old");
    let files = ["--junit", "old.xml", "--csv", "run.csv", "--slo", "p95=1ns", "--no-record"];
    load(&place, &server, &files);
    let xml = place.read("old.xml");
    assert_eq!((count_of(&xml, "testsuite"), count_of(&xml, "failure")), (1, 1), "{xml}");
    assert!(place.read("run.csv").starts_with("run_id,job,"));
    let left = std::fs::read_dir(place.path()).unwrap().count();
    assert_eq!(left, 2, "no file is left beside them");
}

/// `run JOB` writes them from the record that is complete, and passes name and labels on.
#[test]
fn a_job_writes_its_files_when_its_record_is_complete() {
    let (place, server) = (Place::new(), Server::ok());
    let url = server.url();
    place.file(
        "mine.toml",
        format!("[job]\nname = \"mine\"\ndescription = \"x\"\ndefault_role = \"only\"\n[job.roles.only]\ncommand = [\"load\", \"{url}\", \"--clients\", \"1\", \"--requests\", \"5\"]\n"),
    );
    let args = ["run", "mine.toml", "--junit", "a.xml", "--csv", "a.csv", "--json", "a.json"];
    let ended = place.run([&args[..], &["--name", "nightly", "--label", "k=v"]].concat());
    assert!([Some(0), Some(3)].contains(&ended.code), "{}", ended.stderr);
    assert_eq!(count_of(&place.read("a.xml"), "testsuite"), 1);
    assert!(place.read("a.csv").starts_with("run_id,job,"));
    let record: Value = serde_json::from_str(&place.read("a.json")).unwrap();
    assert_eq!((&record["name"], &record["labels"]["k"]), (&"nightly".into(), &"v".into()));
    assert_eq!(record["catalogue"]["name"], "mine");
    let folder = folders(&place).remove(0);
    assert!(folder.display().to_string().contains("-mine-nightly-"), "{}", folder.display());
}

#[test]
fn wrong_names_labels_and_files_send_nothing() {
    let (place, server) = (Place::new(), Server::ok());
    for (flags, word) in [
        (&["--name", ""][..], "--name"),
        (&["--label", "commit"], "KEY=VALUE"),
        (&["--label", "a b=c"], "letters, digits"),
        (&["--label", "a=1", "--label", "a=2"], "--label a: this key is given twice"),
        (&["--csv", "-"], "plimsoll report --format csv"),
        (&["--junit", "no/such/dir/a.xml"], "--junit no/such/dir/a.xml"),
        (&["--junit", "a", "--csv", "a"], "the file of --junit"),
    ] {
        let ended =
            place.run([&["load", &server.url(), "--requests", "1"], flags].concat()).expect(64);
        assert_eq!(ended.stderr.lines().count(), 1, "{flags:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(word), "{flags:?}: {}", ended.stderr);
    }
    assert_eq!(server.requests(), 0);
}

/// `report` and `runs` are two ways to the same list.
#[test]
fn report_lists_finds_by_name_and_label_and_prunes() {
    let (place, server) = (Place::new(), Server::ok());
    load(&place, &server, &["--name", "nightly", "--label", "commit=3f2a"]);
    load(&place, &server, &["--name", "nightly", "--label", "commit=9c1e"]);
    load(&place, &server, &[]);
    let out = |args: &[&str]| place.run(args).expect(0).stdout;
    assert_eq!(out(&["report", "list"]), out(&["runs"]));
    assert_eq!(out(&["report", "list", "--json"]), out(&["runs", "--json"]));
    assert_eq!(out(&["report", "list"]).lines().count(), 4);
    let runs = listed(&place);
    let id = |at: usize| runs[at]["run_id"].as_str().unwrap();
    // Restricted to a name, a label, an id, a job; words add up.
    for (words, count) in [
        (vec!["nightly"], 2),
        (vec!["commit=3f2a"], 1),
        (vec![id(0)], 1),
        (vec!["load"], 3),
        (vec!["commit=3f2a", &id(0)[..4]], 2),
    ] {
        for command in [vec!["runs"], vec!["report", "list"]] {
            let text = out(&[command, words.clone()].concat());
            assert_eq!(text.lines().count(), count + 1, "{words:?}: {text}");
        }
    }
    let unknown = place.run(["report", "list", "nosuch"]).expect(64).stderr;
    assert!(unknown.contains("'nosuch'") && unknown.lines().count() == 1, "{unknown}");
    let removal = place.run(["runs", "delete"]).expect(64).stderr;
    assert!(removal.contains("'plimsoll runs prune' removes runs"), "{removal}");
    // A name is the newest run that has it, a label the newest with it.
    let shown = |word: &str| {
        let json = out(&["report", word, "--format", "json"]);
        let record: Value = serde_json::from_str(&json).unwrap();
        record["run_id"].as_str().unwrap().to_owned()
    };
    assert_eq!((shown("nightly").as_str(), shown("commit=3f2a").as_str()), (id(1), id(2)));
    assert_eq!(shown(&id(2)[..5]), id(2));
    let page = out(&["report", "nightly"]);
    assert!(page.contains("name nightly, commit=9c1e"), "{page}");
    let history = out(&["report", "nightly", "--all"]);
    assert!(
        history.contains("2 runs")
            || history.matches(id(1)).count() + history.matches(id(2)).count() >= 2,
        "{history}"
    );
    let wrong = place.run(["report", "commit=0000"]).expect(64).stderr;
    assert!(wrong.contains("has the label 'commit=0000'"), "{wrong}");
    let near = place.run(["report", "nightl"]).expect(64).stderr;
    assert!(near.contains("nightly"), "{near}");
    // Both remove the same.
    let dry = ["prune", "--keep", "1", "--dry-run"];
    assert_eq!(out(&[&["report"], &dry[..]].concat()), out(&[&["runs"], &dry[..]].concat()));
    out(&["report", "prune", "--keep", "1"]);
    assert_eq!(folders(&place).len(), 1);
}
