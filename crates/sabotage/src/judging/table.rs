//! Findings by kind of sabotage, as the table of docs/verdicts.md.

use super::{Finding, Grade};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One line of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Runs of this kind.
    pub runs: u64,
    /// Of these, plainly valid.
    pub valid: u64,
    /// Valid within bounds.
    pub within: u64,
    /// Not the target's.
    pub not: u64,
    /// Valid, and a figure off by more than its bound.
    pub wrong: u64,
    /// Runs on a healthy machine.
    pub healthy: u64,
    /// Not valid on a healthy machine.
    pub false_alarms: u64,
    /// With another defect.
    pub defects: u64,
}

impl Line {
    /// Adds one finding.
    pub fn add(&mut self, finding: &Finding, healthy: bool) {
        self.runs += 1;
        match finding.grade {
            Grade::Valid => self.valid += 1,
            Grade::ValidWithin => self.within += 1,
            Grade::NotTheTargets => self.not += 1,
        }
        self.wrong += u64::from(finding.wrong.is_some());
        self.healthy += u64::from(healthy);
        self.false_alarms += u64::from(finding.false_alarm);
        self.defects += u64::from(!finding.defects.is_empty());
    }

    fn merge(&mut self, other: &Line) {
        self.runs += other.runs;
        self.valid += other.valid;
        self.within += other.within;
        self.not += other.not;
        self.wrong += other.wrong;
        self.healthy += other.healthy;
        self.false_alarms += other.false_alarms;
        self.defects += other.defects;
    }
}

/// Lines by kind, in the order in which kinds came.
#[derive(Clone, Debug, Default)]
pub struct Table {
    lines: BTreeMap<String, Line>,
    order: Vec<String>,
}

const HEAD: &str = "| sabotage | runs | valid | valid within | not the target's | valid and wrong | not valid on a healthy machine | other defects |\n\
                    |---|--:|--:|--:|--:|--:|--:|--:|\n";

impl Table {
    /// Adds one finding.
    pub fn add(&mut self, kind: &str, finding: &Finding, healthy: bool) {
        if !self.lines.contains_key(kind) {
            self.order.push(kind.to_owned());
        }
        self.lines.entry(kind.to_owned()).or_default().add(finding, healthy);
    }

    /// All lines together.
    #[must_use]
    pub fn total(&self) -> Line {
        let mut total = Line::default();
        self.lines.values().for_each(|line| total.merge(line));
        total
    }

    /// The table in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = HEAD.to_owned();
        let mut row = |name: &str, line: &Line| {
            let alarms = if line.healthy > 0 {
                format!("{} of {}", line.false_alarms, line.healthy)
            } else {
                "-".to_owned()
            };
            let Line { runs, valid, within, not, wrong, defects, .. } = *line;
            // Writing to memory cannot fail.
            let _ = writeln!(
                out,
                "| {name} | {runs} | {valid} | {within} | {not} | {wrong} | {alarms} | {defects} |"
            );
        };
        for kind in &self.order {
            row(kind, &self.lines[kind]);
        }
        row("**all**", &self.total());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(grade: Grade, wrong: bool, alarm: bool) -> Finding {
        let wrong = wrong.then(|| "words".to_owned());
        Finding { grade, said: String::new(), wrong, false_alarm: alarm, defects: Vec::new() }
    }

    #[test]
    fn findings_are_counted_by_kind_and_in_all() {
        let mut table = Table::default();
        table.add("none", &finding(Grade::Valid, false, false), true);
        table.add("none", &finding(Grade::NotTheTargets, false, true), true);
        table.add("neighbours", &finding(Grade::ValidWithin, true, false), false);
        let text = table.markdown();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines[0], "| none | 2 | 1 | 0 | 1 | 0 | 1 of 2 | 0 |");
        assert_eq!(lines[1], "| neighbours | 1 | 0 | 1 | 0 | 1 | - | 0 |");
        assert_eq!(lines[2], "| **all** | 3 | 1 | 1 | 1 | 1 | 1 of 2 | 0 |");
    }
}
