//! The numbers of the plots in one block: JSON with the differences of neighbours as integers, gzip, base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use plimsoll_report::plain::{clip, printable};
use plimsoll_report::sheet::{Grid, Heat, Line, Lines, Plot, PlotKind, Sheet, Values};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

/// Significant digits that are kept of the smallest number; tables show three.
const DIGITS: i32 = 4;
/// Largest integer that a script reads exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
/// Longest name in a plot, characters.
const NAME_CHARS_MAX: usize = 120;
/// Empty rows that are written out between two filled ones of a column, instead of beginning a new run.
const EMPTY_ROWS_MAX: usize = 3;

/// Returns the block of a page.
#[must_use]
pub fn block(sheet: &Sheet) -> String {
    STANDARD.encode(packed(&text(sheet)))
}

/// Packs a text. The same text gives the same bytes: there is no time and no system in them.
fn packed(text: &str) -> Vec<u8> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(6));
    gzip.write_all(text.as_bytes()).and_then(|()| gzip.finish()).unwrap_or_default()
}

/// The block before it is packed.
fn text(sheet: &Sheet) -> String {
    let mut arrays = Arrays::default();
    let plots: Vec<Value> = sheet.plots().map(|plot| plot_json(plot, &mut arrays)).collect();
    let mut out = String::from("{\"v\":1,\n\"arrays\":{");
    for (index, (name, values)) in arrays.values.iter().enumerate() {
        let comma = if index > 0 { ",\n" } else { "\n" };
        let _ = write!(out, "{comma}{}:{}", json!(name), array(&values.numbers));
    }
    out.push_str("},\n\"plots\":[");
    for (index, plot) in plots.iter().enumerate() {
        let comma = if index > 0 { ",\n" } else { "\n" };
        let _ = write!(out, "{comma}{plot}");
    }
    out.push_str("]}\n");
    out
}

/// Numbers behind the plots of a page, before they are packed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// Numbers by name; `None` is a gap.
    pub arrays: Vec<(String, Arc<[Option<f64>]>)>,
    /// Definitions of the plots, without cells of heat maps.
    pub definitions: Vec<Value>,
    /// Cells of heat maps, by the id of the plot: column, first row, and counts from there on.
    pub cells: Vec<(String, Vec<Vec<u64>>)>,
}

/// Returns the numbers of a page, for one that follows a run.
#[must_use]
pub fn numbers(sheet: &Sheet) -> Numbers {
    let mut arrays = Arrays::default();
    let mut definitions: Vec<Value> =
        sheet.plots().map(|plot| plot_json(plot, &mut arrays)).collect();
    for definition in &mut definitions {
        definition.as_object_mut().map(|own| own.remove("cells"));
    }
    let cells = sheet.plots().filter_map(|plot| match &plot.kind {
        PlotKind::Heat(heat) => Some((plot.id.clone(), heat_cells(heat))),
        _ => None,
    });
    Numbers {
        cells: cells.collect(),
        definitions,
        arrays: arrays
            .values
            .into_iter()
            .map(|(name, values)| (name, values.numbers.clone()))
            .collect(),
    }
}

/// The arrays of a page by name, each once.
#[derive(Default)]
struct Arrays<'a> {
    values: Vec<(String, &'a Values)>,
}

impl<'a> Arrays<'a> {
    /// Takes an array unless it is there, and returns its name. Other numbers under a name that is taken get another one.
    fn name_of(&mut self, values: &'a Values) -> String {
        let mut name = values.name.clone();
        let mut number = 2;
        while let Some((_, other)) = self.values.iter().find(|(known, _)| *known == name) {
            if other.numbers == values.numbers {
                return name;
            }
            name = format!("{}-{number}", values.name);
            number += 1;
        }
        self.values.push((name.clone(), values));
        name
    }
}

/// The exponent of a power of ten that keeps all digits of these numbers that tables show.
fn exponent(numbers: &[Option<f64>]) -> i32 {
    let sizes = || numbers.iter().flatten().map(|number| number.abs()).filter(|size| *size > 0.0);
    let Some(least) = sizes().reduce(f64::min) else { return 0 };
    let most = sizes().fold(0.0, f64::max);
    let wanted = (least.log10().floor() as i32 + 1 - DIGITS).min(0);
    // A script must read the integers exactly.
    let possible = (most / EXACT_MAX).log10().ceil() as i32;
    wanted.max(possible).max(-12)
}

/// `{"s":0.1,"d":[...],"n":[...]}`: each number is `s` times the sum of `d` so far; at the places in `n` there is none.
fn array(numbers: &[Option<f64>]) -> String {
    let finite: Vec<Option<f64>> =
        numbers.iter().map(|number| number.filter(|number| number.is_finite())).collect();
    let exponent = exponent(&finite);
    let per_unit = 10f64.powi(-exponent);
    let mut out = format!("{{\"s\":1e{exponent},\"d\":[");
    let mut missing = String::new();
    let mut before = 0i64;
    for (index, number) in finite.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        match number {
            Some(number) => {
                let at = (number * per_unit).round() as i64;
                let _ = write!(out, "{}", at - before);
                before = at;
            }
            None => {
                out.push('0');
                let comma = if missing.is_empty() { "" } else { "," };
                let _ = write!(missing, "{comma}{index}");
            }
        }
    }
    out.push(']');
    if !missing.is_empty() {
        let _ = write!(out, ",\"n\":[{missing}]");
    }
    out.push('}');
    out
}

fn name(text: &str) -> String {
    clip(&printable(text), NAME_CHARS_MAX)
}

fn plot_json<'a>(plot: &'a Plot, arrays: &mut Arrays<'a>) -> Value {
    let mut own = Map::new();
    own.insert("id".to_owned(), json!(plot.id));
    let kind = match &plot.kind {
        PlotKind::Lines(lines) => {
            put_lines(&mut own, lines, arrays);
            "lines"
        }
        PlotKind::Curve(lines) => {
            put_lines(&mut own, lines, arrays);
            "curve"
        }
        PlotKind::Scatter(lines) => {
            put_lines(&mut own, lines, arrays);
            "scatter"
        }
        PlotKind::Heat(heat) => {
            put_heat(&mut own, heat, arrays);
            "heat"
        }
        PlotKind::Grid(grid) => {
            put_grid(&mut own, grid);
            "grid"
        }
    };
    own.insert("kind".to_owned(), json!(kind));
    Value::Object(own)
}

fn put_lines<'a>(own: &mut Map<String, Value>, lines: &'a Lines, arrays: &mut Arrays<'a>) {
    if let Some(x) = &lines.x {
        own.insert("x".to_owned(), json!(arrays.name_of(x)));
    }
    own.insert("x_label".to_owned(), json!(name(&lines.x_label)));
    if lines.x_is_log {
        own.insert("x_log".to_owned(), json!(true));
    }
    if lines.is_time {
        own.insert("sync".to_owned(), json!("time"));
    }
    let axes = lines.y.iter().map(|axis| json!({"unit": axis.unit, "log": axis.is_log}));
    own.insert("y".to_owned(), axes.collect());
    let series = lines.lines.iter().map(|line| line_json(line, lines, arrays));
    own.insert("series".to_owned(), series.collect());
    let bands = lines
        .bands
        .iter()
        .map(|band| json!({"from": band.from, "to": band.to, "label": name(&band.label)}));
    let marks = lines
        .marks
        .iter()
        .map(|mark| json!({"x": mark.x, "label": name(&mark.label), "tone": mark.tone}));
    let limits = lines
        .levels
        .iter()
        .map(|level| json!({"y": level.y, "label": name(&level.label), "axis": level.axis}));
    for (key, all) in [
        ("bands", bands.collect::<Vec<_>>()),
        ("marks", marks.collect()),
        ("limits", limits.collect()),
    ] {
        if !all.is_empty() {
            own.insert(key.to_owned(), Value::Array(all));
        }
    }
}

fn line_json<'a>(line: &'a Line, lines: &Lines, arrays: &mut Arrays<'a>) -> Value {
    let unit = lines.y.get(line.axis).map_or("", |axis| axis.unit.as_str());
    let mut own = Map::new();
    own.insert("label".to_owned(), json!(name(&line.label)));
    own.insert("a".to_owned(), json!(arrays.name_of(&line.y)));
    if let Some(x) = &line.x {
        own.insert("x".to_owned(), json!(arrays.name_of(x)));
    }
    own.insert("tone".to_owned(), json!(line.tone));
    own.insert("unit".to_owned(), json!(unit));
    if line.axis > 0 {
        own.insert("axis".to_owned(), json!(line.axis));
    }
    if line.is_dots {
        own.insert("dots".to_owned(), json!(true));
    }
    if let Some(below) = &line.below {
        own.insert("below".to_owned(), json!(name(below)));
    }
    Value::Object(own)
}

fn put_heat<'a>(own: &mut Map<String, Value>, heat: &'a Heat, arrays: &mut Arrays<'a>) {
    own.insert("x".to_owned(), json!(arrays.name_of(&heat.x)));
    own.insert("sync".to_owned(), json!("time"));
    own.insert("y".to_owned(), json!({"unit": heat.unit, "edges": heat.edges}));
    own.insert("cells".to_owned(), json!(heat_cells(heat)));
}

/// Runs of counts: column, first row, counts.
fn heat_cells(heat: &Heat) -> Vec<Vec<u64>> {
    let mut cells: Vec<Vec<u64>> = Vec::new();
    for (column, rows) in heat.columns.iter().enumerate() {
        let mut run: Vec<u64> = Vec::new();
        let mut next = 0;
        for &(row, count) in rows {
            if run.is_empty() || row > next + EMPTY_ROWS_MAX {
                cells.extend((!run.is_empty()).then_some(run));
                run = vec![column as u64, row as u64];
            } else {
                run.extend(std::iter::repeat_n(0, row - next));
            }
            run.push(count);
            next = row + 1;
        }
        cells.extend((!run.is_empty()).then_some(run));
    }
    cells
}

fn put_grid(own: &mut Map<String, Value>, grid: &Grid) {
    let names = |all: &[String]| -> Vec<String> { all.iter().map(|one| name(one)).collect() };
    own.insert("columns".to_owned(), json!(names(&grid.columns)));
    own.insert("rows".to_owned(), json!(names(&grid.rows)));
    own.insert("unit".to_owned(), json!(grid.unit));
    let row = |cells: &Vec<Option<(f64, String)>>| -> (Vec<Value>, Vec<Value>) {
        let value = |cell: &Option<(f64, String)>| json!(cell.as_ref().map(|(value, _)| value));
        let text = |cell: &Option<(f64, String)>| {
            json!(cell.as_ref().map(|(_, text)| name(text)).unwrap_or_default())
        };
        (cells.iter().map(value).collect(), cells.iter().map(text).collect())
    };
    let (values, texts): (Vec<_>, Vec<_>) = grid.cells.iter().map(row).unzip();
    own.insert("values".to_owned(), json!(values));
    own.insert("text".to_owned(), json!(texts));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(array: &str) -> Vec<Option<f64>> {
        let value: Value = serde_json::from_str(array).unwrap();
        let scale = value["s"].as_f64().unwrap();
        let missing: Vec<u64> = value["n"]
            .as_array()
            .map(|all| all.iter().filter_map(Value::as_u64).collect())
            .unwrap_or_default();
        let mut sum = 0;
        let all = value["d"].as_array().unwrap().iter().enumerate();
        all.map(|(index, delta)| {
            sum += delta.as_i64().unwrap();
            (!missing.contains(&(index as u64))).then_some(sum as f64 * scale)
        })
        .collect()
    }

    #[test]
    fn an_array_keeps_the_digits_that_tables_show() {
        let cases = [
            vec![Some(0.0213), None, Some(1.234), Some(12_345.6), Some(0.0)],
            vec![Some(100.0), Some(250.4), Some(1e9)],
            vec![Some(f64::NAN), Some(f64::INFINITY), Some(0.000_512), Some(3_700_000.0)],
            vec![Some(-5.25), Some(5.25)],
            vec![Some(1e18), Some(0.001)],
            vec![None, None],
            vec![],
        ];
        for numbers in cases {
            let back = read(&array(&numbers));
            assert_eq!(back.len(), numbers.len());
            for (number, back) in numbers.iter().zip(back) {
                let finite = number.filter(|number| number.is_finite());
                assert_eq!(back.is_some(), finite.is_some());
                if let (Some(number), Some(back)) = (finite, back) {
                    let shown = plimsoll_report::number::significant;
                    let is_huge = numbers.contains(&Some(1e18));
                    assert!(shown(back) == shown(number) || is_huge, "{number} {back}");
                }
            }
        }
    }

    #[test]
    fn a_name_stands_for_one_array() {
        let one = Values::of("t", [1.0, 2.0]);
        let other = Values::of("t", [1.0, 3.0]);
        let mut arrays = Arrays::default();
        let names = [&one, &one, &other, &other, &one].map(|values| arrays.name_of(values));
        assert_eq!(names, ["t", "t", "t-2", "t-2", "t"]);
        assert_eq!(arrays.values.len(), 2);
    }

    #[test]
    fn packing_is_the_same_every_time() {
        assert_eq!(packed("abc"), packed("abc"));
        assert_eq!(packed("abc")[4..8], [0; 4], "no time");
    }
}
