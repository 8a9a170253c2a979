//! A search matrix as CSV: a row a cell, then a row for each query of each cell.

use plimsoll_core::histogram::LatencySummary;
use plimsoll_record::search::{Cell, QueryCell, SearchResult};

/// The columns.
const COLUMNS: [&str; 25] = [
    "scope",
    "engine",
    "distance",
    "shards",
    "size",
    "users",
    "query",
    "ok_per_s",
    "raw_ok_per_s",
    "low_per_s",
    "high_per_s",
    "ok",
    "failed",
    "timed_out",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "mean_ms",
    "implied_ms",
    "little",
    "server_cpu_ms_per_request",
    "hits",
    "marks",
    "reason",
];

/// All rows, the head first.
pub fn rows(search: &SearchResult) -> Vec<Vec<String>> {
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    for cell in &search.cells {
        rows.push(cell_row(cell));
        rows.extend(cell.queries.iter().map(|query| query_row(cell, query)));
    }
    rows
}

fn known(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn place(cell: &Cell, scope: &str, query: &str) -> Vec<String> {
    let key = &cell.key;
    vec![
        scope.to_owned(),
        key.engine.clone(),
        key.distance.to_string(),
        key.shards.to_string(),
        key.size.clone(),
        key.users.to_string(),
        query.to_owned(),
    ]
}

/// A time where something was timed: 0 ms would look like a very fast answer.
fn timed(count: u64, ms: f64) -> String {
    if count > 0 { ms.to_string() } else { String::new() }
}

fn times(times: &LatencySummary) -> Vec<String> {
    [times.p50, times.p95, times.p99, times.max].map(|ms| timed(times.count, ms)).to_vec()
}

fn cell_row(cell: &Cell) -> Vec<String> {
    let mut row = place(cell, "cell", "");
    // Of what was not measured here, printed tables and cells withheld before they began, there is nothing to count.
    let measured = !cell.repeats.is_empty();
    let counted = |number: u64| if measured { number.to_string() } else { String::new() };
    row.extend([
        known(cell.ok_per_s),
        known(Some(cell.raw_ok_per_s).filter(|_| measured || cell.ok_per_s.is_some())),
        known(cell.interval_per_s.map(|[low, _]| low)),
        known(cell.interval_per_s.map(|[_, high]| high)),
        counted(cell.ok),
        counted(cell.failed),
        counted(cell.timed_out),
    ]);
    row.extend(times(&cell.latency_ms));
    row.extend([
        timed(cell.repeats.iter().map(|one| one.ok).sum(), cell.mean_ms),
        known(cell.implied_ms),
        known(cell.little),
        known(cell.server_cpu_ms_per_request),
        String::new(),
        cell.marks.join("; "),
        cell.reason.clone().unwrap_or_default(),
    ]);
    row
}

fn query_row(cell: &Cell, query: &QueryCell) -> Vec<String> {
    let mut row = place(cell, "query", &query.name);
    row.extend(vec![String::new(); 4]);
    row.extend([query.ok.to_string(), query.failed.to_string(), String::new()]);
    row.extend(times(&query.latency_ms));
    row.push(timed(query.latency_ms.count, query.latency_ms.mean));
    row.extend(vec![String::new(); 3]);
    row.push(query.hits.map_or(String::new(), |hits| hits.to_string()));
    row.push(if query.hits_varied { "hits varied".to_owned() } else { String::new() });
    row.push(query.refused.clone().unwrap_or_default());
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::search::Repeat;

    #[test]
    fn every_row_has_all_columns() {
        let mut search = crate::page::tests::sample();
        search.cells[0].queries.push(QueryCell { name: "q".to_owned(), ..QueryCell::default() });
        let rows = rows(&search);
        assert_eq!(rows.len(), 6);
        assert!(rows.iter().all(|row| row.len() == COLUMNS.len()), "{rows:?}");
        assert_eq!((rows[1][7].as_str(), rows[2][6].as_str()), ("0.847", "q"));
        assert!(rows[5][24].contains("timeout 3"));
    }

    #[test]
    fn what_was_not_measured_has_no_figures() {
        let mut search = crate::page::tests::sample();
        let of = |search: &SearchResult, row: usize, name: &str| {
            let at = COLUMNS.iter().position(|column| *column == name).unwrap();
            rows(search)[row][at].clone()
        };
        for name in ["raw_ok_per_s", "ok", "failed", "p50_ms", "p99_ms", "mean_ms"] {
            assert_eq!(of(&search, 4, name), "", "{name} of a cell that was never begun");
        }
        assert_eq!(of(&search, 1, "raw_ok_per_s"), "0.847", "a printed one");
        search.cells[0].repeats.push(Repeat { ok: 3, ..Repeat::default() });
        search.cells[0].latency_ms = LatencySummary { count: 3, p50: 1.5, ..Default::default() };
        let told = ["ok", "failed", "p50_ms", "mean_ms"].map(|name| of(&search, 1, name));
        assert_eq!(told, ["0", "0", "1.5", "0"]);
    }
}
