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
}
