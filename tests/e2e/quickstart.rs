//! What a newcomer sees first.

use crate::process::{Place, stolen_while};
use crate::record::Record;
use std::time::Duration;

#[test]
fn the_quickstart_shows_a_search_server_measured() {
    let place = Place::alone();
    let run = || place.start(["run", "quickstart"]).wait(Duration::from_secs(240)).expect(0);
    let (ended, stolen) = stolen_while(run);
    eprintln!("quickstart took {:.1} s", ended.took.as_secs_f64());
    let parts = [
        "plimsoll quickstart",
        "server",
        "corpus   ",
        "documents",
        "every answer has the hits that the text has",
        "1. As fast as it can",
        "Result     ",
        "requests/s",
        "2. At half of that",
        "Result     ",
        "Latency",
        "response",
        "Classes",
        "fuzzy",
        "runs/",
        "Page       runs/",
        "Next steps",
    ];
    let mut at = 0;
    for part in parts {
        let found = ended.stdout[at..].find(part);
        at += found.unwrap_or_else(|| panic!("no {part:?} (in this place) in\n{}", ended.stdout));
    }
    crate::docs::expect_sample("README.md", "quickstart", &ended.stdout);
    let page = ended.stdout.lines().find_map(|line| line.strip_prefix("Page       ")).unwrap();
    let written = std::fs::read_to_string(place.path().join(page)).unwrap();
    assert!(written.starts_with("<!doctype html>") && written.contains("quickstart-open"));
    assert_eq!(place.run(["report", "--format", "html"]).expect(0).stdout, written);
    assert_eq!(
        std::fs::read_dir(place.path().join("runs")).unwrap().count(),
        2,
        "two measured runs"
    );
    let record = Record::of(&place.run(["report", "--format", "json"]).expect(0));
    record.expect_balanced();
    assert_eq!(record.text("/job"), "quickstart-open");
    // A server whose processors are taken away may turn some searches away.
    let refused = |(kind, _): &(String, u64)| stolen > 0.02 && kind == "status";
    assert!(record.failures().iter().all(refused), "{:?}, {stolen:.3}", record.failures());
    assert_eq!(record.0["class_names"].as_array().unwrap().len(), 6);
}

#[test]
fn a_quickstart_that_is_stopped_goes_no_further_and_leaves_no_server() {
    let place = Place::new();
    let running = place.start(["run", "quickstart"]);
    let text = running.wait_for("server   ", Duration::from_secs(30));
    let url = text.split_ascii_whitespace().find(|word| word.starts_with("http://")).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    running.signal(rustix::process::Signal::INT);
    let ended = running.wait(Duration::from_secs(10)).expect(3);
    assert!(ended.stderr.contains("stopped before its end"), "{}", ended.stderr);
    assert!(!ended.stdout.contains("1. As fast as it can"), "{}", ended.stdout);
    let address = url.strip_prefix("http://").unwrap();
    assert!(std::net::TcpStream::connect(address).is_err(), "the server is still there");
}
