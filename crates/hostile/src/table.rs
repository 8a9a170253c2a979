//! The results of all cases, as tables of the book.

use crate::case::{Case, Found};
use crate::floods::{Flood, Withstood};
use std::fmt::Write;

const MIB: u64 = 1 << 20;

/// One case and what came of it.
pub type Met = (Case, Found);
/// One flood and what came of it.
pub type Stood = (Flood, Withstood);

/// Hostile servers, by protocol.
#[must_use]
pub fn peers(met: &[Met]) -> String {
    let mut text = String::from(
        "| protocol | the server sends | taken, MB | memory, MiB | allowed, MiB | time, s | exit code |\n\
         |---|---|---:|---:|---:|---:|---:|\n",
    );
    for (case, found) in met {
        let ended = &found.ended;
        let code = ended.code.map_or_else(|| "killed".to_owned(), |code| code.to_string());
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} | {} | {} | {:.1} | {code} |",
            case.group,
            case.name,
            found.sent as f64 / 1e6,
            ended.peak_bytes / MIB,
            case.memory_max / MIB,
            ended.took.as_secs_f64(),
        );
    }
    text
}

/// Floods, by server.
#[must_use]
pub fn floods(stood: &[Stood]) -> String {
    let mut text = String::from(
        "| server | flood | memory, MiB | allowed, MiB | honest requests answered | slowest of them, ms | end, ms |\n\
         |---|---|---:|---:|---:|---:|---:|\n",
    );
    for (flood, found) in stood {
        let _ = writeln!(
            text,
            "| `{}`, port {} | {} | {} | {} | {} of {} | {} | {} |",
            flood.server,
            flood.port + 1,
            flood.name,
            found.peak_bytes / MIB,
            flood.memory_max / MIB,
            found.answered,
            found.asked,
            found.longest.as_millis(),
            found.ended_after.as_millis(),
        );
    }
    text
}
