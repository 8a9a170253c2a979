//! The job `ab`: whether B is better or worse than A, from pairs of blocks of the same load.
//!
//! A block is a process of its own that runs another job of plimsoll for a second or more. Blocks of both sides alternate, so that
//! drift of the machine hits both; the statistics of the pairs are in `plimsoll-decide`.
//!
//! ```
//! let command = plimsoll_job::job::Command::of::<plimsoll_ab::AbArgs>();
//! let words = ["ab", "--a", "http://old:8080", "--b", "http://new:8080", "--", "load", "--rate", "1000"];
//! assert!(command.parser().try_get_matches_from(words).is_ok());
//! ```

mod answers;
mod arms;
mod blocks;
mod command;
mod duet;
mod flags;
mod forms;
mod generator;
mod jobs;
mod late;
mod measured;
mod metrics;
mod number;
mod page;
mod pilot;
mod ratios;
mod result;
mod serving;
mod session;
mod sheet;
mod shell_words;
mod sought;
mod steps;
mod words;

use anyhow::Result;
pub use flags::AbArgs;
use plimsoll_job::job::{Job, Program};
use plimsoll_report::forms::Forms;

impl Job for AbArgs {
    const NAME: &'static str = "ab";
    const FORMS: Forms = forms::FORMS;

    fn run(&self, program: &Program) -> Result<u8> {
        command::run(self, program)
    }
}
