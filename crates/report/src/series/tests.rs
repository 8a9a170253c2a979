use super::*;
use crate::assemble::Tally;
use crate::folder::RunFolder;
use crate::samples;
use plimsoll_core::histogram::{Histogram, Packed};
use plimsoll_record::Sink as _;
use proptest::prelude::*;

/// Seconds of any load: requests, failures, pauses.
fn seconds() -> impl Strategy<Value = Vec<Interval>> {
    let second = (0u64..60, 0u64..5, 0u32..9, 0u64..4_000_000);
    proptest::collection::vec(second, 0..40).prop_map(|seconds| {
        let interval =
            |(index, (requests, failed, in_flight, slower_ns)): (usize, (u64, u64, u32, u64))| {
                let mut interval = samples::second(index as u64, 0, requests);
                interval.in_flight = in_flight;
                interval.ledger.sent += failed;
                interval.ledger.scheduled += failed;
                interval.ledger.failed.timeout = failed;
                (0..failed)
                    .for_each(|i| interval.classes[0].record_failed(50_000_000 + i * slower_ns));
                interval.delays.starved.record_many(slower_ns, failed);
                if in_flight % 2 == 1 {
                    let server = interval.classes[1].server.get_or_insert_default();
                    server.times.record_many(slower_ns, failed);
                }
                interval
            };
        seconds.into_iter().enumerate().map(interval).collect()
    })
}

fn of(seconds: &[Interval], mut series: Series) -> Series {
    seconds.iter().for_each(|second| series.push(second));
    series
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_journal_gives_the_columns_that_the_live_run_gave(seconds in seconds()) {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(dir.path(), "load", 1_795_294_102_123_456).unwrap();
        let mut journal = folder.journal(&samples::header()).unwrap();
        seconds.iter().for_each(|second| journal.interval(second).unwrap());
        prop_assert_eq!(Series::of_folder(folder.path()).unwrap(), of(&seconds, Series::new()));
    }

    #[test]
    fn merged_columns_are_those_of_the_merged_seconds(seconds in seconds(), columns in 1usize..9) {
        let series = of(&seconds, Series::limited(columns, usize::MAX));
        prop_assert!(series.columns().len() <= columns);
        let span = series.span() as usize;
        prop_assert_eq!(series.columns().len(), seconds.len().div_ceil(span));
        for (column, part) in series.columns().iter().zip(seconds.chunks(span)) {
            let mut whole = Interval::new(2);
            part.iter().for_each(|second| whole.merge(second));
            whole.in_flight = part.last().unwrap().in_flight;
            let expected = Column { intervals: part.len() as u32, ..Column::of(&whole) };
            prop_assert_eq!(column, &expected);
        }
        // Merging what was merged is merging all of it.
        let all = Series::limited(usize::MAX, usize::MAX);
        prop_assert_eq!(series.coarse(1), of(&seconds, all).coarse(1));
    }
}

#[test]
fn the_sums_of_the_columns_are_the_records() {
    let (record, seconds) = (samples::good(), samples::seconds());
    let series = of(&seconds[1..], Series::new());
    let sum = |count: fn(&Column) -> u64| series.columns().iter().map(count).sum::<u64>();
    assert_eq!(sum(|column| column.scheduled), record.ledger.scheduled);
    assert_eq!(sum(|column| column.ok), record.ledger.ok);
    let whole = &series.coarse(1)[0];
    let times = Times::of(&whole.response).unwrap();
    let ms = |ns: u64| ns as f64 / 1e6;
    let response = &record.latency_ms.response;
    assert_eq!(
        [times.p50_ns, times.p90_ns, times.p99_ns, times.p99_9_ns, times.max_ns].map(ms),
        [response.p50, response.p90, response.p99, response.p99_9, response.max]
    );
    let (mut tally, mut lag) = (Tally::new(&samples::header()), Histogram::new());
    seconds[1..].iter().for_each(|second| tally.add(second));
    whole.lag.add_to(&mut lag);
    assert_eq!(lag, tally.finish().0.lag);
}

#[test]
fn memory_is_bounded_by_columns_and_by_cells() {
    let busy = |index: u64| samples::second(index, 0, 2_000);
    let bytes = Column::of(&busy(0)).cells_bytes();
    assert!((3_000..20_000).contains(&bytes), "{bytes}");
    let mut series = Series::limited(1_000, 20 * bytes);
    for index in 0..100 {
        series.push(&busy(index));
        assert!(series.bytes <= 20 * bytes);
    }
    assert!(series.span() >= 4 && series.columns().len() <= 25);
    assert_eq!(series.columns().iter().map(|column| column.intervals).sum::<u32>(), 100);
}

#[test]
fn a_record_without_a_journal_has_no_columns() {
    let dir = tempfile::tempdir().unwrap();
    let series = Series::of_folder(dir.path()).unwrap();
    assert!(series.is_empty() && series.coarse(40).is_empty());
    assert_eq!(Times::of(&Packed::default()), None);
}
