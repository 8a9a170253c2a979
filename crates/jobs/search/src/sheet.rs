//! The page that is data of a search matrix: heat maps and lines of its rates, hit differences, recall, ingest, and time.

mod answers;
mod rates;

use plimsoll_record::RunRecord;
use plimsoll_record::search::{Cell as MatrixCell, Load, Probe, SearchResult};
use plimsoll_report::number::{count, counted, lasting, percent, significant};
use plimsoll_report::sections::{Decision, put_first};
use plimsoll_report::series::Series;
use plimsoll_report::sheet::{Bar, Bars, Cell, Field, Listed, Part, Section, Sheet, Table, Tone};

/// Adds the sections of a matrix. Changes nothing for a record without one.
pub(crate) fn sheet(sheet: &mut Sheet, record: &RunRecord, _course: &Series) {
    let Some(search) = record.job_results.search() else { return };
    put_first(sheet, &decisions(search), false);
    // The times of all cells together describe none of them.
    for id in ["curve", "slowest", "classes"] {
        sheet.remove(id);
    }
    name_queries(sheet, search);
    let mut after = "decide".to_owned();
    let sections = [
        Some(rates::matrix(search)),
        rates::lines(search),
        Some(cells(search)),
        answers::hits(search),
        answers::recall(search),
        ingest(search),
        probes(search),
        time(search),
    ];
    for section in sections.into_iter().flatten() {
        let id = section.id.clone();
        sheet.put_after(&after, section);
        after = id;
    }
}

/// Puts the names of the queries in the place of the file that they came from, which is long.
fn name_queries(sheet: &mut Sheet, search: &SearchResult) {
    let Some(asked) = sheet.section_mut("asked") else { return };
    let names: Vec<&str> = search.queries.iter().map(|query| query.name.as_str()).collect();
    for part in &mut asked.parts {
        let Part::Facts(facts) = part else { continue };
        for (name, value) in facts.iter_mut().filter(|(name, _)| name == "requests from") {
            "queries".clone_into(name);
            *value = Cell::text(names.join(", "));
        }
    }
}

fn decisions(search: &SearchResult) -> Vec<Decision> {
    let with_rate = search.cells.iter().filter(|cell| cell.ok_per_s.is_some()).count();
    let planned = match search.origin.as_str() {
        "measured" => search.cells_planned().max(search.cells.len()),
        _ => search.cells.len(),
    };
    let mut rows = vec![
        // A cell that is withheld is no limit that was missed: its reason is in the table of cells.
        Decision {
            limit: format!("of {}", counted(planned as u64, "cell")),
            ..Decision::figure("cells with a rate", Cell::count(with_rate as u64))
        },
    ];
    for engine in search.engines.iter().take(4) {
        let own =
            search.cells.iter().enumerate().filter(|(_, cell)| cell.key.engine == engine.name);
        let rate_of = |cell: &MatrixCell| cell.ok_per_s.unwrap_or(f64::NEG_INFINITY);
        let best = own.filter(|(_, cell)| cell.ok_per_s.is_some());
        let best = best.max_by(|a, b| rate_of(a.1).total_cmp(&rate_of(b.1)));
        let Some((index, cell)) = best else {
            rows.push(Decision::figure(&format!("{}: highest rate", engine.name), Cell::Unknown));
            continue;
        };
        let value = ok_per_s(cell).from(&["search", "cells", &index.to_string(), "ok_per_s"]);
        rows.push(Decision::figure(&format!("highest rate, {}", cell.key), value));
    }
    if search.engines.len() > 1 && !search.answers.is_empty() {
        let differ = search.disagreements.len() as u64;
        rows.push(
            Decision::figure("queries that engines answer differently", Cell::count(differ))
                .against("0", differ == 0),
        );
    }
    if !search.recall.is_empty() {
        let exact = search.recall.iter().filter(|one| one.found == one.expected).count();
        rows.push(
            Decision::figure("answers with exact recall", Cell::count(exact as u64))
                .against(&format!("all of {}", search.recall.len()), exact == search.recall.len()),
        );
    }
    rows
}

/// The rate of a cell.
fn ok_per_s(cell: &MatrixCell) -> Cell {
    Cell::or_unknown(cell.ok_per_s, Cell::per_s)
}

/// All figures of all cells.
fn cells(search: &SearchResult) -> Section {
    let list = Listed { at: &["search", "cells"], items: &search.cells };
    let times = |label: &'static str, path: &'static str, of: fn(&MatrixCell) -> f64| {
        Field::new(label, path, move |cell: &MatrixCell| match cell.latency_ms.count {
            0 => Cell::Unknown,
            _ => Cell::ms(of(cell)),
        })
    };
    let end = |cell: &MatrixCell, high: usize| {
        Cell::or_unknown(cell.interval_per_s, |ends| Cell::per_s(ends[high]))
    };
    let has_intervals = search.cells.iter().any(|cell| cell.interval_per_s.is_some());
    let mut fields = vec![
        Field::text("engine", |cell: &MatrixCell| cell.key.engine.clone()),
        Field::text("text", |cell: &MatrixCell| cell.key.size.clone()),
        Field::new("distance", "distance", |cell: &MatrixCell| {
            Cell::count(cell.key.distance.into())
        }),
        Field::new("shards", "shards", |cell: &MatrixCell| Cell::count(cell.key.shards.into())),
        Field::new("users", "users", |cell: &MatrixCell| Cell::count(cell.key.users.into())),
        Field::new("ok/s", "ok_per_s", ok_per_s),
    ];
    if has_intervals {
        fields.push(Field::new("from", "interval_per_s/0", move |cell: &MatrixCell| end(cell, 0)));
        fields.push(Field::new("to", "interval_per_s/1", move |cell: &MatrixCell| end(cell, 1)));
    }
    fields.extend([
        times("p50", "latency_ms/p50", |cell| cell.latency_ms.p50),
        times("p95", "latency_ms/p95", |cell| cell.latency_ms.p95),
        times("p99", "latency_ms/p99", |cell| cell.latency_ms.p99),
        times("mean", "mean_ms", |cell| cell.mean_ms),
        Field::new("N/X", "implied_ms", |cell: &MatrixCell| {
            Cell::or_unknown(cell.implied_ms, Cell::ms)
        }),
        Field::new("server's CPU", "server_cpu_ms_per_request", |cell: &MatrixCell| {
            Cell::or_unknown(cell.server_cpu_ms_per_request, Cell::ms)
        }),
        Field::new("failed", "failed", |cell: &MatrixCell| Cell::count(cell.failed)),
        Field::text("remarks", |cell: &MatrixCell| {
            cell.reason.iter().chain(&cell.marks).cloned().collect::<Vec<_>>().join("; ")
        }),
    ]);
    let tone = |cell: &MatrixCell| match cell.ok_per_s {
        Some(_) if cell.failed == 0 => Tone::Plain,
        _ => Tone::Warn,
    };
    let intervals =
        if has_intervals { " from, to: interval of 95 % over the repeats." } else { "" };
    let note = format!(
        "ok/s: successful requests per second in the steady window; unknown where it is withheld, with the reason in the \
         remarks.{intervals} N/X: mean that users and rate imply. server's CPU: for each successful request."
    );
    Section::new("cells", "Cells", &note).with(Part::Table(list.table(&fields, tone)))
}

/// The ingest of each text into each engine.
fn ingest(search: &SearchResult) -> Option<Section> {
    if search.loads.is_empty() {
        return None;
    }
    let list = Listed { at: &["search", "loads"], items: &search.loads };
    let fields = [
        Field::text("engine", |load: &Load| load.engine.clone()),
        Field::text("text", |load: &Load| load.size.clone()),
        Field::new("shards", "shards", |load: &Load| Cell::count(load.shards.into())),
        Field::new("documents", "documents", |load: &Load| Cell::count(load.documents)),
        Field::new("took", "seconds", |load: &Load| Cell::seconds(load.seconds)),
        Field::new("documents/s", "documents_per_s", |load: &Load| {
            Cell::per_s(load.documents_per_s)
        }),
        Field::new("MB/s", "mb_per_s", |load: &Load| {
            Cell::number(load.mb_per_s, significant(load.mb_per_s))
        }),
        Field::new("searchable after", "searchable_s", |load: &Load| {
            Cell::seconds(load.searchable_s)
        }),
        Field::new("idle after", "at_rest_s", |load: &Load| {
            Cell::or_unknown(load.at_rest_s, Cell::seconds)
        }),
        Field::new("index", "index_bytes", |load: &Load| {
            Cell::or_unknown(load.index_bytes, |bytes| Cell::bytes(bytes as f64))
        }),
        Field::new("server's CPU", "server_cpu_s", |load: &Load| {
            Cell::or_unknown(load.server_cpu_s, Cell::seconds)
        }),
        Field::new("refused", "failed", |load: &Load| Cell::count(load.failed)),
        Field::new("sent again", "retried", |load: &Load| Cell::count(load.retried)),
        Field::text("remarks", |load: &Load| match (&load.trouble, load.reused, load.busy) {
            (Some(trouble), ..) => format!("NOT INGESTED: {trouble}"),
            (None, true, _) => "from an earlier run".to_owned(),
            (None, false, true) => "still busy when the queries began".to_owned(),
            (None, false, false) => String::new(),
        }),
    ];
    let tone = |load: &Load| if load.trouble.is_some() { Tone::Bad } else { Tone::Plain };
    let note = "One row each time a text was written into an engine. searchable after: from the last acknowledgement until all \
                documents could be found; idle after: from there until the server had no work of its own left.";
    Some(Section::new("ingest", "Ingest", note).with(Part::Table(list.table(&fields, tone))))
}

/// The words that each engine found at the distances that it was asked for.
fn probes(search: &SearchResult) -> Option<Section> {
    if search.probes.is_empty() {
        return None;
    }
    let mut table =
        Table::new(&["engine", "requested distance", "distances of the words found", "remarks"]);
    for probe in &search.probes {
        if let Some(trouble) = &probe.trouble {
            let cells = [probe.engine.as_str(), "", "unknown", trouble].map(Cell::text);
            table.row(Tone::Warn, cells.to_vec());
        }
        for answer in &probe.asked {
            let found = match (&answer.refused, answer.found.as_slice()) {
                (Some(_), _) => "refused".to_owned(),
                (None, []) => "nothing".to_owned(),
                (None, found) => found.iter().map(u8::to_string).collect::<Vec<_>>().join(", "),
            };
            let remark = answer.refused.clone().or_else(|| probe.mark(answer.distance));
            let tone = if remark.is_some() { Tone::Warn } else { Tone::Plain };
            let texts = [
                probe.engine.clone(),
                answer.distance.to_string(),
                found,
                remark.unwrap_or_default(),
            ];
            table.row(tone, texts.map(Cell::text).to_vec());
        }
    }
    let swaps = |probe: &&Probe| probe.swap_is_one == Some(true);
    let names: Vec<&str> =
        search.probes.iter().filter(swaps).map(|probe| probe.engine.as_str()).collect();
    let said = (!names.is_empty()).then(|| {
        let text = format!(
            "{}: two neighbouring letters that change places are one edit, not two.",
            names.join(", ")
        );
        Part::Text(Tone::Plain, text)
    });
    let note = "Words were planted at known edit distances; an engine that was asked for one distance and finds fewer is clamped.";
    let section = Section::new("distances", "Edit distances", note).with(Part::Table(table));
    Some(section.with_some(said))
}

/// Account of the time of the matrix.
fn time(search: &SearchResult) -> Option<Section> {
    let spent = &search.time;
    if spent.total_s <= 0.0 {
        return None;
    }
    let parts = [
        ("cells", "cells_s", spent.cells_s, "achieved"),
        ("ingesting", "loading_s", spent.loading_s, "network"),
        ("starting engines", "starting_s", spent.starting_s, "server"),
        ("asking each query once", "asking_s", spent.asking_s, "cpu"),
    ];
    let mut table = Table::new(&["", "#time"]);
    for (name, field, seconds, _) in parts {
        table.row(
            Tone::Plain,
            vec![Cell::text(name), Cell::seconds(seconds).from(&["search", "time", field])],
        );
    }
    let total = Cell::seconds(spent.total_s).from(&["search", "time", "total_s"]);
    table.row(Tone::Plain, vec![Cell::text("all of it"), total]);
    let bar = Bar {
        name: "matrix".to_owned(),
        values: parts.iter().map(|part| part.2).collect(),
        text: lasting(spent.total_s),
    };
    let bars = Bars {
        caption: "Where the time went".to_owned(),
        parts: parts.iter().map(|part| (part.0.to_owned(), part.3)).collect(),
        bars: vec![bar],
        twin: table,
    };
    let note = format!(
        "{} of the time without ingesting was spent outside cells; {} were measured.",
        percent(spent.outside_cells()),
        counted(spent.cells, "cell")
    );
    let own = |name: &str, seconds: f64, field: &'static str| {
        (name.to_owned(), Cell::seconds(seconds).from(&["search", "time", field]))
    };
    let facts = vec![
        own("in cells, warming up", spent.warming_s, "warming_s"),
        own("in ingesting, waiting until searchable", spent.waiting_s, "waiting_s"),
        ("text".to_owned(), Cell::text(search.corpus.clone())),
        ("queries".to_owned(), Cell::text(count(search.queries.len() as u64))),
    ];
    Some(
        Section::new("matrix-time", "Time of the matrix", &note)
            .with(Part::Bars(Box::new(bars)))
            .with(Part::Facts(facts)),
    )
}

#[cfg(test)]
mod tests;
