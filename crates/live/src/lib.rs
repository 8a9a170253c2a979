//! The live page of a run: a small HTTP server on a thread of its own, from which browsers follow the run by server-sent events.
//!
//! The run publishes what the page shows; nothing that a browser does or leaves undone reaches the run, except for the
//! button that stops it. A reader that does not keep up is disconnected, and resumes by itself from the last event that
//! it has seen. Memory is bounded: events that can be resumed from by 8 MB, events that wait for one
//! reader by a queue of 32.
//!
//! All that a page holds needs the token of the run, which is a new one each time. Requests whose `Host` is a name
//! other than `localhost` are refused, so that no page elsewhere can read along by pointing a name of its own at this machine.
//!
//! ```
//! use plimsoll_live::{Address, Board, Hooks, Live};
//!
//! let hooks = Hooks {
//!     renew: Box::new(|| ()),
//!     stop: Box::new(|| ()),
//!     metrics: Box::new(String::new),
//!     metrics_kind: "text/plain",
//! };
//! let live = Live::start(Address::default(), hooks)?;
//! live.publish(Board { page: "<!doctype html>".to_owned(), ..Board::default() });
//! assert!(live.url().starts_with("http://127.0.0.1:"));
//! live.end("<!doctype html><p>report");
//! # Ok::<(), std::io::Error>(())
//! ```

mod access;
mod address;
mod board;
pub mod fuzz;
mod readers;
mod ring;
mod routes;
mod server;
mod shared;
mod strangers;

pub use address::{Address, AddressError};
pub use board::{Board, Plots};
pub use server::{GOODBYE, Live};
pub use shared::Hooks;
