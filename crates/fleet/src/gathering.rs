//! The seconds of several agents, taken together while they come, and the proof that they are the whole.

use crate::figures::Figures;
use crate::message::Ended;
use plimsoll_core::interval::{Compact, Fingerprint, Interval};
use plimsoll_core::ledger::Ledger;
use plimsoll_engine::run::RunEnd;
use std::collections::BTreeMap;

/// Most seconds that are held back for an agent that is late; each is at most some megabytes.
const WAITING_MAX: usize = 120;

/// The parts of one phase.
pub struct Gathering {
    parts: Vec<Part>,
    /// The end of the last second that all parts have sent, ns, and the number of parts that have sent no later one.
    slowest: (u64, usize),
    /// By the end of their second, ns since the start of the measured stretch.
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
            slowest: (0, parts),
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
    pub fn second(&mut self, part: usize, second: &Compact) -> Result<Vec<Interval>, String> {
        second.refill(&mut self.scratch).map_err(|error| error.to_string())?;
        let second = &self.scratch;
        let own = &mut self.parts[part];
        own.seconds += 1;
        own.print.add(Fingerprint::of(second));
        let sum = self.waiting.entry(second.second_end_ns()).or_default();
        sum.phase = second.phase;
        sum.merge(second);
        let to_ns = second.to_ns;
        Ok(self.reaches(part, to_ns))
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
        Ok(self.reaches(part, u64::MAX))
    }

    /// A part will send nothing more. Returns the seconds to which no part will add.
    pub fn lost(&mut self, part: usize) -> Vec<Interval> {
        self.reaches(part, u64::MAX)
    }

    /// The part that is furthest behind, if seconds of others wait for too long for it.
    #[must_use]
    pub fn laggard(&self) -> Option<usize> {
        if self.waiting.len() <= WAITING_MAX {
            return None;
        }
        self.parts.iter().position(|part| part.reached_ns == self.slowest.0)
    }

    /// Returns true if nothing more will come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.parts.is_empty() || self.slowest.0 == u64::MAX
    }

    /// Number of seconds that a part has sent.
    #[must_use]
    pub fn seconds(&self, part: usize) -> u64 {
        self.parts[part].seconds
    }

    /// A part has sent all that ends by this time. Returns the seconds to which no part will add.
    fn reaches(&mut self, part: usize, to_ns: u64) -> Vec<Interval> {
        let reached_ns = &mut self.parts[part].reached_ns;
        let was_slowest = *reached_ns == self.slowest.0;
        *reached_ns = to_ns.max(*reached_ns);
        self.slowest.1 -= usize::from(was_slowest && *reached_ns > self.slowest.0);
        // Looking at all parts for each second of each would be most of the work for thousands of them.
        if self.slowest.1 == 0 {
            let least_ns = self.parts.iter().map(|part| part.reached_ns).min().unwrap_or(u64::MAX);
            let is_least = |part: &&Part| part.reached_ns == least_ns;
            self.slowest = (least_ns, self.parts.iter().filter(is_least).count());
        }
        let mut whole = Vec::new();
        while let Some(first) = self.waiting.first_entry()
            && *first.key() <= self.slowest.0
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
