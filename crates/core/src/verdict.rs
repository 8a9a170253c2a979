//! May the result be believed?

use serde::{Deserialize, Serialize};

/// What kind of result a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// The numbers are the target's.
    #[default]
    Valid,
    /// The generator was the limit; the numbers are not the target's.
    GeneratorLimited,
    /// No request succeeded, or the target could not be reached.
    TargetFailed,
    /// The run was cut short; the numbers cover what was done until then.
    Partial,
    /// The books do not balance: a defect of plimsoll.
    Void,
}

impl VerdictKind {
    /// The word used in records and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            VerdictKind::Valid => "valid",
            VerdictKind::GeneratorLimited => "generator-limited",
            VerdictKind::TargetFailed => "target-failed",
            VerdictKind::Partial => "partial",
            VerdictKind::Void => "void",
        }
    }
}

/// The judgement on a run, with its reasons in words.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The kind that weighs most.
    pub kind: VerdictKind,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
}
