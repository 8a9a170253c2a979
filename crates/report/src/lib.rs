//! From a run record to what people and programs read: a folder, text, JSON, CSV, the summary of vespa-fbench.
//!
//! This crate runs nothing and measures nothing. It keeps what a run hands to it ([`folder`], [`journal`]),
//! puts a record together from what was counted ([`assemble`]), finds one again even when the run was killed
//! ([`load`]), and writes it in the forms that readers ask for. Everything printed can be printed again from
//! the folder.
//!
//! The life of a record:
//!
//! 1. [`folder::RunFolder::create`] makes the folder and writes a first `run.json`, marked partial, so that a
//!    process that dies leaves something readable.
//! 2. [`folder::RunFolder::begin`] writes it once more when target, classes and phases are known.
//! 3. [`journal::Journal`] appends each second of the run and a bounded sample of its failures.
//! 4. [`assemble::assemble`] makes the record, [`folder::RunFolder::finish`] puts it in the place of the first.
//! 5. [`load::load`] reads it, or makes it from the journal when step 4 never came.
//!
//! ```
//! use plimsoll_report::result_filter::{Columns, filter};
//!
//! let mut out = Vec::new();
//! let summaries = filter(&mut &b"no summary here\n"[..], Columns::Newest, &mut out)?;
//! assert_eq!(summaries, 0);
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod assemble;
pub mod benchpress;
pub mod compare;
pub mod csv;
mod error;
pub mod fbench;
pub mod folder;
pub mod history;
pub mod hlog;
pub mod journal;
pub mod json;
pub mod junit;
pub mod kept;
pub mod load;
pub mod naming;
pub mod outcome;
pub mod plain;
pub mod printed_table;
pub mod result_filter;
pub mod text;
pub mod vespa_feed;
pub mod window;

#[cfg(test)]
mod samples;

pub use error::RecordError;
