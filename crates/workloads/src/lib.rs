//! Requests to a target: request files, their rendering, classes and checks, texts and query mixes.
//!
//! Nothing here opens a socket. Request files: [`query_file`] (vespa-fbench's format) and
//! [`ndjson`]; their requests become bytes in [`render`], are counted by [`classes`] and judged by
//! [`checks`]. Texts to search: [`corpus`]; the queries that fit a text: [`query_mix`].
//!
//! ```
//! use plimsoll_workloads::edit_distance::{edit_distance, near_miss};
//!
//! assert_eq!(edit_distance(b"wahle", b"whale"), 2);
//! assert_eq!(near_miss("timout", &["timeout", "targets"]), Some("timeout"));
//! ```

pub mod authority;
pub mod checks;
pub mod classes;
pub mod corpus;
pub mod course;
pub mod edit_distance;
pub mod error;
pub mod header;
pub mod http;
pub mod id_digest;
pub mod json_scan;
pub mod json_skip;
pub mod ndjson;
pub mod output;
pub mod query_file;
pub mod query_mix;
pub mod render;
pub mod rows;
pub mod script;
pub mod sql;
pub mod volt_calls;
