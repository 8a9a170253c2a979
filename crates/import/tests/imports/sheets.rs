//! The page of an import as data, as HTML shows it, and as Markdown: each figure is one of the file, and what the file does not
//! tell is unknown or left out.

use super::{all_files, bytes, import_bytes};
use plimsoll_import::record::{About, record_of};
use plimsoll_import::{FORMS, Imported};
use plimsoll_record::{RunRecord, Sink as _};
use plimsoll_report::sections::{Course, sheet};
use plimsoll_report::sheet::{Cell, Part, Plot, PlotKind, Sheet, Table};
use serde_json::Value;

/// Record and page of a file.
fn shown(file: &str, bytes: &[u8]) -> (RunRecord, Sheet) {
    let (format, imported) = import_bytes(bytes).unwrap();
    let about = About { file: file.to_owned(), format: format.name(), ..About::default() };
    let record = record_of(&imported, &about);
    let sheet = sheet(&record, &course(&imported), &[FORMS]);
    (record, sheet)
}

fn of(file: &str) -> (RunRecord, Sheet) {
    shown(file, &bytes(file))
}

fn course(imported: &Imported) -> Course {
    let mut course = Course::default();
    if let Some(seconds) = &imported.seconds {
        seconds.each(|interval| course.interval(interval)).unwrap();
    }
    course
}

fn tables(sheet: &Sheet) -> impl Iterator<Item = &Table> {
    let parts = sheet.sections.iter().flat_map(|section| &section.parts);
    parts.filter_map(|part| match part {
        Part::Table(table) => Some(table),
        Part::Plot(plot) => Some(&plot.twin),
        _ => None,
    })
}

/// All values of the page.
fn cells(sheet: &Sheet) -> Vec<&Cell> {
    let mut cells: Vec<&Cell> =
        tables(sheet).flat_map(|table| &table.rows).flat_map(|row| &row.cells).collect();
    for part in sheet.sections.iter().flat_map(|section| &section.parts) {
        if let Part::Facts(facts) = part {
            cells.extend(facts.iter().map(|(_, cell)| cell));
        }
    }
    cells
}

/// The path in `import.unknown` of a JSON Pointer.
fn path(pointer: &str) -> String {
    let mut steps: Vec<&str> = pointer.split('/').skip(1).collect();
    if steps[0] == "classes" {
        steps[1] = "*";
    }
    steps.join(".")
}

#[test]
fn each_figure_of_a_page_is_known_and_equals_the_record() {
    for (file, bytes) in all_files() {
        let (record, sheet) = shown(&file, &bytes);
        let value: Value = serde_json::from_str(&plimsoll_report::json::pretty(&record)).unwrap();
        let mut checked = 0;
        for cell in cells(&sheet) {
            let Cell::Number { value: number, text, from } = cell else { continue };
            assert!(number.is_finite(), "{file}: {text} {from}");
            if from.is_empty() {
                continue;
            }
            assert!(record.is_known(&path(from)), "{file}: {from} is unknown, not {text}");
            let kept = value.pointer(from).unwrap_or_else(|| panic!("{file}: no {from}"));
            let is_count = kept.is_u64() && kept.as_u64().unwrap() as f64 == *number;
            assert!(is_count || kept.as_f64() == Some(*number), "{file}: {from} {kept} {text}");
            checked += 1;
        }
        assert!(checked > 4, "{file}: {checked}");
    }
}

/// The value in the second column of the row with this name.
#[track_caller]
fn value<'a>(sheet: &'a Sheet, section: &str, row: &str) -> &'a str {
    let section = sheet.section(section).unwrap_or_else(|| panic!("no section {section}"));
    let rows = section.parts.iter().filter_map(|part| match part {
        Part::Table(table) => Some(&table.rows),
        _ => None,
    });
    let cells = rows.flatten().map(|row| &row.cells);
    let found = cells.clone().find(|cells| cells[0].shown() == row);
    found.unwrap_or_else(|| panic!("no row {row} in {section:?}"))[1].shown()
}

#[test]
fn lag_and_ledger_are_unknown_where_the_file_does_not_tell_them() {
    for (file, bytes) in all_files() {
        let (record, sheet) = shown(&file, &bytes);
        for (row, path) in [
            ("scheduled", "ledger.scheduled"),
            ("sent", "ledger.sent"),
            ("refused: queue full", "ledger.refused"),
            ("refused: queue timeout", "ledger.refused"),
            ("unsent", "ledger.unsent"),
            ("ok", "ledger.ok"),
            ("unfinished", "ledger.unfinished"),
        ] {
            let shown = value(&sheet, "ledger", row);
            assert_eq!(shown == "unknown", !record.is_known(path), "{file}: {row} {shown}");
        }
        let failed = record.job_results.import().unwrap().failed;
        assert_eq!(value(&sheet, "ledger", "failed") == "unknown", failed.is_none(), "{file}");
        assert_eq!(value(&sheet, "decide", "failed requests") == "unknown", failed.is_none());
        assert_eq!(value(&sheet, "decide", "lag of the generator p99"), "unknown", "{file}");
        assert_eq!(value(&sheet, "curve", "lag"), "unknown", "{file}");
        let flows = sheet.sections.iter().flat_map(|section| &section.parts);
        assert_eq!(flows.filter(|part| matches!(part, Part::Flow(_))).count(), 0, "{file}");
        let markdown = plimsoll_report::markdown::render(&sheet);
        assert!(markdown.contains("| lag of the generator p99 | unknown |"), "{markdown}");
        assert!(!markdown.contains("NaN") && !markdown.contains("inf "), "{file}: {markdown}");
    }
}

/// Names of the lines of a plot.
fn lines(plot: &Plot) -> Vec<&str> {
    match &plot.kind {
        PlotKind::Lines(lines) | PlotKind::Curve(lines) | PlotKind::Scatter(lines) => {
            lines.lines.iter().map(|line| line.label.as_str()).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn no_plot_has_a_line_of_what_the_file_does_not_tell() {
    let mut with_seconds = 0;
    for (file, bytes) in all_files() {
        let (record, sheet) = shown(&file, &bytes);
        let import = record.job_results.import().unwrap();
        let ids: Vec<&str> = sheet.plots().map(|plot| plot.id.as_str()).collect();
        for id in ["lag", "connections", "traffic", "cpu"] {
            assert!(!ids.contains(&id), "{file}: {ids:?}");
        }
        for plot in sheet.plots() {
            let names = lines(plot);
            assert!(!names.contains(&"offered") && !names.contains(&"refused or unsent"), "{file}");
            if plot.id == "throughput" {
                assert_eq!(names.contains(&"failed"), import.failed.is_some(), "{file}");
            }
            if plot.id == "curve" {
                assert_eq!(names, import.times, "{file}");
            }
            let PlotKind::Lines(all) = &plot.kind else { continue };
            for line in &all.lines {
                let is_known = line.y.numbers.iter().any(Option::is_some);
                assert!(is_known, "{file}: {} {}", plot.id, line.label);
            }
        }
        assert_eq!(ids.contains(&"throughput"), import.has_seconds, "{file}: {ids:?}");
        with_seconds += usize::from(import.has_seconds);
        // One sentence says why they are missing.
        let health = sheet.section("health").unwrap();
        let [Part::Text(_, text)] = health.parts.as_slice() else { panic!("{health:?}") };
        assert!(text.starts_with("Unknown: lag, CPU, connections and traffic"), "{text}");
    }
    assert!(with_seconds > 10, "{with_seconds}");
}

/// Times that count from the send have plots of their own, which a page of response times alone does not have.
#[test]
fn a_log_of_service_times_has_plots_of_them() {
    let (_, sheet) = of("k6.ndjson");
    let ids: Vec<&str> = sheet.plots().map(|plot| plot.id.as_str()).collect();
    assert_eq!(ids, ["throughput", "latency", "heat", "curve", "latency-rate"]);
    assert_eq!(lines(sheet.plots().nth(1).unwrap()), ["p50", "p90", "p99", "max", "failed max"]);
    assert_eq!(sheet.section("latency").unwrap().title, "Service time");
    assert_eq!(sheet.section("heat").unwrap().title, "Heat map of service times");
    let (_, sheet) = of("vegeta-mixed-results.csv");
    assert!(sheet.section("latency").is_some());
}

/// The expected values are read in the text of wrk, ab, hey and k6.
#[test]
fn pages_have_the_figures_of_the_text() {
    for (file, section, row, expected) in [
        ("wrk-latency.txt", "decide", "successful requests/s", "491/s"),
        ("wrk-latency.txt", "decide", "offered requests/s", "unknown"),
        ("wrk-latency.txt", "decide", "service p50", "7.67 ms"),
        ("wrk-latency.txt", "decide", "service p95", "unknown"),
        ("wrk-latency.txt", "decide", "service p99", "40.4 ms"),
        ("wrk-latency.txt", "decide", "service max", "63.5 ms"),
        ("wrk-latency.txt", "decide", "failed requests", "0"),
        ("wrk-latency.txt", "ledger", "sent", "1,473"),
        ("ab-errors.txt", "decide", "failed requests", "30"),
        ("ab-errors.txt", "decide", "service p50", "<0.5 ms"),
        ("ab-errors.txt", "failures", "status other than 2xx", "30"),
        ("ab-percentiles.csv", "decide", "successful requests/s", "unknown"),
        ("ab-percentiles.csv", "decide", "service p99", "39.6 ms"),
        ("ab-percentiles.csv", "curve", "service", "unknown"),
        ("hey-errors.txt", "failures", "status 404", "20"),
        ("k6-handle-summary.json", "decide", "failed requests", "12"),
        ("k6-handle-summary.json", "decide", "service p99", "unknown"),
        ("k6.ndjson", "classes", "home", "61"),
        ("hdr-tags.hlog", "classes", "read", "unknown"),
    ] {
        assert_eq!(value(&of(file).1, section, row), expected, "{file}: {section} {row}");
    }
}

#[test]
fn percentiles_that_were_printed_are_a_curve_with_a_table() {
    let (_, sheet) = of("wrk-latency.txt");
    let plot = sheet.plots().find(|plot| plot.id == "printed").unwrap();
    let rows: Vec<Vec<&str>> =
        plot.twin.rows.iter().map(|row| row.cells.iter().map(Cell::shown).collect()).collect();
    // `50% 7.67ms`, `75% 13.29ms`, `90% 20.54ms` and `99% 40.38ms` in the file.
    let expected = [["50", "7.67 ms"], ["75", "13.3 ms"], ["90", "20.5 ms"], ["99", "40.4 ms"]];
    assert_eq!(rows, expected);
    let PlotKind::Curve(curve) = &plot.kind else { panic!("no curve") };
    let points = |values: &[Option<f64>]| values.iter().map(|v| v.unwrap()).collect::<Vec<_>>();
    assert_eq!(points(&curve.lines[0].y.numbers), [7.67, 13.29, 20.54, 40.38]);
    let x = points(&curve.lines[0].x.as_ref().unwrap().numbers);
    assert!((x[0] - 2.0).abs() < 1e-9 && (x[3] - 100.0).abs() < 1e-6, "{x:?}");
}

#[test]
fn the_title_names_tool_and_file_and_never_the_time_of_the_import_as_its_start() {
    let (_, sheet) = of("wrk-latency.txt");
    assert_eq!(sheet.title, "import wrk: http://127.0.0.1:8097/");
    assert_eq!(
        sheet.when,
        "measured for 3.0 s at an unknown time; read from wrk-latency.txt (wrk)"
    );
    let (_, sheet) = of("ab-percentiles.csv");
    assert_eq!(sheet.when, "measured at an unknown time; read from ab-percentiles.csv (ab-csv)");
}

/// Numbers of a text.
fn numbers(text: &str) -> Vec<f64> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .filter_map(|word| word.trim_matches('.').parse().ok())
        .collect()
}

/// Units of times and bytes in the files, as factors.
const UNITS: [f64; 8] = [1.0, 1e3, 1e-3, 1e6, 1e-6, 1024.0, 1_048_576.0, 60.0];

/// True if a figure is a number of the file, in a unit and to the digits that are printed; of a rate, a count over a time.
fn is_of_the_text(figure: f64, pointer: &str, text: &[f64], record: &RunRecord) -> bool {
    let near = |one: f64| (one - figure).abs() <= figure.abs() * 1e-4;
    let is_rate = pointer.contains("_per_s");
    text.iter().any(|number| {
        UNITS.iter().any(|unit| near(number * unit)) || is_rate && near(number / record.duration_s)
    })
}

/// Figures that follow from the file and do not stand in it.
const DERIVED: [(&str, &str); 12] = [
    // No reply of an error and no error in the lists of them.
    ("oha.json", "/import/failed"),
    ("oha.json", "/ledger/unfinished"),
    // No line 'Non-2xx or 3xx responses' and none of socket errors.
    ("wrk-latency.txt", "/import/failed"),
    ("wrk-plain.txt", "/import/failed"),
    // As many replies as failures.
    ("wrk-errors.txt", "/rate/ok_per_s"),
    ("wrk-errors.txt", "/ledger/ok"),
    // The length: seconds with more digits than shown, minutes and seconds, a count over a rate.
    ("oha-errors.txt", "/duration_s"),
    ("k6-summary-export.json", "/duration_s"),
    ("vegeta-report.json", "/duration_s"),
    ("vespa-fbench.txt", "/duration_s"),
    ("feedsim_results.txt", "/duration_s"),
    ("gatling-stats.json", "/duration_s"),
];

/// A 0 that stands for something unknown would be a number that the file does not have.
#[test]
fn each_figure_of_a_page_is_a_number_of_the_file() {
    let files = [
        "ab-errors.txt",
        "ab-percentiles.csv",
        "ab.txt",
        "h2load.txt",
        "h2load-timed.txt",
        "hey.txt",
        "hey-errors.txt",
        "oha.txt",
        "oha.json",
        "oha-errors.txt",
        "pgbench.txt",
        "pgbench-rate.txt",
        "pgbench-skip.txt",
        "k6-handle-summary.json",
        "k6-summary-export.json",
        "wrk-latency.txt",
        "wrk-errors.txt",
        "wrk-plain.txt",
        "wrk2-latency.txt",
        "vegeta.txt",
        "vegeta-report.json",
        "vespa-fbench.txt",
        "feedsim_results.txt",
        "feedsim-search.txt",
        "benchpress.json",
        "gatling-stats.json",
    ];
    let mut strange = Vec::new();
    for file in files {
        let bytes = bytes(file);
        let text = numbers(&String::from_utf8_lossy(&bytes));
        let (record, sheet) = shown(file, &bytes);
        for cell in cells(&sheet) {
            let Cell::Number { value, text: shown, from } = cell else { continue };
            let is_derived = DERIVED.contains(&(file, from.as_str()));
            if !from.is_empty() && !is_derived && !is_of_the_text(*value, from, &text, &record) {
                strange.push(format!("{file}: {from} {shown}"));
            }
        }
    }
    strange.dedup();
    assert_eq!(strange, Vec::<String>::new());
}
