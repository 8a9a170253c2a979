//! The job `seek`: the load line of requests, votes or operations on documents, under limits.
//!
//! How a line is sought is in `plimsoll_core::seek`; here is what can be asked while it is sought.

mod command;
mod page;

pub use command::SeekArgs;
