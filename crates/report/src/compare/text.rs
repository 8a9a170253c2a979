//! A comparison as people read it.

use super::rows::{Against, Row, change_of};
use super::{Comparison, Side};
use crate::plain::{columns_of, printable};

impl Comparison {
    /// Returns the comparison as a person reads it.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text: String = self.sides.iter().map(line).collect();
        text.push('\n');
        if !self.text.is_empty() {
            text += &format!("{}\n", self.text.trim_end());
        }
        // An import is compared by what its source tells: nothing is claimed about it.
        if self.is_import() && self.rules.is_empty() {
            return text;
        }
        if !self.text.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            text += &format!("{}\n", printable(note));
        }
        for index in 1..self.sides.len() {
            text += &format!("\n{}", self.table(index));
        }
        if !self.rules.is_empty() {
            text.push('\n');
        }
        for rule in &self.rules {
            let row =
                if rule.row.contains(' ') { format!(" ({})", rule.row) } else { String::new() };
            text += &format!(
                "{}{}  {} against A: {}: {}\n",
                rule.rule,
                printable(&row),
                rule.mark,
                rule.judged.to_uppercase(),
                rule.words
            );
        }
        text
    }

    /// Returns true if another tool measured one of the records.
    #[must_use]
    pub fn is_import(&self) -> bool {
        self.sides.iter().any(|side| side.verdict == "imported")
    }

    /// The table of one record against the first.
    fn table(&self, index: usize) -> String {
        let mark = &self.sides[index].mark;
        let confidence =
            self.rows.iter().flat_map(|row| row.against.get(index - 1)).find_map(|one| {
                one.interval.map(|_| format!("{}% interval", rounded(one.confidence)))
            });
        let heads = ["", "A", mark, &format!("{mark}/A"), &confidence.unwrap_or_default()];
        let mut rows =
            vec![[heads.map(str::to_owned).to_vec(), vec![format!("{mark} is")]].concat()];
        rows.extend(self.rows.iter().filter_map(|row| cells(row, index)));
        if rows.iter().skip(1).all(|row| row[4].is_empty()) {
            rows.iter_mut().for_each(|row| drop(row.remove(4)));
        }
        aligned(&rows)
    }
}

/// Confidence in percent, as `95 `.
fn rounded(confidence: f64) -> String {
    let percent = confidence * 100.0;
    if (percent - percent.round()).abs() < 1e-9 {
        format!("{percent:.0} ")
    } else {
        format!("{percent:.1} ")
    }
}

fn line(side: &Side) -> String {
    let mut text = format!(
        "{}  {}  {}, started {}",
        side.mark,
        printable(&side.folder),
        printable(&side.job),
        side.started_at
    );
    if !side.called.is_empty() {
        text += &format!(", {}", printable(&side.called));
    }
    if !side.origin.is_empty() && side.origin != "measured" {
        text += &format!(", {}", printable(&side.origin));
    } else if side.verdict != "valid" {
        text += &format!(", {}", side.verdict);
    }
    text + "\n"
}

fn cells(row: &Row, index: usize) -> Option<Vec<String>> {
    let against: &Against = row.against.get(index - 1)?;
    let value = |at: usize| row.values[at].map_or("-".to_owned(), |value| row.unit.shown(value));
    let ratio = against.ratio.map_or("-".to_owned(), |ratio| format!("x {ratio:.3}"));
    let is_exact = against.interval == Some([1.0, 1.0]);
    let interval =
        against.interval.filter(|_| !is_exact).map_or(String::new(), |[low, high]| match high {
            high if high < 1_000.0 => format!("{low:.3} to {high:.3}"),
            _ => format!("above {low:.3}"),
        });
    let mut words = against.words.clone();
    if matches!(against.answer, Some("better" | "worse")) {
        words += &format!(", {}", change_of(against).split(" (").next().unwrap_or_default());
    }
    Some(vec![printable(&row.name()), value(0), value(index), ratio, interval, words])
}

/// A table: the first and the last column stand to the left, numbers to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| columns_of(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let blank = " ".repeat(width - columns_of(cell));
            line += &match column {
                0 => format!("{cell}{blank}"),
                last if last + 1 == columns => format!("  {cell}"),
                _ => format!("  {blank}{cell}"),
            };
        }
        text += &format!("{}\n", line.trim_end());
    }
    text
}
