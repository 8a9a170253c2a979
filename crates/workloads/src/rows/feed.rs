//! Row that comes next: a pure function of how many came before.

use super::Rows;
use plimsoll_core::rng::{Rng, derive_seed, permuted, splitmix64};
use plimsoll_core::scenario::{RowOrder, RowsPer};
use plimsoll_core::schedule::UserTurn;
use std::sync::Arc;

/// Rows for the requests of one shard.
#[derive(Clone, Debug)]
pub struct RowFeed {
    rows: Arc<Rows>,
    order: RowOrder,
    per: RowsPer,
    seed: u64,
    /// Requests of each user, in models of users.
    requests_each: Option<u32>,
    /// The number of the next request where there are no users, and the step to the one after.
    next: u64,
    step: u64,
}

impl RowFeed {
    /// Rows for shard `shard` of `shards`. `requests_each` is the number of requests of each user, in models of users.
    #[must_use]
    pub fn new(
        rows: Arc<Rows>,
        (order, per): (RowOrder, RowsPer),
        seed: u64,
        requests_each: Option<u32>,
        (shard, shards): (u64, u64),
    ) -> Self {
        let seed = derive_seed(seed, "rows");
        Self { rows, order, per, seed, requests_each, next: shard, step: shards.max(1) }
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The row of the next request, which is `turn`'s where there are users; `None` when all rows are used up.
    #[inline]
    pub fn next_row(&mut self, turn: UserTurn) -> Option<usize> {
        let number = match (self.requests_each, self.per) {
            (Some(_), RowsPer::User) => turn.user,
            (Some(requests), RowsPer::Request) => {
                turn.user.saturating_mul(u64::from(requests)).saturating_add(turn.step.into())
            }
            (None, _) => {
                let number = self.next;
                self.next += self.step;
                number
            }
        };
        self.row(number)
    }

    fn row(&self, number: u64) -> Option<usize> {
        let count = self.rows.len() as u64;
        let row = match self.order {
            RowOrder::Queue => number,
            RowOrder::Circular => number % count.max(1),
            RowOrder::Shuffle if number < count => permuted(number, count, self.seed),
            RowOrder::Shuffle => count,
            RowOrder::Random => Rng::new(splitmix64(self.seed ^ number)).below(count),
        };
        (row < count).then_some(row as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(order: RowOrder, per: RowsPer, users: Option<u32>, shard: (u64, u64)) -> RowFeed {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        let text: String = (0..20).map(|i| format!("{i}\n")).collect();
        std::fs::write(&path, format!("n\n{text}")).unwrap();
        RowFeed::new(Arc::new(Rows::load(&path).unwrap()), (order, per), 7, users, shard)
    }

    fn take(mut feed: RowFeed, count: usize) -> Vec<usize> {
        (0..count).map_while(|_| feed.next_row(UserTurn::default())).collect()
    }

    #[test]
    fn shards_together_take_each_row_once() {
        for order in [RowOrder::Queue, RowOrder::Shuffle] {
            let mut seen: Vec<usize> = (0..3)
                .flat_map(|shard| take(feed(order, RowsPer::Request, None, (shard, 3)), 100))
                .collect();
            assert_eq!(seen.len(), 20, "{order:?} ends when the rows are used up");
            assert!(!seen.is_sorted());
            seen.sort_unstable();
            assert_eq!(seen, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn circular_and_random_do_not_end() {
        let circular = take(feed(RowOrder::Circular, RowsPer::Request, None, (0, 1)), 45);
        assert_eq!(circular, (0..45).map(|i| i % 20).collect::<Vec<_>>());
        let random = take(feed(RowOrder::Random, RowsPer::Request, None, (0, 1)), 2000);
        assert_eq!(random, take(feed(RowOrder::Random, RowsPer::Request, None, (0, 1)), 2000));
        let mut counts = [0; 20];
        random.iter().for_each(|&row| counts[row] += 1);
        // 100 expected; five standard deviations.
        assert!(counts.iter().all(|n| (51..=149).contains(n)), "{counts:?}");
        let shuffled = take(feed(RowOrder::Shuffle, RowsPer::Request, None, (0, 1)), 20);
        assert_ne!(shuffled, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_users_row_follows_from_its_number() {
        let turn = |user, step| UserTurn { user, step, free_ns: 0 };
        let mut of_user = feed(RowOrder::Queue, RowsPer::User, Some(3), (0, 1));
        assert_eq!(of_user.next_row(turn(4, 0)), Some(4));
        assert_eq!(of_user.next_row(turn(4, 2)), Some(4));
        assert_eq!(of_user.next_row(turn(20, 0)), None);
        let mut of_request = feed(RowOrder::Queue, RowsPer::Request, Some(3), (1, 2));
        assert_eq!(of_request.next_row(turn(4, 2)), Some(14));
        assert_eq!(of_request.next_row(turn(6, 2)), None);
    }
}
