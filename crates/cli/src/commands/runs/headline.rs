//! The result of a run in a few words, for a list of runs.

use plimsoll_record::RunRecord;
use plimsoll_report::forms::Forms;
use plimsoll_report::number::{counted, significant, time};

/// Samples that a 95th percentile needs.
const P95_FROM: u64 = 100;

/// Returns the figure that a reader looks for first: that of the first job with one, or else that of a load.
pub fn headline(record: &RunRecord, jobs: &[Forms]) -> String {
    if let Some(text) = jobs.iter().find_map(|job| (job.headline)(record)) {
        return text;
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
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/records");
        let mut seen = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let record = plimsoll_record::read(&std::fs::read(&path).unwrap()).unwrap();
            let text = headline(&record, &crate::forms());
            let has_figure = text.contains(|c: char| c.is_ascii_digit());
            assert!(has_figure || text == "no load line", "{}: {text}", path.display());
            assert!(text.chars().count() <= 40, "{}: {text}", path.display());
            seen += 1;
        }
        assert!(seen >= 10, "{seen} records");
    }
}
