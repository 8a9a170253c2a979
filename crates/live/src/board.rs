//! The page at a moment, and the events that lead from one moment to the next.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Numbers behind the plots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plots {
    /// Numbers by name; `None` is a gap.
    pub arrays: BTreeMap<String, Arc<[Option<f64>]>>,
    /// Definitions of the plots, without cells.
    pub definitions: Vec<Value>,
    /// Cells of heat maps by the id of the plot; each begins with its column.
    pub cells: BTreeMap<String, Vec<Vec<u64>>>,
}

/// The content of the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Board {
    /// Names of the parts that can be replaced. A page with other parts must be loaded again.
    pub structure: String,
    /// The whole page; empty if no browser has asked for it.
    pub page: String,
    /// Inner markup of each section, by its id.
    pub sections: Vec<(String, String)>,
    /// Numbers behind the plots.
    pub plots: Plots,
}

/// The array of the time axis.
const TIME: &str = "t";
/// Digits that a number has on its way: more than a picture can show.
const DIGITS: i32 = 6;

/// Index of the first entry in which two lists differ.
fn first_difference<T: PartialEq>(before: &[T], now: &[T]) -> usize {
    before.iter().zip(now).take_while(|(before, now)| before == now).count()
}

fn rounded(number: &Option<f64>) -> Value {
    let Some(number) = number.filter(|number| number.is_finite()) else { return Value::Null };
    if number == 0.0 {
        return json!(0);
    }
    let scale = 10f64.powi(DIGITS - 1 - number.abs().log10().floor() as i32);
    let near = (number * scale).round() / scale;
    if near.fract() == 0.0 && near.abs() < 1e15 { json!(near as i64) } else { json!(near) }
}

fn values(numbers: &[Option<f64>]) -> Value {
    numbers.iter().map(rounded).collect()
}

/// One event; `number` is given with the last one of an update.
fn event(name: &str, data: &str, number: Option<u64>) -> String {
    let mut text = format!("event: {name}\n");
    if let Some(number) = number {
        text += &format!("id: {number}\n");
    }
    // A line end of any kind would end the field.
    for line in data.split('\n') {
        text.push_str("data: ");
        text.push_str(&line.replace('\r', ""));
        text.push('\n');
    }
    text.push('\n');
    text
}

/// The event that tells the page to load itself again.
pub fn reload(number: u64) -> Bytes {
    event("reload", "", Some(number)).into()
}

/// The last event: the whole report.
pub fn end(report: &str, number: u64) -> Bytes {
    event("end", report, Some(number)).into()
}

impl Board {
    /// A number that stands for the structure.
    #[must_use]
    pub fn edition(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.structure.hash(&mut hasher);
        hasher.finish()
    }

    /// Everything, for a reader that has just come.
    #[must_use]
    pub fn whole(&self, number: u64) -> Bytes {
        let arrays: Map<String, Value> =
            self.plots.arrays.iter().map(|(name, all)| (name.clone(), values(all))).collect();
        let cells: Map<String, Value> = self
            .plots
            .cells
            .iter()
            .map(|(id, runs)| (id.clone(), json!({"from": 0, "runs": runs})))
            .collect();
        let columns = json!({
            "from": 0,
            "reset": true,
            "arrays": arrays,
            "cells": cells,
            "plots": self.plots.definitions,
        });
        let sections: Map<String, Value> =
            self.sections.iter().map(|(id, html)| (id.clone(), json!(html))).collect();
        let mut text = event("columns", &columns.to_string(), None);
        text += &event("sections", &Value::Object(sections).to_string(), Some(number));
        text.into()
    }

    /// The event with everything that differs from `before`; `None` if nothing does.
    #[must_use]
    pub fn since(&self, before: &Board, number: u64) -> Option<Bytes> {
        if self.structure != before.structure {
            return Some(reload(number));
        }
        let columns = self.plots.since(&before.plots);
        let sections: Map<String, Value> = self
            .sections
            .iter()
            .filter(|section| !before.sections.contains(section))
            .map(|(id, html)| (id.clone(), json!(html)))
            .collect();
        if columns.is_none() && sections.is_empty() {
            return None;
        }
        let mut text =
            columns.map_or(String::new(), |columns| event("columns", &columns.to_string(), None));
        text += &event("sections", &Value::Object(sections).to_string(), Some(number));
        Some(text.into())
    }
}

impl Plots {
    /// New numbers: those along the time axis from the first column that differs, all others whole.
    fn since(&self, before: &Plots) -> Option<Value> {
        let old = |name: &String| before.arrays.get(name).map_or(&[][..], |old| old);
        let changed: Vec<(&String, &[Option<f64>], usize)> = self
            .arrays
            .iter()
            .filter(|(name, now)| old(name) != &now[..])
            .map(|(name, now)| (name, &now[..], first_difference(old(name), now)))
            .collect();
        let columns = self.arrays.get(TIME).map_or(0, |time| time.len());
        let is_timed = |now: &[Option<f64>]| now.len() == columns;
        // Of these only the end is new, unless neighbours were merged.
        let ends = changed.iter().filter(|(_, now, from)| is_timed(now) && *from + 3 > columns);
        let from = ends.map(|(_, _, from)| *from).min().unwrap_or(columns);
        let (mut arrays, mut whole) = (Map::new(), Map::new());
        for (name, now, first) in changed {
            match is_timed(now) && first >= from {
                true => arrays.insert(name.clone(), values(&now[from.min(now.len())..])),
                false => whole.insert(name.clone(), values(now)),
            };
        }
        let cells: Map<String, Value> = self
            .cells
            .keys()
            .filter_map(|id| Some((id.clone(), self.new_cells(before, id)?)))
            .collect();
        let is_same = self.definitions == before.definitions;
        if arrays.is_empty() && whole.is_empty() && cells.is_empty() && is_same {
            return None;
        }
        let mut columns = json!({"from": from, "arrays": arrays, "whole": whole, "cells": cells});
        if !is_same {
            columns["plots"] = json!(self.definitions);
        }
        Some(columns)
    }

    /// The cells of a heat map from the first column that differs; all of them if its rows are others.
    fn new_cells(&self, before: &Plots, id: &str) -> Option<Value> {
        let definition = |plots: &Plots| {
            plots.definitions.iter().find(|definition| definition["id"] == id).cloned()
        };
        let now = self.cells.get(id)?;
        let old = match before.cells.get(id) {
            Some(old) if definition(self) == definition(before) => old.as_slice(),
            _ => &[],
        };
        if old == now.as_slice() {
            return None;
        }
        let at = first_difference(old, now);
        let column = |cells: &[Vec<u64>]| cells.get(at).and_then(|cell| cell.first()).copied();
        let from = column(old).into_iter().chain(column(now)).min().unwrap_or(0);
        let runs: Vec<&Vec<u64>> =
            now.iter().filter(|cell| cell.first().is_some_and(|column| *column >= from)).collect();
        Some(json!({"from": from, "runs": runs}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(seconds: usize) -> Board {
        let some = |number: f64| Some(number);
        let plots = Plots {
            arrays: BTreeMap::from([
                (TIME.to_owned(), (0..seconds).map(|s| some(s as f64)).collect()),
                ("ok".to_owned(), (0..seconds).map(|s| some(s as f64 / 3.0)).collect()),
                ("curve".to_owned(), Arc::from([some(seconds as f64), None, some(2.0), some(3.0)])),
            ]),
            definitions: vec![json!({"id": "throughput"})],
            cells: BTreeMap::from([(
                "heat".to_owned(),
                (0..seconds as u64).map(|s| vec![s, 3, 1]).collect(),
            )]),
        };
        Board {
            structure: "a".to_owned(),
            page: String::new(),
            sections: vec![
                ("a".to_owned(), format!("<p>{seconds}\nlines")),
                ("b".to_owned(), "same".to_owned()),
            ],
            plots,
        }
    }

    fn parts(event: &Bytes) -> Vec<(String, Value)> {
        let text = std::str::from_utf8(event).unwrap();
        let one = |part: &str| {
            let field = |name: &str| -> Vec<String> {
                let lines = part.lines().filter_map(|line| line.strip_prefix(name));
                lines.map(str::to_owned).collect()
            };
            (field("event: ").concat(), serde_json::from_str(&field("data: ").join("\n")).unwrap())
        };
        text.split("\n\n").filter(|part| !part.is_empty()).map(one).collect()
    }

    #[test]
    fn a_second_more_is_sent_as_that_second_alone() {
        let event = board(6).since(&board(5), 7).unwrap();
        assert_eq!(std::str::from_utf8(&event).unwrap().matches("id: 7\n").count(), 1);
        let parts = parts(&event);
        let columns = &parts[0].1;
        assert_eq!((parts[0].0.as_str(), &columns["from"]), ("columns", &json!(5)));
        assert_eq!(columns["arrays"], json!({"ok": [1.66667], "t": [5]}));
        assert_eq!(columns["whole"], json!({"curve": [6, null, 2, 3]}));
        assert_eq!(columns["cells"], json!({"heat": {"from": 5, "runs": [[5, 3, 1]]}}));
        assert_eq!(parts[1], ("sections".to_owned(), json!({"a": "<p>6\nlines"})));
        assert!(board(6).since(&board(6), 8).is_none());
    }

    #[test]
    fn columns_that_were_merged_are_sent_again() {
        let (before, mut now) = (board(6), board(3));
        now.plots.arrays.insert(TIME.to_owned(), Arc::from([Some(0.0), Some(2.0), Some(4.0)]));
        let columns = &parts(&now.since(&before, 1).unwrap())[0].1;
        let (arrays, whole) = (&columns["arrays"], &columns["whole"]);
        assert!(arrays.get(TIME).or(whole.get(TIME)).is_some(), "{columns}");
        assert!(arrays.get("ok").or(whole.get("ok")).is_some(), "{columns}");
    }

    #[test]
    fn a_page_of_another_structure_is_loaded_again() {
        let now = Board { structure: "b".to_owned(), ..board(5) };
        assert_eq!(&now.since(&board(5), 3).unwrap()[..], b"event: reload\nid: 3\ndata: \n\n");
    }

    #[test]
    fn a_report_is_sent_line_by_line_and_arrives_as_it_is() {
        let report = "<!doctype html>\n<p>\n\n</html>\n";
        let event = end(report, 9);
        let text = std::str::from_utf8(&event).unwrap();
        let lines: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(lines.join("\n"), report);
    }

    #[test]
    fn applying_all_events_gives_the_board() {
        let mut arrays: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for seconds in 1..20 {
            let before = board(seconds - 1);
            let columns = &parts(&board(seconds).since(&before, 1).unwrap())[0].1;
            let from = columns["from"].as_u64().unwrap() as usize;
            for (key, start) in [("arrays", from), ("whole", 0)] {
                for (name, values) in columns[key].as_object().unwrap() {
                    let own = arrays.entry(name.clone()).or_default();
                    own.truncate(start);
                    assert_eq!(own.len(), start, "{name}");
                    own.extend(values.as_array().unwrap().iter().cloned());
                }
            }
        }
        let all = board(19).plots.arrays;
        let expected: BTreeMap<String, Vec<Value>> = all
            .iter()
            .map(|(name, all)| (name.clone(), values(all).as_array().unwrap().clone()))
            .collect();
        assert_eq!(arrays, expected);
    }
}
