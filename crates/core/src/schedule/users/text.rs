//! Reading and writing a profile: `ramp 100 during 10s, constant 20/s during 1m randomized`, or in Gatling's words.
//!
//! Words are separated by blanks, brackets and the dots before a word, so that
//! `rampUsers(100).during(10.seconds)` reads as `rampUsers 100 during 10 seconds`.

use super::profile::{ProfileError, Stairs, UserProfile, UserStep};
use crate::units::{Rate, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// One word of the text.
#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    text: &'a str,
    /// Counted in characters from 1.
    column: usize,
}

const STEPS: &str = "nothing for, at once, ramp, constant, peak, increment, concurrent";

fn wrong(column: usize, problem: impl Into<String>) -> ProfileError {
    ProfileError { column, problem: problem.into() }
}

/// The words of each step. A step begins at its first word, or where it should have been.
fn steps_of<'a>(text: &'a str) -> Vec<(usize, Vec<Word<'a>>)> {
    let mut steps: Vec<(usize, Vec<Word<'a>>)> = Vec::new();
    let (mut words, mut step_column) = (Vec::new(), 1);
    let mut begun: Option<(usize, usize)> = None;
    let mut column = 0;
    let mut chars = text.char_indices().peekable();
    let end = |words: &mut Vec<Word<'a>>, begun: &mut Option<(usize, usize)>, at: usize| {
        if let Some((from, column)) = begun.take() {
            words.push(Word { text: &text[from..at], column });
        }
    };
    while let Some((at, c)) = chars.next() {
        column += 1;
        let before_word = c == '.' && chars.peek().is_some_and(|(_, next)| next.is_alphabetic());
        if c == ',' {
            end(&mut words, &mut begun, at);
            steps.push((step_column, std::mem::take(&mut words)));
            step_column = column + 1;
        } else if c.is_whitespace() || c == '(' || c == ')' || before_word {
            end(&mut words, &mut begun, at);
        } else {
            begun.get_or_insert((at, column));
        }
    }
    end(&mut words, &mut begun, text.len());
    steps.push((step_column, words));
    for (column, words) in &mut steps {
        if let Some(first) = words.first() {
            *column = first.column;
        }
    }
    steps
}

/// Reads the words of one step from left to right.
struct Reader<'a> {
    words: Vec<Word<'a>>,
    at: usize,
    /// End of the step's text.
    end: usize,
}

impl<'a> Reader<'a> {
    fn column(&self) -> usize {
        self.words.get(self.at).map_or(self.end, |word| word.column)
    }

    /// Takes the next word if it is one of these, in any case, and returns true then.
    fn take(&mut self, names: &[&str]) -> bool {
        let is = self
            .words
            .get(self.at)
            .is_some_and(|word| names.iter().any(|name| word.text.eq_ignore_ascii_case(name)));
        self.at += usize::from(is);
        is
    }

    fn need(&mut self, names: &[&str], example: &str) -> Result<(), ProfileError> {
        if self.take(names) {
            return Ok(());
        }
        Err(self.missing(&format!("'{}'", names[0]), example))
    }

    fn missing(&self, what: &str, example: &str) -> ProfileError {
        let found = match self.words.get(self.at) {
            Some(word) => format!("'{}' where {what} should be", word.text),
            None => format!("{what} is missing"),
        };
        wrong(self.column(), format!("{found}; write for example '{example}'"))
    }

    fn word(&mut self, what: &str, example: &str) -> Result<Word<'a>, ProfileError> {
        let word = self.words.get(self.at).copied().ok_or_else(|| self.missing(what, example))?;
        self.at += 1;
        Ok(word)
    }

    fn whole(&mut self, example: &str) -> Result<u64, ProfileError> {
        let word = self.word("a number of users", example)?;
        if let Ok(number) = word.text.parse::<u64>() {
            return Ok(number);
        }
        let problem = if word.text.contains('/') {
            format!("'{}' is a rate instead of a number of users", word.text)
        } else {
            format!("'{}' is not a whole number", word.text)
        };
        Err(wrong(word.column, format!("{problem}; write for example '{example}'")))
    }

    fn few(&mut self, example: &str) -> Result<u32, ProfileError> {
        let column = self.column();
        let number = self.whole(example)?;
        u32::try_from(number).map_err(|_| wrong(column, format!("{number} is too many")))
    }

    /// `20/s`, `1k/s`, `90/min`, `100/h`; a bare number too where `bare` says so, as in Gatling's names.
    fn rate(&mut self, bare: bool, example: &str) -> Result<f64, ProfileError> {
        let word = self.word("a rate", example)?;
        let rate = word.text.parse::<Rate>().ok();
        // Without its unit a number may as well be a number of users.
        rate.filter(|_| bare || word.text.contains('/')).map(|rate| rate.per_s).ok_or_else(|| {
            let text = word.text;
            wrong(word.column, format!("'{text}' is not a rate; expected a rate as in '{example}'"))
        })
    }

    /// `10s`, `1.5m`, or in Gatling's words `10.seconds`.
    fn span(&mut self, example: &str) -> Result<Span, ProfileError> {
        let word = self.word("a time", example)?;
        let units = [
            ("s", ["second", "seconds"]),
            ("m", ["minute", "minutes"]),
            ("h", ["hour", "hours"]),
            ("ms", ["millis", "milliseconds"]),
        ];
        let unit = units.iter().find(|(_, names)| self.take(names)).map_or("", |(unit, _)| unit);
        format!("{}{unit}", word.text)
            .parse()
            .map_err(|error| wrong(word.column, format!("{error}, as in '{example}'")))
    }

    fn during(&mut self, example: &str) -> Result<Span, ProfileError> {
        self.need(&["during"], example)?;
        self.span(example)
    }

    fn randomized(&mut self) -> bool {
        self.take(&["randomized", "randomised", "random"])
    }

    fn stairs(&mut self, example: &str) -> Result<Stairs, ProfileError> {
        self.need(&["times"], example)?;
        let times = self.few(example)?;
        self.need(&["lasting", "eachLevelLasting"], example)?;
        Ok(Stairs { times, lasting: self.span(example)?, ramps: Span::default() })
    }
}

fn ramp(reader: &mut Reader<'_>) -> Result<UserStep, ProfileError> {
    const USERS: &str = "ramp 100 during 10s";
    const RATES: &str = "ramp 5/s to 20/s during 10s";
    let is_rate = reader.words.get(reader.at).is_some_and(|word| word.text.contains('/'));
    if is_rate {
        return ramp_rate(reader, false, RATES);
    }
    let users = reader.whole(USERS)?;
    reader.take(&["users"]);
    if reader.words.get(reader.at).is_some_and(|word| word.text.eq_ignore_ascii_case("to")) {
        let problem = format!(
            "'ramp {users} to' is ambiguous; write '{RATES}' for users per second, \
             or 'concurrent 10 to 50 during 30s'"
        );
        return Err(wrong(reader.column(), problem));
    }
    Ok(UserStep::Ramp { users, during: reader.during(USERS)? })
}

fn ramp_rate(reader: &mut Reader<'_>, bare: bool, example: &str) -> Result<UserStep, ProfileError> {
    let from_per_s = reader.rate(bare, example)?;
    reader.need(&["to"], example)?;
    let to_per_s = reader.rate(bare, example)?;
    let during = reader.during(example)?;
    Ok(UserStep::RampRate { from_per_s, to_per_s, during, randomized: reader.randomized() })
}

fn constant(reader: &mut Reader<'_>, bare: bool) -> Result<UserStep, ProfileError> {
    const EXAMPLE: &str = "constant 20/s during 1m";
    let per_s = reader.rate(bare, EXAMPLE)?;
    let during = reader.during(EXAMPLE)?;
    Ok(UserStep::Constant { per_s, during, randomized: reader.randomized() })
}

fn increment(reader: &mut Reader<'_>, bare: bool) -> Result<UserStep, ProfileError> {
    const EXAMPLE: &str = "increment 5/s times 4 lasting 10s from 10/s ramps 5s";
    let by_per_s = reader.rate(bare, EXAMPLE)?;
    let mut stairs = reader.stairs(EXAMPLE)?;
    let mut from_per_s = 0.0;
    loop {
        if reader.take(&["from", "startingFrom"]) {
            from_per_s = reader.rate(bare, EXAMPLE)?;
        } else if reader.take(&["ramps", "separatedByRampsLasting"]) {
            stairs.ramps = reader.span(EXAMPLE)?;
        } else {
            return Ok(UserStep::Increment { by_per_s, stairs, from_per_s });
        }
    }
}

fn increment_concurrent(reader: &mut Reader<'_>) -> Result<UserStep, ProfileError> {
    const EXAMPLE: &str = "increment concurrent 5 times 4 lasting 10s from 10 ramps 5s";
    let by = reader.few(EXAMPLE)?;
    let mut stairs = reader.stairs(EXAMPLE)?;
    let mut from = 0;
    loop {
        if reader.take(&["from", "startingFrom"]) {
            from = reader.few(EXAMPLE)?;
        } else if reader.take(&["ramps", "separatedByRampsLasting"]) {
            stairs.ramps = reader.span(EXAMPLE)?;
        } else {
            return Ok(UserStep::IncrementConcurrent { by, stairs, from });
        }
    }
}

fn concurrent(reader: &mut Reader<'_>) -> Result<UserStep, ProfileError> {
    const EXAMPLE: &str = "concurrent 50 during 1m";
    let from = reader.few(EXAMPLE)?;
    reader.take(&["users"]);
    if !reader.take(&["to"]) {
        return Ok(UserStep::Concurrent { users: from, during: reader.during(EXAMPLE)? });
    }
    let example = "concurrent 10 to 50 during 30s";
    let to = reader.few(example)?;
    Ok(UserStep::RampConcurrent { from, to, during: reader.during(example)? })
}

fn step(reader: &mut Reader<'_>) -> Result<UserStep, ProfileError> {
    let start = reader.column();
    if reader.take(&["nothing", "nothingFor"]) {
        reader.take(&["for"]);
        return Ok(UserStep::Nothing { during: reader.span("nothing for 5s")? });
    }
    if reader.take(&["at", "atOnce", "atOnceUsers"]) {
        reader.take(&["once"]);
        let users = reader.whole("at once 10")?;
        reader.take(&["users"]);
        return Ok(UserStep::AtOnce { users });
    }
    if reader.take(&["ramp", "rampUsers"]) {
        return ramp(reader);
    }
    if reader.take(&["rampUsersPerSec"]) {
        return ramp_rate(reader, true, "rampUsersPerSec(5) to 20 during 10s");
    }
    if reader.take(&["constant"]) {
        return constant(reader, false);
    }
    if reader.take(&["constantUsersPerSec"]) {
        return constant(reader, true);
    }
    if reader.take(&["peak", "stressPeakUsers"]) {
        let users = reader.whole("peak 200 during 20s")?;
        reader.take(&["users"]);
        return Ok(UserStep::Peak { users, during: reader.during("peak 200 during 20s")? });
    }
    if reader.take(&["increment"]) {
        if reader.take(&["concurrent"]) {
            return increment_concurrent(reader);
        }
        return increment(reader, false);
    }
    if reader.take(&["incrementUsersPerSec"]) {
        return increment(reader, true);
    }
    if reader.take(&["incrementConcurrentUsers"]) {
        return increment_concurrent(reader);
    }
    if reader.take(&["concurrent", "constantConcurrentUsers", "rampConcurrentUsers"]) {
        return concurrent(reader);
    }
    let problem = match reader.words.first() {
        Some(word) => format!("'{}' is not a step; expected {STEPS}", word.text),
        None => format!("a step is missing; expected {STEPS}"),
    };
    Err(wrong(start, problem))
}

impl FromStr for UserProfile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let (mut steps, mut columns) = (Vec::new(), Vec::new());
        for (column, words) in steps_of(text) {
            let last = words.last().map_or(column, |w| w.column + w.text.chars().count());
            let mut reader = Reader { words, at: 0, end: last };
            steps.push(step(&mut reader)?);
            columns.push(column);
            if let Some(word) = reader.words.get(reader.at) {
                let problem =
                    format!("'{}' is not understood here; separate steps by commas", word.text);
                return Err(wrong(word.column, problem));
            }
        }
        Self::with_columns(steps, &columns)
    }
}

impl fmt::Display for UserStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let random = |is: bool| if is { " randomized" } else { "" };
        match *self {
            Self::Nothing { during } => write!(f, "nothing for {during}"),
            Self::AtOnce { users } => write!(f, "at once {users}"),
            Self::Ramp { users, during } => write!(f, "ramp {users} during {during}"),
            Self::Constant { per_s, during, randomized } => {
                write!(f, "constant {per_s}/s during {during}{}", random(randomized))
            }
            Self::RampRate { from_per_s, to_per_s, during, randomized } => {
                let random = random(randomized);
                write!(f, "ramp {from_per_s}/s to {to_per_s}/s during {during}{random}")
            }
            Self::Peak { users, during } => write!(f, "peak {users} during {during}"),
            Self::Increment { by_per_s, stairs, from_per_s } => {
                write!(f, "increment {by_per_s}/s times {}", stairs.times)?;
                write!(f, " lasting {}", stairs.lasting)?;
                if from_per_s > 0.0 {
                    write!(f, " from {from_per_s}/s")?;
                }
                stairs.write_ramps(f)
            }
            Self::Concurrent { users, during } => write!(f, "concurrent {users} during {during}"),
            Self::RampConcurrent { from, to, during } => {
                write!(f, "concurrent {from} to {to} during {during}")
            }
            Self::IncrementConcurrent { by, stairs, from } => {
                write!(f, "increment concurrent {by} times {}", stairs.times)?;
                write!(f, " lasting {}", stairs.lasting)?;
                if from > 0 {
                    write!(f, " from {from}")?;
                }
                stairs.write_ramps(f)
            }
        }
    }
}

impl Stairs {
    fn write_ramps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ramps.ns > 0 { write!(f, " ramps {}", self.ramps) } else { Ok(()) }
    }
}

impl fmt::Display for UserProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps().iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{step}")?;
        }
        Ok(())
    }
}

impl Serialize for UserProfile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UserProfile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
