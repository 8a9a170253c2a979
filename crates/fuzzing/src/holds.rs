//! Properties that all readers share.

use plimsoll_job::usage;
use std::cell::Cell;
use std::fmt::Display;

/// Longest text of an error, characters: a reader may quote what it read, and the program cuts what is longer still.
const ERROR_CHARS_MAX: usize = 4000;

thread_local! {
    static HAS_LINES: Cell<bool> = const { Cell::new(false) };
}

/// Ways to write a line end inside a text.
const LINE_ENDS: [&[u8]; 5] = [b"\n", b"\\n", b"%0a", b"%0A", b"\\u000"];

/// Begins an input: an error that quotes it may have its line ends, and secrets of the last one take neither memory nor time.
pub fn begin(bytes: &[u8]) {
    plimsoll_core::secrets::forget_all();
    HAS_LINES
        .set(LINE_ENDS.iter().any(|end| bytes.windows(end.len()).any(|window| window == *end)));
}

/// An error that is shown to people: some text, in one line unless it quotes several of the input.
///
/// # Panics
/// When it is empty, or has several lines of its own.
pub fn one_line(error: &impl Display) {
    let text = error.to_string();
    assert!(!text.trim().is_empty(), "an error without words");
    assert!(HAS_LINES.get() || !text.contains('\n'), "an error of several lines: {text:?}");
    printed(&anyhow::Error::msg(text));
}

/// The same for an error as the program prints it, with its causes.
///
/// # Panics
/// When it is empty, or is not one line of printable text.
pub fn printed(error: &anyhow::Error) {
    let line = usage::one_line(error);
    assert!(!line.trim().is_empty(), "an error without words");
    assert!(!line.chars().any(char::is_control), "an error that cannot be printed: {line:?}");
    assert!(line.chars().count() <= ERROR_CHARS_MAX, "an error of {} bytes", line.len());
}

/// An input in pieces of `size` bytes; of one piece at least.
pub fn pieces(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> + Clone {
    bytes.chunks(size.max(1))
}

/// The first byte of an input, which chooses among settings, and the rest.
#[must_use]
pub fn choice(bytes: &[u8]) -> (u8, &[u8]) {
    bytes.split_first().map_or((0, &[]), |(first, rest)| (*first, rest))
}

#[cfg(test)]
mod tests {
    use plimsoll_core::secrets::{remember, without_remembered};

    #[test]
    fn an_input_begins_without_the_secrets_of_the_last_one() {
        let text = || without_remembered("sent hunter22".to_owned());
        remember("hunter22");
        assert_eq!(text(), "sent ***");
        super::begin(b"");
        assert_eq!(text(), "sent hunter22");
    }
}
