//! From bytes as they arrive to the texts of operations.
//!
//! The input is a JSON array of operations, or operations one after the other, with or without line ends between
//! them. A malformed operation is given out too, and the reading goes on behind it: at the next line, or at the
//! next line that begins as operations do.

use super::OPERATION_MAX_BYTES;
use super::operation::Problem;
use plimsoll_workloads::json_skip::ContainerEnd;
use std::ops::Range;

/// Longest text that is quoted of what is no operation at all.
const FOREIGN_MAX_BYTES: usize = 1 << 20;
/// The keys with which an operation may begin.
const KEYS: [&[u8]; 7] =
    [b"put\"", b"id\"", b"update\"", b"remove\"", b"condition\"", b"create\"", b"fields\""];
/// As much as must be seen of a line to know whether it begins as operations do.
const BEGINNING_BYTES: usize = 32;

/// Next piece of the input.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Its text.
    pub text: &'a [u8],
    /// The line in which it begins, from 1.
    pub line: u64,
    /// Reason why it cannot be an operation; its text has balanced brackets where there is nothing wrong.
    pub problem: Option<Problem>,
}

/// Cuts an input into operations. Holds at most one operation and what was read last.
#[derive(Debug)]
pub struct Splitter {
    held: Vec<u8>,
    /// Position at which reading continues.
    at: usize,
    /// The line of that place.
    line: u64,
    /// Of the operation at hand: how far its brackets have been looked at, up to which line end.
    end: ContainerEnd,
    looked: usize,
    begun: bool,
    /// Passing over an operation that is too long.
    skipping: bool,
    /// An array was opened and has not been closed.
    is_array_open: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self {
            held: Vec::new(),
            at: 0,
            line: 1,
            end: ContainerEnd::default(),
            looked: 0,
            begun: false,
            skipping: false,
            is_array_open: false,
        }
    }
}

/// Result of a look at an unfinished operation.
enum Look {
    /// It is this long.
    Whole(usize),
    /// It is broken, and the reading goes on after this many bytes.
    Broken(usize, Problem),
    /// More must come.
    More,
}

impl Splitter {
    /// Returns the buffer for the next bytes of the input; append to it.
    pub fn space(&mut self) -> &mut Vec<u8> {
        if self.at > 0 {
            self.held.drain(..self.at);
            self.at = 0;
        }
        &mut self.held
    }

    /// The line where the reading goes on, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next piece; none until more has come, and after the last one. `at_end`: nothing more will come.
    pub fn next(&mut self, at_end: bool) -> Option<Piece<'_>> {
        if self.skipping && !self.skip(at_end) {
            return None;
        }
        if !self.begun {
            self.between();
            match self.held.get(self.at) {
                None => return if at_end { self.unclosed() } else { None },
                Some(b'{') => {
                    self.begun = true;
                    self.end = ContainerEnd::default();
                    self.looked = 0;
                }
                Some(_) => return self.foreign(at_end),
            }
        }
        let (length, problem) = match self.look(at_end) {
            Look::More => return None,
            Look::Whole(length) => (length, None),
            Look::Broken(length, problem) => {
                self.skipping = problem == Problem::TooLong;
                (length, Some(problem))
            }
        };
        self.begun = false;
        let (range, line) = self.consume(length);
        let shown = match problem {
            Some(Problem::TooLong) => range.start..range.start + FOREIGN_MAX_BYTES.min(length),
            _ => range,
        };
        Some(Piece { text: &self.held[shown], line, problem })
    }

    /// Passes over what may stand between operations.
    fn between(&mut self) {
        while let Some(byte) = self.held.get(self.at) {
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\r' | b'\t' | b',' => {}
                b'[' => self.is_array_open = true,
                b']' => self.is_array_open = false,
                // The mark that some editors write at the beginning of a file.
                0xef if self.held[self.at..].starts_with(b"\xef\xbb\xbf") => self.at += 2,
                _ => return,
            }
            self.at += 1;
        }
    }

    /// The end of an input whose array is not closed. There may have been more operations behind the last one.
    fn unclosed(&mut self) -> Option<Piece<'static>> {
        let problem = Some(Problem::ArrayNotClosed);
        let piece = Piece { text: b"", line: self.line, problem };
        std::mem::take(&mut self.is_array_open).then_some(piece)
    }

    /// Something that is no operation: up to the end of its line.
    fn foreign(&mut self, at_end: bool) -> Option<Piece<'_>> {
        let rest = &self.held[self.at..];
        let length = match memchr::memchr(b'\n', rest) {
            Some(end) => end,
            None if at_end || rest.len() >= FOREIGN_MAX_BYTES => rest.len(),
            None => return None,
        };
        let (range, line) = self.consume(length.min(FOREIGN_MAX_BYTES));
        Some(Piece { text: &self.held[range], line, problem: Some(Problem::NoObject) })
    }

    /// Looks for the end of the operation at hand, line by line.
    fn look(&mut self, at_end: bool) -> Look {
        let text = &self.held[self.at..];
        loop {
            let line_end = memchr::memchr(b'\n', &text[self.looked..]).map(|n| self.looked + n);
            let to = line_end.unwrap_or(text.len());
            if let Some(length) = self.end.find(&text[..to]) {
                return Look::Whole(length);
            }
            if to > OPERATION_MAX_BYTES {
                return Look::Broken(to, Problem::TooLong);
            }
            let Some(line_end) = line_end else {
                return match at_end {
                    true => Look::Broken(text.trim_ascii_end().len(), Problem::NotClosed),
                    false => Look::More,
                };
            };
            let next = &text[line_end + 1..];
            match begins_operation(next) {
                _ if next.len() < BEGINNING_BYTES && !at_end => return Look::More,
                true => return Look::Broken(line_end, Problem::NotClosed),
                false => self.looked = line_end + 1,
            }
        }
    }

    /// Passes over the rest of an operation that is too long. Returns true if its end has come.
    fn skip(&mut self, at_end: bool) -> bool {
        loop {
            let rest = &self.held[self.at..];
            let Some(line_end) = memchr::memchr(b'\n', rest) else {
                self.consume(rest.len());
                return false;
            };
            let next = &rest[line_end + 1..];
            if next.len() < BEGINNING_BYTES && !at_end {
                self.consume(line_end);
                return false;
            }
            let begins = begins_operation(next);
            self.consume(line_end + 1);
            if begins {
                self.skipping = false;
                return true;
            }
        }
    }

    /// Consumes this many bytes. Returns their range, and the line in which they begin.
    fn consume(&mut self, length: usize) -> (Range<usize>, u64) {
        let range = self.at..self.at + length;
        let line = self.line;
        self.line += memchr::memchr_iter(b'\n', &self.held[range.clone()]).count() as u64;
        self.at = range.end;
        (range, line)
    }
}

/// Returns true if a line begins as operations do: `{"put"` and the like, not indented.
fn begins_operation(line: &[u8]) -> bool {
    // The answer must not depend on how much has been read.
    let line = &line[..line.len().min(BEGINNING_BYTES)];
    let Some(rest) = line.strip_prefix(b"{") else { return false };
    let Some(rest) = rest.trim_ascii_start().strip_prefix(b"\"") else { return false };
    KEYS.iter().any(|key| rest.starts_with(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::parse;
    use proptest::prelude::*;

    /// All pieces of an input that arrives in parts of these lengths.
    fn pieces(input: &[u8], lengths: &[usize]) -> Vec<(String, u64, Option<Problem>)> {
        let mut splitter = Splitter::default();
        let (mut found, mut rest) = (Vec::new(), input);
        let mut lengths = lengths.iter().cycle();
        loop {
            while let Some(piece) = splitter.next(rest.is_empty()) {
                let text = String::from_utf8_lossy(piece.text).into_owned();
                found.push((text, piece.line, piece.problem));
            }
            if rest.is_empty() {
                return found;
            }
            let length = (*lengths.next().unwrap()).clamp(1, rest.len());
            splitter.space().extend_from_slice(&rest[..length]);
            rest = &rest[length..];
        }
    }

    /// All operations up to a comma are whole, and yet there may have been more.
    #[test]
    fn an_array_that_is_cut_is_not_all() {
        let whole = format!("[{},\n{}]\n", put("a"), put("b"));
        assert_eq!(pieces(whole.as_bytes(), &[7]).len(), 2);
        for cut in [whole.trim_end().len() - 1, whole.find('\n').unwrap()] {
            let found = pieces(&whole.as_bytes()[..cut], &[7]);
            let (text, _, problem) = found.last().unwrap();
            assert_eq!((text.as_str(), problem), ("", &Some(Problem::ArrayNotClosed)), "{cut}");
            assert!(found[..found.len() - 1].iter().all(|piece| piece.2.is_none()));
        }
    }

    fn put(name: &str) -> String {
        format!("{{\"put\":\"id:a:b::{name}\",\"fields\":{{\"x\":\"}}]{{\\\"\"}}}}")
    }

    #[test]
    fn arrays_and_lines_hold_the_same_operations() {
        let (a, b) = (put("a"), put("b"));
        let pretty = a.replace("\"fields\":", "\n  \"fields\":\n");
        for (input, first) in [
            (format!("[{a},{b}]"), &a),
            (format!("[\n{a},\r\n{b}\n]\n"), &a),
            (format!("{a}\n{b}\n"), &a),
            (format!("{a}{b}"), &a),
            (format!("\u{feff}{a}\n\n {b}"), &a),
            (format!("[{pretty}\n,\n{b}]"), &pretty),
        ] {
            for lengths in [&[1][..], &[7, 3], &[1000]] {
                let found = pieces(input.as_bytes(), lengths);
                let texts: Vec<_> = found.iter().map(|piece| &piece.0).collect();
                assert_eq!(texts, [first, &b], "{input}");
                assert!(found.iter().all(|piece| piece.2.is_none()));
            }
        }
    }

    #[test]
    fn the_reading_goes_on_behind_what_is_malformed() {
        let (a, b) = (put("a"), put("b"));
        let cut = &a[..a.len() - 12];
        for (input, lines) in [
            (format!("{a}\n{cut}\n{b}\n{cut}"), vec![(1, true), (2, false), (3, true), (4, false)]),
            (format!("{a}\nhallo {{\n{b}\n"), vec![(1, true), (2, false), (3, true)]),
            (format!("[{a},\n{cut},\n{b}]"), vec![(1, true), (2, false), (3, true)]),
            ("nothing at all".to_owned(), vec![(1, false)]),
            (format!("{{z,\n{{{}{}", "\t".repeat(40), &a[1..]), vec![(1, false)]),
            (format!("\n\n}}\n{a}"), vec![(3, false), (4, true)]),
        ] {
            for lengths in [&[1][..], &[5], &[1000]] {
                let found = pieces(input.as_bytes(), lengths);
                let seen: Vec<_> = found.iter().map(|piece| (piece.1, piece.2.is_none())).collect();
                assert_eq!(seen, lines, "{input} in parts of {lengths:?}");
            }
        }
    }

    #[test]
    fn what_is_too_long_is_passed_over_in_bounded_memory() {
        let mut splitter = Splitter::default();
        splitter.space().extend_from_slice(b"{\"put\":\"id:a:b::c\",\"fields\":{\"a\":\"");
        let block = vec![b'x'; 1 << 20];
        let mut problems = Vec::new();
        for _ in 0..(OPERATION_MAX_BYTES >> 20) + 40 {
            splitter.space().extend_from_slice(&block);
            assert!(splitter.held.len() <= OPERATION_MAX_BYTES + (2 << 20));
            while let Some(piece) = splitter.next(false) {
                assert!(piece.text.len() <= FOREIGN_MAX_BYTES);
                problems.push(piece.problem);
            }
        }
        let next = put("next");
        splitter.space().extend_from_slice(format!("\"}}}}\n{next}\n").as_bytes());
        assert_eq!(splitter.next(true).unwrap().text, next.as_bytes());
        assert_eq!(problems, [Some(Problem::TooLong)]);
    }

    proptest! {
        #[test]
        fn any_bytes_end_and_are_all_accounted_for(
            bytes in prop::collection::vec(
                prop::sample::select(b"{}[]\",:\\ put\n\xff".to_vec()), 0..300),
            lengths in prop::collection::vec(1usize..40, 1..5),
        ) {
            let found = pieces(&bytes, &lengths);
            prop_assert_eq!(&found, &pieces(&bytes, &[1000]), "the parts made a difference");
            for (text, _, problem) in found {
                prop_assert!(!text.is_empty() || problem == Some(Problem::ArrayNotClosed));
                if problem.is_none() {
                    // Brackets are counted and not told apart; whoever reads the operation sees it.
                    let closed = text.starts_with('{') && text.ends_with(['}', ']']);
                    prop_assert!(closed, "not whole");
                }
                let _ = parse(text.as_bytes());
            }
        }

        #[test]
        fn good_operations_survive_their_neighbours(
            marks in prop::collection::vec((any::<bool>(), 0usize..60), 1..20),
            lengths in prop::collection::vec(1usize..90, 1..5),
        ) {
            let (mut input, mut good) = (String::new(), Vec::new());
            for (index, (whole, cut)) in marks.iter().enumerate() {
                let text = put(&index.to_string());
                // A cut inside the name would leave another whole operation's beginning.
                let cut = (*cut).clamp(8, text.len() - 1);
                input.push_str(if *whole { &text } else { &text[..cut] });
                input.push('\n');
                good.extend(whole.then_some(text));
            }
            let found = pieces(input.as_bytes(), &lengths);
            let whole = found.iter().filter(|piece| piece.2.is_none());
            let whole: Vec<_> = whole.map(|piece| piece.0.clone()).collect();
            prop_assert_eq!(whole, good);
            prop_assert_eq!(found.len(), marks.len());
        }
    }
}
