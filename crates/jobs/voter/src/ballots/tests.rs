//! The votes have the shares and distributions that the game says, in each range and whatever the seed.

use super::*;
use plimsoll_core::voter::areas::region_of;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

fn ballots(game: Game) -> Ballots {
    Ballots::new(game).unwrap()
}

/// Pearson's statistic of counts against expectations.
fn chi_square(counts: impl IntoIterator<Item = (u64, f64)>) -> f64 {
    counts.into_iter().map(|(count, expected)| (count as f64 - expected).powi(2) / expected).sum()
}

/// The 0.01 % point of the chi-square distribution with so many degrees of freedom (Wilson and Hilferty 1931).
fn most_likely_chi_square(degrees: f64) -> f64 {
    let part = 2.0 / (9.0 * degrees);
    degrees * (1.0 - part + 3.719 * part.sqrt()).powi(3)
}

const VOTES: u64 = 200_000;

#[test]
fn area_codes_and_digits_are_even() {
    for seed in [1, 2, 77] {
        let range = KeyRange { index: 1, of: 3 };
        let all = ballots(Game { seed, fans: 0.0, range, ..Game::default() });
        let (from, end) = digits_of(range).unwrap();
        let mut codes: BTreeMap<u16, u64> = BTreeMap::new();
        let mut places = vec![0u64; 100];
        for n in 0..VOTES {
            let phone = all.ballot(n).phone as u64;
            *codes.entry((phone / NUMBERS_PER_CODE) as u16).or_default() += 1;
            let digits = phone % NUMBERS_PER_CODE;
            assert!((from..end).contains(&digits));
            places[((digits - from) * 100 / (end - from)) as usize] += 1;
        }
        assert_eq!(codes.len(), AREA_CODE_COUNT);
        let each = VOTES as f64 / AREA_CODE_COUNT as f64;
        let statistic = chi_square(codes.values().map(|&count| (count, each)));
        assert!(statistic < most_likely_chi_square(304.0), "codes, seed {seed}: {statistic}");
        let statistic = chi_square(places.iter().map(|&count| (count, VOTES as f64 / 100.0)));
        assert!(statistic < most_likely_chi_square(99.0), "digits, seed {seed}: {statistic}");
    }
}

#[test]
fn contestants_have_the_shares_that_their_regions_give_them() {
    for seed in [1, 2, 77] {
        for contestants in [1, 2, 6, 12] {
            let all = ballots(Game { seed, contestants, fans: 0.0, ..Game::default() });
            let mut votes: BTreeMap<i32, u64> = BTreeMap::new();
            (0..VOTES).for_each(|n| *votes.entry(all.ballot(n).contestant).or_default() += 1);
            let of_area = VOTES as f64 * 0.99 / 2.0 / AREA_CODE_COUNT as f64;
            let mut expected: BTreeMap<i32, f64> = (1..=contestants as i32)
                .map(|number| (number, VOTES as f64 * 0.99 / 2.0 / f64::from(contestants)))
                .collect();
            all.leaning.iter().for_each(|&to| *expected.get_mut(&to.into()).unwrap() += of_area);
            expected.insert(UNKNOWN_CONTESTANT, VOTES as f64 * 0.01);
            assert_eq!(votes.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
            let statistic = chi_square(votes.values().copied().zip(expected.values().copied()));
            let most = most_likely_chi_square(f64::from(contestants));
            assert!(statistic < most, "{contestants} contestants, seed {seed}: {statistic}");
            let first = votes[&1];
            assert!(
                (2..=contestants as i32).all(|other| votes[&other] < first),
                "no lead: {votes:?}"
            );
        }
    }
}

/// What a database that keeps to the rules makes of the votes: accepted, unknown contestant, over the limit.
fn counted(all: &Ballots, votes: u64) -> (u64, u64, u64) {
    let mut by_phone: HashMap<i64, u32> = HashMap::new();
    let (mut accepted, mut strays, mut over) = (0, 0, 0);
    for n in 0..votes {
        let Ballot { phone, contestant } = all.ballot(n);
        let had = by_phone.entry(phone).or_default();
        if contestant == UNKNOWN_CONTESTANT {
            strays += 1;
        } else if *had >= all.game().max_votes {
            over += 1;
        } else {
            *had += 1;
            accepted += 1;
        }
    }
    (accepted, strays, over)
}

#[test]
fn both_ways_to_be_turned_down_are_gone() {
    for max_votes in [1, 2, 10] {
        let all = ballots(Game { max_votes, ..Game::default() });
        let (accepted, strays, over) = counted(&all, VOTES);
        assert_eq!(accepted + strays + over, VOTES);
        // Five standard deviations.
        assert!((strays as f64 - 2000.0).abs() < 5.0 * 2000f64.sqrt(), "{strays}");
        // Two of three votes of a fan are too many: 1 % x 2/3.
        let share = over as f64 / VOTES as f64;
        assert!((0.005..0.008).contains(&share), "{max_votes}: {share}");
    }
    let (_, strays, over) =
        counted(&ballots(Game { fans: 0.0, strays: 0.0, ..Game::default() }), VOTES);
    assert_eq!((strays, over), (0, 0), "nobody is turned down by chance among so few");
}

#[test]
fn the_votes_of_a_seed_are_pinned_for_ever() {
    let all = ballots(Game { seed: 42, ..Game::default() });
    let first: Vec<(i64, i32)> =
        (0..4).map(|n| all.ballot(n)).map(|b| (b.phone, b.contestant)).collect();
    assert_eq!(first, PINNED);
}

const PINNED: [(i64, i32); 4] =
    [(2_105_439_804, 1), (5_013_169_613, 2), (2_070_365_689, 6), (7_147_832_916, 6)];

#[test]
fn mistakes_are_told() {
    let told = |game| Ballots::new(game).unwrap_err().to_string();
    assert!(told(Game { contestants: 13, ..Game::default() }).contains("1 to 12"));
    assert!(told(Game { fans: 1.5, ..Game::default() }).contains("between 0 and 1"));
    assert!(told(Game { strays: f64::NAN, ..Game::default() }).contains("between 0 and 1"));
    for (index, of) in [(2, 2), (0, 0), (0, 1_000_001)] {
        let range = KeyRange { index, of };
        assert!(told(Game { range, ..Game::default() }).contains("ranges"));
    }
    assert_eq!(count_sql(KeyRange::default()).unwrap(), "SELECT COUNT(*) AS C FROM votes");
    let sql = count_sql(KeyRange { index: 1, of: 3 }).unwrap();
    assert!(sql.ends_with(
        "MOD(phone_number, 10000000) >= 3333333 AND MOD(phone_number, 10000000) < 6666666"
    ));
}

proptest! {
    #[test]
    fn ranges_are_apart_and_cover_all(of in 1u32..2000) {
        let mut at = 0;
        for index in 0..of {
            let (from, end) = digits_of(KeyRange { index, of }).unwrap();
            prop_assert_eq!(from, at);
            prop_assert!(end > from);
            at = end;
        }
        prop_assert_eq!(at, NUMBERS_PER_CODE);
    }

    #[test]
    fn a_vote_depends_on_nothing_but_seed_range_and_number(
        seed in any::<u64>(), index in 0u32..5, n in any::<u64>(), max_votes in 0u32..1000, contestants in 1u32..=12,
    ) {
        let game = Game { seed, max_votes, contestants, range: KeyRange { index, of: 5 }, ..Game::default() };
        let (one, other) = (ballots(game.clone()), ballots(game));
        let _ = other.ballot(n ^ 1);
        let ballot = one.ballot(n);
        prop_assert_eq!(ballot, other.ballot(n));
        let code = (ballot.phone as u64 / NUMBERS_PER_CODE) as u16;
        prop_assert!(region_of(code).is_some());
        prop_assert!((1..=contestants as i32).contains(&ballot.contestant) || ballot.contestant == UNKNOWN_CONTESTANT);
    }
}
