//! A line that was followed over time as CSV: a row a stretch.

use plimsoll_core::seek::watch::Watched;

/// The columns.
const COLUMNS: [&str; 10] = [
    "from_s",
    "until_s",
    "state",
    "line_per_s",
    "low_per_s",
    "high_per_s",
    "capacity_per_s",
    "blocks",
    "blocks_from_s",
    "note",
];

/// All rows, the head first.
pub(super) fn rows(watched: &[Watched]) -> Vec<Vec<String>> {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let row = |one: &Watched| {
        vec![
            one.from_s.to_string(),
            one.until_s.to_string(),
            one.state.to_string(),
            number(one.line_per_s),
            number(one.interval_per_s.map(|(low, _)| low)),
            number(one.interval_per_s.map(|(_, high)| high)),
            number(one.capacity_per_s),
            one.blocks.to_string(),
            one.blocks_from_s.to_string(),
            one.note.clone().unwrap_or_default(),
        ]
    };
    let head = COLUMNS.map(str::to_owned).to_vec();
    std::iter::once(head).chain(watched.iter().map(row)).collect()
}
