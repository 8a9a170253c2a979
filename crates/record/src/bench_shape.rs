//! The shape of a run of the voter benchmark: Erlvolt's twelve words as data, its presets, and its line.
//!
//! `bench run <client> <bench> <calls> <rhythm> <size> <delay> <mode> <queue> <slots> <limit> <verbosity> <dump>`;
//! `x` stands for a word that does not apply.

use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::schedule::Arrivals;
use plimsoll_core::units::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// Slots of each connection where calls are managed and none were named, as in the original.
pub const SLOTS: u32 = 200;
/// Number of words that the positional form has.
pub const WORDS: usize = 12;
/// The shortest pause between two rolling lines.
const DUMP_MIN_NS: u64 = 10 * MILLISECOND_NS;

/// Benchmark to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Bench {
    /// The phone election.
    Voter,
    /// Hello world: the same word is read again and again.
    Hello,
}

/// The way calls follow each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Rhythm {
    /// Workers that call one at a time.
    Steady,
    /// This many calls at once, and a pause.
    Burst,
    /// At a rate, whatever the answers do.
    Open {
        /// Calls per second.
        rate_per_s: f64,
        /// The way they follow each other.
        arrivals: Arrivals,
    },
    /// As many at a time as hold a limit on the latency; found while running.
    Tuned {
        /// The limit, in words.
        goal: String,
    },
    /// The highest rate that holds a limit; searched.
    Sought {
        /// The limit, in words.
        goal: String,
    },
}

/// Calls that are managed: slots, and a queue in front of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Managed {
    /// Most calls that wait; `None` is unlimited.
    pub queue: Option<u32>,
    /// Most calls in flight on each connection.
    pub slots: u32,
}

/// Amount that is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verbosity {
    /// The result in a few lines.
    Quiet,
    /// The parameters too.
    NonVerbose,
    /// Phases, hosts and contestants too.
    Verbose,
    /// The rolling lines too.
    VeryVerbose,
}

/// One run, as the original's twelve words say it, and what they cannot say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shape {
    /// Name of the client in every line.
    pub client: String,
    /// Benchmark to run.
    pub bench: Bench,
    /// Number of calls; `None` is as many as the duration has room for.
    pub calls: Option<u64>,
    /// The way they follow each other.
    pub rhythm: Rhythm,
    /// Workers, or calls in a burst.
    pub size: u32,
    /// Pause after a burst.
    pub delay: Option<Span>,
    /// Slots and queue; `None` is direct.
    pub managed: Option<Managed>,
    /// The next burst waits while more than this are queued (managed) or in flight (direct).
    pub limit: Option<u32>,
    /// Amount that is printed.
    pub verbosity: Verbosity,
    /// Time between two rolling lines.
    pub dump_interval: Span,
}

/// Words that make no run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ShapeError(String);

/// The presets of the original's Makefile, word for word.
pub const PRESETS: [(&str, &str); 5] = [
    ("VSD", "VSD voter 100000 steady 200 x direct x x x verbose 200"),
    ("VSM", "VSM voter 100000 steady 200 x managed 100000 200 100 verbose 100"),
    ("VBM", "VBM voter 100000 bursts 100 1 managed 10000 100 100 verbose 200"),
    ("VBD", "VBD voter 100000 bursts 100 5 direct x x 100 verbose 200"),
    ("HSD", "HSD hello 100000 steady 200 x direct x x x verbose 200"),
];

/// The preset of this name, in any case.
#[must_use]
pub fn preset(name: &str) -> Option<Shape> {
    let (_, words) = PRESETS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Shape::of_words(&words.split(' ').collect::<Vec<_>>()).ok()
}

impl Bench {
    /// As the original calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Voter => "voter",
            Self::Hello => "hello",
        }
    }
}

impl Verbosity {
    /// As the original calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::NonVerbose => "nonverbose",
            Self::Verbose => "verbose",
            Self::VeryVerbose => "veryverbose",
        }
    }

    /// The verbosity of this name; the original's `debug` is as much as there is.
    ///
    /// # Errors
    /// When there is none.
    pub fn of_word(word: &str) -> Result<Self, ShapeError> {
        Ok(match word {
            "quiet" => Self::Quiet,
            "nonverbose" => Self::NonVerbose,
            "verbose" => Self::Verbose,
            "veryverbose" | "debug" => Self::VeryVerbose,
            other => {
                return Err(ShapeError(format!(
                    "verbosity '{other}': write quiet, nonverbose, verbose or veryverbose"
                )));
            }
        })
    }
}

/// A word that is a number, or `x`.
fn number<T: std::str::FromStr>(name: &str, word: &str) -> Result<Option<T>, ShapeError> {
    if matches!(word, "x" | "X" | "n/a" | "-") {
        return Ok(None);
    }
    let wrong = || ShapeError(format!("{name} '{word}': write a whole number, or x for none"));
    word.parse().map(Some).map_err(|_| wrong())
}

fn needed<T: std::str::FromStr>(name: &str, word: &str) -> Result<T, ShapeError> {
    number(name, word)?.ok_or_else(|| ShapeError(format!("{name} '{word}': a number is needed")))
}

impl Shape {
    /// Reads the twelve words of the original.
    ///
    /// # Errors
    /// When there are not twelve, or the first one that makes no sense.
    pub fn of_words(words: &[&str]) -> Result<Self, ShapeError> {
        let &[
            client,
            bench,
            calls,
            rhythm,
            size,
            delay,
            mode,
            queue,
            slots,
            limit,
            verbosity,
            dump,
        ] = words
        else {
            return Err(ShapeError(format!(
                "run needs {WORDS} words and has {}: CLIENT voter|hello CALLS steady|burst SIZE DELAY direct|managed \
                 QUEUE SLOTS LIMIT VERBOSITY DUMP_MS, with x for what does not apply",
                words.len()
            )));
        };
        let bench = match bench {
            "voter" => Bench::Voter,
            "hello" => Bench::Hello,
            other => return Err(ShapeError(format!("bench '{other}': write voter or hello"))),
        };
        let rhythm = match rhythm {
            "steady" => Rhythm::Steady,
            "burst" | "bursts" => Rhythm::Burst,
            other => return Err(ShapeError(format!("rhythm '{other}': write steady or burst"))),
        };
        let (queue, slots) = (number("queue", queue)?, number("slots", slots)?);
        let managed = match mode {
            "managed" => Some(Managed { queue, slots: slots.unwrap_or(SLOTS) }),
            "direct" if queue.is_none() && slots.is_none() => None,
            "direct" => {
                return Err(ShapeError(
                    "queue and slots go with managed; write x for them where the mode is direct"
                        .to_owned(),
                ));
            }
            other => return Err(ShapeError(format!("mode '{other}': write direct or managed"))),
        };
        let millis = |ms: u64| Span { ns: ms.saturating_mul(MILLISECOND_NS).min(u64::MAX / 2) };
        let shape = Self {
            client: client.to_owned(),
            bench,
            calls: Some(needed("calls", calls)?),
            rhythm,
            size: needed("size", size)?,
            delay: number("delay", delay)?.map(millis),
            managed,
            limit: number("limit", limit)?,
            verbosity: Verbosity::of_word(verbosity)?,
            dump_interval: millis(needed("dump interval", dump)?),
        };
        shape.check()?;
        Ok(shape)
    }

    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// The first thing that makes no sense, and what to write instead.
    pub fn check(&self) -> Result<(), ShapeError> {
        let is_burst = self.rhythm == Rhythm::Burst;
        let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let wrong = if self.client.is_empty()
            || self.client.len() > 40
            || !self.client.chars().all(sound)
        {
            "client: a name has 1 to 40 letters, digits, '-', '_' and '.'"
        } else if self.calls == Some(0) {
            "calls must be at least 1"
        } else if self.size == 0 && is_burst {
            "burst must be at least 1"
        } else if self.size == 0 {
            "clients must be at least 1"
        } else if is_burst && self.delay.is_none() {
            "a burst needs a delay, the pause after it: --delay 5ms, or a number of milliseconds as the sixth word"
        } else if self.managed.is_some_and(|managed| managed.slots == 0) {
            "slots must be at least 1"
        } else if self.dump_interval.ns < DUMP_MIN_NS {
            "dump interval: use at least 10ms"
        } else {
            return Ok(());
        };
        Err(ShapeError(wrong.to_owned()))
    }

    /// The calls as the rhythm has them.
    fn pace(&self) -> String {
        match &self.rhythm {
            Rhythm::Steady => format!("steady, {} workers", commas(self.size.into())),
            Rhythm::Burst => format!("burst, {} calls a burst", commas(self.size.into())),
            Rhythm::Open { rate_per_s, arrivals } => {
                let arrivals = match arrivals {
                    Arrivals::Uniform => "uniform",
                    Arrivals::Poisson => "poisson",
                };
                format!("open, {rate_per_s}/s {arrivals}")
            }
            Rhythm::Tuned { goal } => format!("tuned to {goal}"),
            Rhythm::Sought { goal } => format!("search for the load line, {goal}"),
        }
    }
}

/// A count with commas.
fn commas(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl fmt::Display for Shape {
    /// The original's line of parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |value: Option<u32>| value.map_or("n/a".to_owned(), |n| commas(n.into()));
        let calls = self.calls.map_or("any number of".to_owned(), commas);
        let delay = self.delay.map_or("n/a".to_owned(), |delay| delay.to_string());
        let mode = if self.managed.is_some() { "managed" } else { "direct" };
        write!(
            f,
            "Client '{}', {}, {calls} calls, {}, delay {delay}, {mode}, queue {}, slots {}, limit {}, {}, {:.1} stats/sec",
            self.client,
            self.bench.name(),
            self.pace(),
            or_none(self.managed.and_then(|managed| managed.queue)),
            or_none(self.managed.map(|managed| managed.slots)),
            or_none(self.limit),
            self.verbosity.name(),
            1e9 / self.dump_interval.ns.max(1) as f64
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Shape, String> {
        Shape::of_words(&text.split(' ').collect::<Vec<_>>()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_presets_are_the_originals() {
        for (name, _) in PRESETS {
            assert_eq!(preset(name).unwrap().client, name);
        }
        let burst = preset("vbd").unwrap();
        assert_eq!((burst.size, burst.delay), (100, Some("5ms".parse().unwrap())));
        assert_eq!((burst.managed, burst.limit), (None, Some(100)));
        let managed = preset("VSM").unwrap().managed;
        assert_eq!(managed, Some(Managed { queue: Some(100_000), slots: 200 }));
        assert_eq!(preset("HSD").unwrap().bench, Bench::Hello);
        assert_eq!(preset("VSX"), None);
    }

    #[test]
    fn the_line_reads_as_the_originals() {
        let line = preset("VSD").unwrap().to_string();
        assert_eq!(
            line,
            "Client 'VSD', voter, 100,000 calls, steady, 200 workers, delay n/a, direct, queue n/a, slots n/a, \
             limit n/a, verbose, 5.0 stats/sec"
        );
    }

    #[test]
    fn words_that_make_no_run_are_named() {
        let cases = [
            ("VSD voter", "12 words and has 2"),
            ("VSD poll 1 steady 1 x direct x x x quiet 200", "write voter or hello"),
            ("VSD voter x steady 1 x direct x x x quiet 200", "calls 'x'"),
            ("VSD voter 0 steady 1 x direct x x x quiet 200", "calls must be at least 1"),
            ("VSD voter 1 wild 1 x direct x x x quiet 200", "steady or burst"),
            ("VSD voter 1 bursts 10 x direct x x x quiet 200", "needs a delay"),
            ("VSD voter 1 steady 0 x direct x x x quiet 200", "clients must be at least 1"),
            ("VSD voter 1 steady 1 x direct 5 x x quiet 200", "go with managed"),
            ("VSD voter 1 steady 1 x managed 5 0 x quiet 200", "slots must be at least 1"),
            ("VSD voter 1 steady 1 x managed five 1 x quiet 200", "queue 'five'"),
            ("VSD voter 1 steady 1 x direct x x x loud 200", "verbosity 'loud'"),
            ("VSD voter 1 steady 1 x direct x x x quiet 1", "at least 10ms"),
            ("V/D voter 1 steady 1 x direct x x x quiet 200", "letters, digits"),
        ];
        for (text, part) in cases {
            let told = read(text).unwrap_err();
            assert!(told.contains(part), "{text}: {told}");
        }
    }
}
