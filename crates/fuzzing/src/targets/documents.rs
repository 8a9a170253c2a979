//! Documents of Vespa: ids, paths, tokens, selections, bodies, schemas, replies to visits, operations of a feed.

use crate::holds::{choice, one_line, pieces};
use crate::memory::{Allowed, within};
use plimsoll_documents::fuzz;
use plimsoll_feed::{Batch, Parameters, Splitter, parse};
use plimsoll_visit::ReplyReader;
use plimsoll_wire::http1::{Encoding, Reply};
use plimsoll_wire::vespa::{DocumentId, DocumentPath, ProgressToken, push_document_path};

/// A selection may have 64 patterns, and each takes up to a megabyte when it is compiled.
const PATTERN_MEMORY: Allowed = Allowed { base: 80 << 20, each: 300 };
const SMALL: Allowed = Allowed { base: 60_000, each: 300 };

/// Document ids, and paths of `/document/v1`: what is understood is written so that it reads as the same.
///
/// # Panics
/// When a property does not hold.
pub fn ids(bytes: &[u8]) {
    within(bytes.len(), SMALL, || {
        if let Err(error) = DocumentPath::parse(bytes) {
            one_line(&error);
        }
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let id = match DocumentId::parse(text) {
            Ok(id) => id,
            Err(error) => return one_line(&error),
        };
        assert_eq!(DocumentId::parse(id.as_str()).as_ref(), Ok(&id));
        let _ = (id.location(), id.gid(), id.smallest_bucket());
        let mut path = String::new();
        push_document_path(&mut path, &id);
        match DocumentPath::parse(&path) {
            Ok(DocumentPath::Document(again)) => assert_eq!(again, id, "{path}"),
            other => panic!("{path} is read as {other:?}"),
        }
    });
}

/// Continuation tokens, and the visit that resumes from one.
///
/// # Panics
/// When a property does not hold.
pub fn tokens(bytes: &[u8]) {
    within(bytes.len(), SMALL, || {
        let token = match ProgressToken::decode(bytes) {
            Ok(token) => token,
            Err(error) => return one_line(&error),
        };
        let written = token.encode();
        assert!(ProgressToken::decode(&written).is_ok_and(|again| again.encode() == written));
        let Ok(mut token) = token.resume(3, 1) else { return };
        for _ in 0..100 {
            let Some(step) = token.next_bucket() else { break };
            token.finish_bucket(step.bucket);
        }
        let percent = token.percent_finished();
        assert!((0.0..=100.0).contains(&percent), "{percent} %");
        let _ = token.encode();
    });
}

/// Selections of documents.
///
/// # Panics
/// When a property does not hold.
pub fn selections(bytes: &[u8]) {
    if let Some(error) = within(bytes.len(), PATTERN_MEMORY, || fuzz::selection(bytes)) {
        one_line(&error);
    }
}

/// The body of a put, and behind a byte 0 that of an update.
///
/// # Panics
/// When a property does not hold.
pub fn bodies(bytes: &[u8]) {
    if let Some(error) = within(bytes.len(), PATTERN_MEMORY, || fuzz::bodies(bytes)) {
        one_line(&error);
    }
}

/// Schema files.
///
/// # Panics
/// When a property does not hold.
pub fn schemas(bytes: &[u8]) {
    if let Some(error) = within(bytes.len(), SMALL, || fuzz::schema_file(bytes)) {
        one_line(&error);
    }
}

/// Records of the document store.
///
/// # Panics
/// When a property does not hold.
pub fn stored(bytes: &[u8]) {
    within(bytes.len(), SMALL, || plimsoll_vespa::fuzz::stored(bytes));
}

fn items<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> (Vec<String>, Option<String>) {
    let (mut reader, mut seen) = (ReplyReader::default(), Vec::new());
    let mut result = Ok(());
    for piece in pieces {
        result = reader.feed(piece, &mut |item| seen.push(format!("{item:?}")));
        if result.is_err() {
            break;
        }
    }
    if result.is_ok() {
        result = reader.end(&mut |item| seen.push(format!("{item:?}")));
    }
    (seen, result.err().map(|error| error.to_string()))
}

/// A reply to a visit, compressed or not, and the state that a visit keeps. The first byte is the length of the pieces.
///
/// # Panics
/// When a property does not hold.
pub fn visit_replies(bytes: &[u8]) {
    let (size, bytes) = choice(bytes);
    let allowed = Allowed { base: 100_000, each: 600 };
    let whole = within(bytes.len(), allowed, || items(std::iter::once(bytes)));
    let cut = items(pieces(bytes, size.into()));
    // The place of an error, which its text quotes, may be seen sooner or later.
    assert_eq!((&cut.0, cut.1.is_some()), (&whole.0, whole.1.is_some()));
    if let Some(error) = whole.1 {
        one_line(&error);
    }
    // A byte of deflate stands for 1032 bytes at most.
    let unpacked = within(bytes.len(), Allowed { base: 200_000, each: 5000 }, || {
        plimsoll_visit::fuzz::unpacked(std::iter::once(bytes))
    });
    let cut = plimsoll_visit::fuzz::unpacked(pieces(bytes, size.into()));
    assert!(cut == unpacked, "in pieces of {size} bytes it is decompressed into something else");
    let _ = plimsoll_visit::fuzz::state(bytes);
    for status in [200, 400, 429] {
        let said = plimsoll_visit::fuzz::answer(status, bytes);
        said.iter().for_each(one_line);
    }
}

/// The pieces of a feed with what is wrong with each.
fn operations<'b>(pieces: impl Iterator<Item = &'b [u8]> + Clone) -> Vec<String> {
    let (mut splitter, mut seen) = (Splitter::default(), Vec::new());
    let mut take = |splitter: &mut Splitter, at_end: bool| {
        while let Some(piece) = splitter.next(at_end) {
            let problem = piece.problem.map(|problem| problem.to_string());
            problem.iter().for_each(one_line);
            seen.push(format!("{} {problem:?} {}", piece.line, piece.text.escape_ascii()));
        }
    };
    for piece in pieces {
        splitter.space().extend_from_slice(piece);
        take(&mut splitter, false);
    }
    take(&mut splitter, true);
    seen
}

/// A file of operations, and the reply to one. The first byte is the length of the pieces.
///
/// # Panics
/// When a property does not hold.
pub fn feeds(bytes: &[u8]) {
    let (size, bytes) = choice(bytes);
    let allowed = Allowed { base: 100_000, each: 600 };
    let whole = within(bytes.len(), allowed, || operations(std::iter::once(bytes)));
    let cut = operations(pieces(bytes, size.into()));
    assert_eq!(cut, whole, "in pieces of {size} bytes, and whole");
    let (mut splitter, mut batch) = (Splitter::default(), Batch::default());
    splitter.space().extend_from_slice(bytes);
    let mut number = 0;
    while let Some(piece) = splitter.next(true) {
        number += 1;
        if piece.problem.is_some() {
            continue;
        }
        match parse(piece.text) {
            Ok(operation) => {
                batch.push(&operation, (number, 0, piece.line), &Parameters::default());
            }
            Err(problem) => one_line(&problem),
        }
    }
    let mut line = Vec::new();
    while let Some((item, bytes)) = batch.take() {
        line.clear();
        item.write_line(bytes, &mut line);
        let text = line.strip_suffix(b"\n").unwrap_or_default();
        assert!(!text.contains(&b'\n') && parse(text).is_ok(), "{}", text.escape_ascii());
        let body = item.body(bytes);
        let reply = Reply {
            status: 200,
            head: b"X-Vespa-Ignored-Fields: true\r\n",
            body,
            encoding: Encoding::Identity,
            body_bytes: 0,
            truncated: false,
        };
        plimsoll_feed::fuzz::answer(&reply, &item, bytes).iter().for_each(one_line);
    }
}
