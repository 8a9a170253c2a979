//! Requests of each user, in order: a pure function of the user's number and the number of its request.

use plimsoll_core::rng::{Rng, derive_seed, permuted, splitmix64};
use plimsoll_core::schedule::UserTurn;
use std::sync::Arc;

/// Order of the requests of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserOrder {
    /// The users go through the file together: each begins behind the last request of the user before it.
    #[default]
    File,
    /// Each request as often as it is repeated, then the next one.
    Block,
    /// All requests in the order of the file, then all those again that are repeated.
    Interleaved,
    /// Each as often as it is repeated, in an order of the user's own.
    Shuffle,
    /// Drawn with replacement, by each user for itself.
    Random,
}

/// Most requests of one pass, repeats included.
pub const PASS_MAX: u64 = 16_000_000;

/// The requests of every user.
#[derive(Clone, Debug)]
pub struct Script {
    order: UserOrder,
    /// The requests of one pass in their order, where it is not that of the file.
    pass: Option<Arc<[u32]>>,
    /// Requests of one pass.
    length: u64,
    /// Requests of each user.
    requests: u32,
    seed: u64,
    /// Number that the first user counts as in the order of the file.
    first: u64,
}

impl Script {
    /// Users who ask the requests `0..repeats.len()`, each as often as its entry says; `requests` limits or stretches that
    /// to a number of requests for each user (0: one pass).
    ///
    /// # Errors
    /// One line when there is nothing to ask, or more than [`PASS_MAX`] in a pass.
    pub fn new(
        order: UserOrder,
        repeats: &[u32],
        requests: u32,
        seed: u64,
    ) -> Result<Self, String> {
        let length: u64 = repeats.iter().map(|&n| u64::from(n)).sum();
        if length == 0 {
            return Err("users would have no requests; --passes must be at least 1".to_owned());
        }
        if length > PASS_MAX {
            return Err(format!(
                "{length} requests of one user, repeats included, are more than {PASS_MAX}; \
                 use a smaller file or --passes"
            ));
        }
        let once = repeats.iter().all(|&n| n == 1);
        let pass = match order {
            _ if once => None,
            UserOrder::File | UserOrder::Interleaved => Some(interleaved(repeats)),
            UserOrder::Block | UserOrder::Shuffle | UserOrder::Random => Some(blocks(repeats)),
        };
        let requests = if requests == 0 { length as u32 } else { requests };
        Ok(Self { order, pass, length, requests, seed: derive_seed(seed, "script"), first: 0 })
    }

    /// The same for another part of a run, with a seed of its own: other orders, and another place in the file to begin at.
    /// With the seed that the script was made with it is the script itself.
    #[must_use]
    pub fn of_part(&self, seed: u64) -> Self {
        let own = derive_seed(seed, "script");
        let first = if own == self.seed { 0 } else { u64::from(splitmix64(own) as u32) };
        Self { seed: own, first, ..self.clone() }
    }

    /// Number of requests that each user asks.
    #[must_use]
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Request that is asked in this turn.
    #[inline]
    #[must_use]
    pub fn index(&self, turn: UserTurn) -> usize {
        let step = u64::from(turn.step);
        let (pass, place) = (step / self.length, step % self.length);
        let place = match self.order {
            UserOrder::Block | UserOrder::Interleaved => place,
            UserOrder::File => {
                let user = turn.user.wrapping_add(self.first);
                let before = user.wrapping_mul(u64::from(self.requests));
                before.wrapping_add(step) % self.length
            }
            UserOrder::Shuffle => {
                let own = splitmix64(self.seed ^ splitmix64(turn.user)).wrapping_add(pass);
                permuted(place, self.length, own)
            }
            UserOrder::Random => {
                let own = splitmix64(self.seed ^ splitmix64(turn.user)).wrapping_add(step);
                Rng::new(own).below(self.length)
            }
        };
        match &self.pass {
            None => place as usize,
            Some(pass) => pass[place as usize] as usize,
        }
    }
}

fn blocks(repeats: &[u32]) -> Arc<[u32]> {
    let repeated = |(index, &n): (usize, &u32)| std::iter::repeat_n(index as u32, n as usize);
    repeats.iter().enumerate().flat_map(repeated).collect()
}

fn interleaved(repeats: &[u32]) -> Arc<[u32]> {
    let rounds = repeats.iter().copied().max().unwrap_or(0);
    // A long file in which one request is repeated often would be walked once for each of its repeats.
    let mut left: Vec<u32> = (0..repeats.len() as u32).collect();
    let mut pass = Vec::new();
    for round in 0..rounds {
        left.retain(|&index| repeats[index as usize] > round);
        pass.extend_from_slice(&left);
    }
    pass.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(script: &Script, user: u64) -> Vec<usize> {
        (0..script.requests())
            .map(|step| script.index(UserTurn { user, step, free_ns: 0 }))
            .collect()
    }

    fn script(order: UserOrder, repeats: &[u32], requests: u32) -> Script {
        Script::new(order, repeats, requests, 5).unwrap()
    }

    #[test]
    fn blocks_and_rounds() {
        let block = script(UserOrder::Block, &[2, 2, 2], 0);
        assert_eq!(
            (asked(&block, 0), asked(&block, 9)),
            (vec![0, 0, 1, 1, 2, 2], vec![0, 0, 1, 1, 2, 2])
        );
        assert_eq!(asked(&script(UserOrder::Interleaved, &[2, 2, 2], 0), 3), [0, 1, 2, 0, 1, 2]);
        assert_eq!(asked(&script(UserOrder::Block, &[1, 3, 0], 0), 0), [0, 1, 1, 1]);
        assert_eq!(asked(&script(UserOrder::Interleaved, &[1, 3, 2], 0), 0), [0, 1, 2, 1, 2, 1]);
        // More and fewer than one pass.
        assert_eq!(asked(&script(UserOrder::Block, &[1, 1], 5), 0), [0, 1, 0, 1, 0]);
        assert_eq!(asked(&script(UserOrder::Block, &[2, 1], 2), 0), [0, 0]);
    }

    #[test]
    fn in_file_order_users_go_on_where_others_began() {
        let file = script(UserOrder::File, &[1; 5], 2);
        assert_eq!(
            (asked(&file, 0), asked(&file, 1), asked(&file, 2)),
            (vec![0, 1], vec![2, 3], vec![4, 0])
        );
        let whole = script(UserOrder::File, &[1; 3], 0);
        assert_eq!((asked(&whole, 0), asked(&whole, 7)), (vec![0, 1, 2], vec![0, 1, 2]));
    }

    #[test]
    fn each_part_of_a_run_begins_elsewhere() {
        let file = script(UserOrder::File, &[1; 1000], 3);
        assert_eq!(asked(&file.of_part(5), 7), asked(&file, 7), "the seed that it has");
        let (one, other) = (file.of_part(6), file.of_part(7));
        assert_ne!(asked(&one, 0), asked(&other, 0));
        // Users of a part still go through the file together.
        let last = asked(&one, 0)[2];
        assert_eq!(asked(&one, 1)[0], (last + 1) % 1000);
        let shuffle = script(UserOrder::Shuffle, &[1; 20], 0);
        assert_ne!(asked(&shuffle.of_part(6), 0), asked(&shuffle, 0));
    }

    #[test]
    fn each_user_has_a_shuffle_of_its_own() {
        let shuffle = script(UserOrder::Shuffle, &[3; 20], 0);
        let of = |user| asked(&shuffle, user);
        assert_ne!(of(0), of(1));
        assert_eq!(of(4), of(4));
        let mut sorted = of(2);
        sorted.sort_unstable();
        assert_eq!(sorted, asked(&script(UserOrder::Block, &[3; 20], 0), 0));
        let other = Script::new(UserOrder::Shuffle, &[3; 20], 0, 6).unwrap();
        assert_ne!(asked(&other, 0), of(0), "another seed has another order");
        // A second pass is another order of the same.
        let twice = script(UserOrder::Shuffle, &[1; 20], 40);
        let both = asked(&twice, 0);
        assert_ne!(both[..20], both[20..]);
        let mut second = both[20..].to_vec();
        second.sort_unstable();
        assert_eq!(second, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn random_draws_are_weighted_by_repeats() {
        let random = script(UserOrder::Random, &[1, 3], 4000);
        let second = asked(&random, 0).iter().filter(|&&index| index == 1).count();
        // 3000 expected; five standard deviations.
        assert!((2863..=3137).contains(&second), "{second}");
    }

    #[test]
    fn nothing_and_too_much_are_refused() {
        assert!(Script::new(UserOrder::Block, &[0, 0], 0, 1).unwrap_err().contains("no requests"));
        assert!(
            Script::new(UserOrder::Block, &[u32::MAX], 0, 1).unwrap_err().contains("more than")
        );
    }
}
