//! Votes of telephones for contestants: telephone numbers and contestants, each a pure function of the seed and of
//! the vote's number.

use super::names::{ContestantsError, check_contestants};
use plimsoll_core::rng::{Rng, derive_seed, splitmix64};
use plimsoll_core::voter::KeyRange;
use plimsoll_core::voter::areas::{AREA_CODE_COUNT, AREA_CODES};
use thiserror::Error;

/// An unknown contestant.
pub const UNKNOWN_CONTESTANT: i32 = 999;
/// Telephone numbers of one area code.
pub const NUMBERS_PER_CODE: u64 = 10_000_000;
/// Share of the area codes whose people lean to the first contestant.
const LEAD: f64 = 0.3;
/// Number of times that a fan votes, on average, for each vote that counts.
const FERVOUR: u64 = 3;

/// A game that cannot be played.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BallotError {
    /// Too many contestants, or none.
    #[error(transparent)]
    Contestants(#[from] ContestantsError),
    /// A share below 0 or above 1.
    #[error("the share of votes must be between 0 and 1, not {0}")]
    Share(f64),
    /// A key range that does not exist.
    #[error("key range {index} of {of}: there are 1 to 1,000,000 ranges, numbered from 0")]
    Range {
        /// Index of the range, from 0.
        index: u32,
        /// Number of ranges.
        of: u32,
    },
}

/// The rules of the game, as its callers see them.
#[derive(Clone, Debug, PartialEq)]
pub struct Game {
    /// Seed of all choices.
    pub seed: u64,
    /// Contestants, 1 to 12.
    pub contestants: u32,
    /// Number of times that a telephone may vote.
    pub max_votes: u32,
    /// Share of votes for no one the database knows.
    pub strays: f64,
    /// Share of votes by fans, who vote more often than they may.
    pub fans: f64,
    /// This client's range of telephone numbers.
    pub range: KeyRange,
}

impl Default for Game {
    fn default() -> Self {
        Self {
            seed: 1,
            contestants: 6,
            max_votes: 2,
            strays: 0.01,
            fans: 0.01,
            range: KeyRange::default(),
        }
    }
}

/// One vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ballot {
    /// The caller: area code and seven digits.
    pub phone: i64,
    /// The contestant.
    pub contestant: i32,
}

/// The votes of one client.
///
/// An area code is drawn evenly from 305. Half of its people vote as their region leans, the others evenly: of the
/// codes, three in ten lean to the first contestant, which gives it the lead. Fans share one telephone for a stretch
/// of votes, until it is used three times as often as it may be.
#[derive(Clone, Debug)]
pub struct Ballots {
    game: Game,
    seed: u64,
    fan_seed: u64,
    leaning: Box<[u8; AREA_CODE_COUNT]>,
    /// Votes among which one fan's are.
    fan_span: u64,
    first_digit: u64,
    digits: u64,
}

impl Ballots {
    /// The votes of this game.
    ///
    /// # Errors
    /// A game that cannot be played.
    pub fn new(game: Game) -> Result<Self, BallotError> {
        check_contestants(game.contestants)?;
        for share in [game.strays, game.fans] {
            if !(0.0..=1.0).contains(&share) {
                return Err(BallotError::Share(share));
            }
        }
        let (first_digit, end_digit) = digits_of(game.range)?;
        let calls = u64::from(game.max_votes.max(1)) * FERVOUR;
        let fan_span = if game.fans > 0.0 { (calls as f64 / game.fans).ceil() as u64 } else { 1 };
        // Clients vote differently, each in its own range.
        let seed = derive_seed(game.seed, "ballots") ^ splitmix64(game.range.index.into());
        Ok(Self {
            seed,
            fan_seed: derive_seed(seed, "fans"),
            leaning: leaning(game.seed, game.contestants),
            fan_span,
            first_digit,
            digits: end_digit - first_digit,
            game,
        })
    }

    /// The rules.
    #[must_use]
    pub const fn game(&self) -> &Game {
        &self.game
    }

    /// Vote number `n`.
    #[inline]
    #[must_use]
    pub fn ballot(&self, n: u64) -> Ballot {
        let mut rng = Rng::new(self.seed ^ splitmix64(n));
        let is_fan = self.game.fans > 0.0 && rng.uniform() < self.game.fans;
        let (area, phone) = if is_fan {
            self.phone(&mut Rng::new(self.fan_seed ^ splitmix64(n / self.fan_span)))
        } else {
            self.phone(&mut rng)
        };
        let is_stray = rng.uniform() < self.game.strays;
        let leans = rng.below(2) == 0;
        // Both votes are made before one is chosen, so that no branch is mispredicted.
        let of_all = 1 + rng.below(self.game.contestants.into()) as i32;
        let contestant = match (is_stray, leans) {
            (true, _) => UNKNOWN_CONTESTANT,
            (false, true) => i32::from(self.leaning[area]),
            (false, false) => of_all,
        };
        Ballot { phone, contestant }
    }

    /// A telephone in this client's range, and the index of its area code.
    #[inline]
    fn phone(&self, rng: &mut Rng) -> (usize, i64) {
        let area = rng.below(AREA_CODE_COUNT as u64) as usize;
        let digits = self.first_digit + rng.below(self.digits);
        (area, (u64::from(AREA_CODES[area]) * NUMBERS_PER_CODE + digits) as i64)
    }
}

/// Favourite contestant of each area code.
fn leaning(seed: u64, contestants: u32) -> Box<[u8; AREA_CODE_COUNT]> {
    let mut rng = Rng::new(derive_seed(seed, "leaning"));
    let count = f64::from(contestants);
    Box::new(std::array::from_fn(|area| {
        if rng.uniform() < LEAD {
            return 1;
        }
        1 + ((area as f64).sin() * count).abs().rem_euclid(count) as u8
    }))
}

/// The last seven digits of the telephone numbers of a range: the first of them, and the one behind the last.
///
/// # Errors
/// A range that is not one of those there are.
pub fn digits_of(range: KeyRange) -> Result<(u64, u64), BallotError> {
    let KeyRange { index, of } = range;
    if index >= of || of > 1_000_000 {
        return Err(BallotError::Range { index, of });
    }
    let edge = |index: u32| NUMBERS_PER_CODE * u64::from(index) / u64::from(of);
    Ok((edge(index), edge(index + 1)))
}

/// The SQL that counts the rows of a range, one number under the name `C`; VoltDB and PostgreSQL understand it. The whole
/// is counted without looking at the numbers.
///
/// # Errors
/// As [`digits_of`].
pub fn count_sql(range: KeyRange) -> Result<String, BallotError> {
    let (from, end) = digits_of(range)?;
    if range.of == 1 {
        return Ok("SELECT COUNT(*) AS C FROM votes".to_owned());
    }
    let digits = format!("MOD(phone_number, {NUMBERS_PER_CODE})");
    Ok(format!("SELECT COUNT(*) AS C FROM votes WHERE {digits} >= {from} AND {digits} < {end}"))
}

#[cfg(test)]
mod tests;
