//! Numbers of a page that are unknown, because the tool that measured does not give them.

use crate::sheet::{Cell, Part, Sheet, Table};
use crate::source;
use plimsoll_record::RunRecord;

/// Replaces each number whose place in the record is unknown, and each that is not a number (NaN), by `unknown`. A time that
/// the source rounds to 0 is shown as below its resolution.
pub fn blank_unknown(sheet: &mut Sheet, record: &RunRecord) {
    let Some(import) = record.job_results.import() else { return };
    let below = source::below(import).map(|below| format!("{below} ms"));
    let blank = |cell: &mut Cell| {
        let Cell::Number { value, text, from } = cell else { return };
        if !value.is_finite() || !from.is_empty() && !record.is_known(&path_of(from)) {
            *cell = Cell::Unknown;
        } else if let (Some(below), "0 ms") = (&below, text.as_str()) {
            text.clone_from(below);
        }
    };
    let table = |table: &mut Table| {
        table.rows.iter_mut().flat_map(|row| &mut row.cells).for_each(blank);
    };
    for part in sheet.sections.iter_mut().flat_map(|section| &mut section.parts) {
        match part {
            Part::Facts(facts) => facts.iter_mut().for_each(|(_, cell)| blank(cell)),
            Part::Table(own) => table(own),
            Part::Plot(plot) => table(&mut plot.twin),
            Part::Text(..)
            | Part::Command(_)
            | Part::Samples(_)
            | Part::Flow(_)
            | Part::Bars(_) => {}
        }
    }
}

/// The path of a field from its JSON Pointer. The name of a class, in which a dot can be, becomes `*`.
fn path_of(pointer: &str) -> String {
    let mut steps: Vec<&str> = pointer.split('/').skip(1).collect();
    if let [first, name, ..] = steps.as_mut_slice()
        && *first == "classes"
    {
        *name = "*";
    }
    steps.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_its_place_whatever_its_name() {
        assert_eq!(
            path_of("/classes/a.b~1c/latency_ms/service/p50"),
            "classes.*.latency_ms.service.p50"
        );
        assert_eq!(path_of("/duration_s"), "duration_s");
    }
}
