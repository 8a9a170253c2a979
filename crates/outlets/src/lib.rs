//! Outlets for the numbers of a run while it runs: an OTLP receiver, a stream of lines, a scrape.
//!
//! A run hands in each finished second. Exports and lines wait in a bounded [`queue`] for a thread of its own, so that no
//! receiver, however slow, moves the run. Those that are lost are counted.
//!
//! ```
//! use plimsoll_core::interval::Interval;
//! use plimsoll_outlets::{facts::Facts, prometheus, series::Series};
//!
//! let facts = Facts { classes: vec!["all".to_owned()], phases: vec!["steady".to_owned()], ..Facts::default() };
//! let mut series = Series::new(&facts.classes, &facts.phases);
//! let mut second = Interval::new(1);
//! second.ledger.scheduled = 3;
//! series.add(&second);
//! let page = prometheus::render(&facts, &series);
//! assert!(page.contains("plimsoll_requests_scheduled_total{phase=\"steady\"} 3"));
//! ```

pub mod classic;
pub mod exponential;
pub mod facts;
pub mod names;
pub mod otlp;
pub mod prometheus;
pub mod queue;
pub mod series;
pub mod stream;
