//! Tables of requests per second as people print them, read back into a record: users down, sizes across.
//!
//! Printed tables in Markdown. A heading (`#`) names the engine; the text before a table says the edit distance
//! (`distance 2`) and the number of shards (`5 fragments`, `1 shard`), and where it does not, the numbers are marked;
//! the first column of a table is the number of users, the others are headed by sizes; a cell is a number, or `-` where
//! it was withheld. The bars at the ends of a line may be missing; emphasis and links are looked through. The tables of
//! `plimsoll report` are of this form, so that they can be read back too, with their marks: those of a whole table in
//! brackets at the end of its heading, those of a cell as notes (`[1] hits varied`) below the table.

mod markup;

use crate::statistics::implied_ms;
use markup::{is_dash, number, plain, thousands, without_markup};
use plimsoll_core::units::Size;
use plimsoll_record::search::{
    Cell, CellKey, EngineRecord, Group, SearchResult, SizeRecord, size_label,
};

/// A text without a table in it, or with a wrong one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Nothing was found.
    #[error("no table of users and sizes in it; its first row looks like | Users | 1GB | 5GB |")]
    None,
    /// A line is wrong.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// Description of the problem.
        problem: String,
    },
}

/// Facts from the text before a table.
#[derive(Clone, Debug, Default)]
struct Before {
    engine: String,
    distance: Option<u8>,
    shards: Option<u32>,
    /// Mark of all numbers of a table that plimsoll printed.
    mark: Option<String>,
}

/// Reads all tables of a text. `timeout_s` is what its requests were limited by, s; `name` is what the record calls
/// the text.
///
/// # Errors
/// When there is no table, or a cell of one is neither a number nor `-`.
pub fn read(text: &str, name: &str, timeout_s: f64) -> Result<SearchResult, TableError> {
    let mut found = SearchResult {
        origin: format!("imported from {name}"),
        corpus: "unknown".to_owned(),
        timeout_s,
        ..SearchResult::default()
    };
    let mut before = Before::default();
    let mut reading = Reading::Text;
    // Which cells of the last table point to a note, by their place in the list.
    let mut noted: Vec<(usize, String)> = Vec::new();
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let line = line.trim();
        let wrong = |problem: String| TableError::Line { line: number, problem };
        let Some(cells) = pipe_cells(line) else {
            reading = Reading::Text;
            match line.split_once("] ").filter(|(point, _)| point.starts_with('[')) {
                Some((point, note)) => {
                    let own =
                        noted.iter().filter(|(_, other)| other.trim_end_matches(']') == point);
                    own.for_each(|(at, _)| found.cells[*at].marks.push(note.to_owned()));
                }
                None => before.take(line),
            }
            continue;
        };
        match &reading {
            Reading::Text => {
                reading = head(&cells).map_err(wrong)?.map_or(Reading::Other, Reading::Table);
                if matches!(reading, Reading::Other) && !line.starts_with('|') {
                    // A bar in a sentence.
                    before.take(line);
                    reading = Reading::Text;
                }
                noted.clear();
            }
            Reading::Other => {}
            Reading::Table(_) if is_rule(&cells) => {}
            Reading::Table(columns) => {
                let users = users(cells[0]).map_err(wrong)?;
                if cells.len() != columns.len() + 1 {
                    let problem =
                        format!("{} cells, and {} sizes above", cells.len() - 1, columns.len());
                    return Err(wrong(problem));
                }
                row(&mut found, &before, columns, users, &cells[1..], &mut noted).map_err(wrong)?;
            }
        }
    }
    if found.cells.is_empty() {
        return Err(TableError::None);
    }
    // All of a text is the largest of its sizes.
    found.sizes.sort_by_key(|size| if size.bytes == 0 { u64::MAX } else { size.bytes });
    found.users.sort_unstable();
    Ok(found)
}

/// State of the reading.
enum Reading {
    /// Outside of any table.
    Text,
    /// In one of users and sizes.
    Table(Vec<SizeRecord>),
    /// In one of something else, up to its end.
    Other,
}

/// The cells of a line of a table, without emphasis and links; none where it is no such line.
fn pipe_cells(line: &str) -> Option<Vec<&str>> {
    if !line.contains('|') || line.starts_with('#') {
        return None;
    }
    let inside = line.strip_prefix('|').unwrap_or(line).trim_end();
    let inside = inside.strip_suffix('|').unwrap_or(inside);
    Some(inside.split('|').map(plain).collect())
}

/// Returns true if a line only parts the head of a table from its rows.
fn is_rule(cells: &[&str]) -> bool {
    let dashes = |cell: &&str| {
        let inside = cell.trim_matches(':');
        !inside.is_empty() && inside.chars().all(|c| c == '-')
    };
    cells.iter().all(dashes)
}

/// A size with its unit, of a number alone no one knows what it counts; or all of a text, as our own tables have it.
fn size(cell: &str) -> Option<SizeRecord> {
    if cell == "all" {
        return Some(SizeRecord { label: cell.to_owned(), ..SizeRecord::default() });
    }
    let size: Size = cell.parse().ok().filter(|size: &Size| size.bytes > 0)?;
    let (label, bytes) = (size_label(size), size.bytes);
    let record = SizeRecord { label, bytes, ..SizeRecord::default() };
    cell.ends_with(char::is_alphabetic).then_some(record)
}

/// The sizes of a table's first line; none where its columns are no sizes.
fn head(cells: &[&str]) -> Result<Option<Vec<SizeRecord>>, String> {
    let columns = cells.get(1..).unwrap_or_default();
    let sizes: Vec<SizeRecord> = columns.iter().filter_map(|cell| size(cell)).collect();
    let odd = columns.iter().find(|cell| size(cell).is_none());
    match odd {
        None => Ok(Some(sizes).filter(|sizes| !sizes.is_empty())),
        Some(odd) if !sizes.is_empty() && cells[0].to_lowercase().contains("user") => {
            Err(format!("'{odd}' is not a size like the others; write it as 64MB or 1GB"))
        }
        Some(_) => Ok(None),
    }
}

/// A number of users.
fn users(cell: &str) -> Result<u32, String> {
    let whole = thousands(cell).and_then(|whole| whole.parse().ok()).filter(|users| *users > 0);
    whole.ok_or_else(|| format!("'{cell}' is not a number of users"))
}

impl Before {
    /// Marks of all numbers below: the mark of a table of plimsoll, and what no one has said.
    fn marks(&self) -> impl Iterator<Item = String> {
        let untold = match (self.distance, self.shards) {
            (Some(_), Some(_)) => None,
            (None, Some(_)) => Some("distance not stated"),
            (Some(_), None) => Some("shards not stated"),
            (None, None) => Some("distance and shards not stated"),
        };
        self.mark.clone().into_iter().chain(untold.map(str::to_owned))
    }

    /// Learns from a line that is no table's.
    fn take(&mut self, line: &str) {
        if line.starts_with('#') {
            let title = without_markup(line.trim_matches('#').trim());
            let name = title.split(':').next().unwrap_or_default().trim();
            let name = name.strip_suffix(" results").unwrap_or(name);
            // Only a heading of ours says by brackets what holds for all numbers.
            let ours =
                title.contains(": edit distance ").then(|| title.strip_suffix(')')).flatten();
            let mark = ours.and_then(|title| Some(title.rsplit_once(" (")?.1.to_owned()));
            *self = Self { engine: name.to_owned(), mark, ..Self::default() };
        }
        let lower = line.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            if pair[0] == "distance"
                && let Ok(distance) = pair[1].parse()
            {
                self.distance = Some(distance);
            }
            if (pair[1].starts_with("fragment") || pair[1].starts_with("shard"))
                && let Ok(shards) = pair[0].parse()
            {
                self.shards = Some(shards);
            }
        }
    }
}

fn row(
    found: &mut SearchResult,
    before: &Before,
    columns: &[SizeRecord],
    users: u32,
    cells: &[&str],
    noted: &mut Vec<(usize, String)>,
) -> Result<(), String> {
    let engine = if before.engine.is_empty() { "engine".to_owned() } else { before.engine.clone() };
    let group =
        Group { distance: before.distance.unwrap_or(0), shards: before.shards.unwrap_or(1) };
    if !found.engines.iter().any(|own| own.name == engine) {
        found.engines.push(EngineRecord { name: engine.clone(), ..EngineRecord::default() });
    }
    if !found.groups.contains(&group) {
        found.groups.push(group);
    }
    if !found.users.contains(&users) {
        found.users.push(users);
    }
    for (size, text) in columns.iter().zip(cells) {
        if !found.sizes.iter().any(|own| own.label == size.label) {
            found.sizes.push(size.clone());
        }
        let key = CellKey {
            engine: engine.clone(),
            size: size.label.clone(),
            distance: group.distance,
            shards: group.shards,
            users,
        };
        if found.cell(&key).is_some() {
            return Err(format!(
                "{engine}, distance {}, {} shard(s), {users} users, {}: twice in the table",
                group.distance, group.shards, size.label
            ));
        }
        if let Some(mut cell) = cell(key, text)? {
            if cell.ok_per_s.is_some() {
                cell.marks.extend(before.marks());
                let point = text.split_whitespace().nth(1).filter(|point| point.starts_with('['));
                noted.extend(point.map(|point| (found.cells.len(), point.to_owned())));
            }
            found.cells.push(cell);
        }
    }
    Ok(())
}

/// A cell of a table; none where it is empty.
fn cell(key: CellKey, text: &str) -> Result<Option<Cell>, String> {
    // A number may have a mark behind it: "0.250 [1]".
    let first = plain(text.split_whitespace().next().unwrap_or_default());
    if first.is_empty() {
        return Ok(None);
    }
    if is_dash(first) {
        let reason = Some("withheld in the printed table".to_owned());
        return Ok(Some(Cell { key, reason, ..Cell::default() }));
    }
    let rate = number(first)?.filter(|rate| rate.is_finite() && *rate >= 0.0);
    let rate = rate.ok_or_else(|| format!("'{text}' is neither a rate nor '-'"))?;
    let implied = implied_ms(key.users, rate, 0.0);
    Ok(Some(Cell {
        key,
        ok_per_s: Some(rate),
        raw_ok_per_s: rate,
        implied_ms: implied,
        ..Cell::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page as shown;
    use crate::pipe_table::pipe_table;
    use plimsoll_record::search::scaling::scaling;

    /// A page of the form in which such comparisons are published.
    const PUBLISHED: &str = "\
# A comparison

Each user asks ten queries. A dash means that requests ran into the timeout.

### Lucene-like results
All queries are asked with edit distance 2. The index has 5 fragments.

| Users count |  1Gb  |  5Gb  | 10GB  |
|-------------|-------|-------|-------|
|      1      | 0.847 | 0.478 | 0.469 |
|      20     | 5.319 | 3.717 | 3.333 |

### Appliance results
Fuzzy edit distance 2. The index has 5 fragments.

| Users count |  1Gb  |  5Gb  | 10GB  |
|-------------|-------|-------|-------|
|      1      | 0.231 | 0.078 | 0.044 |
|      5      | 0.374 |   -   |   -   |
|      10     | 0.374 |   -   |   -   |

Fuzzy edit distance 4. The index consists of 1 fragment.

| Users count |  1Gb  |
|-------------|-------|
|      1      | 0.179 |
";

    #[test]
    fn a_published_page_becomes_a_matrix() {
        let found = read(PUBLISHED, "page.md", 60.0).unwrap();
        let engines: Vec<_> = found.engines.iter().map(|engine| engine.name.as_str()).collect();
        assert_eq!(engines, ["Lucene-like", "Appliance"]);
        let groups: Vec<_> = found.groups.iter().map(|g| (g.distance, g.shards)).collect();
        assert_eq!(groups, [(2, 5), (4, 1)]);
        let sizes: Vec<_> = found.sizes.iter().map(|size| size.label.as_str()).collect();
        assert_eq!(
            (sizes.as_slice(), found.users.as_slice()),
            (&["1GB", "5GB", "10GB"][..], &[1, 5, 10, 20][..])
        );
        assert_eq!(found.cells.len(), 16);
        let column = found.column("Appliance", found.groups[0], "1GB");
        let scaling = scaling(&column);
        assert!((scaling.knee_users.unwrap() - 1.619).abs() < 1e-3);
        // What the page never printed follows from it: 20 users at 3.333 a second wait 6 s each.
        let last = found.column("Lucene-like", found.groups[0], "10GB")[1];
        assert!((last.implied_ms.unwrap() - 6000.6).abs() < 0.1);
        let dash = found.column("Appliance", found.groups[0], "5GB")[1];
        assert_eq!((dash.ok_per_s, dash.reason.is_some()), (None, true));
    }

    #[test]
    fn our_own_tables_read_back() {
        let sample = shown::tests::sample();
        let rows: Vec<Vec<String>> =
            [["Users", "1GB", "5GB"], ["1", "0.847", "0.250 [1]"], ["5", "2.874", "-"]]
                .map(|row| row.map(str::to_owned).to_vec())
                .to_vec();
        let text = format!(
            "### mine: edit distance 4, index of 5 shards (clamped to 2)\n{}\n[1] engine restarted\n",
            pipe_table(&rows).join("\n")
        );
        let found = read(&text, "own", 60.0).unwrap();
        assert_eq!(found.engines[0].name, "mine");
        assert_eq!(found.groups, sample.groups);
        for cell in &sample.cells {
            let own = found.cell(&cell.key).unwrap();
            assert_eq!(own.ok_per_s, cell.ok_per_s, "{:?}", cell.key);
            assert!(cell.ok_per_s.is_none() || own.marks == cell.marks, "{:?}", own.marks);
        }
        let whole =
            read("| Users | all | 10MB |\n|---|---|---|\n| 1 | 2 | 3 |", "own", 60.0).unwrap();
        let labels: Vec<_> = whole.sizes.iter().map(|size| size.label.as_str()).collect();
        assert_eq!(labels, ["10MB", "all"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert_eq!(read("no table here", "x", 60.0), Err(TableError::None));
        assert_eq!(read("| a | b |\n|---|---|\n| 1 | 2 |", "x", 60.0), Err(TableError::None));
        let table =
            |row: &str| read(&format!("| Users | 1GB | 2GB |\n|---|---|---|\n{row}"), "x", 60.0);
        assert!(table("| 1 | fast | - |").unwrap_err().to_string().contains("line 3: 'fast'"));
        assert!(
            table("| one | 1 | 2 |").unwrap_err().to_string().contains("not a number of users")
        );
        assert!(table("| 1 | 2 |").unwrap_err().to_string().contains("1 cells, and 2 sizes"));
        assert!(
            table("| 1 | 2 | 3 |\n| 1 | 2 | 3 |")
                .unwrap_err()
                .to_string()
                .contains("twice in the table")
        );
        assert_eq!(table("| 1 | 2 | |").unwrap().cells.len(), 1, "an empty cell is none");
        assert!(table("| 0 | 1 | 2 |").unwrap_err().to_string().contains("not a number of users"));
        let either = table("| 1 | 0,847 | 2 |").unwrap_err().to_string();
        assert!(either.contains("'0,847'") && either.contains("without a comma"), "{either}");
        let mixed = read("| Users | 1GB | 2TB |\n|---|---|---|\n| 1 | 2 | 3 |", "x", 60.0);
        assert!(mixed.unwrap_err().to_string().contains("line 1: '2TB' is not a size"));
    }

    #[test]
    fn tables_are_read_as_people_write_them() {
        let page = "\u{feff}## [Old *engine*](https://x.example/a:b) results\r\n\r\n\
            Distance 2, 5 shards.\r\n\r\n\
            Users | **1GB** | `5 GB`\r\n\
            :-: | -: | -\r\n\
            **1** | [0.847](run.html) [1] | \u{2013}\r\n\
            | 1,000 | 1,234.5 | 12,345,678\r\n\
            [1] one disk only\r\n";
        let found = read(page, "x", 60.0).unwrap();
        assert_eq!(found.engines[0].name, "Old engine");
        let told: Vec<_> = found.cells.iter().map(|one| (one.key.users, one.ok_per_s)).collect();
        let expected =
            [(1, Some(0.847)), (1, None), (1000, Some(1234.5)), (1000, Some(12_345_678.0))];
        assert_eq!(told, expected);
        assert_eq!(found.cells[0].marks, ["one disk only"]);
        let sizes: Vec<_> = found.sizes.iter().map(|size| size.label.as_str()).collect();
        assert_eq!(sizes, ["1GB", "5GB"]);
    }

    #[test]
    fn tables_of_something_else_are_passed_over_as_a_whole() {
        let page = "| Users | Memory |\n|---|---|\n| 1 | 10MB |\n| 5 | 20MB |\n\n\
            | Cores | 8 | 16 |\n|---|---|---|\n| 1 | 2 | 3 |\n\n\
            Distance 2 | 5 shards\n\n| Users | 1GB |\n|-|-|\n| 5 | 7 |\n";
        let found = read(page, "x", 60.0).unwrap();
        let told: Vec<_> = found.cells.iter().map(|one| (one.key.users, one.ok_per_s)).collect();
        let group = Group { distance: 2, shards: 5 };
        assert_eq!((told, found.groups[0]), (vec![(5, Some(7.0))], group));
        assert!(found.cells[0].marks.is_empty(), "{:?}", found.cells[0].marks);
    }

    #[test]
    fn what_the_page_does_not_say_is_not_made_up() {
        let marks = |before: &str| {
            let page = format!("### E{before}\n| Users | 1GB |\n|---|---|\n| 1 | 2 |");
            read(&page, "x", 60.0).unwrap().cells[0].marks.concat()
        };
        assert_eq!(marks(""), "distance and shards not stated");
        assert_eq!(marks("\nEdit distance 2."), "shards not stated");
        assert_eq!(marks("\nOn 3 shards."), "distance not stated");
        // Read back, it is still told, and told once.
        let again = ": edit distance 0, index of 1 shard (distance and shards not stated)";
        assert_eq!(marks(again), "distance and shards not stated");
    }
}
