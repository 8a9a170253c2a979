//! One run on real sockets: its target, its disturbance, and the expected result.

use crate::judging::{Four, Range, Tolerance};
use crate::sabotages::confines::Confine;
use crate::sabotages::interposer::Interposed;
use crate::sabotages::live::Live;
use crate::targets::server::Script;
use std::time::Duration;

/// The target.
#[derive(Clone, Debug)]
pub enum Target {
    /// `plimsoll serve` with these words.
    Served(&'static str),
    /// The same behind a line with this delay.
    Delayed(&'static str, Duration),
    /// The harness's own server.
    Scripted(Script),
    /// An observer of arrivals. The run asks this many numbers in order, from `FOLDER/numbers`, at this rate per second.
    Observed(u64, f64),
}

/// The preparation of a run: nothing, or documents for `serve search`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Before {
    /// Nothing.
    #[default]
    Nothing,
    /// This many documents are fed.
    Fed(u64),
    /// A file of this many operations is written, for the run to feed.
    Written(u64),
}

/// Source of the truth.
#[derive(Clone, Debug)]
pub enum Source {
    /// Arithmetic.
    Known(Four<Option<Range>>),
    /// The times come from the server's own log, the rate from arithmetic.
    Log(Option<Range>),
    /// The times come from the arrivals that the observer saw.
    Arrivals,
    /// Nothing is known of the figures.
    Unknown,
}

/// A run on real sockets.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its line in the table.
    pub kind: &'static str,
    /// The target.
    pub target: Target,
    /// The preparation.
    pub before: Before,
    /// The command line; `URL` stands for the target's address, `FOLDER` for a folder of its own.
    pub words: String,
    /// The resources that the generator lacks.
    pub confine: Confine,
    /// Things that the process is made to believe.
    pub interposed: Interposed,
    /// The disturbances while it runs.
    pub live: Vec<Live>,
    /// The source of the truth.
    pub source: Source,
    /// True if nothing but the target is wrong.
    pub healthy: bool,
    /// The kinds of which the verdict must be one; empty: any.
    pub kinds: &'static [&'static str],
    /// Limits whose judgement is known.
    pub limits: Vec<(String, bool)>,
    /// Numbers that the record must hold: where, and what.
    pub numbers: Vec<(&'static str, f64)>,
    /// By when it must have ended: its length, its timeout and 2 s.
    pub ends_within: Duration,
}

/// The truth's own uncertainty on real sockets: loopback, the target's timers, the edges of a run of a few seconds.
pub const TOLERANCE: Tolerance = Tolerance { share: 0.05, time_ms: 0.3, rate_per_s: 2.0 };

/// Time that a process takes to begin and to write its record, on top of what the run may take.
const STARTING: Duration = Duration::from_millis(1_500);

impl Case {
    /// A healthy run of `words` for `seconds`, with a timeout of `more` seconds in addition.
    #[must_use]
    pub fn new(
        kind: &'static str,
        target: Target,
        words: &str,
        seconds: f64,
        timeout_s: f64,
    ) -> Self {
        let longest = Duration::from_secs_f64(seconds + timeout_s + 2.0);
        Self {
            kind,
            target,
            before: Before::Nothing,
            words: words.to_owned(),
            confine: Confine::Free,
            interposed: Interposed::default(),
            live: Vec::new(),
            source: Source::Unknown,
            healthy: true,
            kinds: &[],
            limits: Vec::new(),
            numbers: Vec::new(),
            ends_within: longest + STARTING,
        }
    }

    /// All response times are `ms`, with this rate of successes per second.
    #[must_use]
    pub fn all_take(mut self, ms: f64, ok_per_s: Range) -> Self {
        let time = Some(Range::exact(ms));
        self.source = Source::Known([time, time, time, Some(ok_per_s)]);
        self
    }

    /// The truth.
    #[must_use]
    pub fn with(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// Something is done to the generator while it runs.
    #[must_use]
    pub fn under(mut self, kind: &'static str, live: Live) -> Self {
        self.live.push(live);
        Self { kind, healthy: false, ..self }
    }

    /// The generator is given less of something.
    #[must_use]
    pub fn in_a(self, kind: &'static str, confine: Confine) -> Self {
        Self { kind, confine, healthy: false, ..self }
    }

    /// The verdict must be one of these.
    #[must_use]
    pub fn must_be(self, kinds: &'static [&'static str]) -> Self {
        Self { kinds, healthy: false, ..self }
    }

    /// This limit is held, or missed.
    #[must_use]
    pub fn judges(mut self, limit: &str, held: bool) -> Self {
        self.limits.push((limit.to_owned(), held));
        self
    }
}
