//! Visits that lose a container, or are killed themselves, at random moments.

use super::clients::{LONG, vespa_feed};
use super::sets::{Documents, dump, expect_equal, puts, read, some};
use crate::dice::{Dice, rounds};
use crate::process::{Place, curl};
use crate::record::Record;
use rustix::process::Signal;
use std::io::Read;
use std::time::Duration;

/// Fills the folder `data` and ends the server again.
fn fill(place: &Place, count: usize) -> Documents {
    let documents = some(count);
    place.file("feed.jsonl", puts(&documents));
    let target = place.serve(&["search", "--data", "data", "--durability", "none"]);
    vespa_feed(place, &target, "feed.jsonl").expect_ok(count);
    target.process.signal(Signal::TERM);
    target.process.wait(LONG).expect(0);
    documents
}

#[test]
fn containers_that_go_take_nothing_with_them() {
    let place = Place::new();
    let documents = fill(&place, 4000);
    let mut dice = Dice::new();
    let forms: [&[&str]; 3] = [
        &["--chunked", "--wanted", "20"],
        &[],
        &["--chunked", "--wanted", "300", "--concurrency", "3"],
    ];
    for round in 0..rounds() {
        let target = place.serve(&["search", "--data", "data", "--containers", "3"]);
        assert_eq!(target.urls.len(), 3);
        let slices = (1 + dice.below(9)).to_string();
        let mut flags = vec!["--slices", &slices];
        flags.extend(forms[dice.below(3) as usize]);
        flags.extend(
            [&["--threads", "1"], &["--threads", "2"], &["--threads", "3"]][dice.below(3) as usize],
        );
        // How long it takes when nothing happens is how long something may happen.
        let (whole, record) = dump(&place, &target, &flags);
        expect_equal(&whole, &documents);
        let took = Duration::from_secs_f64(record.number("/duration_s"));
        let mut args: Vec<&str> = vec!["visit"];
        args.extend(target.urls.iter().map(String::as_str));
        args.extend(["--cluster", "plimsoll", "--quiet", "--out", "dump.ndjson", "--json", "-"]);
        args.extend(&flags);
        let visit = place.start(args);
        // One or two of three go.
        let mut urls = target.urls.clone();
        for number in 0..=dice.below(2) {
            let pause = dice.sleep(took + Duration::from_millis(20));
            let gone = urls.swap_remove(dice.below(urls.len() as u64) as usize);
            let (status, _) = curl(&["-X", "POST", &format!("{gone}/plimsoll/v1/container/stop")]);
            assert_eq!(status, 200);
            eprintln!(
                "round {round}: container {number} went after {pause:?} of {took:?}, {flags:?}"
            );
        }
        let record = Record::of(&visit.wait(LONG).expect(0));
        assert_eq!(record.0["visit"]["complete"], true);
        expect_equal(&read(place.read("dump.ndjson").lines(), "id"), &documents);
        let (status, _) = curl(&[&format!("{}/state/v1/health", urls[0])]);
        assert_eq!(status, 200);
    }
}

/// The documents of a file, or of all files of a folder.
fn written(place: &Place, name: &str) -> Documents {
    let path = place.path().join(name);
    let mut files = vec![path.clone()];
    if path.is_dir() {
        files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    }
    let mut text = String::new();
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        if file.extension().is_some_and(|ending| ending == "gz") {
            let mut unpacker = flate2::read::MultiGzDecoder::new(bytes.as_slice());
            unpacker.read_to_string(&mut text).unwrap();
        } else {
            text += std::str::from_utf8(&bytes).unwrap();
        }
    }
    read(text.lines(), "id")
}

#[test]
fn a_visit_killed_at_any_moment_goes_on_and_is_complete() {
    let place = Place::new();
    let documents = fill(&place, 5000);
    let mut dice = Dice::new();
    // So many buckets that it takes some of the seconds after which its state is saved.
    let target = place.serve(&[
        "search",
        "--data",
        "data",
        "--distribution-bits",
        "16",
        "--containers",
        "2",
    ]);
    let outs: [&[&str]; 3] =
        [&["--out", "d.ndjson"], &["--out", "d.ndjson.gz"], &["--out-dir", "d"]];
    for round in 0..rounds() {
        let out = outs[dice.below(3) as usize];
        let slices = (1 + dice.below(4)).to_string();
        let state = format!("state-{round}");
        let mut args: Vec<&str> = vec!["visit"];
        args.extend(target.urls.iter().map(String::as_str));
        args.extend(["--cluster", "plimsoll", "--quiet", "--no-record", "--slices", &slices]);
        args.extend(["--chunked", "--wanted", "1", "--resume", &state]);
        args.extend(out);
        let mut kills = 0;
        let mut pauses = Vec::new();
        while kills < 4 {
            let mut visit = place.start(&args);
            pauses.push(dice.sleep(Duration::from_millis(2500)));
            if !visit.is_running() {
                visit.wait(LONG).expect(0);
                break;
            }
            visit.signal(Signal::KILL);
            visit.wait(LONG);
            kills += 1;
        }
        if kills == 4 {
            place.start(&args).wait(LONG).expect(0);
        }
        eprintln!("round {round}: {kills} kills, {slices} slices, {out:?}, after {pauses:?}");
        expect_equal(&written(&place, out[1]), &documents);
        let path = place.path().join(out[1]);
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
            .unwrap();
    }
}
