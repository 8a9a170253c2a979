//! Exit codes of finished runs, decided in one place.

use crate::RunRecord;
use plimsoll_core::verdict::VerdictKind;

/// All is well.
pub const FINE: u8 = 0;
/// The program failed, or a file of the result is lost.
pub const FAILED: u8 = 1;
/// A limit or an assertion was missed.
pub const SLO_MISSED: u8 = 2;
/// The run is not valid: limited by the generator or by connections, partial, unstable, or its books do not balance.
pub const NOT_VALID: u8 = 3;
/// The target could not be reached, or failed too many requests.
pub const TARGET_FAILED: u8 = 4;

/// The code of a finished run.
#[must_use]
pub fn of_record(record: &RunRecord) -> u8 {
    match record.verdict.kind {
        VerdictKind::TargetFailed => TARGET_FAILED,
        VerdictKind::GeneratorLimited
        | VerdictKind::ConnectionLimited
        | VerdictKind::Partial
        | VerdictKind::Unstable
        | VerdictKind::BudgetTooSmall
        | VerdictKind::Void => NOT_VALID,
        VerdictKind::Infeasible => SLO_MISSED,
        VerdictKind::Valid if record.slo.values().any(|slo| !slo.held) => SLO_MISSED,
        VerdictKind::Valid if record.assertions.iter().any(|one| !one.held) => SLO_MISSED,
        VerdictKind::Valid if record.missed_run_per_s().is_some() => SLO_MISSED,
        VerdictKind::Valid => FINE,
    }
}
