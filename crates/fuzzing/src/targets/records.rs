//! Records of runs: `run.json`, the journal of seconds, resources, and files of other tools.

use crate::file::MemoryFile;
use crate::holds::{choice, one_line};
use crate::memory::{Allowed, within};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::{Interval, IntervalLine};
use plimsoll_import::record::{About, record_of};
use plimsoll_import::{Format, Options, read};
use plimsoll_record::RunRecord;
use plimsoll_report::page::Style;
use plimsoll_report::sections::{self, Course};
use plimsoll_report::{csv, journal, json, junit, text};

/// A histogram of another tool may have bounds that take 40 MB.
const IMPORT_MEMORY: Allowed = Allowed { base: 160 << 20, each: 6000 };
const RECORD_MEMORY: Allowed = Allowed { base: 4 << 20, each: 2000 };

/// Prints a record in all ways.
fn show(record: &RunRecord) {
    let forms = plimsoll::forms();
    for verbose in [false, true] {
        let style = Style { verbose, ..Style::default() };
        let page = text::render(record, None, &style, &forms);
        let is_printable = |c: char| c == '\n' || !c.is_control();
        assert!(page.chars().all(is_printable), "a page that cannot be printed: {page:?}");
    }
    let _ = (csv::render(record, &forms), json::compact(record));
    let junit = junit::render(record);
    let is_xml = |c: char| matches!(c, '\n' | '\t') || !c.is_control();
    assert!(junit.chars().all(is_xml), "not XML: {junit:?}");
    let sheet = sections::sheet(record, &Course::default(), &forms);
    let page = plimsoll_html::render(&sheet);
    // Texts of a record stand in the page as text: marks of HTML in them are escaped.
    assert!(!page.contains("<fuzz"), "a text of the record became HTML");
}

/// A `run.json`: what can be read is written so that it reads as the same, and can be shown.
///
/// # Panics
/// When a property does not hold.
pub fn runs(bytes: &[u8]) {
    let record = match within(bytes.len(), RECORD_MEMORY, || plimsoll_record::read(bytes)) {
        Ok(record) => record,
        Err(error) => return one_line(&error),
    };
    let written = json::compact(&record);
    match plimsoll_record::read(written.as_bytes()) {
        Ok(again) => assert_eq!(json::compact(&again), written),
        Err(error) => panic!("a record that was written is refused: {error}"),
    }
    within(bytes.len(), RECORD_MEMORY, || show(&record));
}

/// Lines of the journal of seconds, and a histogram in each.
///
/// # Panics
/// When a property does not hold.
pub fn journals(bytes: &[u8]) {
    let file = MemoryFile::of(bytes);
    // A histogram of ten bytes may have cells for 300 KB, as many as a second has classes and kinds of times.
    let allowed = Allowed { base: 8 << 20, each: 40_000 };
    let found = within(bytes.len(), allowed, || {
        journal::read(file.path(), |interval| {
            let line = IntervalLine::from(interval);
            let again =
                serde_json::to_vec(&line).ok().and_then(|text| IntervalLine::of_json(&text));
            let again = again.and_then(|line| Interval::try_from(&line).ok());
            assert!(again.is_some(), "a second that was read cannot be written");
        })
    });
    found.err().iter().for_each(one_line);
    let _ = journal::read_failures(file.path(), |_| {});
}

/// An encoded histogram, as plimsoll and as the hdrhistogram crate read it.
///
/// # Panics
/// When a property does not hold.
pub fn histograms(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read =
        within(bytes.len(), Allowed { base: 160 << 20, each: 2000 }, || Histogram::decode(&text));
    match read {
        Ok(histogram) => {
            for written in [histogram.encode(), histogram.encode_stored()] {
                assert!(Histogram::decode(&written).is_ok_and(|again| again == histogram));
            }
            compare_histograms(&histogram);
        }
        Err(error) => one_line(&error),
    }
}

fn compare_histograms(own: &Histogram) {
    use hdrhistogram::serialization::Deserializer;
    let Some(bytes) =
        base64::engine::Engine::decode(&base64::engine::general_purpose::STANDARD, own.encode())
            .ok()
    else {
        return;
    };
    let theirs: hdrhistogram::Histogram<u64> =
        match Deserializer::new().deserialize(&mut bytes.as_slice()) {
            Ok(theirs) => theirs,
            Err(error) => panic!("the hdrhistogram crate cannot read it: {error}"),
        };
    assert_eq!(theirs.len(), own.count());
    let mut count = 0;
    for (_, number) in own.cells() {
        count += number;
    }
    assert_eq!(count, own.count());
}

/// Files of other load tools. The first byte chooses a format, or leaves the choice to the content.
///
/// # Panics
/// When a property does not hold.
pub fn imports(bytes: &[u8]) {
    let (form, mut rest) = choice(bytes);
    let format = Format::ALL.get(usize::from(form)).copied();
    within(bytes.len(), IMPORT_MEMORY, || {
        let imported = match read(&mut rest, format, &Options::default()) {
            Ok((_, imported)) => imported,
            Err(error) => return one_line(&error),
        };
        let record = record_of(&imported, &About::default());
        assert!(record.with_unknown_as_null().is_some());
        if let Some(seconds) = &imported.seconds {
            let written = seconds.each(|_| Ok(()));
            assert!(written.is_ok(), "nothing is written");
        }
        show(&record);
    });
}

/// Printed tables of search results, summaries of vespa-fbench, and words of a shell.
///
/// # Panics
/// When a property does not hold.
pub fn tables(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    within(bytes.len(), RECORD_MEMORY, || {
        plimsoll_search::printed_table::read(&text, "t.md", 1.0).err().iter().for_each(one_line);
        let mut out = Vec::new();
        let columns = plimsoll_fbench::result_filter::numbers::Columns::Newest;
        let read =
            plimsoll_fbench::result_filter::numbers::filter(&mut &bytes[..], columns, &mut out);
        assert!(read.is_ok() && out.ends_with(b"\n"));
        match plimsoll_catalogue::vars::words(&text) {
            Ok(words) => assert!(words.iter().map(String::len).sum::<usize>() <= text.len()),
            Err(error) => one_line(&error),
        }
        let _ = plimsoll_catalogue::hooks::proc_stat::parse(&text);
    });
}
