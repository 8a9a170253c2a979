//! The rates of a matrix: as heat maps, one an engine and a group, and as lines over the users.

use plimsoll_record::search::scaling::scaling;
use plimsoll_record::search::{Cell as MatrixCell, Group, SearchResult};
use plimsoll_report::number::{counted, significant};
use plimsoll_report::sheet::{
    Cell, Grid, Line, Lines, Part, Plot, PlotKind, Section, Table, Tone, Values, YAxis,
};

/// The most users over the fewest from which on they are on a logarithmic axis.
const WIDE: u32 = 20;
/// Heat maps and plots on a page; the table of all cells and the CSV have the rest.
const PLOTS_MAX: usize = 24;
/// Colours of the lines of one plot, one after the other.
const TONES: [&str; 8] = [
    "series-1", "series-2", "series-3", "series-4", "series-5", "series-6", "series-7", "series-8",
];

/// Name and cells of a column.
type Column<'a> = (String, Vec<&'a MatrixCell>);

/// The heat maps.
pub(super) fn matrix(search: &SearchResult) -> Section {
    let note = "Successful requests per second in the steady window, users down and sizes of the text across. A cell without a \
                number was withheld; the reason is in the table of all cells.";
    let mut section = Section::new("matrix", "Matrix", note);
    let mut left_out = 0;
    for group in &search.groups {
        for engine in &search.engines {
            if let Some(trouble) = &engine.trouble {
                let text = format!("{} could not be measured: {trouble}.", engine.name);
                section = section.with(Part::Text(Tone::Bad, text));
            }
            let number = section.parts.len();
            match grid(search, &engine.name, *group, number) {
                Some(_) if number >= PLOTS_MAX => left_out += 1,
                Some(plot) => section = section.with(Part::Plot(Box::new(plot))),
                None => {}
            }
        }
    }
    if left_out > 0 {
        let text = format!("{} more are in the CSV.", counted(left_out, "heat map"));
        section = section.with(Part::Text(Tone::Plain, text));
    }
    section
}

fn place(search: &SearchResult, cell: &MatrixCell) -> String {
    let at = search.cells.iter().position(|other| std::ptr::eq(other, cell));
    at.map_or(String::new(), |at| at.to_string())
}

/// A number of users, with its place among those of the matrix.
fn users_cell(search: &SearchResult, users: u32) -> Cell {
    let at = search.users.iter().position(|other| *other == users);
    let cell = Cell::count(users.into());
    at.map_or(cell.clone(), |at| cell.from(&["search", "users", &at.to_string()]))
}

/// The rates of columns by the number of users, as a table.
fn twin(search: &SearchResult, columns: &[Column<'_>], users: &[u32]) -> Table {
    let names = columns.iter().map(|(name, _)| format!("#{name}"));
    let heads: Vec<String> = std::iter::once("#users".to_owned()).chain(names).collect();
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for users in users.iter().take(Plot::TWIN_ROWS_MAX) {
        let cell = |(_, column): &Column<'_>| {
            let Some(cell) = column.iter().find(|cell| cell.key.users == *users) else {
                return Cell::text("");
            };
            let at = place(search, cell);
            super::ok_per_s(cell).from(&["search", "cells", &at, "ok_per_s"])
        };
        let row = std::iter::once(users_cell(search, *users)).chain(columns.iter().map(cell));
        table.row(Tone::Plain, row.collect());
    }
    table
}

fn title(engine: &str, group: Group) -> String {
    let shards = counted(group.shards.into(), "shard");
    format!("{engine}: edit distance {}, index of {shards}", group.distance)
}

fn grid(search: &SearchResult, engine: &str, group: Group, number: usize) -> Option<Plot> {
    let of_size = |label: &String| (label.clone(), search.column(engine, group, label));
    let columns: Vec<Column<'_>> = search.sizes.iter().map(|size| of_size(&size.label)).collect();
    let all = || columns.iter().flat_map(|(_, column)| column);
    let users: Vec<u32> = search
        .users
        .iter()
        .copied()
        .filter(|users| all().any(|cell| cell.key.users == *users))
        .collect();
    if users.is_empty() {
        return None;
    }
    let mut cells = Vec::new();
    for users in &users {
        let shown = |cell: &&MatrixCell| cell.ok_per_s.map(|value| (value, significant(value)));
        let found = columns
            .iter()
            .map(|(_, column)| column.iter().find(|cell| cell.key.users == *users).and_then(shown));
        cells.push(found.collect());
    }
    let grid = Grid {
        columns: search.sizes.iter().map(|size| size.label.clone()).collect(),
        rows: users.iter().map(|users| counted((*users).into(), "user")).collect(),
        unit: "/s".to_owned(),
        cells,
    };
    let marks = all().find_map(|cell| cell.marks.first());
    let marks = marks.map_or(String::new(), |mark| format!(" ({mark})"));
    Some(Plot {
        id: format!("matrix-{}", number + 1),
        caption: format!("{}{marks}", title(engine, group)),
        kind: PlotKind::Grid(grid),
        twin: twin(search, &columns, &users),
        is_pictured: false,
    })
}

/// The same rates as lines over the users: a line an engine, or a line a size if there is one engine only.
pub(super) fn lines(search: &SearchResult) -> Option<Section> {
    if search.users.len() < 2 {
        return None;
    }
    let by_engine = search.engines.len() > 1;
    let mut plots = Vec::new();
    for group in &search.groups {
        let sizes: Vec<Option<&str>> = match by_engine {
            true => search.sizes.iter().map(|size| Some(size.label.as_str())).collect(),
            false => vec![None],
        };
        for size in sizes {
            plots.extend(over_users(search, *group, size, plots.len()));
        }
    }
    plots.truncate(PLOTS_MAX);
    plots.first_mut()?.is_pictured = true;
    let mut section = Section::new(
        "scaling",
        "Rate against users",
        "Successful requests per second by the number of users at a time. Where a line stops rising, more users only wait.",
    );
    section.parts = plots.into_iter().map(|plot| Part::Plot(Box::new(plot))).collect();
    section.parts.extend(growth(search));
    Some(section)
}

/// Lines of one group: of all engines for a size, or of all sizes for the one engine.
fn over_users(
    search: &SearchResult,
    group: Group,
    size: Option<&str>,
    number: usize,
) -> Option<Plot> {
    let columns: Vec<Column<'_>> = match (size, search.engines.first()) {
        (Some(size), _) => search
            .engines
            .iter()
            .map(|engine| (engine.name.clone(), search.column(&engine.name, group, size)))
            .collect(),
        (None, Some(engine)) => search
            .sizes
            .iter()
            .map(|size| (size.label.clone(), search.column(&engine.name, group, &size.label)))
            .collect(),
        (None, None) => return None,
    };
    let id = format!("scaling-{}", number + 1);
    // Rows may have any order; a line needs an ascending one.
    let mut users = search.users.clone();
    users.sort_unstable();
    let of = |column: &[&MatrixCell], users: u32| {
        let cell = column.iter().find(|cell| cell.key.users == users)?;
        cell.ok_per_s
    };
    let line = |(index, (name, column)): (usize, &Column<'_>)| {
        let y = Values::new(&format!("{id}-{index}"), users.iter().map(|users| of(column, *users)));
        Line::new(name, TONES[index % TONES.len()], y)
    };
    let all: Vec<Line> = columns.iter().enumerate().map(line).collect();
    let known: Vec<Line> =
        all.into_iter().filter(|line| line.y.numbers.iter().any(Option::is_some)).collect();
    if known.is_empty() {
        return None;
    }
    let (least, most) = users.first().zip(users.last())?;
    let x = users.iter().map(|users| f64::from(*users));
    let lines = Lines {
        x: Some(Values::of(&format!("{id}-users"), x)),
        x_label: "users".to_owned(),
        x_is_log: *least > 0 && most / least >= WIDE,
        y: vec![YAxis::linear("/s")],
        lines: known,
        ..Lines::default()
    };
    let shards = counted(group.shards.into(), "shard");
    let whose = match (size, search.engines.first()) {
        (Some(size), _) => size.to_owned(),
        (None, Some(engine)) => engine.name.clone(),
        (None, None) => String::new(),
    };
    Some(Plot {
        id,
        caption: format!("{whose}: edit distance {}, index of {shards}", group.distance),
        kind: PlotKind::Lines(lines),
        twin: twin(search, &columns, &search.users),
        is_pictured: false,
    })
}

/// Sentences on where columns stop growing.
fn growth(search: &SearchResult) -> Vec<Part> {
    let mut parts = Vec::new();
    for group in &search.groups {
        for engine in &search.engines {
            for size in &search.sizes {
                let column = search.column(&engine.name, *group, &size.label);
                let scaling = scaling(&column);
                let Some(knee) = scaling.knee_users.filter(|_| scaling.speedups.len() > 1) else {
                    continue;
                };
                let still = if scaling.still_growing {
                    "; the rate still grows at the most users"
                } else {
                    ""
                };
                let text = format!(
                    "{}, {}: a lone user's rate would reach the highest rate with {knee:.1} users{still}.",
                    title(&engine.name, *group),
                    size.label
                );
                parts.push(Part::Text(Tone::Plain, text));
            }
        }
    }
    parts.truncate(PLOTS_MAX);
    parts
}
