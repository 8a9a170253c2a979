//! The page of a search matrix: the tables, why cells have no number, and what engines answered.

mod answers;

use crate::pipe_table::pipe_table;
use plimsoll_record::RunRecord;
use plimsoll_record::search::scaling::scaling;
use plimsoll_record::search::{Cell, Group, Load, Probe, ProbeAnswer, SearchResult};
use plimsoll_report::forms::Below;
use plimsoll_report::number::{bytes, count, counted, lasting, percent, rate, significant, time};
use plimsoll_report::page::{Column, Page, Tone};
use plimsoll_report::plain::{columns_of, printable};

/// With more cells than this, their details are left to CSV and JSON.
const DETAILED_MAX: usize = 60;
/// Fewer numbers of users than this say nothing of where the rate stops growing.
const KNEE_FROM: usize = 3;

/// Returns the number of cells with a rate.
pub fn headline(record: &RunRecord) -> Option<String> {
    let search = record.job_results.search()?;
    let with_rate = search.cells.iter().filter(|cell| cell.ok_per_s.is_some()).count();
    Some(format!("{with_rate} of {}", counted(search.cells_planned() as u64, "cell")))
}

/// Writes the tables, why cells have no number, and what engines answered.
pub fn sections(page: &mut Page<'_>, record: &RunRecord) -> Option<Below> {
    let search = record.job_results.search()?;
    whole(page, search);
    // Of a table that another tool printed there are no books, and nothing to judge.
    Some(if search.origin == "measured" { Below::Books } else { Below::Remarks })
}

fn whole(page: &mut Page<'_>, search: &SearchResult) {
    head(page, search);
    for load in &search.loads {
        if let Some(trouble) = &load.trouble {
            let text = format!("{}: {}", place_of(load), printable(trouble));
            page.alert("No ingest", &text, Tone::Bad);
        }
    }
    for group in &search.groups {
        for engine in &search.engines {
            table(page, search, &engine.name, *group);
        }
    }
    if page.is_verbose() {
        if search.cells.len() <= DETAILED_MAX {
            details(page, search);
        } else {
            page.note("Response times, intervals and CPU time of each cell: plimsoll report --format csv (or json)");
            page.blank();
        }
        loads(page, search);
    }
    probes(page, search);
    answers::disagreements(page, search);
    answers::recall(page, search);
    if page.is_verbose() {
        spent(page, search);
    }
}

/// `mine, 1GB, 5 shards`
fn place_of(load: &Load) -> String {
    format!("{}, {}, {}", printable(&load.engine), load.size, counted(load.shards.into(), "shard"))
}

fn head(page: &mut Page<'_>, search: &SearchResult) {
    let with_number = search.cells.iter().filter(|cell| cell.ok_per_s.is_some()).count();
    let planned = match search.origin.as_str() {
        "measured" => search.cells_planned().max(search.cells.len()),
        // What somebody else has not printed may never have been planned.
        _ => search.cells.len(),
    };
    let mut line = format!("{with_number} of {} measured", counted(planned as u64, "cell"));
    let withheld = search.cells.len() - with_number;
    if withheld > 0 {
        line += &format!(", {withheld} without a number, for the reasons below their table");
    }
    page.headline(&line, Tone::Strong);
    let mut about = format!("text {}", printable(&search.corpus));
    if !search.order.is_empty() {
        about += &format!(", order {}", search.order);
    }
    if !search.users_come.is_empty() {
        about += &format!(", users: {}", printable(&search.users_come));
    }
    about += &format!(", timeout {}", time(search.timeout_s * 1e3));
    if search.origin != "measured" {
        about = format!("{}; {about}", printable(&search.origin));
    }
    page.note(&about);
    for engine in search.engines.iter().filter(|engine| !engine.version.is_empty()) {
        page.note(&format!("{}: {}", printable(&engine.name), printable(&engine.version)));
    }
    page.blank();
}

/// One table: users down, sizes across.
fn table(page: &mut Page<'_>, search: &SearchResult, engine: &str, group: Group) {
    let columns: Vec<Vec<&Cell>> =
        search.sizes.iter().map(|size| search.column(engine, group, &size.label)).collect();
    let cells: Vec<&Cell> = columns.iter().flatten().copied().collect();
    if cells.is_empty() {
        return;
    }
    let shared = shared_mark(&cells);
    let shown = shared.as_ref().map_or(String::new(), |mark| format!(" ({mark})"));
    let title = format!(
        "### {}: edit distance {}, index of {}{shown}",
        printable(engine),
        group.distance,
        counted(group.shards.into(), "shard")
    );
    let mut notes: Vec<String> = Vec::new();
    let mut rows = vec![
        [vec!["Users".to_owned()], search.sizes.iter().map(|s| s.label.clone()).collect()].concat(),
    ];
    for users in &search.users {
        let mut row = vec![users.to_string()];
        // What another engine's printed table had no line for is none here either.
        if search.origin != "measured" && !cells.iter().any(|cell| cell.key.users == *users) {
            continue;
        }
        for column in &columns {
            let cell = column.iter().find(|cell| cell.key.users == *users);
            row.push(
                cell.map_or(String::new(), |cell| shown_cell(cell, shared.as_deref(), &mut notes)),
            );
        }
        rows.push(row);
    }
    for part in parts_within(&rows, page.width()) {
        page.blank();
        page.line(&title, Tone::Strong);
        for line in pipe_table(&part) {
            page.line(&line, Tone::Plain);
        }
    }
    for (index, note) in notes.iter().enumerate() {
        page.note(&format!("[{}] {}", index + 1, printable(note)));
    }
    for reason in reasons(&cells) {
        page.note(&format!("- {}", printable(&reason)));
    }
    for (size, column) in search.sizes.iter().zip(&columns) {
        if let Some(line) = growth(column).filter(|_| page.is_verbose()) {
            page.note(&format!("{}: {line}", size.label));
        }
    }
    page.blank();
}

/// The table in parts of which each is as wide as the page at most: a table that is pasted or read back must not be broken.
fn parts_within(rows: &[Vec<String>], width: usize) -> Vec<Vec<Vec<String>>> {
    let wide = |part: &[Vec<String>]| {
        pipe_table(part).iter().map(|line| columns_of(line)).max().unwrap_or(0)
    };
    let columns = rows.first().map_or(0, Vec::len);
    let (mut parts, mut from) = (Vec::new(), 1);
    while from < columns {
        let part = |to: usize| -> Vec<Vec<String>> {
            rows.iter().map(|row| [&row[..1], &row[from..to]].concat()).collect()
        };
        let fits = (from + 1..=columns).rev().find(|to| wide(&part(*to)) <= width);
        let to = fits.unwrap_or(from + 1);
        parts.push(part(to));
        from = to;
    }
    parts
}

/// The mark that every number of a table has.
fn shared_mark(cells: &[&Cell]) -> Option<String> {
    let mut numbers = cells.iter().filter(|cell| cell.ok_per_s.is_some());
    let first = numbers.next()?.marks.first()?;
    numbers.all(|cell| cell.marks.contains(first)).then(|| first.clone())
}

fn shown_cell(cell: &Cell, shared: Option<&str>, notes: &mut Vec<String>) -> String {
    let Some(value) = cell.ok_per_s else { return "-".to_owned() };
    let own: Vec<&str> =
        cell.marks.iter().map(String::as_str).filter(|mark| Some(*mark) != shared).collect();
    if own.is_empty() {
        return rate(value);
    }
    let note = own.join(", ");
    let at = notes.iter().position(|other| *other == note).unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    });
    format!("{} [{}]", rate(value), at + 1)
}

/// Reasons of cells without a number; cells with the same reason together.
fn reasons(cells: &[&Cell]) -> Vec<String> {
    let mut grouped: Vec<(&str, Vec<String>)> = Vec::new();
    for cell in cells {
        let Some(reason) = cell.reason.as_deref() else { continue };
        let place = format!("{} x {}", cell.key.size, cell.key.users);
        match grouped.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, places)) => places.push(place),
            None => grouped.push((reason, vec![place])),
        }
    }
    let shown = |(reason, places): &(&str, Vec<String>)| match places.len() {
        all if all == cells.len() && all > 1 => format!("all: {reason}"),
        _ => format!("{}: {reason}", places.join(", ")),
    };
    grouped.iter().map(shown).collect()
}

/// Growth of a column's rate with the number of users.
fn growth(column: &[&Cell]) -> Option<String> {
    let scaling = scaling(column);
    if scaling.speedups.len() < 2 {
        return None;
    }
    let speedups: Vec<String> = scaling
        .speedups
        .iter()
        .filter(|(users, _)| *users != 1)
        .map(|(users, by)| format!("{by:.2} times with {users}"))
        .collect();
    let mut line = format!("rate over that of 1 user: {} users", speedups.join(", "));
    let knee = scaling.knee_users.filter(|_| scaling.speedups.len() >= KNEE_FROM);
    if let Some(knee) = knee.filter(|_| !scaling.still_growing) {
        line += &format!("; more than {knee:.1} users only wait for each other");
    }
    Some(line)
}

fn details(page: &mut Page<'_>, search: &SearchResult) {
    let columns = [
        Column::text("Cells"),
        Column::number("distance", 7),
        Column::number("shards", 8),
        Column::number("text", 0),
        Column::number("users", 0),
        Column::number("ok/s", 0),
        Column::number("95 %", 5),
        Column::number("p50", 2),
        Column::number("p95", 0),
        Column::number("p99", 3),
        Column::number("mean", 0),
        Column::number("users/rate", 6),
        Column::number("CPU ms", 4),
        Column::number("failed", 1),
    ];
    let rows: Vec<_> = search
        .cells
        .iter()
        .filter(|cell| cell.raw_ok_per_s > 0.0 || cell.ok_per_s.is_some())
        .map(|cell| {
            let times = &cell.latency_ms;
            let known = |value: f64| if value > 0.0 { time(value) } else { "-".to_owned() };
            // By its upper end: the lower one does not go below 0.
            let interval = cell.interval_per_s.map_or("-".to_owned(), |[_, high]| {
                format!("+-{}", rate(high - cell.raw_ok_per_s))
            });
            let cells = vec![
                format!("  {}", printable(&cell.key.engine)),
                cell.key.distance.to_string(),
                cell.key.shards.to_string(),
                cell.key.size.clone(),
                cell.key.users.to_string(),
                cell.ok_per_s.map_or("-".to_owned(), rate),
                interval,
                known(times.p50),
                known(times.p95),
                known(times.p99),
                known(cell.mean_ms),
                cell.implied_ms.map_or("-".to_owned(), time),
                cell.server_cpu_ms_per_request.map_or("-".to_owned(), significant),
                count(cell.failed),
            ];
            (cells, if cell.ok_per_s.is_some() { Tone::Plain } else { Tone::Warn })
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    page.table(&columns, &rows);
    page.note(
        "95 %: the interval over repeats; users/rate: the mean response time that Little's law gives; CPU ms: the \
         server's, for each successful request",
    );
    page.blank();
}

fn loads(page: &mut Page<'_>, search: &SearchResult) {
    let ingested: Vec<&Load> = search.loads.iter().filter(|load| load.trouble.is_none()).collect();
    if ingested.is_empty() {
        return;
    }
    page.line("Ingest", Tone::Strong);
    for load in ingested {
        let place = place_of(load);
        let what = match load.reused {
            true => format!("{} documents from an earlier run", count(load.documents)),
            false => {
                let mut what = format!(
                    "{} documents in {}, {}/s, {} MB/s, searchable after {}",
                    count(load.documents),
                    lasting(load.seconds),
                    count(load.documents_per_s.round() as u64),
                    significant(load.mb_per_s),
                    lasting(load.searchable_s)
                );
                if let Some(seconds) = load.at_rest_s {
                    let still = if load.busy { "still busy" } else { "idle" };
                    what += &format!(", {still} {} later", lasting(seconds));
                }
                if let Some(size) = load.index_bytes {
                    what += &format!(", index {}", bytes(size as f64));
                }
                if let Some(cpu_s) = load.server_cpu_s {
                    what += &format!(", {} s of CPU", significant(cpu_s));
                }
                if load.retried > 0 {
                    what += &format!(", {} sent again", count(load.retried));
                }
                what
            }
        };
        page.line(&format!("  {place}: {what}"), Tone::Plain);
    }
    page.blank();
}

/// The edit distances that engines search with: all of them on a verbose page, otherwise those that are not the ones asked for.
fn probes(page: &mut Page<'_>, search: &SearchResult) {
    let is_odd = |probe: &&Probe| {
        let clamped = |answer: &ProbeAnswer| probe.clamped_to(answer.distance).is_some();
        page.is_verbose() || probe.trouble.is_some() || probe.asked.iter().any(clamped)
    };
    let probes: Vec<&Probe> = search.probes.iter().filter(is_odd).collect();
    if probes.is_empty() {
        return;
    }
    page.line("Edit distances: requested -> those of the words that were found", Tone::Strong);
    for probe in &probes {
        probed(page, probe);
    }
    let swaps = probes.iter().filter(|probe| probe.swap_is_one == Some(true));
    let swaps: Vec<String> = swaps.map(|probe| printable(&probe.engine)).collect();
    if !swaps.is_empty() {
        let told = format!(
            "  {}: two neighbouring letters that change places are one edit, not two",
            swaps.join(", ")
        );
        page.line(&told, Tone::Plain);
    }
    page.blank();
}

fn probed(page: &mut Page<'_>, probe: &Probe) {
    let engine = printable(&probe.engine);
    if let Some(trouble) = &probe.trouble {
        page.line(&format!("  {engine}: unknown: {}", printable(trouble)), Tone::Warn);
        return;
    }
    let mut clamped = false;
    let asked: Vec<String> = probe
        .asked
        .iter()
        .map(|answer| {
            let found = match (&answer.refused, answer.found.as_slice()) {
                (Some(_), _) => "rejected".to_owned(),
                (None, []) => "nothing".to_owned(),
                (None, found) => found.iter().map(u8::to_string).collect::<Vec<_>>().join(","),
            };
            let mark = probe.clamped_to(answer.distance).is_some();
            clamped |= mark;
            format!("{} -> {found}{}", answer.distance, if mark { " CLAMPED" } else { "" })
        })
        .collect();
    let tone = if clamped { Tone::Warn } else { Tone::Plain };
    page.line(&format!("  {engine}: {}", asked.join("; ")), tone);
    for answer in &probe.asked {
        if let Some(refused) = &answer.refused {
            page.line(
                &format!("    distance {} rejected: {}", answer.distance, printable(refused)),
                Tone::Plain,
            );
        }
    }
    if probe.inside == Some(true) {
        page.line(&format!("    {engine} finds the word inside longer words too"), Tone::Plain);
    }
}

fn spent(page: &mut Page<'_>, search: &SearchResult) {
    let spent = &search.time;
    if spent.total_s <= 0.0 {
        return;
    }
    let text = format!(
        "{} in all: cells {} (warming up {}), ingesting {} (waiting until searchable {}), starting engines {}, \
         sending each query once {}, other {}; {} of the time not spent ingesting was spent outside cells",
        lasting(spent.total_s),
        lasting(spent.cells_s),
        lasting(spent.warming_s),
        lasting(spent.loading_s),
        lasting(spent.waiting_s),
        lasting(spent.starting_s),
        lasting(spent.asking_s),
        lasting(spent.rest_s()),
        percent(spent.outside_cells())
    );
    page.entry("Time", &text, Tone::Plain);
    page.blank();
}

#[cfg(test)]
pub mod tests;
