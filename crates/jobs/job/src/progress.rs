//! The line on stderr that shows a run going on.

use crate::output::{note, width};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_core::units::Span;
use plimsoll_report::number::{count, significant, time};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Pause between two plain lines where stderr is no terminal: build servers end what says nothing for ten minutes.
pub const BEAT_NS: u64 = 60_000_000_000;
/// Widest bar.
const BAR_MAX: usize = 28;
/// Columns of the usual message: the bar gets narrower to leave as many.
pub const MESSAGE: usize = 62;
/// Gap between the parts of a message.
const GAP: &str = "   ";

/// Says now and then that a run goes on, where stderr is no terminal.
pub struct Heartbeat {
    /// Time at which the next line is due, ns; 0 where none ever is.
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
    pub fn beat(&self, state: impl FnOnce() -> Vec<String>) {
        if let Some(line) = self.line(now_ns(), state) {
            note(&line);
        }
    }

    fn line(&self, now_ns: u64, state: impl FnOnce() -> Vec<String>) -> Option<String> {
        let due_ns = self.due_ns.load(Ordering::Relaxed);
        if due_ns == 0 || now_ns < due_ns {
            return None;
        }
        self.due_ns.store(now_ns + BEAT_NS, Ordering::Relaxed);
        let minutes = (now_ns - self.started_ns) / BEAT_NS;
        // Nothing is under a log's line that its columns could be aligned with.
        let parts: Vec<String> = state().iter().map(|part| one_blank(part)).collect();
        Some(format!("plimsoll: {minutes} min: {}", fitting(&parts, usize::MAX)))
    }
}

/// A heartbeat from a thread of its own, for work with long stretches in which no second is shown. Dropping it ends the thread.
pub struct Pulse {
    now: Arc<Mutex<Vec<String>>>,
    /// The thread waits for its end.
    _end: Option<Sender<()>>,
}

impl Pulse {
    /// For work that begins now.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        const LOOK_EVERY: Duration = Duration::from_secs(1);
        let now = Arc::new(Mutex::new(vec!["starting".to_owned()]));
        let heartbeat = Heartbeat::new(quiet);
        if heartbeat.due_ns.load(Ordering::Relaxed) == 0 {
            return Self { now, _end: None };
        }
        let (end, ended) = channel();
        let told = now.clone();
        let body = move || {
            while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                heartbeat.beat(|| told.lock().unwrap_or_else(PoisonError::into_inner).clone());
            }
        };
        // Without the thread there are no lines, and all else goes on.
        let thread = std::thread::Builder::new().name("heartbeat".to_owned()).spawn(body);
        Self { now, _end: thread.ok().map(|_| end) }
    }

    /// Prints the next line.
    pub fn say(&self, parts: &[String]) {
        parts.clone_into(&mut self.now.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Summary of one second, in parts, the most important one first: no times where nothing was answered.
pub fn told(second: &Interval, quantile: (&str, f64)) -> Vec<String> {
    let all = second.all_classes();
    let (ok, failed) = (second.ledger.ok, second.ledger.failed.total());
    let rate = significant(ok as f64 / second.seconds().max(1e-9));
    let mut parts = vec![format!("{rate:>8}/s")];
    let ms = |quantile| time(all.response.quantile_ns(quantile) as f64 / 1e6);
    match all.response.count() {
        0 => parts.push("no answer yet".to_owned()),
        _ => {
            parts.push(format!("p50 {:>8}", ms(0.5)));
            parts.push(format!("{} {:>8}", quantile.0, ms(quantile.1)));
        }
    }
    parts.push(format!("failed {}", count(failed)));
    parts
}

/// A part of a message without the blanks that align it.
fn one_blank(part: &str) -> String {
    part.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As many parts of a message, from the first on, as have room: half a number is a wrong one.
fn fitting(parts: &[String], room: usize) -> String {
    let mut message = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let gap = if message.is_empty() { "" } else { GAP };
        if message.chars().count() + gap.len() + part.chars().count() > room {
            break;
        }
        message += gap;
        message += part;
    }
    message
}

/// A status line that fits the terminal: wrapped, it could not be taken away again.
pub struct Line {
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
    pub fn say(&self, parts: &[String]) {
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
    // Elapsed time, brackets and blanks, and room for the "^C" of whoever ends the run.
    const OTHER: usize = 12;
    let bar = message.map_or(0, |message| columns.saturating_sub(OTHER + message).min(BAR_MAX));
    match bar {
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
    /// For a run of this length, or of this many requests, whichever is over first.
    #[must_use]
    pub fn new(duration: Span, requests: Option<u64>, quiet: bool) -> Self {
        let seconds = duration.as_seconds().ceil() as u64;
        let line = Line::new(Some(seconds), MESSAGE, quiet);
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
        let line = |s: u64| beat.line(start + s * 1_000_000_000, || vec!["      12/s".to_owned()]);
        assert_eq!((line(1), line(59)), (None, None));
        assert_eq!(line(60).as_deref(), Some("plimsoll: 1 min: 12/s"));
        assert_eq!(line(61), None);
        assert_eq!(line(130).as_deref(), Some("plimsoll: 2 min: 12/s"));
        let silent = Heartbeat::at(start, true);
        assert_eq!(silent.line(start + 1_000_000_000_000, Vec::new), None);
    }

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

    /// Checks that a part which does not fit is left out as a whole, with everything after it.
    #[test]
    fn a_message_is_not_cut_inside_a_part() {
        let parts = ["12,346/s", "p95 12.3 ms", "", "failed 0"].map(str::to_owned);
        assert_eq!(fitting(&parts, 80), "12,346/s   p95 12.3 ms   failed 0");
        assert_eq!(fitting(&parts, 32), "12,346/s   p95 12.3 ms");
        assert_eq!(fitting(&parts, 20), "12,346/s");
        assert_eq!(fitting(&parts, 3), "");
    }

    /// The longest numbers that a run prints fit beside the narrowest bar of 80 columns.
    #[test]
    fn a_second_of_large_numbers_fits_eighty_columns() {
        let mut second = Interval::new(1);
        second.to_ns = 1_000_000_000;
        second.ledger.ok = 1_234_567;
        second.ledger.failed.timeout = 1_234_567;
        second.classes[0].response.record(1_234_567_890);
        let parts = told(&second, ("p99.9", 0.999));
        let (_, room) = layout(80, Some(MESSAGE));
        assert!(fitting(&parts, room).ends_with("failed 1,234,567"), "{parts:?}");
    }

    #[test]
    fn a_second_without_an_answer_shows_no_times() {
        let second = Interval::new(1);
        assert!(told(&second, ("p99", 0.99)).contains(&"no answer yet".to_owned()));
        let mut second = Interval::new(1);
        second.to_ns = 1_000_000_000;
        second.ledger.ok = 7;
        second.classes[0].response.record(2_000_000);
        let line = fitting(&told(&second, ("p99", 0.99)), 80);
        assert!(line.contains("7.00/s   p50  2.00 ms   p99"), "{line}");
    }
}
