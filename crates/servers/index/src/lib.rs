//! The part that the search servers share below their languages. A query language ends in a tree of [`query`]; [`plan`] checks the
//! tree against the fields of an index, and [`execute`] runs it. [`scan`] finds text without an index.
//!
//! ```
//! use plimsoll_index::text::Analysis;
//!
//! assert_eq!(Analysis::Words.words("How deep may she lie?"), ["how", "deep", "may", "she", "lie"]);
//! ```

pub mod automaton;
mod complement;
pub mod directory;
pub mod execute;
pub mod fuzzy;
pub mod lids;
mod made;
pub mod mapping;
mod near;
mod numbers;
pub mod plan;
pub mod query;
mod range;
pub mod row_text;
pub mod scan;
mod similar;
mod sort;
pub mod standard;
pub mod text;
mod vocabulary;
mod window;
mod words;
