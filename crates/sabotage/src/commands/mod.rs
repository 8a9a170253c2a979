//! Commands of the program beside the table of verdicts.

pub mod arguments;
pub mod loaded;
pub mod soak;

use plimsoll_core::clock::{format_utc, wall_us};
use plimsoll_engine::health::machine;

/// The first line of a table: the command, the date, and the machine.
pub fn heading(target: &str) -> String {
    let (machine, date) = (machine(), format_utc(wall_us()));
    format!(
        "`make {target}` on {}, {}, {} processors, Linux {}.\n",
        date.get(..10).unwrap_or(&date),
        machine.cpu,
        machine.cpus,
        machine.kernel
    )
}
