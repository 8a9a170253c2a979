//! The saboteur: runs plimsoll against targets whose truth is known while one thing is wrong, works out what would have
//! been right, and looks whether the verdict says so.
//!
//! Three rooms: targets with their truth, sabotages, and the judging of what a run said about itself. Two stages use
//!
//! ```
//! use plimsoll_sabotage::targets::closed_form::quantile;
//!
//! assert_eq!(quantile(&[1, 2, 3, 4], 0.5), 2);
//! ```

pub mod judging;
pub mod sabotages;
pub mod soak;
pub mod sockets;
pub mod targets;
pub mod virtual_time;
