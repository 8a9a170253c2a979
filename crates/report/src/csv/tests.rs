use super::*;
use crate::samples;

fn table(record: &RunRecord) -> Vec<Vec<String>> {
    let text = render(record, &[]);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}

#[test]
fn one_row_for_the_run_and_one_a_class_in_the_workloads_order() {
    let mut record = samples::good();
    record.job = "a, \"quoted\"\njob".to_owned();
    let rows = table(&record);
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0], columns());
    let at = |row: usize, column: &str| {
        rows[row][columns().iter().position(|name| name == column).unwrap()].as_str()
    };
    assert_eq!(at(1, "job"), "a, \"quoted\"\njob");
    assert_eq!((at(1, "scope"), at(1, "class"), at(1, "ok")), ("run", "", "300"));
    assert_eq!((at(2, "class"), at(3, "class")), ("one term", "fuzzy"));
    assert_eq!((at(2, "scheduled"), at(2, "sent"), at(2, "ok")), ("", "264", "264"));
    assert_eq!(at(1, "response_p99_ms"), record.latency_ms.response.p99.to_string());
    assert_eq!(at(3, "service_max_ms"), record.classes["fuzzy"].latency_ms.service.max.to_string());
    assert_eq!(at(1, "lag_count"), "300");
    assert_eq!(at(1, "bytes_received"), (300 * 4_096).to_string());
    assert_eq!(at(1, "verdict"), "valid");
    let ok = |row| at(row, "ok").parse::<u64>().unwrap();
    assert_eq!(ok(1), ok(2) + ok(3));
}

#[test]
fn the_columns_are_an_interface() {
    insta::assert_snapshot!(columns().join("\n"));
}

#[test]
fn a_cell_is_no_formula_and_a_number_stays_one() {
    for (cell, shown) in [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-x", "'-x"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tx", "'\\tx"),
        ("-1.5", "-1.5"),
        ("+1e3", "+1e3"),
        ("a=b", "a=b"),
        ("a\u{1b}[m", "a\\u{1b}[m"),
        ("", ""),
    ] {
        assert_eq!(inert(cell), shown);
    }
}
