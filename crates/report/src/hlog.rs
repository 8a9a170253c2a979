//! Interval logs of HdrHistogram, one file a kind of time, readable by HdrHistogram's own tools.
//!
//! A run with one class writes lines without a tag, which its tools show by default; a run with several
//! writes one line a class with the class as its tag (`HistogramLogProcessor -alltags`, or `-tag NAME`).
//! Values are nanoseconds; the maximum in the third column is in milliseconds, as Java's writer has it.

use hdrhistogram::serialization::V2Serializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use plimsoll_core::histogram::Histogram;
use std::io::{self, Write as _};
use std::time::{Duration, UNIX_EPOCH};

/// The logs of a run, without their ending `.hlog`.
pub const KINDS: [&str; 4] = ["response", "service", "failed", "lag"];

/// Maximum values are printed in milliseconds.
const MAX_VALUE_DIVISOR: f64 = 1e6;

/// The head of a log: what it is, and the run's start as the zero of its times.
///
/// # Errors
/// Never in practice: it is written to memory.
pub fn head(kind: &str, run_id: &str, started_wall_us: u64) -> io::Result<Vec<u8>> {
    let start = UNIX_EPOCH + Duration::from_micros(started_wall_us);
    let mut out = Vec::new();
    IntervalLogWriterBuilder::new()
        .add_comment(&format!("plimsoll run {run_id}: {kind} times in nanoseconds"))
        .add_comment("[Histogram log format version 1.3]")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(MAX_VALUE_DIVISOR)
        .begin_log_with(&mut out, &mut V2Serializer::new())?;
    Ok(out)
}

/// One histogram of one second, as a line of a log.
pub struct Line<'a> {
    /// The class, when there are several.
    pub tag: Option<&'a str>,
    /// Start, ns since the run's start.
    pub from_ns: u64,
    /// End, ns since the run's start.
    pub to_ns: u64,
    /// The values.
    pub histogram: &'a Histogram,
    /// The same values as [`Histogram::encode`] writes them, so that they are packed once only.
    pub encoded: &'a str,
}

/// Adds a line to `out`.
///
/// # Errors
/// Never in practice: it is written to memory.
pub fn append(out: &mut Vec<u8>, line: &Line<'_>) -> io::Result<()> {
    if let Some(tag) = line.tag.map(tag_text) {
        write!(out, "Tag={tag},")?;
    }
    let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
    let (from_s, length_s) =
        (seconds(line.from_ns), seconds(line.to_ns.saturating_sub(line.from_ns)));
    let max = line.histogram.max_ns() as f64 / MAX_VALUE_DIVISOR;
    writeln!(out, "{from_s:.3},{length_s:.3},{max:.3},{}", line.encoded)
}

/// Tags must not hold what separates columns and lines.
fn tag_text(class: &str) -> String {
    class.chars().map(|c| if c == ',' || c.is_whitespace() { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn a_log_reads_back_with_the_librarys_reader() {
        let start_us = 1_795_294_102_123_000;
        let mut histogram = Histogram::new();
        histogram.record(5_000_000);
        histogram.record(7_000_000);
        let encoded = histogram.encode();
        let mut log = head("response", "1a2b3c4d", start_us).unwrap();
        for (second, tag) in [(0u64, None), (1, Some("two words, tagged"))] {
            let from_ns = second * 1_000_000_000;
            let line = Line {
                tag,
                from_ns,
                to_ns: from_ns + 1_000_000_000,
                histogram: &histogram,
                encoded: &encoded,
            };
            append(&mut log, &line).unwrap();
        }
        let text = String::from_utf8(log.clone()).unwrap();
        assert_eq!(text.matches("#[MaxValueDivisor:").count(), 1, "said once: {text}");
        let entries: Vec<_> = IntervalLogIterator::new(&log).map(Result::unwrap).collect();
        let start = Duration::from_millis(start_us / 1000);
        assert_eq!(entries[0], LogEntry::StartTime(start));
        assert_eq!(entries[1], LogEntry::BaseTime(start));
        let intervals: Vec<_> = entries
            .iter()
            .filter_map(|e| if let LogEntry::Interval(i) = e { Some(i) } else { None })
            .collect();
        assert_eq!(intervals.len(), 2);
        assert_eq!(intervals[0].tag(), None);
        assert_eq!(intervals[1].tag().unwrap().as_str(), "two_words__tagged");
        assert_eq!(intervals[1].start_timestamp(), Duration::from_secs(1));
        assert_eq!(intervals[1].duration(), Duration::from_secs(1));
        assert!((intervals[1].max() - 7.0).abs() < 0.01, "{}", intervals[1].max());
        let back = Histogram::decode(intervals[1].encoded_histogram()).unwrap();
        assert_eq!(back.cells().collect::<Vec<_>>(), histogram.cells().collect::<Vec<_>>());
    }
}
