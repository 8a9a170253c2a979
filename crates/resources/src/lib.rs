//! Resources of the target, the generator and the machine while load is on, sampled once a second from `/proc` and from control
//! groups of version 2.
//!
//! [`sampling::Sampling`] is a thread that yields to all others. It writes `resources.ndjson` line by line and gives the
//! section `resources` of the record at the end. [`resolve`] finds the processes and groups that `--watch` names.
//!
//! ```
//! use plimsoll_resources::watch::{Wanted, Watch};
//!
//! let watch: Watch = "db=postgres".parse().unwrap();
//! assert_eq!(watch.label.as_deref(), Some("db"));
//! assert_eq!(watch.wanted, Wanted::Named("postgres".to_owned()));
//! ```

pub mod account;
mod group_use;
mod groups;
mod limits;
mod listening;
mod look;
mod machine;
mod process_files;
mod processes;
mod reading;
pub mod resolve;
pub mod sampling;
mod subject;
mod summary;
pub mod watch;

pub use subject::{Roots, Subject};
