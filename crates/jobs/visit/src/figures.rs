//! The figures of a visit that a comparison looks at.

use plimsoll_record::RunRecord;
use plimsoll_report::figures::{Figure, Unit, cpu, errors};

/// Returns documents and bytes per second, failed requests, and CPU time of the target; of a matrix, those of each cell.
#[must_use]
pub fn figures(record: &RunRecord) -> Option<Vec<Figure>> {
    let visit = record.job_results.visit()?;
    if !visit.matrix.is_empty() {
        let figure = |cell: &plimsoll_record::visit::VisitCell| {
            let form = if cell.stream { ", stream" } else { "" };
            let at_once =
                cell.concurrency.map_or(String::new(), |most| format!(", {most} at once"));
            let of = format!("{} slices{form}{at_once}", cell.slices);
            Figure::new("documents", Unit::PerS, cell.documents_per_s).of(&of)
        };
        return Some(visit.matrix.iter().map(figure).collect());
    }
    let mut figures = vec![Figure::new("documents", Unit::PerS, visit.documents_per_s)];
    if visit.seconds > 0.0 {
        let bytes_per_s = visit.bytes as f64 / visit.seconds;
        figures.push(Figure::new("bytes", Unit::BytesPerS, bytes_per_s));
    }
    figures.extend(errors(record));
    figures.extend(cpu(record));
    Some(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::visit::{VisitCell, VisitResult};
    use plimsoll_report::samples;

    /// A cell of a large corpus is cut off when its time is over.
    #[test]
    fn each_cell_of_a_measurement_has_a_rate() {
        let cell = |slices, whole, documents_per_s| VisitCell {
            slices,
            whole,
            documents_per_s,
            ..VisitCell::default()
        };
        let matrix = vec![cell(1, true, 900.0), cell(4, false, 2500.0)];
        let mut record = samples::good();
        record.job_results.put(VisitResult { matrix, ..VisitResult::default() });
        let figures = figures(&record).unwrap();
        let rates: Vec<_> = figures.iter().map(|one| (one.of.as_str(), one.value)).collect();
        assert_eq!(rates, [("1 slices", 900.0), ("4 slices", 2500.0)]);
    }
}
