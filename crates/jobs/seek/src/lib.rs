//! The job `seek`: the load line of requests, votes or operations on documents, under limits.
//!
//! The method of the search is in `plimsoll_core::seek`; the requests that can be sent during a search are here.
//!
//! ```
//! let command = plimsoll_job::job::Command::of::<plimsoll_seek::SeekArgs>();
//! assert!(command.parser().try_get_matches_from(["seek", "http://127.0.0.1:8080/", "--slo", "p95=100ms"]).is_ok());
//! ```

mod command;
mod page;

pub use command::SeekArgs;
