//! The line on stderr that shows a run going on.

use crate::execute::{note, width};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_core::units::Span;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pause between two plain lines where stderr is no terminal: build servers end what says nothing for ten minutes.
const BEAT_NS: u64 = 60_000_000_000;
/// Widest bar.
const BAR_MAX: usize = 28;

/// Says now and then that a run goes on, where stderr is no terminal.
pub struct Heartbeat {
    /// When the next line is due, ns; 0 where none ever is.
    due_ns: AtomicU64,
    started_ns: u64,
}

impl Heartbeat {
    /// For a run that begins now.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        let silent = quiet || std::io::stderr().is_terminal();
        Self::at(now_ns(), silent)
    }

    fn at(started_ns: u64, silent: bool) -> Self {
        let due_ns = if silent { 0 } else { started_ns + BEAT_NS };
        Self { due_ns: AtomicU64::new(due_ns), started_ns }
    }

    /// Writes the line when it is due.
    pub fn beat(&self, state: impl FnOnce() -> String) {
        if let Some(line) = self.line(now_ns(), state) {
            note(&line);
        }
    }

    fn line(&self, now_ns: u64, state: impl FnOnce() -> String) -> Option<String> {
        let due_ns = self.due_ns.load(Ordering::Relaxed);
        if due_ns == 0 || now_ns < due_ns {
            return None;
        }
        self.due_ns.store(now_ns + BEAT_NS, Ordering::Relaxed);
        let minutes = (now_ns - self.started_ns) / BEAT_NS;
        Some(format!("plimsoll: {minutes} min: {}", state()))
    }
}

/// What one second was like: no times where nothing was answered.
pub fn told(second: &Interval, quantile: (&str, f64)) -> String {
    let all = second.all_classes();
    let (ok, failed) = (second.ledger.ok, second.ledger.failed.total());
    let rate = ok as f64 / second.seconds().max(1e-9);
    let times = match all.response.count() {
        0 => "no answer yet".to_owned(),
        _ => {
            let ms = |quantile| all.response.quantile_ns(quantile) as f64 / 1e6;
            format!("p50 {:>8.2} ms   {} {:>8.2} ms", ms(0.5), quantile.0, ms(quantile.1))
        }
    };
    format!("{rate:>9.0}/s   {times}   failed {failed}")
}

/// A status line that fits the terminal: wrapped, it could not be taken away again.
pub struct Line {
    bar: ProgressBar,
    /// Characters of the message.
    room: usize,
}

impl Line {
    /// Of so many steps; hidden when stderr is not a terminal, or for `quiet`.
    #[must_use]
    pub fn new(steps: u64, quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(4),
        };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        let columns = width(std::io::stderr()).unwrap_or(100);
        let (template, room) = layout(columns);
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message("connecting");
        Self { bar, room }
    }

    /// Whether nobody sees it.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Shows how far it is, and what there is to say.
    pub fn show(&self, position: u64, message: &str) {
        self.bar.set_position(position);
        self.bar.set_message(message.chars().take(self.room).collect::<String>());
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

/// The form of a line on a terminal of this width, and the characters that its message may have: the bar is what becomes
/// narrower first.
fn layout(columns: usize) -> (String, usize) {
    // Elapsed time, brackets and blanks, and room for the "^C" of whoever ends the run.
    const OTHER: usize = 12;
    const MESSAGE: usize = 62;
    match columns.saturating_sub(OTHER + MESSAGE).min(BAR_MAX) {
        0..6 => ("{elapsed:>4} {msg}".to_owned(), columns.saturating_sub(OTHER - 3)),
        bar => {
            (format!("{{elapsed:>4}} [{{bar:{bar}}}] {{msg}}"), columns.saturating_sub(OTHER + bar))
        }
    }
}

/// A status line: hidden when stderr is not a terminal or `--quiet` was given.
pub struct Progress {
    line: Line,
    seconds: u64,
    /// Requests after which the run ends, and how many have ended.
    requests: Option<u64>,
    ended: AtomicU64,
    heartbeat: Heartbeat,
}

impl Progress {
    /// For a run of this length, or of so many requests, whichever is over first.
    #[must_use]
    pub fn new(duration: Span, requests: Option<u64>, quiet: bool) -> Self {
        let seconds = duration.as_seconds().ceil() as u64;
        let line = Line::new(seconds, quiet);
        let heartbeat = Heartbeat::new(quiet);
        Self { line, seconds, requests, ended: AtomicU64::new(0), heartbeat }
    }

    /// Shows one finished second.
    pub fn show(&self, second: &Interval) {
        let state = || told(second, ("p99", 0.99));
        self.heartbeat.beat(state);
        if self.line.is_hidden() {
            return;
        }
        let now = second.ledger.ok + second.ledger.failed.total();
        let ended = self.ended.fetch_add(now, Ordering::Relaxed) + now;
        let by_time = second.to_ns / 1_000_000_000;
        let done = match self.requests {
            Some(requests) => {
                let by_requests = ended as f64 / requests.max(1) as f64 * self.seconds as f64;
                by_time.max(by_requests as u64)
            }
            None => by_time,
        };
        self.line.show(done.min(self.seconds), &state());
    }

    /// Takes the line away.
    pub fn done(&self) {
        self.line.done();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_minute_where_nobody_watches() {
        let start = 5_000_000_000;
        let beat = Heartbeat::at(start, false);
        let line = |s: u64| beat.line(start + s * 1_000_000_000, || "12/s".to_owned());
        assert_eq!((line(1), line(59)), (None, None));
        assert_eq!(line(60).as_deref(), Some("plimsoll: 1 min: 12/s"));
        assert_eq!(line(61), None);
        assert_eq!(line(130).as_deref(), Some("plimsoll: 2 min: 12/s"));
        let silent = Heartbeat::at(start, true);
        assert_eq!(silent.line(start + 1_000_000_000_000, String::new), None);
    }

    #[test]
    fn the_line_fits_every_terminal() {
        for columns in [20, 40, 60, 72, 80, 100, 220] {
            let (template, room) = layout(columns);
            let bar = template.split_once("bar:").map_or(0, |(_, rest)| {
                let width: usize = rest.split('}').next().unwrap().parse().unwrap();
                width + 3
            });
            assert!(5 + bar + room + 2 <= columns, "{columns}: {template} {room}");
        }
        assert!(layout(100).0.contains("bar:26") && !layout(60).0.contains("bar"));
    }

    #[test]
    fn a_second_without_an_answer_shows_no_times() {
        let second = Interval::new(1);
        assert!(told(&second, ("p99", 0.99)).contains("no answer yet"));
        let mut second = Interval::new(1);
        second.to_ns = 1_000_000_000;
        second.ledger.ok = 7;
        second.classes[0].response.record(2_000_000);
        let line = told(&second, ("p99", 0.99));
        assert!(line.contains("7/s") && line.contains("p50     2.0"), "{line}");
    }
}
