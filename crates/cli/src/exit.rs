//! Exit codes, decided in one place.

use crate::signals::Stopped;
use crate::usage::{Unreachable, Usage};
use plimsoll_core::record::RunRecord;
use plimsoll_core::schedule::ModelError;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_engine::run::RunError;
use plimsoll_engine::tls::TlsError;
use plimsoll_workloads::checks::CheckError;
use plimsoll_workloads::classes::ClassError;
use plimsoll_workloads::error::InputError;

/// All is well.
pub const FINE: u8 = 0;
/// The program failed.
pub const FAILED: u8 = 1;
/// A threshold or SLO was missed.
pub const SLO_MISSED: u8 = 2;
/// The run is not valid: generator-limited, partial, or its books do not balance.
pub const NOT_VALID: u8 = 3;
/// The target could not be reached, or every request failed.
pub const TARGET_FAILED: u8 = 4;
/// The command line or an input is wrong; nothing was sent.
pub const USAGE: u8 = 64;

/// The code of a finished run.
#[must_use]
pub fn of_record(record: &RunRecord) -> u8 {
    match record.verdict.kind {
        VerdictKind::TargetFailed => TARGET_FAILED,
        VerdictKind::GeneratorLimited
        | VerdictKind::Partial
        | VerdictKind::Unstable
        | VerdictKind::Void => NOT_VALID,
        VerdictKind::Infeasible => SLO_MISSED,
        VerdictKind::Valid if record.slo.values().any(|slo| !slo.held) => SLO_MISSED,
        VerdictKind::Valid if record.assertions.iter().any(|one| !one.held) => SLO_MISSED,
        VerdictKind::Valid => FINE,
    }
}

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
    match (usage, error.is::<Stopped>()) {
        (true, _) => USAGE,
        (_, true) => NOT_VALID,
        _ => FAILED,
    }
}
