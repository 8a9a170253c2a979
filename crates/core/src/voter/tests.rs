//! The check of writes is exact, and says the same of parts and of the whole.

use super::*;
use proptest::prelude::*;

#[test]
fn a_row_more_or_less_is_told() {
    assert_eq!(WriteCheck::of(10, 110, 100, 0), WriteCheck::Ok);
    assert_eq!(WriteCheck::of(10, 109, 100, 0), WriteCheck::Missing(1));
    assert_eq!(WriteCheck::of(10, 111, 100, 0), WriteCheck::Surplus(1));
    // Four calls without an answer may have been done or not, and no fifth.
    let told: Vec<String> =
        [109, 110, 112, 114, 115].map(|after| WriteCheck::of(10, after, 100, 4).to_string()).into();
    assert_eq!(told, ["1 missing write", "ok", "ok", "ok", "1 surplus row"]);
    // Rows that were there before are gone: they are missing on top of what was accepted.
    assert_eq!(WriteCheck::of(50, 20, 5, 0).to_string(), "35 missing writes");
    assert_eq!(WriteCheck::of_counts(None, Some(3), 3, 0), WriteCheck::NotChecked);
    assert_eq!(WriteCheck::of(0, u64::MAX, u64::MAX, u64::MAX), WriteCheck::Ok);
    assert_eq!(WriteCheck::of(u64::MAX, 0, u64::MAX, 0), WriteCheck::Missing(u64::MAX));
}

#[test]
fn what_is_too_much_here_does_not_make_up_for_what_is_missing_there() {
    use WriteCheck::{Missing, NotChecked, Ok, Surplus};
    assert_eq!(WriteCheck::all([Missing(3), Surplus(3)]), Missing(3));
    assert_eq!(WriteCheck::all([Ok, Surplus(3), Surplus(1)]), Surplus(4));
    assert_eq!(WriteCheck::all([Ok, NotChecked]), NotChecked);
    assert_eq!(WriteCheck::all([Ok, Ok]), Ok);
    assert_eq!(WriteCheck::all([]), NotChecked);
}

proptest! {
    /// Calls that end in known and unknown ways, and a database that keeps what it acknowledged, loses some and is given
    /// some by others: the check says exactly what can be said.
    #[test]
    fn the_check_is_exact(
        before in 0u64..1_000_000,
        accepted in 0u64..100_000,
        unknown in 0u64..1000,
        done in 0.0f64..=1.0,
        lost in 0u64..50,
        foreign in 0u64..50,
    ) {
        let unknown_done = (unknown as f64 * done) as u64;
        let lost = lost.min(accepted);
        let after = before + accepted + unknown_done + foreign - lost;
        let check = WriteCheck::of(before, after, accepted, unknown);
        let grown = (unknown_done + foreign) as i64 - lost as i64;
        match check {
            WriteCheck::Ok => prop_assert!((0..=unknown as i64).contains(&grown)),
            WriteCheck::Missing(rows) => {
                prop_assert_eq!(rows as i64, -grown);
                prop_assert!(lost > 0, "nothing was lost");
            }
            WriteCheck::Surplus(rows) => {
                prop_assert_eq!(rows as i64, grown - unknown as i64);
                prop_assert!(foreign >= rows, "nobody else wrote");
            }
            WriteCheck::NotChecked => prop_assert!(false),
        }
        if lost == 0 && foreign == 0 {
            prop_assert_eq!(check, WriteCheck::Ok);
        }
        if unknown == 0 && lost != foreign {
            prop_assert!(check.is_wrong());
        }
    }

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
