//! The page under the text: a gutter for labels, hanging lines, aligned tables, colour when asked.

use crate::plain::{clip, columns_of};
use comfy_table::{CellAlignment, Table};

/// Columns that labels take.
const GUTTER: usize = 11;
/// A page narrower than this is treated as this wide: nothing reads well below.
const WIDTH_MIN: usize = 40;
/// Fewest columns to which a column of names is cut so that its table fits the page.
const NAMES_MIN: usize = 8;

/// Form of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours; only for terminals.
    pub colour: bool,
    /// Columns of the page; fewer than 40 count as 40.
    pub width: usize,
    /// True for a page with everything that the record holds, not only what a person needs first.
    pub verbose: bool,
    /// True if a file of the result could not be written, which decides the exit code.
    pub lost_file: bool,
}

impl Default for Style {
    /// The style for a pipe or a file: no colour, 100 columns.
    fn default() -> Self {
        Self { colour: false, width: 100, verbose: false, lost_file: false }
    }
}

/// Emphasis of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As the rest of the page.
    Plain,
    /// A headline or the head of a table.
    Strong,
    /// Good news.
    Good,
    /// A remark to read before the figures are used.
    Warn,
    /// A failure.
    Bad,
}

/// Text that grows line by line, with the result in figures and the alerts kept apart: both stand above everything else.
#[derive(Debug)]
pub struct Page<'a> {
    out: String,
    headline: Vec<(String, Tone)>,
    alerts: Vec<Alert>,
    /// True if the last line is the heading of what follows.
    is_headed: bool,
    style: &'a Style,
}

/// A line that a reader must know before the figures: a failure, a limit, a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// The word in the gutter.
    pub label: &'static str,
    /// The text beside it.
    pub text: String,
    /// Its emphasis.
    pub tone: Tone,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its head.
    pub name: &'static str,
    /// Numbers stand to the right, names to the left.
    pub right: bool,
    /// Columns go in this order, the smallest first, when the page is too narrow; 0 stays always.
    pub goes: u8,
}

impl Column {
    /// A column of names; it stays on every page.
    #[must_use]
    pub const fn text(name: &'static str) -> Self {
        Self { name, right: false, goes: 0 }
    }

    /// A column of numbers, with its place in the order in which columns are left out.
    #[must_use]
    pub const fn number(name: &'static str, goes: u8) -> Self {
        Self { name, right: true, goes }
    }
}

impl<'a> Page<'a> {
    /// An empty page.
    #[must_use]
    pub fn new(style: &'a Style) -> Self {
        let (headline, alerts) = (Vec::new(), Vec::new());
        Self { out: String::new(), headline, alerts, is_headed: false, style }
    }

    /// Form of the page.
    pub(crate) fn style(&self) -> &'a Style {
        self.style
    }

    /// True if the page has everything that the record holds.
    #[must_use]
    pub fn is_verbose(&self) -> bool {
        self.style.verbose
    }

    /// Columns of the page.
    #[must_use]
    pub fn width(&self) -> usize {
        self.style.width.max(WIDTH_MIN)
    }

    /// Returns the text, without the headline and the alerts.
    #[must_use]
    pub fn finish(mut self) -> String {
        while self.out.ends_with("\n\n") {
            self.out.pop();
        }
        self.out
    }

    /// Takes the headline and the alerts out of the page.
    pub(crate) fn take_top(&mut self) -> (Vec<(String, Tone)>, Vec<Alert>) {
        (std::mem::take(&mut self.headline), std::mem::take(&mut self.alerts))
    }

    /// Adds the text of another page, after an empty line.
    pub(crate) fn append(&mut self, other: Page<'_>) {
        self.blank();
        self.is_headed = other.is_headed;
        self.out.push_str(&other.finish());
    }

    /// Adds the heading of what follows, which no empty line parts from it.
    pub fn heading(&mut self, text: &str) {
        self.line(text, Tone::Strong);
        self.is_headed = true;
    }

    /// Adds the outcome, which the eye must land on.
    pub(crate) fn outcome(&mut self, label: &str, text: &str, tone: Tone) {
        for (index, line) in wrap(text, self.width() - GUTTER).iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let painted = self.paint(line, tone);
            let strong = self.paint(&painted, Tone::Strong);
            self.out.push_str(&format!("{label:<GUTTER$}{strong}\n"));
        }
    }

    /// Says the result in figures: it stands right below the outcome.
    pub fn headline(&mut self, text: &str, tone: Tone) {
        self.headline.push((text.to_owned(), tone));
    }

    /// Says what a reader must know before the figures: it stands above all tables.
    pub fn alert(&mut self, label: &'static str, text: &str, tone: Tone) {
        self.alerts.push(Alert { label, text: text.to_owned(), tone });
    }

    /// Adds an empty line, but neither a first nor a second one.
    pub fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") && !self.is_headed {
            self.out.push('\n');
        }
    }

    /// A line, on as many as it takes; what does not fit on the first stands further to the right.
    pub fn line(&mut self, text: &str, tone: Tone) {
        let indent = text.chars().take_while(|c| *c == ' ').count();
        let hang = if indent == 0 { GUTTER } else { indent + 2 };
        let (text, room) = (text.trim(), self.width());
        if indent + columns_of(text) <= room {
            return self.put(&format!("{:indent$}{text}", ""), tone);
        }
        let mut lines = wrap(text, room - indent.min(room / 2));
        let first = lines.remove(0);
        self.put(&format!("{:indent$}{first}", ""), tone);
        for line in wrap(&lines.join(" "), room - hang.min(room / 2)) {
            self.put(&format!("{:hang$}{line}", ""), tone);
        }
    }

    /// Adds a line as it is.
    fn put(&mut self, text: &str, tone: Tone) {
        self.is_headed = false;
        self.out.push_str(&self.paint(text.trim_end(), tone));
        self.out.push('\n');
    }

    /// A remark under a table, on as many lines as it takes.
    pub fn note(&mut self, text: &str) {
        for line in wrap(text, self.width()) {
            self.put(&line, Tone::Plain);
        }
    }

    /// A label in the gutter and its text beside it, on as many lines as it takes.
    pub fn entry(&mut self, label: &str, text: &str, tone: Tone) {
        let room = self.width() - GUTTER;
        self.is_headed = false;
        for (index, line) in wrap(text, room).iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            self.out.push_str(&format!("{label:<GUTTER$}{}\n", self.paint(line, tone)));
        }
    }

    /// A table without rules; the head is strong. If the page is too narrow, columns are left out in their order, and then
    /// names are cut.
    pub fn table(&mut self, columns: &[Column], rows: &[(Vec<String>, Tone)]) {
        let mut kept: Vec<usize> = (0..columns.len()).collect();
        let mut lines = grid(columns, rows, &kept);
        while widest(&lines) > self.width() {
            let next = kept.iter().copied().filter(|&i| columns[i].goes > 0);
            let Some(next) = next.min_by_key(|&i| columns[i].goes) else { break };
            kept.retain(|&i| i != next);
            lines = grid(columns, rows, &kept);
        }
        let over = widest(&lines).saturating_sub(self.width());
        if over > 0 {
            lines = grid(columns, &with_shorter_names(columns, rows, over), &kept);
        }
        let tones = std::iter::once(Tone::Strong).chain(rows.iter().map(|(_, tone)| *tone));
        for (line, tone) in lines.iter().zip(tones) {
            self.put(line, tone);
        }
    }

    /// Columns of the page that a table leaves free for the cells of its last column.
    #[must_use]
    pub fn room_beside(&self, columns: &[Column], rows: &[(Vec<String>, Tone)]) -> usize {
        let kept: Vec<usize> = (0..columns.len()).collect();
        let head = columns.last().map_or(0, |last| columns_of(last.name));
        (self.width() + head).saturating_sub(widest(&grid(columns, rows, &kept)))
    }

    fn paint(&self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "31",
        };
        if self.style.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn grid(columns: &[Column], rows: &[(Vec<String>, Tone)], kept: &[usize]) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(kept.iter().map(|&i| columns[i].name));
    for (cells, _) in rows {
        table.add_row(kept.iter().map(|&i| cells[i].as_str()));
    }
    for (place, &index) in kept.iter().enumerate() {
        if let Some(column) = table.column_mut(place) {
            let right = columns[index].right;
            column.set_padding(if place == 0 { (0, 0) } else { (2, 0) });
            column.set_cell_alignment(if right {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            });
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

fn widest(lines: &[String]) -> usize {
    lines.iter().map(|line| columns_of(line)).max().unwrap_or(0)
}

/// The rows with the longest names cut by `over` columns, as far as that leaves something to read.
fn with_shorter_names(
    columns: &[Column],
    rows: &[(Vec<String>, Tone)],
    over: usize,
) -> Vec<(Vec<String>, Tone)> {
    let longest = |index: &usize| rows.iter().map(|(cells, _)| columns_of(&cells[*index])).max();
    let names = (0..columns.len()).filter(|&index| !columns[index].right);
    let Some(index) = names.max_by_key(longest) else { return rows.to_owned() };
    let room = longest(&index).unwrap_or(0).saturating_sub(over).max(NAMES_MIN);
    let mut rows = rows.to_owned();
    for (cells, _) in &mut rows {
        cells[index] = clip(&cells[index], room);
    }
    rows
}

/// Breaks at blanks. A word longer than the room is broken too, unless it is an address or a path, which is good for
/// nothing in two parts.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut taken = 0;
    for word in text.split(' ').flat_map(|word| pieces(word, room)) {
        let wide = columns_of(&word);
        let last = lines.last_mut().expect("there is always one line");
        if taken == 0 {
            last.push_str(&word);
            taken = wide;
        } else if taken + 1 + wide <= room {
            last.push(' ');
            last.push_str(&word);
            taken += 1 + wide;
        } else {
            lines.push(word);
            taken = wide;
        }
    }
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}

/// The parts of a word of which each fits the room.
fn pieces(word: &str, room: usize) -> Vec<String> {
    if columns_of(word) <= room || word.contains('/') {
        return vec![word.to_owned()];
    }
    let mut pieces = vec![String::new()];
    let mut taken = 0;
    for c in word.chars() {
        let wide = columns_of(c.encode_utf8(&mut [0; 4]));
        if taken + wide > room {
            pieces.push(String::new());
            taken = 0;
        }
        taken += wide;
        if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: usize, write: impl FnOnce(&mut Page<'_>)) -> String {
        let style = Style { width, ..Style::default() };
        let mut page = Page::new(&style);
        write(&mut page);
        page.finish()
    }

    #[test]
    fn empty_lines_separate_and_never_pile_up() {
        let text = page(60, |page| {
            page.blank();
            page.line("a", Tone::Plain);
            page.blank();
            page.blank();
            page.line("b", Tone::Plain);
            page.blank();
            page.blank();
        });
        assert_eq!(text, "a\n\nb\n");
    }

    #[test]
    fn a_long_line_continues_to_the_right_of_its_beginning() {
        let words = "one two three four five six seven eight nine ten";
        let text = page(40, |page| {
            page.line(words, Tone::Plain);
            page.line(&format!("  {words}"), Tone::Plain);
        });
        assert_eq!(
            text,
            "one two three four five six seven eight\n           nine ten\n  \
             one two three four five six seven\n    eight nine ten\n"
        );
    }

    #[test]
    fn a_path_is_never_broken_and_any_other_long_word_is() {
        let path = format!("/{}", "x".repeat(60));
        let word = "y".repeat(60);
        let text = page(40, |page| {
            page.entry("Record", &path, Tone::Plain);
            page.note(&word);
        });
        assert_eq!(text, format!("Record     {path}\n{}\n{}\n", "y".repeat(40), "y".repeat(20)));
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let text = page(40, |page| page.note(&"日本 ".repeat(20)));
        let widest = text.lines().map(columns_of).max();
        assert_eq!(widest, Some(39), "{text}");
    }

    #[test]
    fn a_table_loses_columns_and_then_the_ends_of_names() {
        let columns = [Column::text("Name"), Column::number("count", 0), Column::number("mean", 1)];
        let cells =
            ["a name that takes more columns than there are".to_owned(), "1".into(), "2".into()];
        let text = page(40, |page| page.table(&columns, &[(cells.to_vec(), Tone::Plain)]));
        assert!(!text.contains("mean") && text.contains("..."), "{text}");
        assert!(text.lines().all(|line| columns_of(line) <= 40), "{text}");
    }
}
