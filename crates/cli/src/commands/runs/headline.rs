//! The result of a run in a few words, for a list of runs.

use plimsoll_record::RunRecord;
use plimsoll_report::number::{counted, significant, time};

/// Samples that a 95th percentile needs.
const P95_FROM: u64 = 100;

/// Returns the figure that a reader looks for first.
pub fn headline(record: &RunRecord) -> String {
    let results = &record.job_results;
    if let Some(search) = results.search() {
        let with_rate = search.cells.iter().filter(|cell| cell.ok_per_s.is_some()).count();
        return format!("{with_rate} of {}", counted(search.cells_planned() as u64, "cell"));
    }
    if let Some(found) = results.seek() {
        let finding = &found.finding;
        return match (&finding.certified, finding.estimate_per_s) {
            (Some(run), _) => format!("{}/s hold the limits", significant(run.rate_per_s)),
            (None, Some(estimate)) => {
                format!("line near {}/s, none certified", significant(estimate))
            }
            (None, None) => "no load line".to_owned(),
        };
    }
    if let Some(run) = results.rank().and_then(|rank| rank.overall.as_ref()) {
        return format!(
            "{}/s, p95 {} ms",
            significant(run.achieved_per_s),
            significant(run.p95_ms)
        );
    }
    if let Some(visit) = results.visit() {
        return counted(visit.documents, "document");
    }
    if let (Some(feed), None) = (results.feed(), results.mix()) {
        return format!("{} accepted", counted(feed.accepted, "operation"));
    }
    if record.ledger.ok == 0 {
        return match record.ledger.sent {
            0 => "no request was sent".to_owned(),
            sent => format!("none of {} succeeded", counted(sent, "request")),
        };
    }
    let rate = format!("{} ok/s", significant(record.rate.ok_per_s));
    let response = &record.latency_ms.response;
    match response.count {
        P95_FROM.. => format!("{rate}, p95 {}", time(response.p95)),
        _ => rate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_has_a_result_in_a_few_words() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records");
        let mut seen = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let record = plimsoll_record::read(&std::fs::read(&path).unwrap()).unwrap();
            let text = headline(&record);
            let has_figure = text.contains(|c: char| c.is_ascii_digit());
            assert!(has_figure || text == "no load line", "{}: {text}", path.display());
            assert!(text.chars().count() <= 40, "{}: {text}", path.display());
            seen += 1;
        }
        assert!(seen >= 10, "{seen} records");
    }
}
