//! What a printed sample says apart from its figures: samples are compared by it.

use regex::Regex;
use std::sync::LazyLock;

/// Lines that belong together, as they were printed, and what they say apart from their figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub lines: Vec<String>,
    shape: String,
    /// What plimsoll thinks of the machine and of the run. On a machine that others use it may be anything.
    is_judgement: bool,
}

impl Item {
    /// A line of dots leaves out any number of lines.
    fn is_gap(&self) -> bool {
        self.lines.len() == 1 && self.lines[0] == "..."
    }
}

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).unwrap());
    };
}

pattern!(RECORD, r"runs/\d{8}T\S+");
pattern!(ID, r"plimsoll report [0-9a-f]{8}\b");
pattern!(HEX, r"\b[0-9a-f]{32}\b");
pattern!(NUMBER, r"<?[-+]?\d+(,\d{3})*(\.\d+)?( %|%)?|\bNaN\b");
pattern!(UNIT, r"# ?(ns|us|ms|s|min|[kMG]?B|[kMG]?bit|[kMG]?B/s|[kMG]bit/s)\b");
pattern!(LABEL, r"^[A-Z][A-Za-z ]{2,9} ");
pattern!(
    JUDGED,
    r"^(Warning|Why|Held|Missed|Note|Watched +machine: at its limit|Result +(valid|NOT|MISSED|FAILED)) ?"
);
pattern!(OUTCOME, r"\b(held|MISSED.*)$");
pattern!(VERDICT, r#""verdict": "[^"]*""#);
pattern!(HELD_UP, r", # of the time (waiting for a processor|stopped by a signal)");
pattern!(ONCE, r"\bonce\b");
pattern!(STOPPED, r"; paused # times because nothing was accepted");
pattern!(PLUSES, r"\+{5,}>?");
pattern!(BLANKS, r"\s+");
pattern!(EMPTY, r"(^| )-( |$)");

/// A line without its figures, units and widths.
fn bare(line: &str) -> String {
    let line = RECORD.replace_all(line, "runs/NAME");
    let line = ID.replace_all(&line, "plimsoll report ID");
    let line = HEX.replace_all(&line, "#");
    let line = VERDICT.replace_all(&line, "\"verdict\": \"KIND\"");
    let line = NUMBER.replace_all(&line, "#");
    let line = UNIT.replace_all(&line, "# UNIT");
    let line = ONCE.replace_all(&line, "# times");
    let line = HELD_UP.replace_all(&line, "");
    let line = STOPPED.replace(&line, "");
    let line = PLUSES.replace(&line, "+++");
    let line = OUTCOME.replace(&line, "OUTCOME");
    let line = BLANKS.replace_all(line.trim(), " ");
    // Twice: two empty cells in a row share a blank.
    let line = EMPTY.replace_all(&line, "$1#$2");
    EMPTY.replace_all(&line, "$1#$2").into_owned()
}

/// What a text says: labels with the lines that go on from them, rows of tables in any order, and single lines.
pub fn items(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut after_blank = false;
    for line in text.lines() {
        let line = line.trim_end();
        let goes_on = line.starts_with("           ") && !line[11..].starts_with(' ');
        let is_row = line.starts_with("  ") && !goes_on;
        let last = items.last_mut().filter(|last| {
            let first = &last.lines[0];
            let is_next = goes_on && LABEL.is_match(first) || is_row && first.starts_with("  ");
            is_next && !after_blank
        });
        after_blank = line.is_empty();
        match last {
            Some(last) => last.lines.push(line.to_owned()),
            None if line.is_empty() => {}
            None => items.push(Item {
                lines: vec![line.to_owned()],
                shape: String::new(),
                is_judgement: JUDGED.is_match(line),
            }),
        }
    }
    for item in &mut items {
        item.shape = if item.is_judgement {
            bare(item.lines[0].split(' ').next().unwrap())
        } else if item.lines[0].starts_with("  ") {
            let mut rows: Vec<String> = item.lines.iter().map(|line| bare(line)).collect();
            rows.sort();
            rows.join("\n")
        } else {
            bare(&item.lines.join(" "))
        };
    }
    items
}

/// The same for a text without figures: each line as it stands.
pub fn exact(text: &str) -> Vec<Item> {
    let item = |line: &str| Item {
        lines: vec![line.to_owned()],
        shape: line.trim_end().to_owned(),
        is_judgement: false,
    };
    text.lines().map(item).collect()
}

/// The printed lines in place of a sample's: what the sample leaves out stays left out. `Err` has the first line of
/// the sample that was not printed.
pub fn matched(sample: &[Item], printed: &[Item]) -> Result<Vec<String>, String> {
    // A sample that is nothing but a judgement is there to be held.
    if sample.iter().all(|item| item.is_judgement) {
        return holds_label(sample, printed);
    }
    let mut reached = 0;
    let mut taken = Vec::new();
    if go_on(sample, printed, 0, &mut reached, &mut taken) {
        return Ok(taken);
    }
    let missing =
        sample.get(reached).map_or("(nothing more)".to_owned(), |item| item.shape.clone());
    let shapes: Vec<&str> = printed.iter().map(|item| item.shape.as_str()).collect();
    Err(format!("the page has\n{missing}\nand it printed, in this form\n{}", shapes.join("\n")))
}

fn holds_label(sample: &[Item], printed: &[Item]) -> Result<Vec<String>, String> {
    let is_missing = |wanted: &&Item| !printed.iter().any(|item| item.shape == wanted.shape);
    match sample.iter().find(is_missing) {
        Some(missing) => Err(format!("nothing printed begins with {}", missing.shape)),
        None => Ok(printed.iter().flat_map(|item| item.lines.clone()).collect()),
    }
}

fn go_on(
    sample: &[Item],
    printed: &[Item],
    at: usize,
    reached: &mut usize,
    taken: &mut Vec<String>,
) -> bool {
    *reached = (*reached).max(at);
    let length = taken.len();
    let Some(wanted) = sample.get(at) else {
        taken.extend(printed.iter().flat_map(|item| item.lines.clone()));
        return printed.iter().all(|item| item.is_judgement);
    };
    if wanted.is_gap() {
        taken.push("...".to_owned());
        if (0..=printed.len()).any(|left| go_on(sample, &printed[left..], at + 1, reached, taken)) {
            return true;
        }
        taken.truncate(length);
        return false;
    }
    if let Some((next, rest)) = printed.split_first() {
        let begins = wanted.shape.strip_suffix("...");
        let is_same =
            begins.is_some_and(|begin| next.shape.starts_with(begin)) || next.shape == wanted.shape;
        if is_same || next.is_judgement {
            taken.extend(next.lines.clone());
            if go_on(sample, rest, at + usize::from(is_same), reached, taken) {
                return true;
            }
            taken.truncate(length);
        }
    }
    wanted.is_judgement && go_on(sample, printed, at + 1, reached, taken)
}

#[cfg(test)]
mod tests {
    use super::{items, matched};

    fn holds(sample: &str, printed: &str) -> bool {
        matched(&items(sample), &items(printed)).is_ok()
    }

    #[test]
    fn figures_units_and_widths_may_differ_and_words_may_not() {
        assert!(holds("Rate   offered 608/s, ok 1.5 %", "Rate offered 1,200/s, ok 99 %"));
        assert!(holds("a 12.5 us", "a 3 ms"));
        assert!(holds("a 12.5 us", "a <0.001 us"));
        assert!(holds("  x   -   4", "  x  3   -"));
        assert!(!holds("Rate   offered 608/s", "Rate   offers 608/s"));
        assert!(!holds("a\nb", "a"));
        assert!(!holds("a", "a\nb"));
    }

    #[test]
    fn a_line_may_break_elsewhere_and_rows_may_change_places() {
        assert!(holds(
            "Traffic    1 kB sent,\n           2 opened",
            "Traffic    1 kB sent, 2 opened"
        ));
        assert!(holds("T\n  a 1\n  b 2", "T\n  b 1\n  a 2"));
        assert!(!holds("T\n  a 1\n  b 2", "T\n  a 1\n  c 2"));
    }

    #[test]
    fn dots_leave_lines_out_and_judgements_of_the_machine_are_free() {
        assert!(holds("a\n...\nd", "a\nb\nc\nd"));
        assert!(!holds("a\n...\nd", "a\nb\nc"));
        assert!(holds("a\nWhy        late\nb", "a\nWarning    x\nb"));
        assert!(holds("a\nb", "a\nWatched    machine: at its limit: all 2 processors\nb"));
        assert!(!holds("a\nb", "a\nWatched    nginx: CPU 1 cores\nb"));
        assert!(holds(
            "SLO        p95 1 ms: 2 ms, held",
            "SLO        p95 1 ms: 2 ms, MISSED (over)"
        ));
    }
}
