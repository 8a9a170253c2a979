//! Tables of requests per second as people print them, read back into a record: users down, sizes across.
//!
//! What is read is markdown. A heading (`#`) names the engine; the text before a table says the edit distance
//! (`distance 2`) and the number of shards (`5 fragments`, `1 shard`); the first column of a table is the number of
//! users, the others are headed by sizes; a cell is a number, or `-` where it was withheld. The tables of
//! `plimsoll report` are of this form, so that they can be read back too, with their marks: those of a whole table in brackets at the
//! end of its heading, those of a cell as notes (`[1] hits varied`) below the table.

use plimsoll_core::search::record::{
    Cell, CellKey, EngineRecord, Group, SearchResult, SizeRecord, size_label,
};
use plimsoll_core::search::statistics::implied_ms;
use plimsoll_core::units::Size;

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
        /// What is wrong.
        problem: String,
    },
}

/// What the text before a table said.
#[derive(Clone, Debug, Default)]
struct Before {
    engine: String,
    distance: Option<u8>,
    shards: Option<u32>,
    /// What all numbers of a table of ours are marked with.
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
    let mut sizes: Option<Vec<SizeRecord>> = None;
    // Which cells of the last table point to a note, by their place in the list.
    let mut noted: Vec<(usize, String)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let wrong = |problem: String| TableError::Line { line: number, problem };
        let Some(cells) = pipe_cells(line) else {
            sizes = None;
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
        if cells.iter().all(|cell| cell.chars().all(|c| "-: ".contains(c)))
            && cells.concat().len() > 2
        {
            continue;
        }
        match &sizes {
            None => {
                sizes = head(&cells);
                noted.clear();
            }
            Some(columns) => {
                let users = cells[0]
                    .parse()
                    .map_err(|_| wrong(format!("'{}' is no number of users", cells[0])))?;
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
    found.sizes.sort_by_key(|size| size.bytes);
    found.users.sort_unstable();
    Ok(found)
}

/// The cells of a line of a table; none where it is no such line.
fn pipe_cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.strip_prefix('|')?.trim_end().strip_suffix('|')?;
    Some(inside.split('|').map(str::trim).collect())
}

/// The sizes of a table's first line; none where its columns are no sizes.
fn head(cells: &[&str]) -> Option<Vec<SizeRecord>> {
    let sizes = cells.get(1..)?.iter().map(|cell| {
        let size: Size = cell.parse().ok().filter(|size: &Size| size.bytes > 0)?;
        let (label, bytes) = (size_label(size), size.bytes);
        Some(SizeRecord { label, bytes, ..SizeRecord::default() })
    });
    sizes.collect::<Option<Vec<_>>>().filter(|sizes| !sizes.is_empty())
}

impl Before {
    /// Learns from a line that is no table's.
    fn take(&mut self, line: &str) {
        if line.starts_with('#') {
            let title = line.trim_start_matches('#').trim();
            let name = title.split(':').next().unwrap_or(title).trim();
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
                "{engine}, distance {}, {} shard(s), {users} users, {}: there twice",
                group.distance, group.shards, size.label
            ));
        }
        if let Some(mut cell) = cell(key, text)? {
            if cell.ok_per_s.is_some() {
                cell.marks.extend(before.mark.clone());
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
    let number = text.split_whitespace().next().unwrap_or_default();
    if number.is_empty() {
        return Ok(None);
    }
    if number == "-" {
        let reason = Some("withheld in the printed table".to_owned());
        return Ok(Some(Cell { key, reason, ..Cell::default() }));
    }
    let rate: f64 = number
        .parse()
        .ok()
        .filter(|rate: &f64| rate.is_finite() && *rate >= 0.0)
        .ok_or_else(|| format!("'{text}' is neither a rate nor '-'"))?;
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
    use crate::text::search::{self as shown, pipe_table};
    use plimsoll_core::search::statistics::scaling;

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
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert_eq!(read("no table here", "x", 60.0), Err(TableError::None));
        assert_eq!(read("| a | b |\n|---|---|\n| 1 | 2 |", "x", 60.0), Err(TableError::None));
        let table =
            |row: &str| read(&format!("| Users | 1GB | 2GB |\n|---|---|---|\n{row}"), "x", 60.0);
        assert!(table("| 1 | fast | - |").unwrap_err().to_string().contains("line 3: 'fast'"));
        assert!(table("| one | 1 | 2 |").unwrap_err().to_string().contains("no number of users"));
        assert!(table("| 1 | 2 |").unwrap_err().to_string().contains("1 cells, and 2 sizes"));
        assert!(
            table("| 1 | 2 | 3 |\n| 1 | 2 | 3 |").unwrap_err().to_string().contains("there twice")
        );
        assert_eq!(table("| 1 | 2 | |").unwrap().cells.len(), 1, "an empty cell is none");
    }
}
