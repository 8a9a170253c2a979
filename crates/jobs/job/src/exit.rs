//! Exit codes, decided in one place.

use crate::signals::Stopped;
use crate::usage::{Unreachable, Usage};
use plimsoll_core::schedule::ModelError;
use plimsoll_engine::run::RunError;
use plimsoll_engine::tls::TlsError;
use plimsoll_fleet::place::Refused;
pub use plimsoll_record::exit::{FAILED, FINE, NOT_VALID, SLO_MISSED, TARGET_FAILED, of_record};
use plimsoll_workloads::checks::CheckError;
use plimsoll_workloads::classes::ClassError;
use plimsoll_workloads::error::InputError;

/// The command line or an input is wrong; nothing was sent.
pub const USAGE: u8 = 64;

/// The code of an error that ended the program.
#[must_use]
pub fn of_error(error: &anyhow::Error) -> u8 {
    let usage = error.is::<Usage>()
        || error.is::<InputError>()
        || error.is::<CheckError>()
        || error.is::<ClassError>()
        || error.is::<TlsError>()
        || error.is::<ModelError>()
        || matches!(error.downcast_ref(), Some(RunError::Model(_)))
        || error.is::<plimsoll_report::RecordError>();
    if error.is::<Unreachable>() {
        return TARGET_FAILED;
    }
    if let Some(refused) = error.downcast_ref::<Refused>() {
        return refused.code.unwrap_or(NOT_VALID);
    }
    match (usage, error.is::<Stopped>()) {
        (true, _) => USAGE,
        (_, true) => NOT_VALID,
        _ => FAILED,
    }
}
