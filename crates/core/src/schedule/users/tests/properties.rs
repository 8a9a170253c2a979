//! Any profile: its text, its numbers, and slices of it.

use super::*;
use proptest::prelude::*;

fn open_step() -> impl Strategy<Value = UserStep> {
    let span = (1u64..4_000_000_000).prop_map(|ns| Span { ns });
    let ramps = prop_oneof![Just(Span::default()), span.clone()];
    let rate = 0.0f64..300.0;
    let from = prop_oneof![Just(0.0), rate.clone()];
    prop_oneof![
        span.clone().prop_map(|during| UserStep::Nothing { during }),
        (1u64..40).prop_map(|users| UserStep::AtOnce { users }),
        (1u64..200, span.clone()).prop_map(|(users, during)| UserStep::Ramp { users, during }),
        (1u64..200, span.clone()).prop_map(|(users, during)| UserStep::Peak { users, during }),
        (rate.clone(), span.clone(), any::<bool>()).prop_map(|(per_s, during, randomized)| {
            UserStep::Constant { per_s, during, randomized }
        }),
        (rate.clone(), rate.clone(), span.clone(), any::<bool>()).prop_map(
            |(from_per_s, to_per_s, during, randomized)| UserStep::RampRate {
                from_per_s,
                to_per_s,
                during,
                randomized
            }
        ),
        (rate, 1u32..6, span, ramps, from).prop_map(
            |(by_per_s, times, lasting, ramps, from_per_s)| UserStep::Increment {
                by_per_s,
                stairs: Stairs { times, lasting, ramps },
                from_per_s
            }
        ),
    ]
}

fn closed_step() -> impl Strategy<Value = UserStep> {
    let span = (1u64..4_000_000_000).prop_map(|ns| Span { ns });
    prop_oneof![
        (0u32..40, span.clone()).prop_map(|(users, during)| UserStep::Concurrent { users, during }),
        (0u32..40, 0u32..40, span.clone())
            .prop_map(|(from, to, during)| UserStep::RampConcurrent { from, to, during }),
        (1u32..10, 1u32..5, span.clone(), span, 0u32..9).prop_map(
            |(by, times, lasting, ramps, from)| UserStep::IncrementConcurrent {
                by,
                stairs: Stairs { times, lasting, ramps },
                from
            }
        ),
    ]
}

fn profiles() -> impl Strategy<Value = UserProfile> {
    let open = proptest::collection::vec(open_step(), 1..6).prop_map(|mut steps| {
        steps.push(UserStep::AtOnce { users: 1 });
        UserProfile::new(steps).unwrap()
    });
    let closed = proptest::collection::vec(closed_step(), 1..5).prop_map(|mut steps| {
        steps.push(UserStep::Concurrent { users: 1, during: Span { ns: 1_000_000 } });
        UserProfile::new(steps).unwrap()
    });
    prop_oneof![open, closed]
}

/// The number of users that the steps come to, by sums of their own.
fn users_by_formula(profile: &UserProfile) -> f64 {
    let seconds = |span: Span| span.as_seconds();
    profile
        .steps()
        .iter()
        .map(|step| match *step {
            UserStep::AtOnce { users }
            | UserStep::Ramp { users, .. }
            | UserStep::Peak { users, .. } => users as f64,
            UserStep::Constant { per_s, during, .. } => per_s * seconds(during),
            UserStep::RampRate { from_per_s, to_per_s, during, .. } => {
                (from_per_s + to_per_s) / 2.0 * seconds(during)
            }
            UserStep::Increment {
                by_per_s: by,
                stairs: Stairs { times, lasting, ramps },
                from_per_s,
            } => {
                let first = if from_per_s == 0.0 && ramps.ns > 0 { by } else { from_per_s };
                (0..times)
                    .map(|k| {
                        let level = first + by * f64::from(k);
                        let ramp = if k > 0 || from_per_s == 0.0 { level - by / 2.0 } else { 0.0 };
                        level * seconds(lasting) + ramp * seconds(ramps)
                    })
                    .sum()
            }
            _ => 0.0,
        })
        .sum()
}

proptest! {
    #[test]
    fn a_profile_reads_back_from_its_text(profile in profiles()) {
        prop_assert_eq!(profile.to_string().parse::<UserProfile>().unwrap(), profile);
    }

    #[test]
    fn counts_are_the_sums_of_the_steps(profile in profiles()) {
        if !profile.is_closed() {
            let exact = users_by_formula(&profile);
            prop_assert!((profile.users() as f64 - exact).abs() <= 0.5 + 1e-6 * exact, "{} {exact}", profile.users());
            let times = coming(&profile.to_string());
            prop_assert_eq!(times.len() as u64, profile.users());
            prop_assert!(times.is_sorted());
            let end_s = profile.own_duration_ns() as f64 / 1e9;
            prop_assert!(times.iter().all(|&t| t <= end_s));
        }
    }

    #[test]
    fn slices_are_the_whole(profile in profiles(), of in 1u32..5, requests in 1u32..4, think in 0u64..2) {
        let think = if think == 0 { Pause::None } else { "uniform 10ms 3s".parse().unwrap() };
        let closed = profile.is_closed();
        let levels = profile.levels();
        let falls = levels.windows(2).any(|pair| pair[1].from < pair[0].to)
            || levels.iter().any(|level| level.to < level.from);
        let model = LoadModel::Users { profile, requests, think, pace: Span::default() };
        // What a server without a queue sees does not depend on who asks.
        let limits = Limits::after(30 * SECOND_NS);
        let (mut whole, _) = play(&model, Slice::WHOLE, limits, 70 * MILLISECOND_NS);
        let mut parts = Vec::new();
        for index in 0..of {
            let (asked, _) = play(&model, Slice { index, of }, limits, 70 * MILLISECOND_NS);
            parts.extend(asked);
        }
        whole.sort_unstable();
        parts.sort_unstable();
        if closed {
            // Who follows whom depends on the answers; how many there are does not. Where their number falls, the
            // first to leave is not replaced, and each slice has a first of its own.
            if think == Pause::None && !falls {
                let moments = |asked: &[Asked]| asked.iter().map(|a| a.intended_ns).collect::<Vec<_>>();
                prop_assert_eq!(moments(&parts), moments(&whole));
            }
        } else {
            prop_assert_eq!(parts, whole);
        }
    }

    #[test]
    fn seats_of_slices_are_those_of_the_whole(profile in profiles(), of in 1u32..6) {
        let changes = |slice| {
            let mut seats = Seats::new(&profile, slice, 0);
            std::iter::from_fn(move || seats.take()).collect::<Vec<_>>()
        };
        let whole = changes(Slice::WHOLE);
        prop_assert!(whole.is_sorted_by_key(|change| change.at_ns));
        let parts: Vec<_> = (0..of).map(|index| changes(Slice { index, of })).collect();
        let at = |changes: &[seats::Change], ns: u64| {
            changes.iter().take_while(|change| change.at_ns <= ns).last().map_or(0, |change| change.seats)
        };
        for change in &whole {
            let sum: u64 = parts.iter().map(|part| at(part, change.at_ns)).sum();
            prop_assert_eq!(sum, at(&whole, change.at_ns));
        }
        prop_assert_eq!(whole.last().map_or(0, |change| change.seats), 0, "somebody stays for ever");
    }

    #[test]
    fn a_late_caller_gets_the_same_users(profile in profiles(), naps in proptest::collection::vec(1u64..900_000_000, 1..40)) {
        prop_assume!(!profile.is_closed());
        let start = || Coming::new(&profile, Slice::WHOLE, 1, 0);
        let (mut all, mut coming) = (start(), start());
        let mut now_ns = 0;
        for nap in naps {
            now_ns += nap;
            while coming.upcoming().is_some_and(|arrival| arrival.at_ns <= now_ns) {
                prop_assert_eq!(coming.take(), all.take());
            }
        }
    }
}
