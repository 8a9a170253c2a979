//! Parts of all jobs: flags with the same words everywhere, a scenario made ready, the way through the engine into the
//! record, progress on stderr, and the exit code.
//!
//! A job is a crate of its own beside this one, and a [`job::Job`]. It reads its flags, makes sessions, and gives them to
//! [`keeping::carry_out`], which keeps the record of whatever drives the engine.
//!
//! ```
//! use plimsoll_job::url::Url;
//!
//! let url = Url::parse("http://127.0.0.1:8080/search/?query=sea")?;
//! assert_eq!(url.target, "/search/?query=sea");
//! assert!(Url::parse("127.0.0.1:8080").is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod child;
pub mod contact;
pub mod embedded;
pub mod execute;
pub mod exit;
pub mod flags;
pub mod goal;
pub mod headers;
pub mod job;
pub mod keeping;
pub mod line;
mod live;
pub mod method;
mod observing;
pub mod outlet_flags;
mod outlets;
pub mod output;
pub mod postgres;
pub mod prepare;
pub mod progress;
pub mod remarks;
pub mod requests;
pub mod results;
pub mod screen;
pub mod signals;
pub mod sought;
pub mod temporary;
pub mod throughput;
pub mod together;
pub mod toml_text;
pub mod tool;
pub mod url;
pub mod usage;
pub mod watching;
