use super::*;
use proptest::prelude::*;

#[test]
fn more_values_than_the_form_holds_are_refused_and_never_written() {
    let mut own = Histogram::new();
    own.record_many(1_000_000, COUNT_MAX);
    let most = own.encode();
    assert_eq!(Histogram::decode(&most).unwrap(), own);
    own.record_many(1_000_000, COUNT_MAX);
    assert_eq!(own.encode(), most);
    let mut twice = Histogram::decode(&most).unwrap();
    let error = twice.add_encoded(&most).unwrap_err();
    assert!(error.0.contains("2^63 - 1"), "{}", error.0);
}

#[test]
fn no_memory_is_taken_for_counts_that_a_histogram_only_claims_to_have() {
    let claimed = u32::MAX.to_be_bytes();
    let head = [0x1c84_9313u32.to_be_bytes(), claimed, [0; 4], 3u32.to_be_bytes()].concat();
    let bounds = [1u64.to_be_bytes(), 1_000_000u64.to_be_bytes(), 1f64.to_be_bytes()].concat();
    let bare = [head, bounds, vec![2]].concat();
    let mut packed = Vec::new();
    let mut reader = flate2::read::ZlibEncoder::new(&bare[..], flate2::Compression::fast());
    std::io::Read::read_to_end(&mut reader, &mut packed).unwrap();
    let length = (packed.len() as u32).to_be_bytes();
    let packed = [&0x1c84_9314u32.to_be_bytes()[..], &length, &packed].concat();
    for bytes in [bare, packed] {
        let error = Histogram::decode(&STANDARD.encode(bytes)).unwrap_err();
        assert_eq!(error.0, "the histogram is cut off");
    }
}

proptest! {
    #[test]
    fn quantiles_hold_three_digits(mut values in proptest::collection::vec(1_000u64..3_600_000_000_000, 1..200)) {
        let mut histogram = Histogram::new();
        for &v in &values {
            histogram.record(v);
        }
        values.sort_unstable();
        for q in [0.5, 0.9, 0.99, 1.0] {
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            let shown = histogram.quantile_ns(q) as f64;
            prop_assert!((shown - exact).abs() <= exact * 1.1e-3 + 512.0, "{shown} {exact}");
        }
    }

    #[test]
    fn merging_is_counting_together(a in proptest::collection::vec(0u64..10_000_000_000, 0..100),
                                    b in proptest::collection::vec(0u64..10_000_000_000, 0..100)) {
        let fill = |values: &[u64]| {
            let mut h = Histogram::new();
            values.iter().for_each(|&v| h.record(v));
            h
        };
        let mut merged = fill(&a);
        merged.merge(&fill(&b));
        let together = fill(&[a, b].concat());
        prop_assert_eq!(merged.cells().collect::<Vec<_>>(), together.cells().collect::<Vec<_>>());
        let read = Histogram::decode(&merged.encode()).unwrap();
        prop_assert_eq!(read.cells().collect::<Vec<_>>(), merged.cells().collect::<Vec<_>>());
    }
}

proptest! {
    #[test]
    fn runs_of_values_are_counted_as_each_of_them(runs in proptest::collection::vec((0u64..5_000_000_000_000, 1u64..9), 0..60),
                                                  few in proptest::collection::vec(0u64..3, 0..200)) {
        let each = runs.iter().flat_map(|&(value, times)| std::iter::repeat_n(value, times as usize));
        let (mut one_by_one, mut in_runs) = (Histogram::new(), Histogram::new());
        let mut run = Run::default();
        for value in each.chain(few.iter().copied()) {
            one_by_one.record(value);
            run.record(value, &mut in_runs);
        }
        run.flush(&mut in_runs);
        prop_assert!(run.is_empty());
        prop_assert_eq!(one_by_one, in_runs);
    }
}

/// Values as they are, and at all magnitudes.
fn values() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let value = prop_oneof![
        0u64..3_000,
        1_000u64..50_000_000,
        (0u32..64, 0u64..4096).prop_map(|(bits, low)| (low << bits) | (low >> 3)),
        Just(LARGEST_NS),
        Just(u64::MAX),
    ];
    proptest::collection::vec((value, 1u64..2_000), 0..120)
}

proptest! {
    #[test]
    fn all_is_as_the_librarys(values in values(), limit in 0u64..10_000_000_000) {
        let mut own = Histogram::new();
        let mut hdr =
            hdrhistogram::Histogram::<u64>::new_with_bounds(SMALLEST_NS, LARGEST_NS, DIGITS).unwrap();
        for &(value, count) in &values {
            own.record_many(value, count);
            hdr.saturating_record_n(value, count);
        }
        prop_assert_eq!((own.count(), own.is_empty()), (hdr.len(), hdr.is_empty()));
        let cells: Vec<_> =
            hdr.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
        prop_assert_eq!(own.cells().collect::<Vec<_>>(), cells);
        let limited = limit.clamp(SMALLEST_NS, LARGEST_NS);
        prop_assert_eq!(own.count_above(limit), hdr.len() - hdr.count_between(0, limited));
        if !values.is_empty() {
            prop_assert_eq!((own.min_ns(), own.max_ns()), (hdr.min(), hdr.max()));
            prop_assert_eq!((own.mean_ns(), own.deviation_ns()), (hdr.mean(), hdr.stdev()));
            for q in [0.0, 0.01, 0.5, 0.9, 0.999, 1.0, 1.5] {
                prop_assert_eq!(own.quantile_ns(q), hdr.value_at_quantile(q));
            }
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&hdr, &mut bytes).unwrap();
        prop_assert_eq!(own.encode(), STANDARD.encode(&bytes));
        // The library reads what is stored.
        let stored = STANDARD.decode(own.encode_stored()).unwrap();
        let read: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut stored.as_slice()).unwrap();
        prop_assert_eq!(read, hdr);
        prop_assert_eq!(&Histogram::decode(&own.encode_stored()).unwrap(), &own);
        let mut cleared = own.clone();
        cleared.clear();
        prop_assert_eq!(&cleared, &Histogram::new());
        cleared.merge(&own);
        prop_assert_eq!(&cleared, &own);
    }
}

#[test]
fn damaged_and_foreign_histograms_are_errors_or_are_read_as_the_library_reads_them() {
    let mut own = Histogram::new();
    (0..500).for_each(|i| own.record_many(50_000 + i * 70_000, i % 3 + 1));
    for bytes in [own.encode(), own.encode_stored()].map(|text| STANDARD.decode(text).unwrap()) {
        for length in 0..bytes.len() {
            assert!(Histogram::decode(&STANDARD.encode(&bytes[..length])).is_err());
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0x55;
            // Either result will do; none may panic.
            let _ = Histogram::decode(&STANDARD.encode(other));
        }
    }
    // One of other bounds, and one of bounds that hold more.
    for (largest_ns, is_read) in [(10_000_000_000, true), (LARGEST_NS * 64, false)] {
        let mut hdr =
            hdrhistogram::Histogram::<u64>::new_with_bounds(SMALLEST_NS, largest_ns, DIGITS)
                .unwrap();
        hdr.saturating_record_n(largest_ns, 3);
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&hdr, &mut bytes).unwrap();
        let read = Histogram::decode(&STANDARD.encode(&bytes));
        assert_eq!(read.map(|read| read.count()).ok(), is_read.then_some(3));
    }
}

#[test]
fn nothing_slow_is_dropped() {
    let mut histogram = Histogram::new();
    histogram.record(u64::MAX);
    histogram.record(10_000_000);
    assert_eq!(histogram.count(), 2);
    assert!(histogram.max_ns() >= LARGEST_NS);
    assert_eq!(histogram.count_above(20_000_000), 1);
}
