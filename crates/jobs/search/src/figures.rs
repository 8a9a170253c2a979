//! The figures of a matrix that a comparison looks at: the rate of each cell.

use plimsoll_record::RunRecord;
use plimsoll_record::search::Cell;
use plimsoll_report::figures::{Figure, Unit};

/// Returns the rate of each cell that has one, and the 95th percentile of its response times.
#[must_use]
pub fn figures(record: &RunRecord) -> Option<Vec<Figure>> {
    let search = record.job_results.search()?;
    let of_cell = |cell: &Cell| {
        let of = cell.key.to_string();
        let rate = cell.ok_per_s.map(|rate| Figure::new("rate", Unit::PerS, rate).of(&of));
        let p95 = Some(cell.latency_ms.p95).filter(|p95| *p95 > 0.0 && rate.is_some());
        let p95 = p95.map(|p95| Figure::new("p95", Unit::Ms, p95).of(&of));
        rate.into_iter().chain(p95)
    };
    Some(search.cells.iter().flat_map(of_cell).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed_table::read;
    use plimsoll_report::samples;

    #[test]
    fn each_cell_with_a_number_has_a_rate() {
        let text = "### old: edit distance 2, index of 5 shards\n| Users | 1GB | 5GB |\n|---|---|---|\n| 1 | 4.0 | - |\n| 5 | 9.0 | 3.0 |";
        let mut record = samples::good();
        assert_eq!(figures(&record), None);
        record.job_results.put(read(text, "t", 60.0).unwrap());
        let figures = figures(&record).unwrap();
        let rates: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
        assert_eq!(rates, [4.0, 9.0, 3.0]);
        assert!(figures.iter().all(|figure| figure.metric == "rate" && figure.of.contains("old")));
    }
}
