//! The document whose tables a benchmark refreshes, each between a pair of markers.

use anyhow::{Context, Result};
use std::path::Path;

/// Replaces what lies between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`.
///
/// # Errors
/// When the file cannot be read or written, or has no such markers.
pub fn refresh(path: &Path, name: &str, body: &str) -> Result<()> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
    let (open, close) = (format!("<!-- bench:{name} -->"), format!("<!-- /bench:{name} -->"));
    let start = text.find(&open).with_context(|| format!("{shown} has no '{open}'"))? + open.len();
    let length = text[start..].find(&close).with_context(|| format!("{shown} has no '{close}'"))?;
    let new = format!("{}\n{}\n{}", &text[..start], body.trim_end(), &text[start + length..]);
    std::fs::write(path, new).with_context(|| format!("writing {shown}"))
}
