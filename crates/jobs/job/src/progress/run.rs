//! Progress of a run at one load.

use super::parts::Part;
use super::so_far::{Rules, SoFar};
use super::{Far, Progress};
use crate::screen::Voice;
use plimsoll_core::interval::Interval;
use plimsoll_core::scenario::Scenario;
use plimsoll_record::{FailureSample, Sink};
use plimsoll_report::number::lasting;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Progress of a run whose seconds are handed in one by one.
pub struct RunProgress {
    progress: Progress,
    seconds: f64,
    /// Requests after which this part of the run ends.
    requests: Option<u64>,
    rules: Rules,
    so_far: Mutex<SoFar>,
}

impl RunProgress {
    /// For a run of this scenario, which begins now.
    #[must_use]
    pub fn new(scenario: &Scenario, voice: Voice) -> Self {
        // A warm-up has no seconds of its own.
        let progress = Progress::steady(voice);
        if scenario.warmup.ns > 0 {
            let warmup = format!("warm-up of {}", lasting(scenario.warmup.as_seconds()));
            progress.show(Far::Unknown, vec![Part::first(warmup)]);
        }
        Self {
            progress,
            seconds: scenario.expected_length().as_seconds(),
            requests: scenario.own_requests(),
            rules: Rules::of(scenario),
            so_far: Mutex::default(),
        }
    }

    /// Shows one finished second.
    pub fn show(&self, second: &Interval) {
        if self.progress.is_quiet() {
            return;
        }
        let mut so_far = self.so_far.lock().unwrap_or_else(PoisonError::into_inner);
        so_far.add(second);
        let passed_s = second.to_ns as f64 / 1e9;
        let by_time = Far::Seconds(passed_s, self.seconds.max(1.0));
        let far = match self.requests.map(|all| so_far.ended() as f64 / all.max(1) as f64) {
            Some(share) if share > passed_s / self.seconds.max(1e-9) => Far::Share(share),
            _ => by_time,
        };
        if !self.progress.wants_figures() {
            return;
        }
        let mut parts = so_far.parts(("p99", 0.99));
        parts.extend(verdict(so_far.verdict(&self.rules)));
        self.progress.show(far, parts);
    }

    /// A sink that shows each second on its way.
    pub fn watching<'a>(&'a self, sink: &'a mut (dyn Sink + Send)) -> Watched<'a> {
        Watched { progress: self, sink }
    }

    /// Takes the line away.
    pub fn done(&self) {
        self.progress.done();
    }
}

/// The verdict so far, if there is one; a word that is long for a narrow terminal has a shorter one.
fn verdict(word: String) -> Option<Part> {
    let part = Part::new(format!("{word} so far"), 2).or(word.clone());
    match word.as_str() {
        "" => None,
        word if word.ends_with("-limited") => Some(part.or("not valid")),
        _ => Some(part),
    }
}

/// A sink whose seconds are shown.
pub struct Watched<'a> {
    progress: &'a RunProgress,
    sink: &'a mut (dyn Sink + Send),
}

impl Sink for Watched<'_> {
    fn counts_from(&mut self, start_ns: u64) {
        self.sink.counts_from(start_ns);
    }

    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        self.progress.show(interval);
        self.sink.interval(interval)
    }

    fn failure(&mut self, sample: &FailureSample) -> io::Result<()> {
        self.sink.failure(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::beside;
    use super::*;

    #[test]
    fn the_verdict_has_a_word_for_every_terminal() {
        let shown = |word: &str, room| beside(&[verdict(word.to_owned()).unwrap()], room);
        assert_eq!([15, 11, 4].map(|room| shown("valid", room)), ["valid so far", "valid", ""]);
        let limited = "generator-limited";
        assert_eq!(
            [30, 20, 10].map(|room| shown(limited, room)),
            ["generator-limited so far", limited, "not valid"]
        );
        assert_eq!(verdict(String::new()), None);
    }
}
