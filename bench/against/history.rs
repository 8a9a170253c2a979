//! What was measured before: a file for each machine, with one line for each comparison.

use super::{Measured, word};
use crate::statistics::median;
use anyhow::{Context, Result};
use plimsoll_core::clock::{format_utc, wall_us};
use plimsoll_decide::pairs::Finding;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Adds a comparison to the file of this machine.
///
/// # Errors
/// When the file cannot be written.
pub fn append(
    folder: &Path,
    names: &[String; 2],
    rows: &[Measured],
    findings: &[Finding],
) -> Result<()> {
    let machine = plimsoll_engine::health::machine();
    let file = folder.join(format!("{}.ndjson", slug(&machine.cpu, machine.cpus)));
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let line = json!({
        "measured_at": format_utc(wall_us()),
        "machine": {"cpu": machine.cpu, "cpus": machine.cpus, "kernel": machine.kernel},
        "before": names[0],
        "now": names[1],
        "rows": lines(rows, findings),
    });
    let mut out = std::fs::OpenOptions::new().create(true).append(true).open(&file);
    out.as_mut()
        .map_err(|error| anyhow::anyhow!("{error}"))
        .and_then(|out| Ok(writeln!(out, "{line}")?))
        .with_context(|| format!("writing {}", file.display()))?;
    eprintln!("\rbench: added to {}", file.display());
    Ok(())
}

fn lines(rows: &[Measured], findings: &[Finding]) -> Vec<Value> {
    let mut left = findings.iter();
    rows.iter()
        .map(|row| match row.absent.is_none().then(|| left.next()).flatten() {
            Some(finding) => json!({
                "row": row.name,
                "before_us": rounded(median(&row.costs_us[0])),
                "now_us": rounded(median(&row.costs_us[1])),
                "ratio": rounded(finding.ratio),
                "interval": [rounded(finding.low), rounded(finding.high)],
                "pairs": finding.pairs,
                "answer": word(&finding.kind).to_lowercase(),
            }),
            None => json!({"row": row.name, "not_measured": row.absent}),
        })
        .collect()
}

/// Five digits: no figure of a few pairs has more.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// The name of a machine's file: its processor and its cores, in letters, digits and hyphens.
fn slug(cpu: &str, cpus: u32) -> String {
    let letters: String = cpu
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' })
        .collect();
    let words: Vec<&str> = letters.split_whitespace().collect();
    format!("{}-{cpus}-cores", words.join("-"))
}
