//! Sabotage in virtual time: the generator's own code on a simulated network, by the thousand.

pub mod asker;
pub mod draw;
pub mod scene;

use crate::judging::{Finding, judge};

/// Carries out the scene of a seed and judges it: its kind, whether the machine was healthy, and the finding.
#[must_use]
pub fn one(seed: u64) -> (&'static str, bool, Finding) {
    let scene = draw::scene(seed);
    let (ended, ideal) = (scene.run(), scene.ideal().run());
    let truth = scene.truth(&ideal);
    let mut finding = judge(&scene.reported(&ended), &truth, scene.tolerance());
    if ended.over_ns > scene.over_by_ns() {
        let late_ms = (ended.over_ns - scene.over_by_ns()) as f64 / 1e6;
        finding.defects.push(format!("it ended {late_ms:.0} ms too late"));
    }
    (scene.kind, truth.healthy, finding)
}
