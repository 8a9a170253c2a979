//! Two search matrices: their tables in one, how both grow with users, and where the same cell differs.

use crate::pipe_table::pipe_table;
use plimsoll_record::RunRecord;
use plimsoll_record::search::scaling::scaling;
use plimsoll_record::search::{Cell, Group, SearchResult};
use plimsoll_report::forms::Compared;
use plimsoll_report::number::rate;
use plimsoll_report::plain::printable;
use serde::Serialize;
use serde_json::Value;

/// Sizes of two matrices stand over each other when they have the same proportions to within this share.
const PROPORTION: f64 = 0.2;

/// Two matrices.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct SearchComparison {
    /// The columns: the sizes of A and of B that stand over each other.
    columns: Vec<[Option<String>; 2]>,
    /// The rows of all tables.
    rows: Vec<Row>,
    /// The way columns grow with users.
    growth: Vec<Growth>,
    /// Cells that are in both matrices.
    ratios: Vec<Ratio>,
    /// Differences between the settings of the two, a short sentence each: their numbers differ by that too.
    differences: Vec<String>,
}

/// A row of a table: one engine with a number of users.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Row {
    /// `A` or `B`.
    side: &'static str,
    /// Edit distance.
    distance: u8,
    /// Shards.
    shards: u32,
    /// The engine.
    engine: String,
    /// Users.
    users: u32,
    /// A rate a column; none where it was withheld or not measured.
    ok_per_s: Vec<Option<f64>>,
    /// Flags of withheld cells.
    withheld: Vec<bool>,
    /// Marks beside each number.
    marks: Vec<Vec<String>>,
}

/// The way a column grows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Growth {
    /// `A` or `B`.
    side: &'static str,
    /// Edit distance.
    distance: u8,
    /// Shards.
    shards: u32,
    /// The engine.
    engine: String,
    /// The size.
    size: String,
    /// The most users with a rate, and X(N)/X(1) there.
    speedup: Option<(u32, f64)>,
    /// The knee, users.
    knee_users: Option<f64>,
    /// True if the highest rate is at the most users, so that the knee may lie beyond.
    still_growing: bool,
}

/// The same cell in both matrices.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Ratio {
    /// The engine.
    engine: String,
    /// The size.
    size: String,
    /// Edit distance.
    distance: u8,
    /// Shards.
    shards: u32,
    /// Users.
    users: u32,
    /// Rate of A, per second.
    a_per_s: f64,
    /// Rate of B, per second.
    b_per_s: f64,
    /// B over A.
    ratio: f64,
    /// True if the intervals of both lie apart; none where one has none.
    apart: Option<bool>,
    /// Marks beside A's number and B's.
    marks: [Vec<String>; 2],
}

/// Compares two records with a matrix each.
pub fn records(a: &RunRecord, b: &RunRecord) -> Option<Compared> {
    let (first, second) = (a.job_results.search()?, b.job_results.search()?);
    let differences = differences(&a.scenario, &b.scenario);
    let both = SearchComparison { differences, ..compare(first, second) };
    Some(Compared {
        key: "search",
        origins: [first.origin.clone(), second.origin.clone()],
        value: serde_json::to_value(&both).ok()?,
        text: both.render(),
    })
}

/// Settings of a matrix on which its numbers depend, besides those of their rows and columns.
const ASKED: [&str; 14] = [
    "corpus", "seed", "order", "duration", "warmup", "passes", "timeout", "think", "pace",
    "profile", "rows", "checks", "hits", "queries",
];

/// Differences between the settings of A and B; nothing where one of them was not measured here.
fn differences(a: &Value, b: &Value) -> Vec<String> {
    let measured = |scenario: &Value| scenario.get("queries").is_some();
    if !measured(a) || !measured(b) {
        return Vec::new();
    }
    let shown = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let differs = |name: &&str| {
        let of = |scenario: &Value| scenario.get(*name).cloned().unwrap_or_default();
        let (a, b) = (of(a), of(b));
        (a != b).then(|| match *name {
            "queries" => "the queries differ".to_owned(),
            name => format!("{name} {} and {}", shown(&a), shown(&b)),
        })
    };
    ASKED.iter().filter_map(differs).collect()
}

/// Lays two matrices side by side.
fn compare(a: &SearchResult, b: &SearchResult) -> SearchComparison {
    let columns = columns(a, b);
    let mut groups: Vec<Group> = a.groups.clone();
    groups.extend(b.groups.iter().filter(|group| !a.groups.contains(group)));
    let mut made = SearchComparison { columns, ..SearchComparison::default() };
    for group in groups {
        for (index, (mark, search)) in [("A", a), ("B", b)].into_iter().enumerate() {
            for engine in &search.engines {
                made.add(mark, index, search, &engine.name, group);
            }
        }
    }
    made.ratios = a.cells.iter().filter_map(|cell| ratio(cell, b.cell(&cell.key)?)).collect();
    made
}

/// Sizes that are the same stand in one column; where none is, sizes with the same proportions do.
fn columns(a: &SearchResult, b: &SearchResult) -> Vec<[Option<String>; 2]> {
    let same = a.sizes.iter().any(|size| b.sizes.iter().any(|other| other.label == size.label));
    if !same && proportional(a, b) {
        let pairs = a.sizes.iter().zip(&b.sizes);
        return pairs.map(|(a, b)| [Some(a.label.clone()), Some(b.label.clone())]).collect();
    }
    let mut all: Vec<(u64, &str)> =
        a.sizes.iter().chain(&b.sizes).map(|size| (size.bytes, size.label.as_str())).collect();
    all.sort_by_key(|(bytes, _)| if *bytes == 0 { u64::MAX } else { *bytes });
    all.dedup_by(|one, other| one.1 == other.1);
    let there = |search: &SearchResult, label: &str| {
        search.sizes.iter().any(|size| size.label == label).then(|| label.to_owned())
    };
    all.iter().map(|(_, label)| [there(a, label), there(b, label)]).collect()
}

fn proportional(a: &SearchResult, b: &SearchResult) -> bool {
    let sizes = |search: &SearchResult| -> Vec<f64> {
        let first = search.sizes.first().map_or(0.0, |size| size.bytes as f64);
        search.sizes.iter().map(|size| size.bytes as f64 / first).collect()
    };
    let (one, other) = (sizes(a), sizes(b));
    !one.is_empty()
        && one.len() == other.len()
        && one
            .iter()
            .zip(&other)
            .all(|(a, b)| a.is_finite() && b.is_finite() && (a / b - 1.0).abs() <= PROPORTION)
}

fn ratio(a: &Cell, b: &Cell) -> Option<Ratio> {
    let (a_per_s, b_per_s) = (a.ok_per_s?, b.ok_per_s?);
    let apart = a.interval_per_s.zip(b.interval_per_s);
    let key = a.key.clone();
    (a_per_s > 0.0).then(|| Ratio {
        engine: key.engine,
        size: key.size,
        distance: key.distance,
        shards: key.shards,
        users: key.users,
        a_per_s,
        b_per_s,
        ratio: b_per_s / a_per_s,
        apart: apart.map(|(a, b)| a[1] < b[0] || b[1] < a[0]),
        marks: [a.marks.clone(), b.marks.clone()],
    })
}

/// Notes below a table, with references from its cells.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    /// A number, and which note it has.
    fn behind(&mut self, number: String, marks: &[String]) -> String {
        if marks.is_empty() {
            return number;
        }
        let note = marks.join(", ");
        let at = self.0.iter().position(|other| *other == note).unwrap_or_else(|| {
            self.0.push(note);
            self.0.len() - 1
        });
        format!("{number} [{}]", at + 1)
    }

    fn lines(&self) -> String {
        let line = |(at, note): (usize, &String)| format!("[{}] {}\n", at + 1, printable(note));
        self.0.iter().enumerate().map(line).collect()
    }
}

impl SearchComparison {
    fn add(
        &mut self,
        side: &'static str,
        index: usize,
        search: &SearchResult,
        engine: &str,
        group: Group,
    ) {
        let (distance, shards) = (group.distance, group.shards);
        for users in &search.users {
            let cells: Vec<Option<&Cell>> = self
                .columns
                .iter()
                .map(|labels| {
                    let column = search.column(engine, group, labels[index].as_deref()?);
                    column.into_iter().find(|cell| cell.key.users == *users)
                })
                .collect();
            if cells.iter().all(Option::is_none) {
                continue;
            }
            self.rows.push(Row {
                side,
                distance,
                shards,
                engine: engine.to_owned(),
                users: *users,
                ok_per_s: cells.iter().map(|cell| cell.and_then(|cell| cell.ok_per_s)).collect(),
                withheld: cells
                    .iter()
                    .map(|cell| cell.is_some_and(|cell| cell.ok_per_s.is_none()))
                    .collect(),
                marks: cells
                    .iter()
                    .map(|cell| cell.map_or_else(Vec::new, |cell| cell.marks.clone()))
                    .collect(),
            });
        }
        for size in &search.sizes {
            let scaling = scaling(&search.column(engine, group, &size.label));
            // One number alone grows by nothing.
            if scaling.highest_per_s.is_some() && scaling.speedups.len() > 1 {
                self.growth.push(Growth {
                    side,
                    distance,
                    shards,
                    engine: engine.to_owned(),
                    size: size.label.clone(),
                    speedup: scaling.speedups.last().copied(),
                    knee_users: scaling.knee_users,
                    still_growing: scaling.still_growing,
                });
            }
        }
    }

    fn heads(&self) -> Vec<String> {
        let head = |labels: &[Option<String>; 2]| match labels {
            [Some(a), Some(b)] if a != b => format!("{a} / {b}"),
            [a, b] => a.clone().or_else(|| b.clone()).unwrap_or_default(),
        };
        self.columns.iter().map(head).collect()
    }

    /// The comparison as a person reads it.
    fn render(&self) -> String {
        let mut text = String::new();
        if !self.differences.is_empty() {
            let told = printable(&self.differences.join("; "));
            text += &format!("A and B were measured with different settings: {told}\n\n");
        }
        let mut groups: Vec<(u8, u32)> = Vec::new();
        for row in &self.rows {
            if !groups.contains(&(row.distance, row.shards)) {
                groups.push((row.distance, row.shards));
            }
        }
        for (distance, shards) in groups {
            let plural = if shards == 1 { "" } else { "s" };
            text += &format!(
                "### edit distance {distance}, index of {shards} shard{plural}: requests per second\n"
            );
            let first = ["", "Engine", "Users"].map(str::to_owned).to_vec();
            let mut rows = vec![[first, self.heads()].concat()];
            let own =
                self.rows.iter().filter(|row| (row.distance, row.shards) == (distance, shards));
            let mut notes = Notes::default();
            for row in own {
                let mut cells =
                    vec![row.side.to_owned(), printable(&row.engine), row.users.to_string()];
                let numbers = row.ok_per_s.iter().zip(&row.withheld).zip(&row.marks);
                cells.extend(numbers.map(|((value, withheld), marks)| match (value, withheld) {
                    (Some(value), _) => notes.behind(rate(*value), marks),
                    (None, true) => "-".to_owned(),
                    (None, false) => String::new(),
                }));
                rows.push(cells);
            }
            text += &format!("{}\n{}\n", pipe_table(&rows).join("\n"), notes.lines());
            text += &self.growth_lines(distance, shards);
        }
        text + &self.ratio_lines()
    }

    fn growth_lines(&self, distance: u8, shards: u32) -> String {
        let mut text = String::new();
        let own = self.growth.iter().filter(|own| (own.distance, own.shards) == (distance, shards));
        for one in own {
            if let (Some((users, by)), Some(knee)) = (one.speedup, one.knee_users) {
                let still = if one.still_growing { "; still growing" } else { "" };
                text += &format!(
                    "{}  {}, {}: X({users})/X(1) = {by:.2}, knee at {knee:.1} users{still}\n",
                    one.side,
                    printable(&one.engine),
                    one.size
                );
            }
        }
        if text.is_empty() { text } else { text + "\n" }
    }

    fn ratio_lines(&self) -> String {
        if self.ratios.is_empty() {
            return "The two records have no cell in common: engines, sizes, distances, shards or users differ.\n"
                .to_owned();
        }
        let mut text = String::from("The same cells in both, B over A\n");
        for one in &self.ratios {
            let sure = match one.apart {
                Some(true) => "",
                Some(false) => "  (the intervals overlap)",
                None => "  (no repeats, so no interval)",
            };
            let sides = ["A", "B"].iter().zip(&one.marks).filter(|(_, marks)| !marks.is_empty());
            let marks: String = sides
                .map(|(side, marks)| format!("  [{side}: {}]", printable(&marks.join(", "))))
                .collect();
            text += &format!(
                "  {}, {}, distance {}, {} shard(s), {} users: {} -> {}  x {:.2}{sure}{marks}\n",
                printable(&one.engine),
                one.size,
                one.distance,
                one.shards,
                one.users,
                rate(one.a_per_s),
                rate(one.b_per_s),
                one.ratio
            );
        }
        let logs: f64 = self.ratios.iter().map(|one| one.ratio.max(f64::MIN_POSITIVE).ln()).sum();
        let mean = (logs / self.ratios.len() as f64).exp();
        text + &format!("  geometric mean of {} cells: x {mean:.2}\n", self.ratios.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed_table::read;

    fn matrix(engine: &str, sizes: &str, rows: &str) -> SearchResult {
        let text = format!(
            "### {engine}: edit distance 2, index of 5 shards\n| Users | {sizes} |\n|---|---|---|\n{rows}"
        );
        read(&text, "t", 60.0).unwrap()
    }

    #[test]
    fn other_sizes_of_the_same_proportions_stand_over_each_other() {
        let printed = matrix("Old", "1GB | 5GB", "| 1 | 1.0 | 0.5 |\n| 5 | 2.0 | - |");
        let own = matrix("index", "64MB | 320MB", "| 1 | 100 | 50 |\n| 5 | 300 | 150 |");
        let both = compare(&printed, &own);
        assert_eq!(both.columns[1], [Some("5GB".to_owned()), Some("320MB".to_owned())]);
        let text = both.render();
        assert!(text.contains("| 1GB / 64MB | 5GB / 320MB |"), "{text}");
        assert!(text.contains("|   A |    Old |     5 |      2.000 |           - |"), "{text}");
        assert!(
            text.contains("B  index, 64MB: X(5)/X(1) = 3.00, knee at 3.0 users; still growing"),
            "{text}"
        );
        assert!(text.contains("no cell in common"), "{text}");
    }

    #[test]
    fn what_was_asked_otherwise_is_told() {
        let scenario = |order: &str, queries: &str| {
            serde_json::json!({
                "corpus": "synthetic", "seed": 1, "order": order, "passes": null, "queries": queries, "users": [order],
            })
        };
        let own = scenario("block", "a");
        assert!(differences(&own, &own).is_empty());
        let other = differences(&own, &scenario("shuffle", "b"));
        assert_eq!(other, ["order block and shuffle", "the queries differ"]);
        let printed = serde_json::json!({ "import": "old.md" });
        assert!(differences(&printed, &own).is_empty(), "of a printed table nothing is known");
        let sizes = matrix("index", "1MB | 2MB", "| 1 | 10 | 5 |");
        let both = SearchComparison { differences: other, ..compare(&sizes, &sizes) };
        let told = "A and B were measured with different settings: order block and shuffle; the queries differ\n";
        assert!(both.render().starts_with(told), "{}", both.render());
    }

    #[test]
    fn a_number_keeps_what_a_reader_must_know_of_it() {
        let before = matrix("index", "1MB | 2MB", "| 1 | 10 | 5 |");
        let mut after = matrix("index", "1MB | 2MB", "| 1 | 20 | 5 |");
        after.cells[0].marks = vec!["clamped to 2".to_owned()];
        let text = compare(&before, &after).render();
        assert!(text.contains("20.00 [1]") && text.contains("\n[1] clamped to 2\n"), "{text}");
        assert!(text.contains("x 2.00  (no repeats, so no interval)  [B: clamped to 2]"), "{text}");
    }

    #[test]
    fn the_same_cells_have_a_ratio_and_tell_whether_it_is_sure() {
        let mut before = matrix("index", "1MB | 2MB", "| 1 | 10 | 5 |");
        let mut after = matrix("index", "1MB | 3MB", "| 1 | 20 | 5 |");
        before.cells[0].interval_per_s = Some([9.0, 11.0]);
        after.cells[0].interval_per_s = Some([10.5, 29.0]);
        let both = compare(&before, &after);
        assert_eq!(both.columns.len(), 3, "sizes that only one has keep a column of their own");
        assert_eq!(both.ratios.len(), 1);
        assert_eq!((both.ratios[0].ratio, both.ratios[0].apart), (2.0, Some(false)));
        after.cells[0].interval_per_s = Some([18.0, 22.0]);
        assert_eq!(compare(&before, &after).ratios[0].apart, Some(true));
    }
}
