//! The status line on a terminal.

use super::parts::fitting;
use crate::output::width;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Widest bar.
const BAR_MAX: usize = 28;

/// A status line that fits the terminal: wrapped, it could not be taken away again.
pub(super) struct Line {
    bar: ProgressBar,
    /// Characters of the message.
    room: usize,
}

impl Line {
    /// Of this many steps, with a message of usually at most `message` columns; without steps there is no bar. Hidden when
    /// stderr is not a terminal, or for `quiet`.
    #[must_use]
    pub fn new(steps: Option<u64>, message: usize, quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(4),
        };
        let bar = ProgressBar::with_draw_target(steps, target);
        let columns = width(std::io::stderr()).unwrap_or(100);
        let (template, room) = layout(columns, steps.map(|_| message));
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message("connecting");
        Self { bar, room }
    }

    /// Returns true if no one sees it.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Shows how far it is, and of what there is to say as many parts as have room.
    pub fn show(&self, position: u64, parts: &[String]) {
        self.bar.set_position(position);
        self.say(parts);
    }

    /// Shows what there is to say.
    fn say(&self, parts: &[String]) {
        self.bar.set_message(fitting(parts, self.room));
        self.bar.tick();
    }

    /// Writes a line above it.
    pub fn println(&self, line: &str) {
        self.bar.println(line);
    }

    /// Takes the line away.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}

/// The form of a line on a terminal of this width, and the characters that its message may have. The bar gets narrower
/// first, so that `message` columns are left; `None` is a line without a bar.
fn layout(columns: usize, message: Option<usize>) -> (String, usize) {
    // Elapsed time, brackets and blanks, and room for the "^C" of an interrupt.
    const OTHER: usize = 12;
    let bar = message.map_or(0, |message| columns.saturating_sub(OTHER + message).min(BAR_MAX));
    match bar {
        0..6 => ("{elapsed:>4} {msg}".to_owned(), columns.saturating_sub(OTHER - 3)),
        bar => {
            (format!("{{elapsed:>4}} [{{bar:{bar}}}] {{msg}}"), columns.saturating_sub(OTHER + bar))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::MESSAGE;
    use super::super::parts::parts_of;
    use super::*;
    use plimsoll_core::interval::Interval;

    #[test]
    fn the_line_fits_every_terminal() {
        let forms = [None, Some(MESSAGE), Some(90)];
        let all = [20, 40, 60, 72, 80, 100, 220].map(|columns| forms.map(|form| (columns, form)));
        for (columns, message) in all.into_iter().flatten() {
            let (template, room) = layout(columns, message);
            let bar = template.split_once("bar:").map_or(0, |(_, rest)| {
                let width: usize = rest.split('}').next().unwrap().parse().unwrap();
                width + 3
            });
            assert!(5 + bar + room + 2 <= columns, "{columns}: {template} {room}");
        }
        let has_bar = |columns, message| layout(columns, message).0.contains("bar");
        assert!(layout(100, Some(MESSAGE)).0.contains("bar:26") && !has_bar(60, Some(MESSAGE)));
        assert!(!has_bar(220, None));
    }

    /// The longest numbers that a run prints fit beside the narrowest bar of 80 columns.
    #[test]
    fn a_second_of_large_numbers_fits_eighty_columns() {
        let mut second = Interval::new(1);
        second.to_ns = 1_000_000_000;
        second.ledger.ok = 1_234_567;
        second.ledger.failed.timeout = 1_234_567;
        second.classes[0].response.record(1_234_567_890);
        let parts = parts_of(&second, ("p99.9", 0.999));
        let (_, room) = layout(80, Some(MESSAGE));
        assert!(fitting(&parts, room).ends_with("failed 1,234,567"), "{parts:?}");
    }
}
