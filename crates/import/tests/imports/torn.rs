//! Files that are cut, doubled, mixed up or not of the format: a clear line or fewer figures, and never a crash.

use super::{all_files, import_bytes};
use plimsoll_import::record::{About, record_of};
use plimsoll_import::{Format, Imported, Options, read};
use proptest::prelude::*;

/// Uses everything that an import leads to: the record, and its JSON read again.
fn used(imported: &Imported) {
    let record = record_of(imported, &About::default());
    let text = plimsoll_report::json::pretty(&record);
    plimsoll_record::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
}

fn try_all(bytes: &[u8]) {
    match import_bytes(bytes) {
        Ok((_, imported)) => used(&imported),
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}

/// Reports of one piece cannot be cut without notice: the last figures that they always have would be missing.
#[test]
fn a_cut_report_is_an_error_and_a_cut_log_says_what_is_left_out() {
    for (file, bytes) in all_files() {
        let (format, _) = import_bytes(&bytes).unwrap();
        let part = &bytes[..bytes.len() * 30 / 100];
        let is_log = [
            Format::Hlog,
            Format::GatlingLog,
            Format::K6Json,
            Format::HeyCsv,
            Format::OhaCsv,
            Format::AbTsv,
            Format::VegetaResults,
            Format::PgbenchLog,
            Format::PgbenchAggregate,
        ]
        .contains(&format);
        let cut = read(&mut &part[..], Some(format), &Options::default());
        match (is_log, cut) {
            // A row of vegeta that is cut in its headers, the last column, has all that is read.
            (true, Ok(_)) if file == "vegeta-mixed-results.csv" => {}
            (true, Ok((_, imported))) if !part.ends_with(b"\n") => {
                let is_told =
                    imported.warnings.iter().any(|one| one.contains("is cut and is left out"));
                assert!(is_told, "{file}: {:?}", imported.warnings);
            }
            (true, _) => {}
            (false, Ok(_)) => panic!("{file}: part of it was read as a whole"),
            (false, Err(error)) => {
                let line = error.to_string();
                assert!(!line.contains('\n') && line.len() < 400, "{file}: {line}");
            }
        }
    }
}

#[test]
fn a_file_of_one_format_is_not_read_as_another() {
    let mut wrong = Vec::new();
    for (file, bytes) in all_files() {
        for &format in Format::ALL {
            if let Ok((_, imported)) = read(&mut &bytes[..], Some(format), &Options::default()) {
                used(&imported);
                let known = import_bytes(&bytes).unwrap().0;
                // Their texts have the same lines; the wrong name only gives the wrong tool.
                let alike = [
                    (Format::Wrk, Format::Wrk2),
                    (Format::Wrk2, Format::Wrk),
                    (Format::Wrk2, Format::Hgrm),
                ];
                let fits = format == known || alike.contains(&(known, format));
                if !fits {
                    wrong.push(format!("{file} as {}", format.name()));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_prefix_and_every_doubled_file_is_handled() {
    for (_, bytes) in all_files() {
        let step = (bytes.len() / 40).max(1);
        for end in (0..bytes.len()).step_by(step) {
            try_all(&bytes[..end]);
        }
        try_all(&[bytes.as_slice(), bytes.as_slice()].concat());
        let crlf = String::from_utf8_lossy(&bytes).replace('\n', "\r\n");
        try_all(crlf.as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Bytes of a file replaced, taken out and put in.
    #[test]
    fn a_damaged_file_is_handled(
        file in any::<proptest::sample::Index>(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>(), 0u8..3), 1..12),
        is_digit in any::<bool>(),
    ) {
        let files = all_files();
        let (_, mut bytes) = files[file.index(files.len())].clone();
        for (place, byte, how) in damage {
            if bytes.is_empty() {
                break;
            }
            let at = place.index(bytes.len());
            let byte = if is_digit { b'0' + byte % 10 } else { byte };
            match how {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                _ => bytes.insert(at, byte),
            }
        }
        try_all(&bytes);
    }

    #[test]
    fn garbage_is_handled_by_every_format(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for &format in Format::ALL {
            if let Ok((_, imported)) = read(&mut bytes.as_slice(), Some(format), &Options::default()) {
                used(&imported);
            }
        }
    }

    /// Numbers of all sizes in every place of a line.
    #[test]
    fn huge_numbers_are_handled(
        numbers in proptest::collection::vec(prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)], 8..16),
        separator in prop_oneof![Just(" "), Just(","), Just("\t")],
    ) {
        let line = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(separator);
        for head in ["", "starttime\tseconds\tctime\n", "RUN\ta\tb\t1\t \t3.9\nREQUEST\t\tx\t"] {
            let text = format!("{head}{line}\n{line}\n");
            for &format in Format::ALL {
                if let Ok((_, imported)) = read(&mut text.as_bytes(), Some(format), &Options::default()) {
                    used(&imported);
                }
            }
        }
    }
}
