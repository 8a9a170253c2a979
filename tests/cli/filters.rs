//! split-file and result-filter.

use crate::process::Place;

/// Records of a POST file: URL and body lines.
fn records(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with('/') {
            all.push(line.to_owned());
        } else if let Some(last) = all.last_mut() {
            last.push('\n');
            last.push_str(line);
        }
    }
    all
}

#[test]
fn a_post_file_in_7_parts_and_joined_again_holds_the_same_records() {
    let place = Place::new();
    let file: String = (0..100)
        .map(|i| format!("/search/{i}\n{{\"n\": {i},\n\n \"pad\": \"{}\"}}\n", "z".repeat(i)))
        .collect();
    place.file("all.txt", &file);
    let ended = place.run(["split-file", "7", "all.txt"]).expect(0);
    assert!(
        ended.stderr.contains("100 records in 7 files of 14 to 15 records"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.stdout, "", "as the original");
    let parts: Vec<String> = (0..7).map(|i| place.read(&format!("query{i:03}.txt"))).collect();
    let mut joined: Vec<String> = parts.iter().flat_map(|part| records(part)).collect();
    let mut expected = records(&file);
    joined.sort();
    expected.sort();
    assert_eq!(joined, expected);
    assert!(parts.iter().all(|part| (14..=15).contains(&records(part).len())));

    // The same seed deals the same way, another one otherwise; stdin is a file like any other.
    place.run_with_input(["split-file", "-p", "again%d.txt", "7"], file.as_bytes()).expect(0);
    assert_eq!(place.read("again3.txt"), parts[3]);
    place.run(["split-file", "-p", "other%d.txt", "--seed", "2", "7", "all.txt"]).expect(0);
    assert_ne!(place.read("other3.txt"), parts[3]);
}

#[test]
fn lines_are_dealt_evenly_and_keep_their_order() {
    let place = Place::new();
    let file: String = (0..1000).map(|i| format!("/q{i:04}\n")).collect();
    place.file("all.txt", file);
    place.run(["split-file", "-p", "p%02d", "4", "all.txt"]).expect(0);
    let parts: Vec<String> = (0..4).map(|i| place.read(&format!("p{i:02}"))).collect();
    for part in &parts {
        let lines: Vec<&str> = part.lines().collect();
        assert_eq!(lines.len(), 250);
        assert!(lines.is_sorted(), "order inside a part");
    }
}

#[test]
fn each_line_that_is_too_long_is_named_as_the_original_does() {
    let place = Place::new();
    let long = "l".repeat(2000);
    place.file("all.txt", format!("/a\n/{long}\n/b\n/{long}\n"));
    let ended = place.run(["split-file", "-m", "1024", "2", "all.txt"]).expect(0);
    assert_eq!(ended.stdout, "line too long, skipping...\n".repeat(2));
    assert!(ended.stderr.contains("2 records were left out"), "{}", ended.stderr);
}

const SUMMARY: &str = include_str!("../../crates/jobs/fbench/testdata/vespa-fbench-summary.txt");

#[test]
fn the_result_filter_knows_both_orders() {
    let place = Place::new();
    let newest = place.run_with_input(["result-filter"], SUMMARY.as_bytes()).expect(0);
    let expected = "32 4 0 0 0 0 75463 75463 0.02 108.38 1.71 0.70 1.30 2.10 3.00 3.60 4.50 5.30 6.70 \
         7.70 10.66 21.40 73.80 18702.94 99.94 0 0.00 75463";
    assert_eq!(newest.stdout.trim_end(), expected);
    let old = place.run_with_input(["result-filter", "--old"], SUMMARY.as_bytes()).expect(0);
    let expected =
        "32 4 0 0 0 0 75463 75463 0.02 108.38 1.71 0.70 1.30 2.10 3.00 3.60 5.30 18702.94 99.94 0";
    assert_eq!(old.stdout.trim_end(), expected);
}

#[test]
fn the_result_filter_of_nothing_is_an_empty_line_and_wrong_usage() {
    let ended = Place::new().run(["result-filter"]).expect(64);
    assert_eq!(ended.stdout, "\n");
    assert!(ended.stderr.contains("held no summary"), "{:?}", ended.stderr);
}
