//! Records over whole files, ranges, passes and splits.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::split::split_stream;
use super::*;
use crate::error::InputError;

type Pair = (Vec<u8>, Vec<u8>);

fn write(dir: &tempfile::TempDir, name: &str, text: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn read_range(path: &Path, options: &ReadOptions, range: ByteRange) -> (Vec<Pair>, u64) {
    let mut source = SourceFile::open(path).unwrap();
    let mut reader = RecordReader::open(&mut source, options, range, Passes::Count(1)).unwrap();
    let (mut record, mut found) = (Record::default(), Vec::new());
    while reader.next_record(&mut record).unwrap() {
        found.push((record.target.clone(), record.body.clone()));
    }
    (found, reader.skipped())
}

fn read_all(path: &Path, options: &ReadOptions) -> Vec<Pair> {
    read_range(path, options, ByteRange::WHOLE).0
}

fn error_of(text: &[u8], options: &ReadOptions) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir, "q.txt", text);
    let error = Queries::open(&path, options).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    let name = format!("{}", path.display());
    error.strip_prefix(&name).unwrap_or(&error).to_owned()
}

fn pair(target: &str, body: &str) -> Pair {
    (target.into(), body.into())
}

const GET: RecordKind = RecordKind::Get;
const POST: RecordKind = RecordKind::Post;

#[test]
fn get_records_are_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir, "q", b"\n/a\r\n\r\n/b\n\r/c\r/d?x=%20\xc3\xa9\n\n/e");
    let options = ReadOptions::new(GET);
    let found = read_all(&path, &options);
    let expected = ["/a", "/b", "/c", "/d?x=%20é", "/e"].map(|target| pair(target, ""));
    assert_eq!(found, expected);

    let set = RequestSet::load(&path, &options).unwrap();
    let in_set: Vec<Pair> = set.iter().map(|r| (r.target.to_vec(), r.body.to_vec())).collect();
    assert_eq!(in_set, expected);
    assert_eq!(set.get(1).line, 4);
}

#[test]
fn post_bodies_are_joined_and_keep_inner_empty_lines() {
    let dir = tempfile::tempdir().unwrap();
    let text = b"\n/a\n{\n\n}\n/b\n/c\n\n/d\r\nx\r\n\r\n\r\n/e\nlast";
    let path = write(&dir, "q", text);
    let found = read_all(&path, &ReadOptions::new(POST));
    let expected = [
        pair("/a", "{\n\n}"),
        pair("/b", ""),
        pair("/c", ""),
        pair("/d", "x\n\n"),
        pair("/e", "last"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn base64_bodies_of_both_alphabets_padded_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir, "q", b"/a\nAP+/\n/b\nAP-_\n/c\nYWI=\n/d\nYW\nI\n/e\n");
    let options = ReadOptions { base64: true, ..ReadOptions::new(POST) };
    let bodies: Vec<Vec<u8>> = read_all(&path, &options).into_iter().map(|p| p.1).collect();
    let binary = b"\x00\xff\xbf".to_vec();
    assert_eq!(bodies, [binary.clone(), binary, b"ab".to_vec(), b"ab".to_vec(), vec![]]);
    let error = error_of(b"/a\nYWI=\n/b\n{\"yql\":1}\n", &options);
    assert!(error.starts_with(":3: body is not base64"), "{error}");
}

#[test]
fn long_lines_are_skipped_in_post_with_their_record() {
    let dir = tempfile::tempdir().unwrap();
    let long = "x".repeat(1024);
    let fits = "y".repeat(1022);
    let path = write(&dir, "g", format!("/{long}\n/{fits}\n/b\n").as_bytes());
    let get = ReadOptions { line_max_bytes: 10, ..ReadOptions::new(GET) };
    let (found, skipped) = read_range(&path, &get, ByteRange::WHOLE);
    assert_eq!(
        (found.len(), skipped),
        (2, 1),
        "1024 is the smallest limit, and is too long itself"
    );

    let text = format!("/a\n{long}\nmore\n/b\nbody\n/{long}\nbody\n/c\n");
    let path = write(&dir, "p", text.as_bytes());
    let post = ReadOptions { line_max_bytes: 1024, ..ReadOptions::new(POST) };
    let (found, skipped) = read_range(&path, &post, ByteRange::WHOLE);
    let long_body = format!("{long}\nmore");
    let expected = vec![pair("/a", &long_body), pair("/b", "body"), pair("/c", "")];
    assert_eq!((found, skipped), (expected, 1), "only a URL must be shorter than the limit");

    // The limit of a whole body, in one line, beside a URL that is longer than what remained of it.
    let most = "w".repeat(16 * 1024 - 1);
    let text =
        format!("/a\n{most}\n/bcd\n{most}w\n/{}\ne\n/f\n{}\n{}\n/g\n", &long[1..], &most[2..], "h");
    let path = write(&dir, "w", text.as_bytes());
    let (found, skipped) = read_range(&path, &post, ByteRange::WHOLE);
    let last = format!("{}\nh", &most[2..]);
    assert_eq!((found, skipped), (vec![pair("/a", &most), pair("/f", &last), pair("/g", "")], 2));

    let many = format!("/a\n{}/b\n", format!("{}\n", "z".repeat(1000)).repeat(17));
    let path = write(&dir, "m", many.as_bytes());
    let (found, skipped) = read_range(&path, &post, ByteRange::WHOLE);
    assert_eq!((found, skipped), (vec![pair("/b", "")], 1), "a body has at most 16 lines' bytes");
}

#[test]
fn a_pipe_is_read_as_often_as_a_file() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"/a\n/b\n").unwrap();
    drop(writer);
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    assert!(SourceFile::open(Path::new(&path)).is_err());
    let source = SourceFile::open_any(Path::new(&path)).unwrap();
    let Ok(Queries::Preloaded(set)) = Queries::of(source.clone(), &ReadOptions::new(GET)) else {
        panic!("two lines are held in memory");
    };
    assert_eq!(set.len(), 2);
    for passes in [1, 3] {
        let (mut source, mut record) = (source.clone(), Record::default());
        let options = ReadOptions::new(GET);
        let passes_of = Passes::Count(passes);
        let mut reader =
            RecordReader::open(&mut source, &options, ByteRange::WHOLE, passes_of).unwrap();
        let mut found = 0;
        while reader.next_repeating(&mut record).unwrap() {
            found += 1;
        }
        assert_eq!(found, 2 * passes);
    }
}

#[test]
fn bad_input_is_one_clear_line() {
    let (get, post) = (ReadOptions::new(GET), ReadOptions::new(POST));
    for (text, options, expected) in [
        (b"".as_slice(), &get, ": holds no request"),
        (b"\n\r\n\n", &get, ": holds no request"),
        (b"\n\n", &post, ": holds no request"),
        (b"/a\n/b\0\n", &get, ":2: NUL byte"),
        (b"/a\n{\0}\n", &post, ":2: NUL byte"),
        (b"\0\0/a\n", &post, ":1: NUL byte"),
        (b"/a\n\n/a b\n", &get, ":3: blank in the URL at column 3; write %20"),
        (b"/a\tb\n", &get, ":1: control character 0x09 in the URL at column 3"),
        (b"\n{\"yql\":1}\n/a\n", &post, ":2: body without a URL; begin each POST record"),
        (b"/a\nbody\n/b c\n", &post, ":3: blank in the URL"),
    ] {
        let error = error_of(text, options);
        assert!(error.starts_with(expected), "{:?}: {error}", String::from_utf8_lossy(text));
    }
    let missing = Queries::open(Path::new("no/such.txt"), &get).unwrap_err();
    assert!(matches!(missing, InputError::Missing { .. }), "{missing}");
    let folder = Queries::open(Path::new("."), &get).unwrap_err().to_string();
    assert!(folder.contains("not a regular file"), "{folder}");
}

#[test]
fn an_error_in_a_range_names_the_line_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = "/a\r\n".repeat(50);
    text.push_str("/b b\r\n");
    let path = write(&dir, "q", text.as_bytes());
    let mut source = SourceFile::open(&path).unwrap();
    let range = ByteRange { index: 2, of: 3 };
    let options = ReadOptions::new(GET);
    let mut reader = RecordReader::open(&mut source, &options, range, Passes::Unlimited).unwrap();
    let mut record = Record::default();
    let error = loop {
        if let Err(error) = reader.next_record(&mut record) {
            break error.to_string();
        }
    };
    assert!(error.contains(":51: blank"), "{error}");
}

#[test]
fn passes_begin_anew_and_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir, "q", b"/a\n/b\n");
    let mut source = SourceFile::open(&path).unwrap();
    let options = ReadOptions::new(GET);
    let mut count = |range, passes, at_most: usize| {
        let mut reader = RecordReader::open(&mut source, &options, range, passes).unwrap();
        let mut record = Record::default();
        (0..at_most).take_while(|_| reader.next_repeating(&mut record).unwrap()).count()
    };
    assert_eq!(count(ByteRange::WHOLE, Passes::Count(3), 100), 6);
    assert_eq!(count(ByteRange::WHOLE, Passes::Count(0), 100), 0);
    assert_eq!(count(ByteRange::WHOLE, Passes::Unlimited, 100), 100);
    let without_any = ByteRange { index: 1, of: 6 };
    assert_eq!(count(without_any, Passes::Unlimited, 100), 0, "must not read for ever");
}

#[test]
fn gzip_files_read_as_what_they_hold() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..500).map(|i| format!("/q{i}\n")).collect();
    let plain = write(&dir, "plain", text.as_bytes());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = write(&dir, "packed", &packed.finish().unwrap());
    let options = ReadOptions::new(GET);
    assert_eq!(read_all(&plain, &options), read_all(&packed, &options));
    for index in 0..3 {
        let range = ByteRange { index, of: 3 };
        assert_eq!(read_range(&plain, &options, range), read_range(&packed, &options, range));
    }
}

fn split_options(dir: &tempfile::TempDir, parts: u64, kind: Option<RecordKind>) -> SplitOptions {
    let pattern = format!("{}/part%03d", dir.path().display());
    let pattern = FilePattern::parse_numbered(&pattern).unwrap();
    SplitOptions { pattern, parts, line_max_bytes: LINE_MAX_BYTES, kind, seed: 7 }
}

fn split_and_join(text: &[u8], kind: RecordKind, base64: bool, parts: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir, "all", text);
    let options = ReadOptions { base64, ..ReadOptions::new(kind) };
    let summary = split(&path, &split_options(&dir, parts, None)).unwrap();
    assert_eq!(summary.kind, kind);
    let (mut joined, mut sizes) = (Vec::new(), Vec::new());
    for (part, records) in &summary.parts {
        let empty = std::fs::metadata(part).unwrap().len() == 0;
        let found = if empty { vec![] } else { read_all(part, &options) };
        assert_eq!(found.len() as u64, *records);
        sizes.push(found.len());
        joined.extend(found);
    }
    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
    let mut original = read_all(&path, &options);
    assert_eq!(summary.records, original.len() as u64);
    original.sort();
    joined.sort();
    assert_eq!(joined, original);
}

#[test]
fn split_in_seven_and_joined_again_holds_the_same_records() {
    let get: String = (0..1000).map(|i| format!("/q?{i}\n")).collect();
    split_and_join(get.as_bytes(), GET, false, 7);
    let post: String =
        (0..1001).map(|i| format!("/q{i}\n{{\n\n\"a\":{i}}}{}", "\n".repeat(i % 4))).collect();
    split_and_join(format!("{}\n", post.replace("}/", "}\n/")).as_bytes(), POST, false, 7);
    let base64: String =
        (0..333).map(|i| format!("/q{i}\n{}\n", ["YWI=", "YWJh"][i % 2])).collect();
    split_and_join(base64.as_bytes(), POST, true, 7);
    split_and_join(b"/a\n/b\n", GET, false, 5);
}

#[test]
fn a_split_is_seeded_and_shuffled() {
    let text: String = (0..100).map(|i| format!("/{i}\n")).collect();
    let part_of = |seed| {
        let dir = tempfile::tempdir().unwrap();
        let path = write(&dir, "all", text.as_bytes());
        let options = SplitOptions { seed, ..split_options(&dir, 4, Some(GET)) };
        let summary = split(&path, &options).unwrap();
        std::fs::read_to_string(&summary.parts[0].0).unwrap()
    };
    assert_eq!(part_of(1), part_of(1));
    assert_ne!(part_of(1), part_of(2));
    let round_robin: String = (0..100).step_by(4).map(|i| format!("/{i}\n")).collect();
    assert_ne!(part_of(1), round_robin);
}

#[test]
fn a_split_refuses_what_it_cannot_do() {
    let dir = tempfile::tempdir().unwrap();
    let empty =
        split_stream(b"\n".as_slice(), (Path::new("<stdin>"), None), &split_options(&dir, 2, None));
    assert_eq!(
        empty.unwrap_err().to_string(),
        "<stdin>: holds no request; write one, such as /search/?query=test"
    );
    assert!(!dir.path().join("part000").exists(), "no part is written for an empty input");
    let none =
        split_stream(b"/a".as_slice(), (Path::new("-"), None), &split_options(&dir, 0, None));
    assert!(none.unwrap_err().to_string().contains("number of parts: 0 is out of range"));
}

/// The input would be emptied when only its beginning was read.
#[test]
fn a_part_never_replaces_the_input() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..100_000).map(|i| format!("/{i}\n")).collect();
    let path = write(&dir, "part001", text.as_bytes());
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let options = split_options(&dir, 2, None);
    let stream = std::fs::File::open(&path).unwrap();
    let own = stream.metadata().ok();
    for result in [
        split(&path, &options),
        split(&link, &options),
        split_stream(stream, (Path::new("stdin"), own), &options),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("part001: it is the input and would be overwritten"), "{error}");
    }
    assert!(std::fs::read_to_string(&path).unwrap() == text);
    assert!(!dir.path().join("part000").exists());
}

/// Peak memory of this process so far, in MB.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Run alone and optimised, by `make test-long`.
#[test]
#[ignore = "make test-long: writes 2 GB"]
fn a_gigabyte_streams_and_splits_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let (mut records, mut bytes) = (0u64, 0usize);
    while bytes < 1_000_000_000 {
        let record = format!("/search/?n={records}\n{{\"yql\":\n{:0200}}}\n", records);
        bytes += record.len();
        records += 1;
        out.write_all(record.as_bytes()).unwrap();
    }
    out.into_inner().unwrap();
    let before = peak_mb();
    let start = plimsoll_core::clock::now_ns();
    let Queries::Streaming(_, found) = Queries::open(&path, &ReadOptions::new(POST)).unwrap()
    else {
        panic!("a gigabyte must not be held in memory");
    };
    let read = plimsoll_core::clock::now_ns();
    assert_eq!(found.records, records);
    let summary = split(&path, &split_options(&dir, 7, None)).unwrap();
    let done = plimsoll_core::clock::now_ns();
    let options = ReadOptions::new(POST);
    let parts = summary.parts.iter().map(|(part, _)| scan(part, &options).unwrap());
    let (joined, joined_bytes) =
        parts.fold((0, 0), |sum, part| (sum.0 + part.records, sum.1 + part.bytes));
    assert_eq!((joined, joined_bytes), (records, found.bytes));
    let per_s = |ns: u64| bytes as f64 / 1e6 / (ns as f64 / 1e9);
    println!("read {:.0} MB/s, split {:.0} MB/s", per_s(read - start), per_s(done - read));
    let grown = peak_mb() - before;
    println!("{before} MB before, {grown} MB more at the peak");
    assert!(grown < 16, "{grown} MB");
}

/// Text made of what matters to the reader: line ends, slashes, a few letters, long lines.
fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\n".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just(b"\n\r".to_vec()),
        3 => Just(b"/".to_vec()),
        3 => prop::collection::vec(prop::sample::select(b"ab/?=%".to_vec()), 1..6),
        1 => Just(vec![b'x'; 1100]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn ranges_together_hold_each_record_once(text in any_text(), of in 1u64..12, post: bool) {
        let mut text = text;
        if post {
            text.splice(0..0, *b"/first\n");
        } else {
            text.push(b'/');
        }
        let dir = tempfile::tempdir().unwrap();
        let path = write(&dir, "q", &text);
        let kind = if post { POST } else { GET };
        let options = ReadOptions { line_max_bytes: 1024, ..ReadOptions::new(kind) };
        let (whole, whole_skipped) = read_range(&path, &options, ByteRange::WHOLE);
        let (mut joined, mut skipped) = (Vec::new(), 0);
        for index in 0..of {
            let (found, left_out) = read_range(&path, &options, ByteRange { index, of });
            joined.extend(found);
            skipped += left_out;
        }
        prop_assert_eq!(joined, whole);
        prop_assert_eq!(skipped, whole_skipped);
    }

    #[test]
    fn lines_agree_with_a_reference(text in any_text()) {
        // The reference: each of the two-byte ends becomes one newline, read from the left.
        let (mut reference, mut line, mut at) = (Vec::new(), Vec::new(), 0);
        while at < text.len() {
            let (byte, next) = (text[at], text.get(at + 1).copied());
            match (byte, next) {
                (b'\r', Some(b'\n')) | (b'\n', Some(b'\r')) => {
                    reference.push(std::mem::take(&mut line));
                    at += 1;
                }
                (b'\r' | b'\n', _) => reference.push(std::mem::take(&mut line)),
                _ => line.push(byte),
            }
            at += 1;
        }
        if !line.is_empty() {
            reference.push(line);
        }
        let mut reader = LineReader::new(text.as_slice(), 0, 1 << 20);
        let (mut found, mut line) = (Vec::new(), Vec::new());
        while reader.next_line(&mut line).unwrap().is_some() {
            found.push(line.clone());
        }
        prop_assert_eq!(found, reference);
    }

    #[test]
    fn splits_lose_nothing(text in any_text(), parts in 1u64..9) {
        let text = [b"/first\n/second\n".as_slice(), &text].concat();
        let dir = tempfile::tempdir().unwrap();
        let path = write(&dir, "all", &text);
        let read = ReadOptions { line_max_bytes: 1024, ..ReadOptions::new(POST) };
        let options = SplitOptions {
            line_max_bytes: 1024,
            ..split_options(&dir, parts, Some(POST))
        };
        let summary = split(&path, &options).unwrap();
        let mut joined: Vec<Pair> = summary.parts.iter()
            .filter(|(_, records)| *records > 0)
            .flat_map(|(part, _)| read_all(part, &read))
            .collect();
        let mut original = read_all(&path, &read);
        original.sort();
        joined.sort();
        prop_assert_eq!(joined, original);
    }
}
