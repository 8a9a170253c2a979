//! The figures of a feed that a comparison looks at.

use plimsoll_record::RunRecord;
use plimsoll_report::figures::{Figure, Unit, cpu, times};

/// Returns documents and bytes per second, the times of operations, refused operations, and CPU time of the target.
#[must_use]
pub fn figures(record: &RunRecord) -> Option<Vec<Figure>> {
    let feed = record.job_results.feed()?;
    // Of a feed beside queries, the queries are looked at too.
    if record.job_results.mix().is_some() || record.job_results.is_search() {
        return None;
    }
    let mut figures = vec![Figure::new("documents", Unit::PerS, feed.accepted_per_s)];
    if feed.seconds > 0.0 {
        let bytes_per_s = feed.body_bytes as f64 / feed.seconds;
        figures.push(Figure::new("bytes", Unit::BytesPerS, bytes_per_s));
    }
    figures.extend(times(&record.latency_ms.response, false));
    if feed.operations > 0 {
        let share = feed.refused as f64 / feed.operations as f64;
        let counts = Some([feed.refused, feed.operations]);
        figures.push(Figure { counts, ..Figure::new("errors", Unit::Share, share) });
    }
    figures.extend(cpu(record));
    Some(figures)
}
