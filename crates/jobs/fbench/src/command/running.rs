//! Output of the original while it runs, at each of its seconds.
//!
//! The original wakes every second and prints then: a line of progress when the seconds left are a multiple of 60, and a
//! summary when they are one of `-p`. It prints a dot whenever a client has nothing left to ask, and looks only at its
//! seconds whether all have: a run that ends within a second prints what belongs to that second too.

use crate::summary::summary;
use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::interval::Interval;
use plimsoll_job::output::print_out;
use plimsoll_record::fbench::{FbenchOptions, FbenchResult, FbenchSums};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Seconds between two lines of progress.
const PROGRESS_EVERY: i64 = 60;

/// The lines of a run, up to its end.
pub struct Running {
    /// Options of the summary; `ran_for_s` is the value of `-s`.
    pub options: FbenchOptions,
    /// `-p`.
    pub print_every: i64,
    /// Lines that were too long.
    pub skipped: u64,
    /// Number of clients that have nothing left to ask.
    pub exhausted: Arc<AtomicU32>,
    /// True if stdout is free for them.
    pub to_stdout: bool,
    /// Dots printed so far.
    pub dots: u32,
    /// Seconds printed so far.
    pub passed: i64,
    /// Everything counted so far.
    pub totals: Interval,
}

impl Running {
    /// A second is over.
    pub fn second(&mut self, second: &Interval) {
        self.totals.merge(second);
        let passed = (second.to_ns / SECOND_NS) as i64;
        let sums = FbenchSums {
            clients_ended: self.options.clients,
            elapsed_ns: second.to_ns.saturating_mul(u64::from(self.options.clients)),
            skipped: self.skipped,
        };
        let text = self.until(passed, passed, &sums);
        self.print(&text);
    }

    /// Returns whether every client had nothing left to ask.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed) >= self.options.clients
    }

    /// The run is over after `passed_ns`; what was left to print before its last lines. `totals` and `sums` are those of
    /// the whole run.
    pub fn end(&mut self, passed_ns: u64, totals: &Interval, sums: &FbenchSums) {
        // The original is asleep until its second is over.
        let whole = (passed_ns / SECOND_NS) as i64;
        let last =
            if self.is_endless() { whole + 1 } else { (whole + 1).min(self.options.ran_for_s) };
        self.totals = totals.clone();
        let text = self.until(last, whole, sums);
        self.print(&text);
    }

    fn is_endless(&self) -> bool {
        self.options.ran_for_s < 0
    }

    fn print(&self, text: &str) {
        if self.to_stdout && !text.is_empty() {
            // What cannot be printed is missing here, and the summary says so at the end.
            let _ = print_out(text);
        }
    }

    /// Dots, and the lines of all seconds up to `passed`, of which `whole` are over.
    fn until(&mut self, passed: i64, whole: i64, sums: &FbenchSums) -> String {
        let exhausted = self.exhausted.load(Ordering::Relaxed).min(self.options.clients);
        let mut text = ".".repeat(exhausted.saturating_sub(self.dots) as usize);
        self.dots = self.dots.max(exhausted);
        while self.passed < passed {
            self.passed += 1;
            // With an end the original counts down, and prints before it has counted the second.
            let counted = if self.is_endless() {
                self.passed
            } else {
                self.options.ran_for_s - self.passed + 1
            };
            if !self.is_endless() && counted % PROGRESS_EVERY == 0 {
                text.push_str(&format!(
                    "[dummydate]: PROGRESS: vespa-fbench: Seconds left {counted}\n"
                ));
            }
            if self.print_every > 0 && counted % self.print_every == 0 {
                let runtime_s = self.passed.min(whole);
                let ran_for_s = if self.is_endless() { runtime_s } else { self.options.ran_for_s };
                let options = FbenchOptions { ran_for_s, ..self.options };
                let result = FbenchResult::new(&options, &self.totals, sums);
                text.push_str(&format!("\nRuntime: {runtime_s} sec\n{}", summary(&result)));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(seconds: i64, print_every: i64) -> Running {
        Running {
            options: FbenchOptions { clients: 3, ran_for_s: seconds, ..FbenchOptions::default() },
            print_every,
            skipped: 0,
            exhausted: Arc::default(),
            to_stdout: false,
            dots: 0,
            passed: 0,
            totals: Interval::default(),
        }
    }

    /// All but the lines of the summaries themselves.
    fn lines(text: &str) -> String {
        let keep = |line: &&str| {
            line.is_empty() || line.contains("PROGRESS") || line.starts_with("Runtime")
        };
        text.lines().filter(keep).map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn progress_is_printed_by_the_seconds_left() {
        let mut run = running(121, 0);
        let sums = FbenchSums::default();
        assert_eq!(run.until(1, 1, &sums), "");
        let left = "[dummydate]: PROGRESS: vespa-fbench: Seconds left";
        assert_eq!(run.until(2, 2, &sums), format!("{left} 120\n"));
        assert_eq!(run.until(121, 121, &sums), format!("{left} 60\n"));
    }

    #[test]
    fn summaries_are_printed_by_the_seconds_left() {
        let sums = FbenchSums::default();
        assert_eq!(
            lines(&running(5, 2).until(5, 5, &sums)),
            "\nRuntime: 2 sec\n\nRuntime: 4 sec\n"
        );
        assert_eq!(
            lines(&running(4, 2).until(4, 4, &sums)),
            "\nRuntime: 1 sec\n\nRuntime: 3 sec\n"
        );
        assert_eq!(
            lines(&running(-1, 2).until(5, 5, &sums)),
            "\nRuntime: 2 sec\n\nRuntime: 4 sec\n"
        );
    }

    #[test]
    fn each_client_has_one_dot() {
        let (mut run, sums) = (running(2, 0), FbenchSums::default());
        run.exhausted.store(2, Ordering::Relaxed);
        assert_eq!(run.until(1, 1, &sums), "..");
        assert_eq!(run.until(2, 2, &sums), "");
        run.exhausted.store(9, Ordering::Relaxed);
        assert_eq!(run.until(2, 2, &sums), ".");
    }

    #[test]
    fn the_last_second_is_printed_though_it_was_not_whole() {
        let mut run = running(60, 0);
        run.end(SECOND_NS / 100, &Interval::default(), &FbenchSums::default());
        assert_eq!(run.passed, 1);
        let mut whole = running(2, 1);
        whole.end(2 * SECOND_NS, &Interval::default(), &FbenchSums::default());
        assert_eq!(whole.passed, 2);
    }
}
