//! A page as Markdown, short enough for a comment on a pull request: verdict, limits, times, classes, failures, command.

use crate::plain::{clip, printable};
use crate::sheet::{Cell, Column, Part, Section, Sheet, Table, Tone};
use std::fmt::Write as _;

/// Sections of the page that are in the comment, in its order.
const SECTIONS: [&str; 6] = ["decide", "rules", "bottleneck", "curve", "classes", "failures"];
/// Most rows of a table.
const ROWS_MAX: usize = 20;
/// Longest text of a cell, characters.
const CELL_CHARS_MAX: usize = 160;
/// Longest paragraph, characters.
const TEXT_CHARS_MAX: usize = 1_000;
/// Longest command, characters.
const COMMAND_CHARS_MAX: usize = 10_000;

/// Returns the page as Markdown of GitHub's kind. Text of the run stands in code spans where it could be taken for markup, a link or a
/// mention.
#[must_use]
pub fn render(sheet: &Sheet) -> String {
    let mut out = format!("## plimsoll {}\n\n", words(&sheet.title, CELL_CHARS_MAX));
    let _ = writeln!(out, "**{}**\n", words(&sheet.outcome, TEXT_CHARS_MAX));
    let _ = writeln!(out, "{}\n", words(&sheet.when, CELL_CHARS_MAX));
    if let Some(asked) = sheet.section("asked") {
        reasons(&mut out, asked);
    }
    for id in SECTIONS {
        if let Some(section) = sheet.section(id) {
            put_section(&mut out, section);
        }
    }
    let command = sheet.section("command").and_then(|section| {
        section.parts.iter().find_map(|part| match part {
            Part::Command(text) => Some(text),
            _ => None,
        })
    });
    if let Some(command) = command {
        out.push_str("### Repeat this run\n\n");
        out.push_str(&fenced(command));
    }
    out
}

/// Reasons of the verdict and warnings, a line each.
fn reasons(out: &mut String, asked: &Section) {
    let texts = asked.parts.iter().filter_map(|part| match part {
        Part::Text(_, text) => Some(text),
        _ => None,
    });
    let mut some = false;
    for text in texts {
        let _ = writeln!(out, "- {}", words(text, TEXT_CHARS_MAX));
        some = true;
    }
    if some {
        out.push('\n');
    }
}

fn put_section(out: &mut String, section: &Section) {
    let _ = writeln!(out, "### {}\n", words(&section.title, CELL_CHARS_MAX));
    for part in &section.parts {
        match part {
            Part::Text(_, text) => {
                let _ = writeln!(out, "{}\n", words(text, TEXT_CHARS_MAX));
            }
            Part::Table(table) => put_table(out, table),
            _ => {}
        }
    }
}

fn put_table(out: &mut String, table: &Table) {
    if !table.caption.is_empty() {
        let _ = writeln!(out, "{}:\n", words(&table.caption, CELL_CHARS_MAX));
    }
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let heads = table.columns.iter().map(|column| words(&column.name, CELL_CHARS_MAX));
    out.push_str(&line(heads.collect()));
    let ruler = |column: &Column| if column.is_number { "---:" } else { "---" }.to_owned();
    out.push_str(&line(table.columns.iter().map(ruler).collect()));
    for row in table.rows.iter().take(ROWS_MAX) {
        let cell = |(index, cell): (usize, &Cell)| {
            let text = words(cell.shown(), CELL_CHARS_MAX);
            let is_loud = index == 0 && row.tone == Tone::Bad && !text.is_empty();
            if is_loud { format!("**{text}**") } else { text }
        };
        out.push_str(&line(row.cells.iter().enumerate().map(cell).collect()));
    }
    out.push('\n');
    if table.rows.len() > ROWS_MAX {
        let _ = writeln!(out, "{} more rows are not shown.\n", table.rows.len() - ROWS_MAX);
    }
}

/// Text on one line. If a reader could take a part of it for markup, a link or a mention, all of it is a code span.
fn words(text: &str, chars_max: usize) -> String {
    let text = clip(&printable(text), chars_max);
    let text = text.trim();
    let is_plain = |c: char| c.is_alphanumeric() || " .,:;%()/=+-?'\"".contains(c);
    // A link is made of a plain address, and a list of a plain line.
    let is_odd = text.contains("://") || text.contains("www.") || text.starts_with(['-', '+', '=']);
    if text.chars().all(is_plain) && !is_odd {
        return text.to_owned();
    }
    // A span ends at as many backticks as it began with. In a table, a bar must be escaped even there.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{blank}{}{blank}{fence}", text.replace('|', "\\|"))
}

/// A command in a block of code.
fn fenced(text: &str) -> String {
    let text = clip(text, COMMAND_CHARS_MAX);
    let text: Vec<String> = text.split('\n').map(printable).collect();
    let text = text.join("\n");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}sh\n{text}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::Forms;
    use crate::samples;
    use crate::sections::{Course, sheet};

    #[test]
    fn a_comment_has_verdict_limits_times_classes_and_command() {
        let text = render(&sheet(&samples::good(), &Course::default(), &[Forms::LOAD]));
        for part in [
            "**Valid, 1 limit met, exit 0: these figures describe the target.**",
            "| response p95 | 22.1 ms | `<= 500 ms` | held |",
            "| response | 300 |",
            "| one term |",
            "No request failed.",
            "```sh\nplimsoll load http://127.0.0.1:8080/search/ --rate 100\n```\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn foreign_text_is_no_markup() {
        assert_eq!(words("a@b | <img src=x>", 99), "`a@b \\| <img src=x>`");
        assert_eq!(words("``x`", 99), "``` ``x` ```");
        assert_eq!(words("plain text, 5 %", 99), "plain text, 5 %");
        assert_eq!(words("http://h/\n# x", 99), "`http://h/\\n# x`");
        assert!(fenced("a\n```\nb").starts_with("````sh\n"));
    }

    #[test]
    fn every_row_of_a_table_has_all_columns() {
        let mut record = samples::failed();
        record.classes.insert("a|b\n`c`".to_owned(), record.classes["all"].clone());
        let text = render(&sheet(&record, &Course::default(), &[]));
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        for block in text.split("\n\n").filter(|block| block.starts_with('|')) {
            let widths: Vec<usize> = block.lines().map(bars).collect();
            assert!(widths.iter().all(|width| *width == widths[0]), "{block}");
        }
    }
}
