//! From a run record to what people and programs read: a folder, text, JSON, CSV, JUnit XML.
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
//! use plimsoll_report::plain::printable;
//! use plimsoll_report::number::{count, significant};
//!
//! assert_eq!(count(1_234_567), "1,234,567");
//! assert_eq!(significant(0.123_456), "0.123");
//! assert_eq!(printable("two\nlines"), "two\\nlines");
//! ```

pub mod assemble;
pub mod benchpress;
pub mod command;
pub mod compare;
pub mod csv;
mod error;
pub mod figures;
pub mod find;
pub mod folder;
pub mod forms;
pub mod history;
pub mod hlog;
pub mod intervals;
pub mod journal;
pub mod json;
pub mod junit;
pub mod kept;
pub mod likeness;
pub mod load;
pub mod markdown;
pub mod merge;
pub mod naming;
pub mod number;
pub mod outcome;
pub mod page;
pub mod part;
pub mod past;
pub mod periods;
pub mod plain;
pub mod rate;
pub mod resources;
mod run_json;
pub mod sections;
pub mod series;
pub mod sheet;
pub mod source;
pub mod text;
pub mod times;
pub mod traces;
pub mod trend;
pub mod window;

#[cfg(test)]
mod lying_disk;

#[cfg(any(test, feature = "samples"))]
pub mod samples;

pub use error::RecordError;
