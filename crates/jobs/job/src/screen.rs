//! The terminal as this process uses it: how wide it is, lines that stay, and the one line that changes.
//!
//! The line that changes is stderr's last one, and the cursor rests at its beginning. If the terminal gets narrower and breaks the
//! line in two, the cursor is still at its beginning, so that everything from there to the end of the screen is the line's and
//! can be erased. A line that stays is written in its place, and it moves down.

use plimsoll_report::plain::printable;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Columns of an output that is no terminal, unless `COLUMNS` says otherwise.
const COLUMNS: usize = 100;
/// Most columns that `COLUMNS` is believed to mean.
const COLUMNS_MAX: usize = 10_000;

/// To the beginning of the line, and nothing from there on.
const ERASE: &str = "\r\x1b[J";

/// Amount that a job says while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Voice {
    /// Nothing.
    Quiet,
    /// One line that changes on a terminal; elsewhere a line a minute.
    #[default]
    Calm,
    /// A line for each finished part as well.
    Verbose,
}

/// Columns of an output: those that the terminal has. `COLUMNS` counts only where there is no terminal, or where it does not know.
#[must_use]
pub fn columns(output: impl AsFd + IsTerminal) -> usize {
    let own = || rustix::termios::tcgetwinsize(&output).ok().map(|size| usize::from(size.ws_col));
    let told = || std::env::var("COLUMNS").ok()?.trim().parse().ok();
    let terminal = if output.is_terminal() { own() } else { None };
    columns_of(terminal, told)
}

fn columns_of(terminal: Option<usize>, told: impl FnOnce() -> Option<usize>) -> usize {
    let terminal = terminal.filter(|columns| *columns > 0);
    let told = || told().filter(|columns| (1..=COLUMNS_MAX).contains(columns));
    terminal.or_else(told).unwrap_or(COLUMNS)
}

/// The text of the line that changes, while there is one, and the columns of the terminal when it was drawn.
static LINE: Mutex<Option<(String, usize)>> = Mutex::new(None);

fn line() -> MutexGuard<'static, Option<(String, usize)>> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line on stderr that stays. No one has to read it: a run does not end because its reader is gone. Texts of others may be in it:
/// characters that could steer a terminal are written as escapes.
pub fn note(text: &str) {
    let text = text.split('\n').map(printable).collect::<Vec<_>>().join("\n");
    let line = line();
    let _ = match line.as_ref() {
        Some((shown, _)) => write!(std::io::stderr().lock(), "{ERASE}{text}\n{shown}\r"),
        None => writeln!(std::io::stderr().lock(), "{text}"),
    };
}

/// Names on stderr something that was left out, such as a record that cannot be read.
pub fn name_left_out(what: &impl Display) {
    note(&format!("plimsoll: left out: {}", printable(&what.to_string())));
}

/// Shows a text in place of the one before; it must have fewer columns than the terminal, whose number is `columns`.
pub(crate) fn show(text: &str, columns: usize) {
    let mut line = line();
    if line.as_ref().is_some_and(|(shown, then)| shown == text && *then == columns) {
        return;
    }
    // Written over the old one, so that nothing flickers.
    let _ = write!(std::io::stderr().lock(), "\r{text}\x1b[J\r");
    *line = Some((text.to_owned(), columns));
}

/// Takes the line that changes away.
pub(crate) fn clear() {
    let mut line = line();
    if line.take().is_some() {
        let _ = write!(std::io::stderr().lock(), "{ERASE}");
    }
}

/// Takes the line that changes away until it is shown again, if what is written next goes to the same screen.
pub(crate) fn make_way(output: &impl IsTerminal) {
    let mut line = line();
    if let Some((shown, _)) = line.as_mut().filter(|_| output.is_terminal()) {
        let _ = write!(std::io::stderr().lock(), "{ERASE}");
        shown.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_knows_better_than_the_environment() {
        assert_eq!(columns_of(Some(80), || Some(200)), 80);
        assert_eq!(columns_of(Some(0), || Some(200)), 200);
        assert_eq!(columns_of(None, || Some(60)), 60);
        assert_eq!((columns_of(None, || None), columns_of(None, || Some(0))), (100, 100));
        assert_eq!(columns_of(None, || Some(usize::MAX)), 100);
    }
}
