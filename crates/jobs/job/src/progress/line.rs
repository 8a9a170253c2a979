//! The line that changes, on a terminal.

use super::Far;
use super::parts::{Part, beside, spoken};
use crate::screen::{clear, columns, show};
use plimsoll_core::clock::now_ns;
use plimsoll_report::number::percent;
use std::sync::atomic::{AtomicBool, Ordering};

/// Widest bar.
const BAR_MAX: usize = 24;
/// A bar narrower than this is not worth its columns.
const BAR_MIN: usize = 8;

/// A line that fits the terminal as wide as it is at the moment.
pub(super) struct Line {
    began_ns: u64,
    ended: AtomicBool,
}

impl Line {
    /// For a job that begins now.
    #[must_use]
    pub fn begin() -> Self {
        Self { began_ns: now_ns(), ended: AtomicBool::new(false) }
    }

    /// Shows how far the job is, and of what there is to say as much as has room.
    pub fn show(&self, far: Far, parts: &[Part]) {
        if !self.ended.load(Ordering::Relaxed) {
            let elapsed_s = now_ns().saturating_sub(self.began_ns) as f64 / 1e9;
            let columns = columns(std::io::stderr());
            // The last column stays empty: a terminal may break a line that has all of them.
            show(&text(elapsed_s, far, parts, columns.saturating_sub(1)), columns);
        }
    }

    /// Takes the line away for good.
    pub fn end(&self) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            clear();
        }
    }
}

/// `12 s of 30 s [=====>     ]  100/s  p50 3.39 ms`; the bar goes first, and then the parts of the least weight.
fn text(elapsed_s: f64, far: Far, parts: &[Part], room: usize) -> String {
    let far = at(elapsed_s, far);
    let (time, share) = match far {
        Far::Clock(_) => (clock(elapsed_s), None),
        Far::Unknown => (clock(elapsed_s), None),
        Far::Share(share) => {
            (format!("{} {:>4}", clock(elapsed_s), percent(rounded(share))), Some(share))
        }
        Far::Seconds(passed, of) => (of_time(passed, of), Some(passed / of.max(1e-9))),
    };
    let message = beside(parts, room.saturating_sub(time.chars().count() + 2));
    let taken = time.chars().count() + message.chars().count() + 2;
    let bar = match share {
        // A blank, and the two brackets.
        Some(share) => bar(share, room.saturating_sub(taken + 3).min(BAR_MAX)),
        None => String::new(),
    };
    let mut text: String = format!("{time}{bar}  {message}").chars().take(room).collect();
    text.truncate(text.trim_end().len());
    text
}

/// The same without a clock of its own.
fn at(elapsed_s: f64, far: Far) -> Far {
    match far {
        Far::Clock(of_s) => Far::Seconds(elapsed_s, of_s),
        other => other,
    }
}

/// A share in whole percent, which does not change its width with each second.
fn rounded(share: f64) -> f64 {
    (share.clamp(0.0, 1.0) * 100.0).floor() / 100.0
}

/// `12s/30s`, both in the unit that fits the longer one.
fn of_time(passed_s: f64, of_s: f64) -> String {
    format!("{}/{}", clock(passed_s.min(of_s)), clock(of_s))
}

/// A time in few columns that keep their places: `12s`, `3:05`, `1:03:05`.
fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match (whole / 3_600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

fn bar(share: f64, columns: usize) -> String {
    if columns < BAR_MIN {
        return String::new();
    }
    let done = (share.clamp(0.0, 1.0) * columns as f64) as usize;
    let tip = if done < columns { ">" } else { "" };
    format!(" [{:<columns$}]", "=".repeat(done) + tip)
}

/// Progress of a job for a log: `2 min of 10 min`.
pub(super) fn in_words(elapsed_s: f64, far: Far) -> String {
    match at(elapsed_s, far) {
        Far::Unknown | Far::Clock(_) => spoken(elapsed_s),
        Far::Share(share) => format!("{}, {} done", spoken(elapsed_s), percent(rounded(share))),
        Far::Seconds(passed, of) => format!("{} of {}", spoken(passed.min(of)), spoken(of)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_report::plain::columns_of;

    fn parts() -> Vec<Part> {
        vec![
            Part::first("12,346/s").at_least(9),
            Part::new("p50 3.39 ms  p99 23.6 ms", 3).or("p50/p99 3.39/23.6 ms").or("p99 23.6 ms"),
            Part::new("failed 12", 1),
            Part::new("valid so far", 2).or("valid"),
        ]
    }

    #[test]
    fn the_line_fits_every_terminal_and_says_as_much_as_it_can() {
        for room in 0..220 {
            for far in [Far::Unknown, Far::Share(0.4), Far::Seconds(12.0, 30.0)] {
                let text = text(12.0, far, &parts(), room);
                assert!(columns_of(&text) <= room, "{room}: {text}");
            }
        }
        let at = |room| text(12.0, Far::Seconds(12.0, 30.0), &parts(), room);
        assert_eq!(
            at(119),
            "12s/30s [=========>              ]   12,346/s  p50 3.39 ms  p99 23.6 ms  failed 12  valid so far"
        );
        assert_eq!(at(59), "12s/30s  12,346/s  p50/p99 3.39/23.6 ms  failed 12  valid");
        assert_eq!(at(40), "12s/30s  12,346/s  failed 12  valid");
    }

    #[test]
    fn times_are_short_and_whole() {
        assert_eq!([9.9, 65.0, 3_785.2].map(clock), ["9s", "1:05", "1:03:05"]);
        assert_eq!(in_words(0.0, Far::Seconds(120.4, 600.0)), "2 min of 10 min");
        assert_eq!(in_words(3_700.0, Far::Share(0.999)), "1 h 1 min, 99 % done");
        assert_eq!(in_words(65.0, Far::Clock(300.0)), "1 min of 5 min");
    }

    #[test]
    fn a_bar_is_full_only_at_the_end() {
        assert_eq!((bar(0.0, 8).as_str(), bar(0.99, 8).as_str()), (" [>       ]", " [=======>]"));
        assert_eq!((bar(1.0, 8).as_str(), bar(0.5, 7).as_str()), (" [========]", ""));
    }
}
