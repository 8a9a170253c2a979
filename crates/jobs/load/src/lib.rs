//! The job `load`: requests to any HTTP service, SQL to PostgreSQL, or calls to VoltDB, under any load model.
//!
//! [`run_and_print`] runs a scenario, wherever it came from: flags, a file, or the record of a run.
//!
//! ```
//! let command = plimsoll_job::job::Command::of::<plimsoll_load::LoadArgs>();
//! assert!(command.parser().try_get_matches_from(["load", "http://127.0.0.1:8080/", "--rate", "100"]).is_ok());
//! ```

mod command;
#[cfg(test)]
mod drawn;
pub mod postgres;
pub mod volt;

pub use command::{LoadArgs, run_and_print};
