//! The only place that reads time.
//!
//! All times inside plimsoll are `u64` nanoseconds since an arbitrary start (the *monotonic* scale);
//! names end in `_ns`. The engine is generic over [`Clock`], so the same code runs on the machine's
//! clock and on a virtual one that a simulation moves by hand.

use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds in one second.
pub const SECOND_NS: u64 = 1_000_000_000;
/// Nanoseconds in one millisecond.
pub const MILLISECOND_NS: u64 = 1_000_000;
/// Nanoseconds in one microsecond.
pub const MICROSECOND_NS: u64 = 1_000;

/// A source of monotonic nanoseconds.
pub trait Clock {
    /// Nanoseconds since the clock's own start; never goes back.
    fn now_ns(&self) -> u64;
}

/// The machine's monotonic clock, counted from the first reading in this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

static PROCESS_START_NS: LazyLock<u64> = LazyLock::new(reading_ns);

/// Returns the monotonic time. The library's `Instant` returns the same, and takes twice as long: workers
/// read the clock several times a request.
#[inline]
fn reading_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

/// Monotonic nanoseconds since the first reading in this process.
#[must_use]
#[inline]
pub fn now_ns() -> u64 {
    // The start is read first: were it the first reading, it would be later than the time.
    let start_ns = *PROCESS_START_NS;
    reading_ns() - start_ns
}

/// Microseconds since the Unix epoch, for stamping records that people read.
///
/// Never used for measuring: the wall clock may step.
#[must_use]
#[allow(clippy::disallowed_methods)]
pub fn wall_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
}

impl Clock for SystemClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        now_ns()
    }
}

/// A clock that stops until a test moves it; clones share the same time.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    now_ns: Rc<Cell<u64>>,
}

impl VirtualClock {
    /// A clock that shows zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the hands forward to `to_ns`; an earlier time is ignored, since time never goes back.
    pub fn advance_to(&self, to_ns: u64) {
        if to_ns > self.now_ns.get() {
            self.now_ns.set(to_ns);
        }
    }
}

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }
}

/// `YYYY-MM-DDTHH:MM:SSZ` of a wall time in microseconds since the Unix epoch.
///
/// The civil-from-days step follows Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
#[must_use]
pub fn format_utc(wall_us: u64) -> String {
    let seconds = wall_us / 1_000_000;
    let (days, second_of_day) = ((seconds / 86_400) as i64, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (h, m, s) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}Z")
}

/// The wall time of `YYYY-MM-DDTHH:MM:SSZ`, microseconds since the Unix epoch; `None` when it has another form.
#[must_use]
pub fn parse_utc(text: &str) -> Option<u64> {
    let form = b"0000-00-00T00:00:00Z";
    let fits =
        |(byte, form): (u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
    if text.len() != form.len() || !text.bytes().zip(form).all(fits) {
        return None;
    }
    let field = |from: usize, to: usize| text[from..to].parse::<u64>().ok();
    let (year, month, day) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let (hour, minute, second) = (field(11, 13)?, field(14, 16)?, field(17, 19)?);
    let is_time = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    if !is_time {
        return None;
    }
    let (year, month_shifted) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month_shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_is_read_as_it_was_written() {
        for days in (0..60_000u64).step_by(7) {
            let wall_us = (days * 86_400 + days % 86_400) * 1_000_000;
            assert_eq!(parse_utc(&format_utc(wall_us)), Some(wall_us), "{days}");
        }
        for wrong in [
            "",
            "2026-11-21",
            "2026-13-21T00:00:00Z",
            "2026-11-21T00:00:00",
            "x",
            "2026-11-21T00:00:00:and moreZ",
            "2026:11:21-00-00-00Z",
            "2026-11-21T00:00:+1Z",
            "2026-1-21T00:00:000Z",
        ] {
            assert_eq!(parse_utc(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn utc_is_formatted_as_the_calendar_says() {
        assert_eq!(format_utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_utc(951_782_400_000_000), "2000-02-29T00:00:00Z");
        assert_eq!(format_utc(1_795_305_599_000_000), "2026-11-21T23:59:59Z");
    }

    #[test]
    fn a_virtual_clock_moves_only_forward_and_is_shared() {
        let clock = VirtualClock::new();
        let other = clock.clone();
        clock.advance_to(5);
        clock.advance_to(3);
        assert_eq!(other.now_ns(), 5);
    }

    #[test]
    fn the_system_clock_does_not_go_back() {
        let first = now_ns();
        assert!(now_ns() >= first);
    }
}
