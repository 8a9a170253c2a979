//! The page under the text: a gutter for labels, hanging lines, aligned tables, colour when asked.

use comfy_table::{CellAlignment, Table};

/// Columns that labels take.
const GUTTER: usize = 11;
/// A page narrower than this is treated as this wide: nothing reads well below.
const WIDTH_MIN: usize = 40;

/// Form of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours; only for terminals.
    pub colour: bool,
    /// Columns of the page; fewer than 40 count as 40.
    pub width: usize,
    /// True if a file of the result could not be written, which decides the exit code.
    pub lost_file: bool,
}

impl Default for Style {
    /// The style for a pipe or a file: no colour, 100 columns.
    fn default() -> Self {
        Self { colour: false, width: 100, lost_file: false }
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

/// Text that grows line by line.
#[derive(Debug)]
pub struct Page<'a> {
    out: String,
    style: &'a Style,
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
        Self { out: String::new(), style }
    }

    /// Columns of the page.
    #[must_use]
    pub fn width(&self) -> usize {
        self.style.width.max(WIDTH_MIN)
    }

    /// Returns the text.
    #[must_use]
    pub fn finish(self) -> String {
        self.out
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.out.push('\n');
    }

    /// Adds a line, however long it is.
    pub fn line(&mut self, text: &str, tone: Tone) {
        self.out.push_str(&self.paint(text.trim_end(), tone));
        self.out.push('\n');
    }

    /// A remark under a table, on as many lines as it takes.
    pub fn note(&mut self, text: &str) {
        for line in wrap(text, self.width()) {
            self.line(&line, Tone::Plain);
        }
    }

    /// A label in the gutter and its text beside it, on as many lines as it takes.
    pub fn entry(&mut self, label: &str, text: &str, tone: Tone) {
        let room = self.width() - GUTTER;
        for (index, line) in wrap(text, room).iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            self.out.push_str(&format!("{label:<GUTTER$}{}\n", self.paint(line, tone)));
        }
    }

    /// A table without rules; the head is strong, and columns for which the page has no room are left out.
    pub fn table(&mut self, columns: &[Column], rows: &[(Vec<String>, Tone)]) {
        let mut kept: Vec<usize> = (0..columns.len()).collect();
        let mut lines = grid(columns, rows, &kept);
        while lines.iter().any(|line| line.chars().count() > self.width()) {
            let next = kept.iter().copied().filter(|&i| columns[i].goes > 0);
            let Some(next) = next.min_by_key(|&i| columns[i].goes) else { break };
            kept.retain(|&i| i != next);
            lines = grid(columns, rows, &kept);
        }
        let tones = std::iter::once(Tone::Strong).chain(rows.iter().map(|(_, tone)| *tone));
        for (line, tone) in lines.iter().zip(tones) {
            self.line(line, tone);
        }
    }

    /// Columns of the page that a table leaves free for the cells of its last column.
    #[must_use]
    pub fn room_beside(&self, columns: &[Column], rows: &[(Vec<String>, Tone)]) -> usize {
        let kept: Vec<usize> = (0..columns.len()).collect();
        let head = columns.last().map_or(0, |last| last.name.chars().count());
        let lines = grid(columns, rows, &kept);
        let widest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        (self.width() + head).saturating_sub(widest)
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

/// Breaks at blanks; a word longer than the room stands on a line of its own.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is always one line");
        let taken = last.chars().count();
        if taken == 0 {
            last.push_str(word);
        } else if taken + 1 + word.chars().count() <= room {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}
