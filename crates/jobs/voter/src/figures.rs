//! The figures of votes that a comparison looks at.

use plimsoll_record::RunRecord;
use plimsoll_report::figures::{Figure, Unit, of_load};

/// Returns accepted votes per second and what the rate of a load that adapts itself settled on, beside the figures of a load.
#[must_use]
pub fn figures(record: &RunRecord) -> Option<Vec<Figure>> {
    let voter = record.job_results.voter()?;
    if record.job_results.is_search() {
        return None;
    }
    let mut figures = Vec::new();
    if record.duration_s > 0.0 {
        let accepted_per_s = voter.accepted as f64 / record.duration_s;
        figures.push(Figure::new("accepted", Unit::PerS, accepted_per_s));
    }
    let tuned = voter.auto_tune.as_ref().and_then(|tuned| tuned.certified_rate_per_s);
    figures.extend(tuned.map(|rate| Figure::new("max-rate", Unit::PerS, rate)));
    figures.extend(of_load(record));
    Some(figures)
}
