//! The parts of a message: figures that stand beside each other.

use plimsoll_report::plain::columns_of;
use std::cmp::Reverse;

/// Gap between the parts of a message.
const GAP: &str = "  ";

/// One figure of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    text: String,
    /// Shorter ways to say it, the longest first.
    shorter: Vec<String>,
    /// Parts with the largest weight get shorter, and go, first if there is little room.
    weight: u8,
    /// Columns that it takes if there is room, so that what follows keeps its place.
    columns: usize,
}

impl Part {
    /// A part that goes before those of a smaller weight.
    #[must_use]
    pub fn new(text: impl Into<String>, weight: u8) -> Self {
        Self { text: text.into(), shorter: Vec::new(), weight, columns: 0 }
    }

    /// A part that stays as long as anything does.
    #[must_use]
    pub fn first(text: impl Into<String>) -> Self {
        Self::new(text, 0)
    }

    /// The same, in at least this number of columns.
    #[must_use]
    pub fn at_least(mut self, columns: usize) -> Self {
        self.columns = columns;
        self
    }

    /// The same, with a shorter way to say it.
    #[must_use]
    pub fn or(mut self, shorter: impl Into<String>) -> Self {
        self.shorter.push(shorter.into());
        self
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    fn said(&self, way: usize) -> &str {
        way.checked_sub(1).map_or(&self.text, |way| &self.shorter[way])
    }
}

/// All parts, or as many as have room: half a number is a wrong one.
pub(super) fn beside(parts: &[Part], room: usize) -> String {
    let mut kept: Vec<&Part> = parts.iter().filter(|part| !part.text.is_empty()).collect();
    let aligned = joined(kept.iter().map(|part| format!("{:>1$}", part.text, part.columns)));
    if columns_of(&aligned) <= room {
        return aligned;
    }
    // The way in which each is said: 0 is its text.
    let mut ways = vec![0; kept.len()];
    loop {
        let said = kept.iter().zip(&ways).map(|(part, way)| part.said(*way));
        let text = joined(said.map(str::to_owned));
        if columns_of(&text) <= room {
            return text;
        }
        // Of several of one weight the last.
        let places = || 0..kept.len();
        let wordy = places().filter(|&index| ways[index] < kept[index].shorter.len());
        // Each in turn, so that none is cut short while another goes on at length.
        match wordy.max_by_key(|&index| (Reverse(ways[index]), kept[index].weight)) {
            Some(index) => ways[index] += 1,
            None => match places().max_by_key(|&index| kept[index].weight) {
                Some(index) if kept.len() > 1 => {
                    kept.remove(index);
                    ways.remove(index);
                }
                _ => return String::new(),
            },
        }
    }
}

/// The parts of a log's line, which nothing stands below that they could be aligned with.
pub(super) fn in_a_row(parts: &[Part]) -> String {
    let some = parts.iter().filter(|part| !part.text.is_empty());
    some.map(|part| part.text.as_str()).collect::<Vec<_>>().join(", ")
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(GAP)
}

/// A time in words, to the minute above two of them: `45 s`, `2 min`, `1 h 5 min`.
pub(super) fn spoken(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match (whole / 3_600, whole / 60 % 60) {
        (0, 0) => format!("{whole} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a part which does not fit is left out as a whole, and that the others stay.
    #[test]
    fn a_message_is_not_cut_inside_a_part() {
        let parts = [
            Part::first("12,346/s").at_least(10),
            Part::new("p95 12.3 ms", 2),
            Part::new("", 0),
            Part::new("failed 0", 1),
        ];
        assert_eq!(beside(&parts, 80), "  12,346/s  p95 12.3 ms  failed 0");
        assert_eq!(beside(&parts, 32), "12,346/s  p95 12.3 ms  failed 0");
        assert_eq!(beside(&parts, 30), "12,346/s  failed 0");
        assert_eq!(beside(&parts, 10), "12,346/s");
        assert_eq!(beside(&parts, 3), "");
        let wordy = [
            Part::first("1/s"),
            Part::new("p50 2 ms, p99 3 ms", 1).or("p50/p99 2/3 ms").or("p99 3 ms"),
        ];
        assert_eq!(
            [23, 22, 17].map(|room| beside(&wordy, room)),
            ["1/s  p50 2 ms, p99 3 ms", "1/s  p50/p99 2/3 ms", "1/s  p99 3 ms"]
        );
        assert_eq!(in_a_row(&parts), "12,346/s, p95 12.3 ms, failed 0");
    }
}
