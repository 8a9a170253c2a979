//! Servers that go on working after a load: what they merge and rebuild takes CPU time from the first cell.

use super::engine::Engine;
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_core::units::Span;
use plimsoll_job::signals;
use std::time::Duration;

/// Longest wait for a server's own work to end.
const WITHIN: Span = Span::seconds(600);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A server that uses less than this share of a core has nothing to do: it only keeps itself alive.
const IDLE: f64 = 0.15;
/// Looks in a row that must see it so: the embedded server begins to merge when no one has written for a second.
const LOOKS: u32 = 6;

/// Observation of a server's CPU time.
#[derive(Default)]
struct Watch {
    /// Time at which it was looked at last, s, and what it had used until then, s.
    last: Option<(f64, f64)>,
    idle: u32,
}

impl Watch {
    /// Looks at a time, s, and at the CPU time used until then, s; says whether the server is at rest.
    fn look(&mut self, at_s: f64, used_s: f64) -> bool {
        let before = self.last.replace((at_s, used_s));
        let share = before.map(|(from_s, used)| (used_s - used) / (at_s - from_s).max(1e-9));
        self.idle = if share.is_some_and(|share| share < IDLE) { self.idle + 1 } else { 0 };
        self.idle >= LOOKS
    }
}

/// Waits until a server of plimsoll has no work of its own left: how long that took, s, and whether it still has some.
/// None where it is not ours, whose every work would come from the load, or its CPU time is unknown.
///
/// # Errors
/// When the user stops the program.
pub fn wait(engine: &Engine) -> Result<Option<(f64, bool)>> {
    if !engine.is_ours() {
        return Ok(None);
    }
    let (start_ns, mut watch) = (now_ns(), Watch::default());
    loop {
        let Some(used_s) = engine.cpu_s() else { return Ok(None) };
        let at_s = (now_ns() - start_ns) as f64 / 1e9;
        let is_at_rest = watch.look(at_s, used_s);
        if is_at_rest || at_s > WITHIN.as_seconds() {
            return Ok(Some((at_s, !is_at_rest)));
        }
        signals::go_on("while an engine had work left from ingesting")?;
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::Watch;

    #[test]
    fn a_server_is_at_rest_once_it_uses_next_to_nothing_for_a_while() {
        let mut watch = Watch::default();
        // Busy, a pause before the last merge, busy again, and then at rest.
        let used = [5.0, 5.5, 5.51, 5.52, 5.53, 5.54, 5.9, 6.2, 6.22, 6.23, 6.24, 6.25, 6.26, 6.27];
        let mut looks = used.iter().zip(0..);
        let rest = looks.find(|(used_s, look)| watch.look(f64::from(*look) * 0.25, **used_s));
        assert_eq!(rest, Some((&6.27, 13)));
    }
}
