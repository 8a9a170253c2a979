//! Sabotage in virtual time: the generator's own code on a simulated network, by the thousand.

pub mod asker;
pub mod draw;
pub mod scene;

use crate::judging::{Finding, Grade, judge};

/// Carries out the scene of a seed and judges it: its kind, whether the machine was healthy, and the finding.
#[must_use]
pub fn one(seed: u64) -> (&'static str, bool, Finding) {
    let scene = draw::scene(seed);
    let (ended, ideal) = (scene.run(), scene.ideal().run());
    let others = scene.ideals_over_other_lines();
    let (mut truth, mut reported) = (scene.truth(&ideal, &others), scene.reported(&ended));
    // Whoever stops a run behind its last request takes nothing from it.
    if scene.stop_ns.is_some() && ended.totals.ledger.scheduled == ideal.totals.ledger.scheduled {
        truth.kinds = &["partial", "valid"];
    }
    // A run that is valid without bounds worth a word judges limits as the ideal generator's run does.
    if reported.grade() == Grade::Valid && truth.figures.iter().all(Option::is_some) {
        truth.limits = scene.limits(&ideal, &ideal);
        reported.limits = scene.limits(&ended, &ideal);
    }
    let mut finding = judge(&reported, &truth, scene.tolerance());
    if ended.over_ns > scene.over_by_ns() {
        let late_ms = (ended.over_ns - scene.over_by_ns()) as f64 / 1e6;
        finding.defects.push(format!("it ended {late_ms:.0} ms too late"));
    }
    (scene.kind, truth.healthy, finding)
}
