//! Measured time of a run on the wall clock, so that samples of other programs can be cut to it.

use plimsoll_core::clock::parse_utc;
use plimsoll_record::RunRecord;
use std::path::Path;

/// A stretch of wall time, seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Its start.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
}

impl Window {
    /// Returns true if a moment lies in it; the start does not, so that a sample that ends there is left out.
    #[must_use]
    pub fn holds(&self, at_s: f64) -> bool {
        at_s > self.from_s && at_s <= self.to_s
    }
}

/// The measured phases of a run; of a ranking benchmark its last run at one rate, which is its result.
///
/// The start is that of the record's folder, to the millisecond where the folder has kept its name; the first
/// request follows when the connections are open, which on a loopback takes some milliseconds.
#[must_use]
pub fn measured(record: &RunRecord, folder: &Path) -> Vec<Window> {
    let Some(whole_us) = parse_utc(&record.started_at) else { return Vec::new() };
    let start_s = whole_us as f64 / 1e6 + milliseconds(folder) / 1e3;
    if let Some(last) = last_ranking_run(record) {
        return vec![Window { from_s: start_s + last.from_s, to_s: start_s + last.to_s }];
    }
    record
        .phases
        .iter()
        .filter(|phase| phase.measured && phase.duration_s > 0.0)
        .map(|phase| Window {
            from_s: start_s + phase.from_s,
            to_s: start_s + phase.from_s + phase.duration_s,
        })
        .collect()
}

/// Start and end of the last run of `plimsoll rank`, s since the start of the record.
fn last_ranking_run(record: &RunRecord) -> Option<Window> {
    let last = record.job_results.rank()?.runs.last()?;
    Some(Window { from_s: last.from_s, to_s: last.to_s })
}

/// The milliseconds in a folder's name, `20261121T204822.123Z-...`; 0 when it has another.
fn milliseconds(folder: &Path) -> f64 {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits = name.split_once('.').and_then(|(_, rest)| rest.split_once('Z'));
    digits.and_then(|(ms, _)| ms.parse::<u16>().ok()).filter(|ms| *ms < 1000).map_or(0.0, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use plimsoll_record::rank::{RankResult, RankRun};

    #[test]
    fn only_measured_phases_count() {
        let record = samples::good();
        let start_s = parse_utc(&record.started_at).unwrap() as f64 / 1e6;
        let windows = measured(&record, Path::new("runs/20261121T204822.250Z-load-1a2b3c4d"));
        assert_eq!(windows.len(), 1, "the warm-up is not measured");
        let steady = record.phases.iter().find(|phase| phase.measured).unwrap();
        assert!((windows[0].from_s - (start_s + 0.25 + steady.from_s)).abs() < 1e-6);
        assert!(!windows[0].holds(windows[0].from_s) && windows[0].holds(windows[0].to_s));
        let mut ranking = record.clone();
        let runs = [(1.0, 2.0), (7.0, 9.5)].map(|(from_s, to_s)| RankRun {
            from_s,
            to_s,
            ..RankRun::default()
        });
        ranking.job_results.put(RankResult { runs: runs.to_vec(), ..RankResult::default() });
        let last = measured(&ranking, Path::new("elsewhere"));
        assert_eq!(last, [Window { from_s: start_s + 7.0, to_s: start_s + 9.5 }]);
        let moved = measured(&record, Path::new("elsewhere"));
        assert!((windows[0].from_s - moved[0].from_s - 0.25).abs() < 1e-6);
    }
}
