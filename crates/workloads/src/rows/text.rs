//! Texts with places for values, filled for one row at a time.

use super::Rows;
use super::template::{TemplateError, first_place};

/// A text with the values of a row in their places, as they are.
///
/// # Errors
/// A place that is not closed or names an unknown column, and a value that is not text.
pub fn fill_text(text: &str, rows: &Rows, row: usize) -> Result<String, TemplateError> {
    let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("{{") {
        filled.push_str(&rest[..at]);
        let own = first_place(&rest.as_bytes()[at..], 0, rows)?;
        filled.push_str(value(rows, row, own.column)?);
        rest = &rest[at + own.length..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// A value as text.
pub(super) fn value(rows: &Rows, row: usize, column: usize) -> Result<&str, TemplateError> {
    let wrong = |what| TemplateError::Value {
        name: rows.names()[column].clone(),
        what,
        place: "SQL",
        advice: "take it out",
        row_line: rows.line(row),
    };
    let text = std::str::from_utf8(rows.value(row, column));
    let text = text.map_err(|_| wrong("byte that is not UTF-8"))?;
    if text.contains('\0') { Err(wrong("NUL character")) } else { Ok(text) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::rows) fn rows(text: &[u8]) -> Rows {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.csv");
        std::fs::write(&path, text).unwrap();
        Rows::load(&path).unwrap()
    }

    #[test]
    fn places_become_values() {
        let own = rows(b"a,b\nx,{{a}}\n\"qu\"\"ote\",2\n");
        assert_eq!(fill_text("{{a}} {{ b }}{{{a}}}.", &own, 0).unwrap(), "x {{a}}x.");
        assert_eq!(fill_text("{{a}}", &own, 1).unwrap(), "qu\"ote");
        assert_eq!(fill_text("nothing", &own, 1).unwrap(), "nothing");
        let told = |text| fill_text(text, &own, 0).unwrap_err().to_string();
        assert_eq!(told("{{c}}"), "'{{c}}' is not a column of the rows; they have a, b");
        assert!(told("{{a}").contains("is not closed"));
        let bad = rows(b"a\n\xff\n\0\n");
        assert!(fill_text("{{a}}", &bad, 0).unwrap_err().to_string().contains("not UTF-8"));
        assert!(fill_text("{{a}}", &bad, 1).unwrap_err().to_string().contains("NUL"));
    }
}
