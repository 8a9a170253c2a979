//! Samples over time, cut to the measured window.

use super::{SeriesForm, proc_stat};
use plimsoll_report::window::Window;
use std::collections::BTreeMap;
use std::path::Path;

const DAY_S: f64 = 86_400.0;

/// Remainder of a file of samples.
pub struct Cut {
    /// Name of the file with the samples inside the window, `*_measured.csv`.
    pub name: String,
    /// Samples in it.
    pub samples: usize,
    /// Mean of each column of numbers over the window, by column.
    pub averages: BTreeMap<String, f64>,
}

struct Series {
    columns: Vec<String>,
    rows: Vec<(f64, Vec<String>)>,
}

/// Writes `*_measured.csv` beside the file and averages its columns.
///
/// A file with a column `CPU` is averaged over its rows of `all`.
///
/// # Errors
/// When the file has another form, or the cut one cannot be written.
pub fn cut(path: &Path, form: &SeriesForm, windows: &[Window]) -> Result<Cut, String> {
    let shown = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let series = match form {
        SeriesForm::Csv => read_csv(path).map_err(|error| shown(&error))?,
        SeriesForm::Mpstat(start_s) => {
            let text = std::fs::read_to_string(path).map_err(|error| shown(&error))?;
            read_mpstat(&text, *start_s)
        }
    };
    let measured = |at_s: f64| windows.iter().any(|window| window.holds(at_s));
    let rows: Vec<_> = series.rows.iter().filter(|(at_s, _)| measured(*at_s)).collect();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("samples");
    let name = format!("{stem}_measured.csv");
    write(&path.with_file_name(&name), &series.columns, &rows).map_err(|error| shown(&error))?;
    let processor = series.columns.iter().position(|column| column == "CPU");
    let whole = |cells: &[String]| processor.is_none_or(|at| cells[at] == "all");
    let mut averages = BTreeMap::new();
    for (at, column) in series.columns.iter().enumerate().filter(|(at, _)| Some(*at) != processor) {
        let cells = rows.iter().filter(|(_, cells)| whole(cells));
        let numbers: Vec<f64> =
            cells.filter_map(|(_, cells)| cells.get(at)?.parse().ok()).collect();
        if !numbers.is_empty() {
            let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
            averages.insert(column.clone(), mean);
        }
    }
    let samples = rows.iter().filter(|(_, cells)| whole(cells)).count();
    Ok(Cut { name, samples, averages })
}

fn read_csv(path: &Path) -> Result<Series, csv::Error> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_path(path)?;
    let columns = reader.headers()?.iter().skip(2).map(str::to_owned).collect::<Vec<_>>();
    let mut rows = Vec::new();
    for row in reader.records() {
        let row = row?;
        // The last row of a sampler that was killed may be cut short.
        let Some(at_s) = row.get(1).and_then(|at| at.parse().ok()) else { continue };
        let mut cells: Vec<String> = row.iter().skip(2).map(str::to_owned).collect();
        cells.resize(columns.len(), String::new());
        rows.push((at_s, cells));
    }
    Ok(Series { columns, rows })
}

/// Reads `HH:MM:SS  CPU  %usr ...`; a time of day that goes back is that of the next day.
fn read_mpstat(text: &str, start_s: f64) -> Series {
    let mut columns = vec!["CPU".to_owned()];
    columns.extend(proc_stat::COLUMNS.map(str::to_owned));
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    let mut midnight_s = (start_s / DAY_S).floor() * DAY_S;
    let mut last_s = start_s.floor() - 1.0;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(of_day_s) = words.next().and_then(time_of_day) else { continue };
        let cells: Vec<String> = words.map(str::to_owned).collect();
        if cells.len() != columns.len() || cells[0] == "CPU" {
            continue;
        }
        if midnight_s + of_day_s < last_s {
            midnight_s += DAY_S;
        }
        last_s = midnight_s + of_day_s;
        rows.push((last_s, cells));
    }
    Series { columns, rows }
}

fn time_of_day(text: &str) -> Option<f64> {
    let mut parts = text.split(':').map(str::parse::<u32>);
    let (Some(Ok(h)), Some(Ok(m)), Some(Ok(s)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    Some(f64::from((h * 60 + m) * 60 + s))
}

fn write(path: &Path, columns: &[String], rows: &[&(f64, Vec<String>)]) -> Result<(), csv::Error> {
    let mut writer = csv::Writer::from_path(path)?;
    let head = ["index", "timestamp"].into_iter().chain(columns.iter().map(String::as_str));
    writer.write_record(head)?;
    for (index, (at_s, cells)) in rows.iter().enumerate() {
        let front = [index.to_string(), format!("{at_s:.3}")];
        writer.write_record(front.iter().chain(cells))?;
    }
    Ok(writer.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_samples_inside_the_window_are_averaged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.csv");
        std::fs::write(
            &path,
            "index,timestamp,a,b\n0,99.5,1,x\n1,100.5,2,x\n2,101.5,4,x\n3,103.0,9,x\n4,10",
        )
        .unwrap();
        let windows = [Window { from_s: 100.0, to_s: 102.0 }];
        let cut = cut(&path, &SeriesForm::Csv, &windows).unwrap();
        assert_eq!((cut.samples, cut.name.as_str()), (2, "x_measured.csv"));
        assert_eq!(cut.averages, BTreeMap::from([("a".to_owned(), 3.0)]));
        let written = std::fs::read_to_string(dir.path().join("x_measured.csv")).unwrap();
        assert_eq!(written, "index,timestamp,a,b\n0,100.500,2,x\n1,101.500,4,x\n");
    }

    #[test]
    fn the_text_of_mpstat_is_read_over_midnight() {
        let text = "Linux 6.1 (here) \t11/21/2026 \t_x86_64_\t(2 CPU)\n\n\
            23:59:58     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n\
            23:59:59     all   10.00    0.00    1.00    0.00    0.00    0.00    0.00    0.00    0.00   89.00\n\
            00:00:00     all   20.00    0.00    1.00    0.00    0.00    0.00    0.00    0.00    0.00   79.00\n\
            00:00:00       0   99.00    0.00    1.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00\n\
            Average:     all   15.00    0.00    1.00    0.00    0.00    0.00    0.00    0.00    0.00   84.00\n";
        let start_s = 10.0 * DAY_S - 2.0;
        let series = read_mpstat(text, start_s);
        let times: Vec<f64> = series.rows.iter().map(|(at_s, _)| *at_s - start_s).collect();
        assert_eq!(times, [1.0, 2.0, 2.0]);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.txt");
        std::fs::write(&path, text).unwrap();
        let all = [Window { from_s: start_s, to_s: start_s + 10.0 }];
        let cut = cut(&path, &SeriesForm::Mpstat(start_s), &all).unwrap();
        assert_eq!((cut.samples, cut.averages["%usr"]), (2, 15.0));
    }
}
