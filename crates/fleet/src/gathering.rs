//! The seconds of several agents, taken together while they come, and the proof that they are the whole.

use crate::figures::Figures;
use crate::message::Ended;
use plimsoll_core::interval::{Fingerprint, Interval, IntervalLine};
use plimsoll_core::ledger::Ledger;
use plimsoll_engine::run::RunEnd;
use std::collections::BTreeMap;

/// Most seconds that are held back for an agent that is late; each is at most some megabytes.
const WAITING_MAX: usize = 120;

/// The parts of one phase.
pub struct Gathering {
    parts: Vec<Part>,
    /// By their end, ns since the start of the measured stretch.
    waiting: BTreeMap<u64, Interval>,
    /// Everything to which no part will add.
    received: Interval,
    /// The second that was read last: its memory serves the next one.
    scratch: Interval,
    /// The end that was read last, for the same reason.
    scratch_end: RunEnd,
    /// Sum of the parts that have ended.
    sum: Option<RunEnd>,
}

#[derive(Default)]
struct Part {
    seconds: u64,
    print: Fingerprint,
    /// The end of its last second, ns; the largest number once it has ended or is lost.
    reached_ns: u64,
    figures: Option<Figures>,
}

/// Parts of a phase as one.
pub struct Whole {
    /// The sum; of a part that is missing, it has what was received.
    pub end: RunEnd,
    /// One a part; none if it is missing.
    pub parts: Vec<Option<Figures>>,
}

impl Gathering {
    /// Of this many agents.
    #[must_use]
    pub fn of(parts: usize) -> Self {
        Self {
            parts: (0..parts).map(|_| Part::default()).collect(),
            waiting: BTreeMap::new(),
            received: Interval::default(),
            scratch: Interval::default(),
            scratch_end: RunEnd::default(),
            sum: None,
        }
    }

    /// Takes a second of a part, and returns the seconds to which no part will add.
    ///
    /// # Errors
    /// When a histogram cannot be read, or when the part is so late that seconds of the others can no longer be held back.
    pub fn second(&mut self, part: usize, line: &IntervalLine) -> Result<Vec<Interval>, String> {
        self.scratch.refill(line).map_err(|error| error.to_string())?;
        let second = &self.scratch;
        let own = &mut self.parts[part];
        own.seconds += 1;
        own.print.add(Fingerprint::of(second));
        own.reached_ns = own.reached_ns.max(second.to_ns);
        self.waiting.entry(second.to_ns).or_default().merge(second);
        Ok(self.whole_seconds())
    }

    /// Takes the end of a part, and returns the seconds to which no part will add.
    ///
    /// # Errors
    /// When the part's seconds are not its whole: a second is missing, or counted twice.
    pub fn ended(
        &mut self,
        part: usize,
        ended: Ended,
        start_ns: u64,
    ) -> Result<Vec<Interval>, String> {
        let line = ended.end?;
        let end = &mut self.scratch_end;
        line.refill(end, start_ns).map_err(|error| error.to_string())?;
        let own = &mut self.parts[part];
        own.reached_ns = u64::MAX;
        if own.seconds != ended.seconds {
            return Err(format!(
                "{} of its {} seconds arrived; a part of the run is missing",
                own.seconds, ended.seconds
            ));
        }
        if own.print != Fingerprint::of(&end.totals) {
            return Err(format!(
                "its {} seconds do not add up to its whole; this is a defect in plimsoll, please report it",
                own.seconds
            ));
        }
        own.figures = Some(Figures::of(end));
        match &mut self.sum {
            Some(sum) => sum.beside(end),
            None => self.sum = Some(std::mem::take(end)),
        }
        Ok(self.whole_seconds())
    }

    /// A part will send nothing more. Returns the seconds to which no part will add.
    pub fn lost(&mut self, part: usize) -> Vec<Interval> {
        self.parts[part].reached_ns = u64::MAX;
        self.whole_seconds()
    }

    /// The part that is furthest behind, if seconds of others wait for too long for it.
    #[must_use]
    pub fn laggard(&self) -> Option<usize> {
        let is_full = self.waiting.len() > WAITING_MAX;
        let (part, _) = self.parts.iter().enumerate().min_by_key(|(_, part)| part.reached_ns)?;
        is_full.then_some(part)
    }

    /// Returns true if nothing more will come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.parts.iter().all(|part| part.reached_ns == u64::MAX)
    }

    /// Number of seconds that a part has sent.
    #[must_use]
    pub fn seconds(&self, part: usize) -> u64 {
        self.parts[part].seconds
    }

    fn whole_seconds(&mut self) -> Vec<Interval> {
        let reached_ns = self.parts.iter().map(|part| part.reached_ns).min().unwrap_or(0);
        let mut whole = Vec::new();
        while let Some(first) = self.waiting.first_entry()
            && *first.key() <= reached_ns
        {
            let second = first.remove();
            self.received.merge(&second);
            whole.push(second);
        }
        whole
    }

    /// All parts as one.
    #[must_use]
    pub fn finish(self) -> Whole {
        let parts: Vec<Option<Figures>> = self.parts.into_iter().map(|part| part.figures).collect();
        let mut end = self.sum.unwrap_or_default();
        if parts.iter().any(Option::is_none) {
            end.totals = self.received;
            end.measured_s = end.measured_s.max(end.totals.seconds());
            end.interrupted = true;
            close(&mut end.totals);
        }
        Whole { end, parts }
    }
}

/// Closes the ledger of a run that lost a part: what is known to have been sent and has no known end is unfinished.
fn close(totals: &mut Interval) {
    let open = |ledger: &mut Ledger| {
        let ended = ledger.finished() + ledger.unfinished;
        ledger.unfinished += ledger.sent.saturating_sub(ended);
    };
    open(&mut totals.ledger);
    totals.classes.iter_mut().for_each(|class| open(&mut class.ledger));
    let ledger = &mut totals.ledger;
    let due = ledger.sent + ledger.refused.queue_full + ledger.refused.queue_timeout;
    ledger.unsent.stopped = ledger.unsent.stopped.max(ledger.scheduled.saturating_sub(due));
}

#[cfg(test)]
mod tests;
