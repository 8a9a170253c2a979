//! The statistics behind decisions: numbers in, answers with stated error rates out.
//!
//! ```
//! use plimsoll_decide::pairs::{Direction, Kind, Metric, Pairs, Terms};
//!
//! let terms = Terms { error: 0.05, margin: 0.05, pairs_most: 12 };
//! let p95 = Metric { name: "p95".to_owned(), direction: Direction::LowerIsBetter };
//! let mut pairs = Pairs::new(terms, vec![p95]);
//! while !pairs.settled() {
//!     pairs.add(&[Some(0.2 + 0.001 * pairs.pairs() as f64)]);
//! }
//! assert_eq!(pairs.findings()[0].kind, Kind::Worse);
//! ```

pub mod between;
pub mod change_points;
pub mod growth;
pub mod pairs;
pub mod percentile;
pub mod pilot;
pub mod relaxation;
pub mod rule;
pub mod sizing;
pub mod student;
