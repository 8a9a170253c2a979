//! Puts the rows of sweeps into a page of the book, between its markers: `page ROWS PAGE SEEDS`.

use plimsoll_core::clock::{format_utc, wall_us};
use std::process::ExitCode;

const HEAD: &str = "| store | seeds | operations of its work | of a start | starts after a power cut or a kill | EIO and ENOSPC | starts that failed and said so | findings |\n\
                    |---|---:|---:|---:|---:|---:|---:|---:|\n";

fn written(rows: &str, page: &str, seeds: &str) -> Result<(), String> {
    let read =
        |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let (rows, text) = (read(rows)?, read(page)?);
    let [begin, end] = ["begin", "end"].map(|edge| format!("<!-- {edge}: make disk -->"));
    let missing = || format!("{page}: no '{begin}' followed by '{end}'");
    let (before, rest) = text.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    let date = format_utc(wall_us());
    let date = date.get(..10).unwrap_or(&date);
    let table = format!("`make disk SEEDS={seeds}` on {date}.\n\n{HEAD}{}", rows.trim());
    let text = format!("{before}{begin}\n\n{table}\n\n{end}{after}");
    std::fs::write(page, text).map_err(|error| format!("{page}: {error}"))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [rows, page, seeds] => written(rows, page, seeds),
        _ => Err("usage: page ROWS PAGE SEEDS".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            #[expect(clippy::print_stderr, reason = "a program for the terminal")]
            {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}
