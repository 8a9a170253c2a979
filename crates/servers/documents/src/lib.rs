//! Vespa's document model: [`schema`] files, documents' values with their stored and their JSON form, operations on them,
//! and selections of them.
//!
//! ```
//! use plimsoll_documents::schema::Schemas;
//!
//! let schemas = Schemas::built_in("plimsoll");
//! assert!(schemas.has_field("title") && schemas.by_name("doc").is_some());
//! ```

pub mod document;
pub mod encoding;
pub mod field_set;
pub mod filter;
pub mod fuzz;
pub mod operation;
pub mod render;
pub mod schema;
pub mod selection;
#[cfg(test)]
mod tests;
pub mod value;
