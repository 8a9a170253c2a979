//! The job `load`: requests to any HTTP service, SQL to PostgreSQL, or calls to VoltDB, under any load model.
//!
//! [`run_and_print`] runs a scenario, wherever it came from: flags, a file, or the record of a run.

mod command;
pub mod postgres;
pub mod volt;

pub use command::{LoadArgs, run_and_print};
