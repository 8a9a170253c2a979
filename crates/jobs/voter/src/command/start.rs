//! A start that several clients share: a boundary of the wall clock.

use anyhow::Result;
use plimsoll_core::clock::{format_utc, now_ns, parse_utc, wall_us};
use plimsoll_core::units::Span;
use plimsoll_job::signals;
use plimsoll_job::usage::usage;
use std::time::Duration;

/// Longest wait for a start.
const WAIT_MAX_US: u64 = 24 * 3_600_000_000;
/// From here on the engine itself waits: its sleep is exact.
const HANDOVER_US: u64 = 2_000_000;
/// Activity in which a run with an agreed start was stopped.
const BEFORE_START: &str = "before the agreed start";

/// The first boundary of `every_us` that leaves at least as much time before it.
///
/// Clients that get ready within one and the same stretch between two boundaries start together; the wait is one to
/// two of them. (Erlvolt takes the next boundary, however near it is, so that clients which get ready on different
/// sides of one start apart.)
#[must_use]
pub fn boundary_us(now_us: u64, every_us: u64) -> u64 {
    let every_us = every_us.max(1);
    (now_us / every_us).saturating_add(2).saturating_mul(every_us)
}

/// When the calls must begin, microseconds since the Unix epoch; `None` is at once.
///
/// # Errors
/// When the flags contradict each other, or name a time that has passed.
pub fn start_us(at: Option<&str>, delay: Option<Span>, now_us: u64) -> Result<Option<u64>> {
    let start_us = match (at, delay) {
        (Some(_), Some(_)) => {
            return Err(usage("--start-at and --start-delay exclude each other; give one"));
        }
        (None, None | Some(Span { ns: 0 })) => return Ok(None),
        (None, Some(every)) => boundary_us(now_us, every.ns / 1_000),
        (Some(text), None) => parse_utc(text).ok_or_else(|| {
            usage(format!("--start-at '{text}': write UTC as {}", format_utc(now_us)))
        })?,
    };
    if start_us <= now_us {
        return Err(usage(format!(
            "--start-at {}: that time has passed; it is {} now",
            format_utc(start_us),
            format_utc(now_us)
        )));
    }
    if start_us - now_us > WAIT_MAX_US {
        return Err(usage("the start is more than a day away; start the command later"));
    }
    Ok(Some(start_us))
}

/// Waits until this much time is left before the start, and returns what is.
///
/// # Errors
/// When the user stops this process first.
fn draw_near(start_us: u64, most_us: u64) -> Result<u64> {
    loop {
        let left_us = start_us.saturating_sub(wall_us());
        if left_us <= most_us {
            return Ok(left_us);
        }
        signals::go_on(BEFORE_START)?;
        std::thread::sleep(Duration::from_micros((left_us - most_us).min(50_000)));
    }
}

/// Waits until shortly before the start and returns it on the clock that measures, ns.
///
/// # Errors
/// When the user stops this process first.
pub fn wait_for(start_us: u64) -> Result<u64> {
    let left_us = draw_near(start_us, HANDOVER_US)?;
    Ok(now_ns().saturating_add(left_us.saturating_mul(1_000)))
}

/// The wall-clock time of a moment on the clock that measures, microseconds since the Unix epoch.
#[must_use]
pub fn wall_of(moment_ns: u64) -> u64 {
    let (now_ns, wall_us) = (now_ns(), wall_us());
    if moment_ns > now_ns {
        return wall_us.saturating_add((moment_ns - now_ns) / 1_000);
    }
    wall_us.saturating_sub((now_ns - moment_ns) / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_US: u64 = 1_000_000;

    #[test]
    fn a_boundary_leaves_at_least_its_own_distance() {
        let every_us = 20 * SECOND_US;
        for now_us in [0, 1, every_us - 1, every_us, 1_700_000_000_123_456] {
            let at_us = boundary_us(now_us, every_us);
            let wait_us = at_us - now_us;
            assert!(
                at_us.is_multiple_of(every_us) && wait_us > every_us && wait_us <= 2 * every_us
            );
        }
    }

    #[test]
    fn a_start_is_named_once_and_lies_ahead() {
        let now_us = parse_utc("2026-01-01T00:00:00Z").unwrap();
        let start = |at, delay| start_us(at, delay, now_us).map_err(|error| error.to_string());
        assert_eq!(start(None, None), Ok(None));
        assert_eq!(start(None, Some(Span::default())), Ok(None));
        assert_eq!(start(Some("2026-01-01T00:00:05Z"), None), Ok(Some(now_us + 5 * SECOND_US)));
        let told = [
            start(Some("2025-12-31T23:59:59Z"), None),
            start(Some("noon"), None),
            start(Some("2026-01-03T00:00:00Z"), None),
            start(Some("2026-01-01T00:00:05Z"), Some(Span::seconds(1))),
        ];
        for (told, part) in told.iter().zip(["has passed", "write UTC", "a day away", "exclude"]) {
            assert!(told.as_ref().unwrap_err().contains(part), "{told:?}");
        }
    }
}
