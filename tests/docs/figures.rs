//! Samples with the figures of this machine: `make figures` writes what the commands printed into the pages.
//!
//! `PLIMSOLL_FIGURES` names the program that prints them, the release build. Without it, pages are only read.

use crate::docs::page::Block;
use crate::docs::root;
use plimsoll_core::clock::{format_utc, wall_us};
use std::path::PathBuf;

const PROGRAM: &str = "PLIMSOLL_FIGURES";

pub fn are_wanted() -> bool {
    std::env::var_os(PROGRAM).is_some()
}

/// The program whose output is compared, or written.
pub fn program() -> PathBuf {
    std::env::var_os(PROGRAM).map_or_else(|| env!("CARGO_BIN_EXE_plimsoll").into(), PathBuf::from)
}

/// Lines of a page, and those that stand there from now on.
pub struct Replaced {
    first: usize,
    length: usize,
    lines: Vec<String>,
    /// Line below the block that has date and machine, for a block with figures.
    line_of_machine: Option<usize>,
}

impl Replaced {
    /// Replaces `length` lines of the block from its line `offset` on.
    pub fn new(block: &Block, offset: usize, length: usize, lines: Vec<String>) -> Self {
        let below = block.first + block.lines.len() + 1;
        Self {
            first: block.first + offset,
            length,
            lines,
            line_of_machine: block.has("figures").then_some(below),
        }
    }
}

/// The line that says when and where a sample was printed.
pub fn line_of_machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unnamed processor", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let release = read("/proc/sys/kernel/osrelease");
    let kernel: Vec<&str> = release.trim().split(['.', '-']).take(2).collect();
    let today = format_utc(wall_us());
    format!(
        "*Printed {} on {cores} cores of {model}, Linux {}, by plimsoll {}.*",
        &today[..10],
        kernel.join("."),
        env!("CARGO_PKG_VERSION")
    )
}

/// Writes new lines into a page, last ones first.
pub fn write(page: &str, mut replaced: Vec<Replaced>) {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    replaced.sort_by_key(|one| std::cmp::Reverse(one.first));
    for one in replaced {
        // Two samples of one block have one line below it.
        if let Some(below) = one.line_of_machine
            && lines.get(below).is_some_and(|line| line.starts_with("*Printed "))
        {
            lines[below] = line_of_machine();
        }
        // A sample without figures is text that people wrote.
        if one.line_of_machine.is_some() {
            lines.splice(one.first..one.first + one.length, one.lines);
        }
    }
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
}
