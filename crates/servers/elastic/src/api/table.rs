//! The way a table of `_cat` is shown: chosen columns, sorted, as text or as JSON.

use super::super::error::ElasticError;
use super::super::names::matches;
use super::{Answer, Outcome, Request};
use serde_json::{Map, Value as Json};
use std::cmp::Ordering;

/// A column.
pub(super) struct Column {
    name: &'static str,
    short: &'static str,
    /// Figures stand at the right.
    right: bool,
    /// Only shown to who asks for it by name.
    hidden: bool,
}

/// A column of words.
pub(super) fn left(name: &'static str, short: &'static str) -> Column {
    Column { name, short, right: false, hidden: false }
}

/// A column of figures.
pub(super) fn right(name: &'static str, short: &'static str) -> Column {
    Column { right: true, ..left(name, short) }
}

impl Column {
    /// The same, not shown by itself.
    pub(super) fn hidden(self) -> Self {
        Self { hidden: true, ..self }
    }
}

/// A table, a text for each column and row.
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
}

/// A figure with its unit as a number; none of a word.
fn figure(text: &str) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "" | "b" | "%" => 0,
        "kb" => 10,
        "mb" => 20,
        "gb" => 30,
        "tb" => 40,
        _ => return None,
    };
    Some(number * (1u64 << unit) as f64)
}

fn compare(a: &str, b: &str) -> Ordering {
    match (figure(a), figure(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        // Figures stand before words, so that the order is one whatever a column holds.
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

impl Table {
    /// Sorts the rows by `a,b:desc`.
    fn sort(&mut self, by: &str) -> Result<(), ElasticError> {
        let mut keys = Vec::new();
        for key in by.split(',') {
            let (name, order) = key.split_once(':').unwrap_or((key, "asc"));
            let own = |column: &Column| name == column.name || name == column.short;
            let column = self.columns.iter().position(own).ok_or_else(|| {
                let reason = format!("Unable to sort by unknown sort key `{name}`");
                ElasticError::new(400, "unsupported_operation_exception", reason)
            })?;
            keys.push((column, order == "desc"));
        }
        self.rows.sort_by(|a, b| {
            let each = keys.iter().map(|&(column, descends)| {
                let order = compare(&a[column], &b[column]);
                if descends { order.reverse() } else { order }
            });
            each.fold(Ordering::Equal, Ordering::then)
        });
        Ok(())
    }

    /// The columns that were asked for, in that order; names that are none are passed over, as in Elasticsearch.
    fn chosen(&self, names: Option<&str>) -> Vec<usize> {
        let numbered = || self.columns.iter().enumerate();
        let Some(names) = names else {
            return numbered().filter(|(_, column)| !column.hidden).map(|(at, _)| at).collect();
        };
        let fits = |name: &str, column: &Column| matches(name, column.name) || name == column.short;
        let of = |name| numbered().filter(move |(_, column)| fits(name, column)).map(|(at, _)| at);
        names.split(',').flat_map(of).collect()
    }
}

/// The table as it was asked for.
pub(super) fn shown(request: &Request<'_>, mut table: Table) -> Outcome {
    if request.params.flag("help") {
        let line = |column: &Column| format!("{} | {}\n", column.name, column.short);
        return Ok(Answer::text(table.columns.iter().map(line).collect()));
    }
    if let Some(by) = request.params.get("s") {
        table.sort(by)?;
    }
    let chosen = table.chosen(request.params.get("h"));
    match request.params.get("format") {
        Some("json") => {
            let rows = table.rows.iter().map(|row| {
                let cells = chosen.iter().map(|&column| {
                    (table.columns[column].name.to_owned(), Json::String(row[column].clone()))
                });
                Json::Object(cells.collect::<Map<_, _>>())
            });
            Ok(Answer::json(&Json::Array(rows.collect())))
        }
        None | Some("" | "text" | "txt") => Ok(Answer::text(text(request, &table, &chosen))),
        Some(other) => Err(ElasticError::unsupported(&format!("format=[{other}]"))),
    }
}

fn text(request: &Request<'_>, table: &Table, chosen: &[usize]) -> String {
    let mut lines: Vec<Vec<&str>> = Vec::new();
    if request.params.flag("v") {
        lines.push(chosen.iter().map(|&column| table.columns[column].name).collect());
    }
    lines.extend(table.rows.iter().map(|row| chosen.iter().map(|&c| row[c].as_str()).collect()));
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..chosen.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).zip(chosen).map(|((cell, &width), &column)| {
            if table.columns[column].right {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        });
        text.push_str(cells.collect::<Vec<_>>().join(" ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::compare;
    use std::cmp::Ordering;

    #[test]
    fn figures_sort_by_what_they_are_worth() {
        for (less, more) in [
            ("9", "10"),
            ("999b", "1.0kb"),
            ("22.0kb", "1.1mb"),
            ("5%", "40%"),
            ("a10", "a9"),
            ("2kb", "2z"),
            ("30", "2z"),
        ] {
            assert_eq!(compare(less, more), Ordering::Less, "{less} {more}");
        }
    }
}
