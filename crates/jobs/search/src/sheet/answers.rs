//! Answers of the engines: where their hits differ, and the documents that they find of those that are known to match.

use plimsoll_record::search::{Disagreement, Recall, SearchResult};
use plimsoll_report::number::{count, counted, percent};
use plimsoll_report::sheet::{
    BARS_MAX, Bar, Bars, Cell, Field, Listed, Part, Section, Table, Tone,
};

/// Disagreements on the page; the record holds all.
const DISAGREEMENTS_MAX: usize = 200;

/// The queries to which engines gave different answers.
pub(super) fn hits(search: &SearchResult) -> Option<Section> {
    if search.engines.len() < 2 || search.answers.is_empty() {
        return None;
    }
    let note = "Each query was asked once of each engine before the load. Engines that find different documents do different work, \
                so that their rates are not those of one task.";
    let section = Section::new("hits", "Hit differences", note);
    let found = &search.disagreements;
    if found.is_empty() {
        let text = "Engines that answered the same query gave the same hits.".to_owned();
        return Some(section.with(Part::Text(Tone::Good, text)));
    }
    let names: Vec<&str> = search.engines.iter().map(|engine| engine.name.as_str()).collect();
    let mut heads =
        vec!["query".to_owned(), "text".to_owned(), "#distance".to_owned(), "#shards".to_owned()];
    heads.extend(names.iter().map(|name| format!("#{name}")));
    heads.extend(["#difference".to_owned(), "documents".to_owned()]);
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>()).sortable();
    for (index, one) in found.iter().enumerate().take(DISAGREEMENTS_MAX) {
        table.row(Tone::Warn, row(index, one, &names));
    }
    let left = found.len().saturating_sub(DISAGREEMENTS_MAX);
    let more = (left > 0).then(|| {
        let text = format!("The record has {} more.", counted(left as u64, "difference"));
        Part::Text(Tone::Plain, text)
    });
    Some(section.with(Part::Table(table)).with_some(more))
}

fn row(index: usize, one: &Disagreement, names: &[&str]) -> Vec<Cell> {
    let place = index.to_string();
    let at = |path: &[&str]| -> Vec<String> {
        let own = ["search", "disagreements", place.as_str()];
        own.iter().chain(path).map(|step| (*step).to_owned()).collect()
    };
    let from = |cell: Cell, path: &[&str]| {
        let steps = at(path);
        cell.from(&steps.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let mut cells = vec![
        Cell::text(one.query.clone()),
        Cell::text(one.size.clone()),
        from(Cell::count(one.distance.into()), &["distance"]),
        from(Cell::count(one.shards.into()), &["shards"]),
    ];
    cells.extend(names.iter().map(|name| {
        let own = one.hits.iter().position(|hits| hits.engine == *name);
        own.map_or(Cell::Unknown, |own| {
            from(Cell::count(one.hits[own].hits), &["hits", &own.to_string(), "hits"])
        })
    }));
    cells.push(from(Cell::count(one.difference), &["difference"]));
    let documents = if one.other_documents { "as many, but others" } else { "" };
    cells.push(Cell::text(documents));
    cells
}

/// Documents that are known to match, and those that each engine found.
pub(super) fn recall(search: &SearchResult) -> Option<Section> {
    if search.recall.is_empty() {
        return None;
    }
    let list = Listed { at: &["search", "recall"], items: &search.recall };
    let fields = [
        Field::text("engine", |one: &Recall| one.engine.clone()),
        Field::text("query", |one: &Recall| one.query.clone()),
        Field::text("text", |one: &Recall| one.size.clone()),
        Field::new("distance", "distance", |one: &Recall| Cell::count(one.distance.into())),
        Field::new("shards", "shards", |one: &Recall| Cell::count(one.shards.into())),
        Field::new("found", "found", |one: &Recall| Cell::count(one.found)),
        Field::new("known to match", "expected", |one: &Recall| Cell::count(one.expected)),
        Field::text("recall", |one: &Recall| match one.expected {
            0 => "none to find".to_owned(),
            expected => percent(one.found as f64 / expected as f64),
        }),
    ];
    let tone = |one: &Recall| if one.found == one.expected { Tone::Plain } else { Tone::Warn };
    // Those that miss most come first.
    let missing = |one: &Recall| one.expected.abs_diff(one.found);
    let mut worst: Vec<&Recall> = search.recall.iter().filter(|one| missing(one) > 0).collect();
    worst.sort_by_key(|one| std::cmp::Reverse(missing(one)));
    let bar = |one: &&Recall| Bar {
        name: format!("{}: {}", one.engine, one.query),
        values: vec![
            one.found.min(one.expected) as f64,
            one.expected.saturating_sub(one.found) as f64,
            one.found.saturating_sub(one.expected) as f64,
        ],
        text: format!("{} of {}", count(one.found), count(one.expected)),
    };
    let note = "A synthetic text says which documents match. An engine that finds fewer misses some; one that finds more returns \
                documents that do not match.";
    let mut section = Section::new("recall", "Recall", note);
    if worst.is_empty() {
        let text = "Every engine found exactly the documents that match.".to_owned();
        section =
            section.with(Part::Text(Tone::Good, text)).with(Part::Table(list.table(&fields, tone)));
        return Some(section);
    }
    let bars = Bars {
        caption: "Documents found, missed and found beside them, of the answers that are not exact"
            .to_owned(),
        parts: vec![
            ("found".to_owned(), "good"),
            ("missed".to_owned(), "bad"),
            ("found beside".to_owned(), "warn"),
        ],
        bars: worst.iter().take(BARS_MAX).map(bar).collect(),
        twin: list.table(&fields, tone),
    };
    Some(section.with(Part::Bars(Box::new(bars))))
}
