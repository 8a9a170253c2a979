//! The tables of the simulation, in Markdown.

use crate::driver::Tally;
use crate::faults::{Counts, Fault};
use crate::parts::Part;
use crate::planted::Planted;
use std::fmt::Write;

/// A number with blanks between its thousands, as texts have it.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// One row a part.
#[must_use]
pub fn parts(rows: &[(Part, Tally)]) -> String {
    let mut text = "| part | drives | runs | done twice | runs/s | simulated hours | requests | faults | runs with a finding |\n\
                    |---|---|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for (part, tally) in rows {
        let took_s = tally.took_ns as f64 / 1e9;
        let hours = tally.simulated_ns as f64 / 3.6e12;
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} |",
            part.name,
            part.words,
            grouped(tally.runs),
            grouped(tally.repeated),
            grouped((tally.runs as f64 / took_s.max(1e-9)) as u64),
            grouped(hours as u64),
            grouped(tally.requests),
            grouped(tally.faults.total()),
            grouped(tally.failed),
        );
    }
    text
}

/// One row a kind of fault that was committed, all parts together.
#[must_use]
pub fn faults(rows: &[(Part, Tally)]) -> String {
    let mut all = Counts::default();
    rows.iter().for_each(|(_, tally)| all.merge(&tally.faults));
    let mut text = "| fault of the peer | committed | in parts |\n|---|---:|---|\n".to_owned();
    for &fault in Fault::ALL.iter().filter(|fault| all.get(**fault) > 0) {
        let parts = rows.iter().filter(|(_, tally)| tally.faults.get(fault) > 0);
        let names: Vec<&str> = parts.map(|(part, _)| part.name).collect();
        let names = if names.len() == rows.len() { "all".to_owned() } else { names.join(", ") };
        let _ = writeln!(text, "| {} | {} | {names} |", fault.name(), grouped(all.get(fault)));
    }
    text
}

/// A planted defect, a part of the simulation, and the seed that shows the defect there, with what the judge says of it.
pub type Found = (Planted, Part, Option<(u64, String)>);

/// One row a defect that was planted: by which part and at which seed it is found, of those from 0 on.
#[must_use]
pub fn planted(rows: &[Found]) -> String {
    let mut text = "| planted defect | part | found in run |\n|---|---|---:|\n".to_owned();
    for (planted, part, found) in rows {
        let run = found.as_ref().map_or("not found".to_owned(), |(seed, _)| grouped(seed + 1));
        let _ = writeln!(text, "| {} | `{}` | {run} |", planted.words(), part.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let texts = [0, 999, 1_000, 12_345, 1_000_000].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "12,345", "1,000,000"]);
    }
}
