//! Tables in the form of markdown.

/// A markdown table with aligned columns, which can be pasted, and read back by the importer.
pub fn pipe_table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        rows.iter()
            .filter_map(|row| row.get(at))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
            .max(3)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| format!("{:>width$}", row.get(at).map_or("", String::as_str)))
            .collect();
        format!("| {} |", cells.join(" | "))
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width + 1) + ":").collect();
    if !lines.is_empty() {
        lines.insert(1, format!("|{}|", rule.join("|")));
    }
    lines
}
