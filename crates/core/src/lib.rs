//! The pure part of plimsoll: time as an argument, no sockets, no threads, no async.
//!
//! Everything here is arithmetic over what it is given, so that properties can be proved by tests and the
//! whole engine can run on a virtual clock.
//!
//! ```
//! use plimsoll_core::{histogram::Histogram, units::Span};
//!
//! let timeout: Span = "1.5s".parse()?;
//! let mut times = Histogram::new();
//! times.record(timeout.ns);
//! times.record(2 * timeout.ns);
//! assert_eq!(times.count(), 2);
//! assert!(times.mean_ns() >= 2.2e9 && times.max_ns() >= 3_000_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod admission;
pub mod assertion;
pub mod clock;
pub mod delays;
pub mod feed;
pub mod gamma;
pub mod histogram;
pub mod holding;
pub mod interval;
pub mod judged;
pub mod ledger;
pub mod moments;
pub mod normal;
pub mod outcome;
pub mod priority;
pub mod record;
pub mod recorder;
pub mod rng;
pub mod scenario;
pub mod schedule;
pub mod secrets;
pub mod seek;
pub mod slo;
pub mod system_error;
pub mod units;
pub mod verdict;
pub mod voter;
pub mod wait;
