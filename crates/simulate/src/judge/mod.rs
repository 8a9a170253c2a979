//! The judge: holds the engine's books, the client's diary and the peer's log against each other.

mod books;
mod fates;
mod queue;
mod schedule;

use crate::played::Played;
use crate::scene::Scene;
use crate::truth::Log;

/// Findings of a run; empty if nothing is wrong with it.
#[derive(Debug, Default)]
pub struct Findings(Vec<String>);

/// Findings of one run that are kept.
const KEPT: usize = 8;

impl Findings {
    /// Notes what does not hold.
    pub fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.0.len() < KEPT {
            self.0.push(what());
        }
    }

    /// Notes that two things that must be the same are not.
    pub fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, left: T, right: T) {
        self.expect(left == right, || format!("{what}: {left:?} is not {right:?}"));
    }

    /// The findings.
    #[must_use]
    pub fn list(self) -> Vec<String> {
        self.0
    }
}

/// Judges one run. `log` is empty where the peer's truth is not known request by request.
#[must_use]
pub fn judge(scene: &Scene, played: &Played, log: Option<&Log>) -> Findings {
    let mut findings = Findings::default();
    books::check(scene, played, &mut findings);
    schedule::check(scene, played, &mut findings);
    queue::check(scene, played, &mut findings);
    if let Some(log) = log {
        fates::check(scene, played, log, &mut findings);
    }
    findings
}

/// True if the run did not come to its own end: it was stopped, or its login was refused.
pub(crate) const fn was_cut(played: &Played) -> bool {
    played.end.interrupted || played.end.drain_cut || played.end.refused.is_some()
}
