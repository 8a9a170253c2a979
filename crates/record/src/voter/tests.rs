//! The section keeps its names, and totals are over the wall.

use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_record_is_read_as_it_was_written(
        accepted in any::<u64>(), contestant in any::<u32>(), unknown in any::<u32>(),
        rows in proptest::option::of(any::<u64>()), kind in 0usize..4, n in 1u64..1000,
    ) {
        let mut result = VoterResult {
            accepted,
            rejected: Rejected { contestant: contestant.into(), limit: 7 },
            unknown: unknown.into(),
            rows_before: rows,
            rows_after: rows,
            ..VoterResult::default()
        };
        let checks =
            [WriteCheck::Ok, WriteCheck::Missing(n), WriteCheck::Surplus(n), WriteCheck::NotChecked];
        result.set_check(checks[kind]);
        prop_assert_eq!(result.write_check(), checks[kind]);
        let text = serde_json::to_string(&result).unwrap();
        let names = ["\"ok\"", "\"missing\"", "\"surplus\"", "\"not-checked\""];
        prop_assert!(text.contains(names[kind]), "{}", text);
        prop_assert_eq!(serde_json::from_str::<VoterResult>(&text).unwrap(), result);
    }

    #[test]
    fn totals_are_over_the_wall_and_not_over_each_ones_own_time(
        parts in proptest::collection::vec((0u64..100_000, 0u64..5_000, 1u64..5_000_000), 1..6),
    ) {
        let processes: Vec<VoterProcess> = (0u32..)
            .zip(&parts)
            .map(|(index, &(calls, late_us, took_us))| VoterProcess {
                index,
                calls,
                started_us: 1_000_000 + late_us,
                ended_us: 1_000_000 + late_us + took_us,
                rate_per_s: calls as f64 * 1e6 / took_us as f64,
                ..VoterProcess::default()
            })
            .collect();
        let totals = Totals::of(&processes);
        prop_assert_eq!(totals.transactions, parts.iter().map(|p| p.0).sum::<u64>());
        // Nobody can have been faster than all together at their own best.
        prop_assert!(totals.per_s <= totals.sum_of_rates_per_s * (1.0 + 1e-9));
        let skew_us = parts.iter().map(|p| p.1).max().unwrap() - parts.iter().map(|p| p.1).min().unwrap();
        prop_assert!((totals.start_skew_ms * 1e3 - skew_us as f64).abs() < 1e-6);
    }
}

#[test]
fn the_section_keeps_its_names() {
    let value = serde_json::to_value(VoterResult::default()).unwrap();
    for name in ["accepted", "rejected", "unknown", "rows_before", "rows_after", "check"] {
        assert!(value.get(name).is_some(), "{name}");
    }
    assert_eq!(value["rejected"], serde_json::json!({"contestant": 0, "limit": 0}));
    let mut histogram = Histogram::new();
    histogram.record(3_000_000);
    let times = ServerTimes::from(&histogram);
    assert_eq!((times.ms.count, times.histogram.is_empty()), (1, false));
    assert!(ServerTimes::from(&Histogram::new()).histogram.is_empty());
}
