//! The pages of all sample records, at the widths that terminals have.

use plimsoll_record::RunRecord;
use plimsoll_report::plain::columns_of;
use plimsoll_report::text::{Style, render};
use std::path::{Path, PathBuf};

const WIDTHS: [usize; 6] = [60, 72, 80, 100, 140, 200];

fn records() -> Vec<(String, RunRecord)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/records");
    let files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    let read = |path: &PathBuf| plimsoll_record::read(&std::fs::read(path).unwrap()).unwrap();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    let records: Vec<_> = files.iter().map(|path| (name(path), read(path))).collect();
    assert!(records.len() >= 15, "{} records", records.len());
    records
}

fn page(record: &RunRecord, width: usize, verbose: bool) -> String {
    let folder = Path::new("runs/20261121T204822.123Z-load-1a2b3c4d");
    let style = Style { width, verbose, ..Style::default() };
    render(record, Some(folder), &style, &crate::forms())
}

/// All pages: the name of the record, the width, and the text.
fn pages() -> Vec<(String, usize, String)> {
    let mut pages = Vec::new();
    for (name, record) in records() {
        for (width, verbose) in WIDTHS.iter().flat_map(|width| [(*width, false), (*width, true)]) {
            pages.push((
                format!("{name}, verbose {verbose}"),
                width,
                page(&record, width, verbose),
            ));
        }
    }
    pages
}

/// A path, an address or a command is good for nothing in two parts.
fn may_be_wide(line: &str, width: usize) -> bool {
    let word = line.split(' ').find(|word| word.contains('/'));
    line.starts_with("More ") || word.is_some_and(|word| columns_of(word) + 11 > width)
}

#[test]
fn no_page_is_wider_than_its_terminal() {
    for (name, width, text) in pages() {
        for line in text.lines() {
            let fits = columns_of(line) <= width || may_be_wide(line, width);
            assert!(fits, "{name} at {width}: {line}");
        }
    }
}

#[test]
fn a_page_says_its_outcome_first_and_once() {
    for (name, width, text) in pages() {
        assert!(text.starts_with("Result     "), "{name} at {width}: {text}");
        assert_eq!(text.matches("\nResult ").count(), 0, "{name} at {width}: {text}");
        assert_eq!(text.matches(", exit ").count(), 1, "{name} at {width}: {text}");
    }
}

#[test]
fn a_page_has_no_line_twice_and_no_two_empty_ones() {
    for (name, width, text) in pages() {
        assert!(!text.contains("\n\n\n"), "{name} at {width}: {text}");
        // The ends of lines that had to be broken may be alike.
        if width < 140 {
            continue;
        }
        let mut lines: Vec<&str> =
            text.lines().filter(|line| line.chars().any(char::is_alphabetic)).collect();
        lines.sort_unstable();
        let twice: Vec<_> = lines.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        // Slow requests may be alike, and two tables of a mix have the same columns.
        let is_row = |line: &str| line.contains("vote ") || line.contains("call ");
        let twice: Vec<_> = twice.iter().filter(|pair| !is_row(pair[0])).collect();
        assert!(twice.is_empty(), "{name} at {width}: {twice:?}");
    }
}

/// Details that few people need are on the page with `--verbose`.
#[test]
fn a_page_fits_a_screen_and_a_verbose_one_has_more() {
    for (name, record) in records() {
        let (brief, verbose) = (page(&record, 100, false), page(&record, 100, true));
        assert!(brief.lines().count() <= 36, "{name}: {brief}");
        assert!(verbose.lines().count() > brief.lines().count(), "{name}: {verbose}");
        for detail in ["Generator  ", "Traffic    ", "Slowest, ms", "Network    "] {
            assert!(!brief.contains(detail), "{name}: {brief}");
        }
        assert!(verbose.contains("Generator  "), "{name}: {verbose}");
    }
}

/// The words of those who wrote it are not those of those who read it.
#[test]
fn a_page_has_no_formulas() {
    for (name, width, text) in pages() {
        for jargon in [
            "X(N)",
            "N/X",
            "k x S",
            "knee",
            "++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++",
        ] {
            assert!(!text.contains(jargon), "{name} at {width}: {jargon}\n{text}");
        }
    }
}
