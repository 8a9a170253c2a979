//! Vespa's document model: [`schema`] files, documents' values with their stored and their JSON form, operations on them,
//! and selections of them.

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
