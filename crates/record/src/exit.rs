//! Exit codes of finished runs, decided in one place.

use crate::RunRecord;
use crate::ab::{AbJudged, AbResult};
use plimsoll_core::verdict::VerdictKind;

/// All is well.
pub const FINE: u8 = 0;
/// The program failed, or a file of the result is lost; of two sides that are compared: one is worse than `--fail-on` allows.
pub const FAILED: u8 = 1;
/// A limit or an assertion was missed; of two sides that are compared: it is not known whether one is worse.
pub const SLO_MISSED: u8 = 2;
/// The run is not valid: limited by the generator or by connections, partial, unstable, or its ledger does not balance.
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
        // What another tool measured is not judged; only an assertion on it can fail.
        VerdictKind::Valid | VerdictKind::Imported => {
            let is_missed = record.slo.values().any(|slo| !slo.held)
                || record.assertions.iter().any(|one| !one.held)
                || record.missed_run_per_s().is_some();
            match record.job_results.ab().map_or(AbJudged::Holds, AbResult::worst) {
                AbJudged::Fails => FAILED,
                AbJudged::CannotTell => SLO_MISSED,
                AbJudged::Holds if is_missed => SLO_MISSED,
                AbJudged::Holds => FINE,
            }
        }
    }
}
