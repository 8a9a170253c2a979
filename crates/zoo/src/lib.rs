//! Plants with known load lines, on virtual time, and the tables of what search methods make of them.
//!
//! ```
//! use plimsoll_zoo::oracles::mmk_late;
//!
//! // Share of requests later than 100 ms at a station of four servers with 20 ms each.
//! let late = |rate| mmk_late(4, 0.02, rate, 0.1);
//! assert!(late(100.0) < 0.05 && late(190.0) > late(100.0));
//! ```

pub mod ab;
pub mod adversaries;
pub mod changing;
pub mod classes;
pub mod draw;
pub mod enough;
pub mod floors;
pub mod history;
pub mod intervals;
pub mod models;
pub mod oracles;
pub mod page;
pub mod parallel;
pub mod plant;
pub mod quirk;
pub mod sizing;
pub mod table;
pub mod watching;
