//! Records that mean harm: their texts steer no terminal, run no script in a browser, and are no formula in a table.

use crate::process::{Ended, PATIENCE, Place, Running};
use crate::server::{Seen, Server, Step, reply};
use plimsoll_hostile::process::unprintable;
use quick_xml::events::Event;
use serde_json::Value;

/// A text that means something in each format: terminal, HTML, CSV, Markdown, XML and Prometheus.
const POISON: &str = "=cmd|' /C calc'!A0\u{1b}[2J\u{202e}\"><script>alert(1)</script><img src=x onerror=alert(2)>|a|\n# b\n]]>&amp;{x=\"y\"}`c`../../../etc/passwd\u{7}";

/// A run with failures and classes.
fn recorded(place: &Place) -> std::path::PathBuf {
    let server = Server::start(|seen: &Seen| {
        let status = if seen.number.is_multiple_of(3) { 503 } else { 200 };
        vec![Step::Send(reply(status, "", b"some text"))]
    });
    place.file("q.txt", "/a\n/b\n/c\n");
    let url = server.url();
    let load = ["load", &url, "--queries", "q.txt", "--class", "x=/a", "--class", "y=/b"];
    let more = [
        "--clients",
        "2",
        "--requests",
        "60",
        "--slo",
        "p95=1s",
        "--name",
        "run",
        "--label",
        "k=v",
    ];
    place.run([&load[..], &more].concat());
    let runs = std::fs::read_dir(place.path().join("runs")).unwrap();
    runs.map(|entry| entry.unwrap().path()).next().unwrap()
}

/// The places of all texts in a record, names of members included.
fn texts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(all) => all
            .iter()
            .enumerate()
            .for_each(|(index, one)| texts(one, &format!("{at}/{index}"), found)),
        Value::Object(all) => all.iter().for_each(|(name, one)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            texts(one, &format!("{at}/{name}"), found);
        }),
        _ => {}
    }
}

/// The record with as many of its texts poisoned as a reader still accepts.
fn poisoned(record: &Value) -> (Value, usize) {
    let mut places = Vec::new();
    texts(record, "", &mut places);
    let mut all = record.clone();
    let mut count = 0;
    // A file of another schema is no record, and is refused before any of its texts is used.
    for place in places.iter().filter(|place| *place != "/schema") {
        let mut tried = all.clone();
        *tried.pointer_mut(place).unwrap() = Value::from(POISON);
        if plimsoll_record::read(tried.to_string().as_bytes()).is_ok() {
            (all, count) = (tried, count + 1);
        }
    }
    (all, count)
}

fn poison(place: &Place) -> std::path::PathBuf {
    let folder = recorded(place);
    let file = folder.join("run.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    // Texts that are there on a busy machine only.
    record["resources"]["machine"]["at_limit"] = serde_json::json!(["busy"]);
    for watched in record["resources"]["watched"].as_array_mut().into_iter().flatten() {
        watched["at_limit"] = serde_json::json!(["busy"]);
    }
    let (record, count) = poisoned(&record);
    assert!(count > 20, "only {count} texts can be poisoned");
    std::fs::write(&file, record.to_string()).unwrap();
    // The lines of failures are texts of the target as well.
    let failures = folder.join("failures.ndjson");
    let lines: Vec<String> = std::fs::read_to_string(&failures)
        .unwrap()
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            for name in ["class", "reason", "request", "reply"] {
                if line.get(name).is_some() {
                    line[name] = Value::from(POISON);
                }
            }
            line.to_string()
        })
        .collect();
    std::fs::write(&failures, lines.join("\n") + "\n").unwrap();
    folder
}

/// A poisoned record, and a copy of it to compare it with.
fn poisoned_twice(place: &Place) -> (String, String) {
    let folder = poison(place);
    let twin = folder.with_file_name("20260101T000000.000Z-load-run-00000001");
    std::fs::create_dir(&twin).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), twin.join(entry.file_name())).unwrap();
    }
    // A run is not compared with itself.
    let file = twin.join("run.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    record["run_id"] = Value::from(format!("{POISON}2"));
    std::fs::write(&file, record.to_string()).unwrap();
    (folder.display().to_string(), twin.display().to_string())
}

fn report(place: &Place, words: &[&str]) -> Ended {
    let ended = Running::start(place.plimsoll(words), b"").wait(PATIENCE);
    assert!(matches!(ended.code, Some(0 | 2 | 3 | 4)), "{words:?}: {ended:?}");
    assert_eq!(unprintable(&ended.stderr), None, "{words:?}");
    ended
}

#[test]
fn a_record_steers_no_terminal() {
    let place = Place::new();
    let (folder, twin) = poisoned_twice(&place);
    for words in [
        &["report", &folder][..],
        &["report", &folder, "--verbose"],
        &["report", &folder, "--format", "markdown"],
        &["compare", &folder, &twin],
        &["compare", &folder, &twin, "--format", "markdown"],
        &["runs"],
        &["report", "--history", "runs"],
        &["size", &folder],
    ] {
        let ended = Running::start(place.plimsoll(words), b"").wait(PATIENCE);
        assert!(!matches!(ended.code, None | Some(101)), "{words:?}: {ended:?}");
        for text in [&ended.stdout, &ended.stderr] {
            assert_eq!(unprintable(text), None, "{words:?}\n{text}");
        }
    }
}

/// What is wrong with it is said with its own words.
#[test]
fn a_damaged_record_steers_no_terminal() {
    let place = Place::new();
    let folder = recorded(&place);
    let file = folder.join("run.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    record["verdict"]["kind"] = Value::from(POISON);
    std::fs::write(&file, record.to_string()).unwrap();
    let folder = folder.display().to_string();
    let mut said = 0;
    for words in [
        &["report", &folder][..],
        &["compare", &folder, &folder],
        &["runs"],
        &["report", "--history", "runs"],
        &["size", &folder],
    ] {
        let ended = Running::start(place.plimsoll(words), b"").wait(PATIENCE);
        assert!(!matches!(ended.code, None | Some(101)), "{words:?}: {ended:?}");
        assert_eq!(unprintable(&ended.stderr), None, "{words:?}\n{}", ended.stderr);
        said += usize::from(ended.stderr.contains("verdict.kind: unknown variant"));
    }
    assert!(said > 3, "{said} of them name the field");
}

#[test]
fn a_record_runs_no_script_in_a_browser() {
    let place = Place::new();
    let (folder, twin) = poisoned_twice(&place);
    for words in [
        &["report", &folder, "--format", "html"][..],
        &["compare", &folder, &twin, "--format", "html"],
        &["report", "--history", "runs", "--format", "html"],
    ] {
        let page = report(&place, words).stdout;
        assert!(page.contains("alert(1)"), "{words:?}: the text is shown");
        for bad in ["<script>alert", "<img src=x", "\"><", "onerror=alert(2)>"] {
            let found = page
                .find(bad)
                .map(|at| page[at.saturating_sub(80)..].chars().take(200).collect::<String>());
            let own = bad == "\"><" && found.as_deref().is_some_and(|text| !text.contains("alert"));
            assert!(found.is_none() || own, "{words:?}: {found:?}");
        }
        assert!(
            page.contains("Content-Security-Policy"),
            "{words:?}: what is missed cannot run either"
        );
    }
}

#[test]
fn a_record_has_no_formulas_for_a_spreadsheet() {
    let place = Place::new();
    let (folder, _) = poisoned_twice(&place);
    let text = report(&place, &["report", &folder, "--format", "csv"]).stdout;
    let mut rows =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut cells = 0;
    for row in rows.records() {
        for cell in &row.unwrap() {
            cells += 1;
            let is_number = cell.parse::<f64>().is_ok();
            assert!(is_number || !cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell:?}");
            assert_eq!(unprintable(cell), None, "{cell:?}");
        }
    }
    assert!(cells > 20, "{text}");
}

#[test]
fn a_record_stays_well_formed_as_xml_and_as_a_table_of_markdown() {
    let place = Place::new();
    let (folder, twin) = poisoned_twice(&place);
    for words in [
        &["report", &folder, "--format", "junit"][..],
        &["compare", &folder, &twin, "--format", "junit"],
    ] {
        let text = report(&place, words).stdout;
        let mut reader = quick_xml::Reader::from_str(&text);
        loop {
            match reader.read_event().unwrap_or_else(|error| panic!("{words:?}: {error}\n{text}")) {
                Event::Eof => break,
                Event::Start(tag) | Event::Empty(tag) => {
                    let name = tag.name();
                    let known = [
                        "testsuites",
                        "testsuite",
                        "testcase",
                        "failure",
                        "error",
                        "skipped",
                        "properties",
                        "property",
                        "system-out",
                        "system-err",
                    ];
                    assert!(
                        known.iter().any(|one| one.as_bytes() == name.as_ref()),
                        "{words:?}: {name:?}\n{text}"
                    );
                    for attribute in tag.attributes() {
                        attribute.unwrap_or_else(|error| panic!("{words:?}: {error}\n{text}"));
                    }
                }
                _ => {}
            }
        }
        assert_eq!(unprintable(&text), None, "{words:?}");
    }
    let text = report(&place, &["report", &folder, "--format", "markdown"]).stdout;
    // Text in backquotes, and the command in its fence, are shown as they are.
    let outside: String = text.split("```sh").next().unwrap().split("``").step_by(2).collect();
    assert!(
        !outside.contains("<script") && !outside.contains("<img") && !outside.contains("\n# b"),
        "{text}"
    );
    let mut columns = None;
    for line in text.lines() {
        let is_row = line.starts_with('|');
        let count = line.replace("\\|", "").matches('|').count();
        if let (true, Some(before)) = (is_row, columns) {
            assert_eq!(count, before, "{line}\n{text}");
        }
        columns = is_row.then_some(count);
    }
}

#[test]
fn a_record_reads_and_writes_nothing_outside_of_its_folder() {
    let place = Place::new();
    let folder = recorded(&place);
    let secret = place.file("secret.txt", "hunter2-outside");
    for name in ["failures.ndjson", "intervals.ndjson", "resources.ndjson"] {
        let _ = std::fs::remove_file(folder.join(name));
        std::os::unix::fs::symlink(&secret, folder.join(name)).unwrap();
    }
    std::fs::create_dir_all(folder.join("hooks")).unwrap();
    std::os::unix::fs::symlink(&secret, folder.join("hooks").join("perf.txt")).unwrap();
    let shown = folder.display().to_string();
    for format in ["text", "json", "html", "csv", "junit", "markdown"] {
        let ended = place.run(["report", &shown, "--format", format]);
        assert!(!ended.stdout.contains("hunter2-outside"), "{format}");
    }
    // Removing a record leaves what its links lead to.
    place.run(["runs", "prune", "--keep", "0", "--yes"]);
    place.run(["runs", "prune", "--keep", "0"]);
    assert_eq!(place.read("secret.txt"), "hunter2-outside");
    let outside = place.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let again = recorded(&place);
    std::fs::rename(&again, outside.join("moved")).unwrap();
    std::os::unix::fs::symlink(outside.join("moved"), &again).unwrap();
    place.run(["runs", "prune", "--keep", "0"]);
    assert!(outside.join("moved").join("run.json").is_file());
}

#[test]
fn a_name_of_a_run_or_of_an_index_is_no_path() {
    let place = Place::new();
    let server = Server::ok();
    let url = server.url();
    let load = ["load", &url, "--clients", "1", "--requests", "3"];
    let ended =
        place.run([&load[..], &["--name", "../../escaped", "--label", "a=../../b"]].concat());
    assert!(matches!(ended.code, Some(0 | 2 | 3 | 64)), "{ended:?}");
    let inside = std::fs::read_dir(place.path().join("runs")).map_or(0, Iterator::count);
    assert!(inside <= 1 && !place.path().join("../escaped").exists());

    std::fs::create_dir(place.path().join("data")).unwrap();
    let target = place.serve(&["search", "--data", "data"]);
    for name in [
        "..%2f..%2fescaped",
        "..",
        "%2e%2e%2fescaped",
        "a%2f..%2f..%2fescaped",
        "%00",
        ".",
        "a%5c..%5cb",
    ] {
        let (status, text) =
            crate::process::curl(&["--path-as-is", "-X", "PUT", &format!("{}/{name}", target.url)]);
        assert!(status >= 400, "{name}: {status} {text}");
    }
    let listed: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!listed.iter().any(|name| name == "escaped"), "{listed:?}");
}
