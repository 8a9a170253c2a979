//! Hostile servers, by protocol.

mod http1;
mod http2;
mod postgres;
mod services;
mod tls;
mod volt;

use crate::case::Case;
use std::path::Path;

/// All of them.
#[must_use]
pub fn all() -> Vec<Case> {
    [http1::CASES, http2::CASES, tls::CASES, postgres::CASES, volt::CASES, services::CASES].concat()
}

/// Writes the files that the commands of the cases name.
///
/// # Errors
/// When the folder cannot be written.
pub fn provide(place: &Path) -> std::io::Result<()> {
    std::fs::write(place.join("body.bin"), vec![b'b'; 1 << 20])?;
    std::fs::write(place.join("queries.sql"), "SELECT 1\n")?;
    std::fs::write(place.join("queries.txt"), "/search/?query=a\n/search/?query=b\n")?;
    let operations =
        (0..50).map(|n| format!("{{\"put\":\"id:a:b::{n}\",\"fields\":{{\"n\":{n}}}}}\n"));
    std::fs::write(place.join("feed.jsonl"), operations.collect::<String>())
}
