//! A table that reads well on a terminal and is Markdown as it stands.

/// Rows of text under a header.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns; the first is aligned left, the others right.
    pub fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The whole table as text.
    pub fn render(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
        };
        let widths: Vec<usize> =
            (0..columns).map(|column| width(column).unwrap_or(0).max(3)).collect();
        let mut out = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            out.push('|');
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                let padded = match column {
                    0 => format!(" {cell:<width$} |"),
                    _ => format!(" {cell:>width$} |"),
                };
                out.push_str(&padded);
            }
            out.push('\n');
            if at == 0 {
                out.push('|');
                for (column, width) in widths.iter().enumerate() {
                    let (dashes, end) =
                        ("-".repeat(width + 1), if column == 0 { "-" } else { ":" });
                    out.push_str(&format!("{dashes}{end}|"));
                }
                out.push('\n');
            }
        }
        out
    }
}
