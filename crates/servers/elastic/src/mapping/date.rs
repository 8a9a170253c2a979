//! Dates: milliseconds since 1970 in the index, ISO 8601 and a few other forms in documents.

/// The forms in which a date field takes its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Formats {
    /// `2020-01-31T10:00:00.000Z`, or any leading part of it.
    iso: bool,
    /// `2020-01-31 10:00:00`, or the day alone.
    spaced: bool,
    /// `2020/01/31 10:00:00`, or the day alone.
    slashed: bool,
    epoch_millis: bool,
    epoch_second: bool,
}

impl Default for Formats {
    fn default() -> Self {
        Self { iso: true, epoch_millis: true, ..Self::NONE }
    }
}

/// The way [`Formats::default`] is written.
pub(crate) const DEFAULT: &str = "strict_date_optional_time||epoch_millis";
/// The format of a field that dynamic mapping makes of a date with slashes.
const SLASHED: &str = "yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis";

impl Formats {
    const NONE: Self = Self {
        iso: false,
        spaced: false,
        slashed: false,
        epoch_millis: false,
        epoch_second: false,
    };
    /// Every form there is.
    pub(crate) const ANY: Self =
        Self { iso: true, spaced: true, slashed: true, epoch_millis: true, epoch_second: false };

    /// Reads `a||b`; nothing when a form is not known here.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut formats = Self::NONE;
        for name in text.split("||") {
            match name.strip_prefix("strict_").unwrap_or(name) {
                "epoch_millis" => formats.epoch_millis = true,
                "epoch_second" => formats.epoch_second = true,
                "date_optional_time"
                | "date"
                | "date_time"
                | "date_time_no_millis"
                | "date_hour_minute_second"
                | "year"
                | "year_month"
                | "year_month_day"
                | "yyyy-MM-dd"
                | "yyyy-MM-dd'T'HH:mm:ss"
                | "yyyy-MM-dd'T'HH:mm:ssZ"
                | "yyyy-MM-dd'T'HH:mm:ssX"
                | "yyyy-MM-dd'T'HH:mm:ss.SSSZ" => formats.iso = true,
                "yyyy-MM-dd HH:mm:ss" | "yyyy-MM-dd HH:mm:ss.SSS" => formats.spaced = true,
                "yyyy/MM/dd" | "yyyy/MM/dd HH:mm:ss" => formats.slashed = true,
                _ => return None,
            }
        }
        Some(formats)
    }

    /// Returns the date of a text. Missing fields are as early as possible; with `late`, so is the time
    /// of the day, but not the month and the day of it: Elasticsearch has it so.
    pub(crate) fn read(self, text: &str, late: bool) -> Option<i64> {
        let written = [(self.iso, '-', 'T'), (self.spaced, '-', ' '), (self.slashed, '/', ' ')];
        let mut written = written.into_iter().filter(|(taken, ..)| *taken);
        let date = written
            .find_map(|(_, between, before_time)| calendar(text, late, between, before_time));
        date.or_else(|| self.epoch(text.parse().ok()?))
    }

    /// The date that a number says: four digits are a year, where years are read.
    pub(crate) fn number(self, number: i64) -> Option<i64> {
        if self.iso && (1000..=9999).contains(&number) {
            return self.read(&number.to_string(), false);
        }
        self.epoch(number)
    }

    fn epoch(self, number: i64) -> Option<i64> {
        match (self.epoch_millis, self.epoch_second) {
            (true, _) => Some(number),
            (false, true) => number.checked_mul(1000),
            (false, false) => None,
        }
    }
}

/// The format of the field that dynamic mapping makes of a text, if it takes it for a date.
pub(crate) fn detected(text: &str) -> Option<&'static str> {
    let (formats, name) = match text.as_bytes().get(4)? {
        b'-' => (Formats { iso: true, ..Formats::NONE }, DEFAULT),
        b'/' => (Formats { slashed: true, ..Formats::NONE }, SLASHED),
        _ => return None,
    };
    formats.read(text, false).map(|_| name)
}

const DAY_MS: i64 = 86_400_000;
/// Milliseconds of 64 bits go a little further.
const MAX_YEAR: i64 = 292_000_000;

/// Days since 1970 of a date of the Gregorian calendar (Howard Hinnant's `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn month_length(year: i64, month: i64) -> i64 {
    let next = if month == 12 { days(year + 1, 1, 1) } else { days(year, month + 1, 1) };
    next - days(year, month, 1)
}

/// Takes a number of this many digits off the front.
fn digits(text: &mut &str, length: usize) -> Option<i64> {
    let (number, rest) = text.split_at_checked(length)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    *text = rest;
    number.parse().ok()
}

/// A date of the calendar. One with `T` before its time may end anywhere; any other has a day.
fn calendar(text: &str, late: bool, between: char, before_time: char) -> Option<i64> {
    let mut rest = text;
    let year = digits(&mut rest, 4)?;
    let mut parts = [None; 5];
    let marks = [between, between, before_time, ':', ':'];
    for (part, mark) in parts.iter_mut().zip(marks) {
        match rest.strip_prefix(mark) {
            Some(after) if !after.is_empty() => {
                rest = after;
                *part = Some(digits(&mut rest, 2)?);
            }
            Some(_) if mark == 'T' => rest = "",
            Some(_) => return None,
            None => break,
        }
    }
    if before_time != 'T' && parts[1].is_none() {
        return None;
    }
    let mut millis = None;
    if parts[4].is_some()
        && let Some(after) = rest.strip_prefix(['.', ','])
    {
        let length = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let padded = format!("{:0<3}", &after[..length]);
        millis = Some(padded.get(..3)?.parse::<i64>().ok().filter(|_| (1..=9).contains(&length))?);
        rest = &after[length..];
    }
    let offset = if parts[2].is_some() { zone(rest)? } else { rest.is_empty().then_some(0)? };
    let [month, day, hour, minute, second] = parts;
    let month = month.unwrap_or(1);
    if !(1..=12).contains(&month) {
        return None;
    }
    let length = month_length(year, month);
    let day = day.unwrap_or(1);
    let or = |part: Option<i64>, last: i64| part.unwrap_or(if late { last } else { 0 });
    let (hour, minute, second) = (or(hour, 23), or(minute, 59), or(second, 59));
    if !(1..=length).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = hour * 3600 + minute * 60 + second - offset * 60;
    Some(days(year, month, day) * DAY_MS + seconds * 1000 + or(millis, 999))
}

/// Minutes east of Greenwich.
fn zone(text: &str) -> Option<i64> {
    if text.is_empty() || text == "Z" {
        return Some(0);
    }
    let (sign, mut rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let hours = digits(&mut rest, 2)?;
    rest = rest.strip_prefix(':').unwrap_or(rest);
    let minutes = if rest.is_empty() { 0 } else { digits(&mut rest, 2)? };
    rest.is_empty().then_some(sign * (hours * 60 + minutes))
}

/// Reads `now`, `now-1d`, `2020-01-01||+1M/d` and plain dates. Rounding goes down, or to the last
/// moment when the date is to be late.
pub(crate) fn math(text: &str, formats: Formats, late: bool, now_ms: i64) -> Option<i64> {
    let (base, steps) = match text.strip_prefix("now") {
        Some(steps) => (now_ms, steps),
        None => match text.split_once("||") {
            Some((date, steps)) => (formats.read(date, false)?, steps),
            None => return formats.read(text, late),
        },
    };
    let (mut at, mut rest) = (base, steps);
    while let Some(sign) = rest.chars().next() {
        rest = &rest[sign.len_utf8()..];
        if sign == '/' {
            let unit = rest.chars().next()?;
            rest = &rest[unit.len_utf8()..];
            let start = floor(at, unit)?;
            at = if late { step(start, 1, unit)? - 1 } else { start };
            continue;
        }
        let length = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: i64 = if length == 0 { 1 } else { rest[..length].parse().ok()? };
        let unit = rest[length..].chars().next()?;
        rest = &rest[length + unit.len_utf8()..];
        at = match sign {
            '+' => step(at, count, unit)?,
            '-' => step(at, -count, unit)?,
            _ => return None,
        };
    }
    Some(at)
}

/// Year, month from 1, day from 1 (Howard Hinnant's `civil_from_days`).
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * from_march + 2) / 5 + 1)
}

fn step(at: i64, count: i64, unit: char) -> Option<i64> {
    let ms = match unit {
        's' => 1000,
        'm' => 60_000,
        'h' | 'H' => 3_600_000,
        'd' => DAY_MS,
        'w' => 7 * DAY_MS,
        'M' | 'y' => {
            let (year, month, day) = civil(at.div_euclid(DAY_MS));
            let months = if unit == 'y' { count.checked_mul(12)? } else { count };
            let total = (year * 12 + month - 1).checked_add(months)?;
            let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
            if year.abs() > MAX_YEAR {
                return None;
            }
            let day = day.min(month_length(year, month));
            return Some(days(year, month, day) * DAY_MS + at.rem_euclid(DAY_MS));
        }
        _ => return None,
    };
    at.checked_add(count.checked_mul(ms)?)
}

fn floor(at: i64, unit: char) -> Option<i64> {
    let ms = match unit {
        's' => 1000,
        'm' => 60_000,
        'h' | 'H' => 3_600_000,
        'd' => DAY_MS,
        // Weeks begin on Mondays; the first of 1970 was a Thursday.
        'w' => {
            let week = 7 * DAY_MS;
            let monday = at.checked_add(3 * DAY_MS)?.div_euclid(week);
            return monday.checked_mul(week)?.checked_sub(3 * DAY_MS);
        }
        'M' | 'y' => {
            let (year, month, _) = civil(at.div_euclid(DAY_MS));
            return days(year, if unit == 'y' { 1 } else { month }, 1).checked_mul(DAY_MS);
        }
        _ => return None,
    };
    at.div_euclid(ms).checked_mul(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_of_the_calendar_are_each_others() {
        let near = (-800_000..800_000).step_by(17);
        for day in near.chain([-100_000_000_000, 100_000_000_000, -719_469, 59, 60]) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), day);
            assert!(
                (1..=12).contains(&month) && (1..=month_length(year, month)).contains(&of_month)
            );
        }
    }

    #[test]
    fn steps_from_a_far_year_take_no_longer_than_from_a_near_one() {
        // With a walk over the years, each step takes some hundred thousand.
        let text = format!("now+290000000y{}", "/M+1M".repeat(20_000));
        assert!(math(&text, Formats::ANY, false, 0).is_some());
    }

    #[test]
    fn dates_are_read() {
        let read = |text, late| Formats::default().read(text, late);
        assert_eq!(read("1970-01-01", false), Some(0));
        assert_eq!(read("2000-03-01T00:00:00Z", false), Some(951_868_800_000));
        assert_eq!(read("2020-02-29T12:30:01.25+01:30", false), Some(1_582_974_001_250));
        // The first day of what is left out, and its last moment.
        assert_eq!(read("1970", true), Some(DAY_MS - 1));
        assert_eq!(read("1970-02", true), Some(32 * DAY_MS - 1));
        assert_eq!(read("1970-01-01", true), Some(DAY_MS - 1));
        assert_eq!(read("1234567890123", false), Some(1_234_567_890_123));
        assert_eq!(read("-123", false), Some(-123));
        assert_eq!(read("1971", false), Some(365 * DAY_MS));
        assert_eq!(Formats::default().number(1971), Some(365 * DAY_MS));
        assert_eq!(Formats::default().number(19_710), Some(19_710));
        for bad in [
            "",
            "x",
            "2020-13-01",
            "2020-02-30",
            "2020-01-01T25",
            "2020-1-1",
            "2020-",
            "2020/01/01",
            "2020-01-01 10:00:00",
        ] {
            assert_eq!(read(bad, false), None, "{bad}");
        }
        let day = |text| math(text, Formats::default(), false, 40 * DAY_MS + 5).unwrap();
        assert_eq!(day("now-1d"), 39 * DAY_MS + 5);
        assert_eq!(day("now/d"), 40 * DAY_MS);
        assert_eq!(day("now/M"), 31 * DAY_MS);
        assert_eq!(day("1970-01-31||+1M"), 58 * DAY_MS);
        assert_eq!(math("1970-01-01||/M", Formats::default(), true, 0), Some(31 * DAY_MS - 1));
        assert_eq!(math("now*2", Formats::default(), true, 0), None);
        // What is beyond all dates is none.
        for base in ["now", "9223372036854775807||", "-9223372036854775808||"] {
            for unit in ["s", "m", "h", "d", "w", "M", "y"] {
                for steps in ["/", "+9223372036854775807", "-9223372036854775807", "+999999999"] {
                    for late in [true, false] {
                        let _ = math(&format!("{base}{steps}{unit}"), Formats::default(), late, 5);
                    }
                }
            }
        }
        assert_eq!(math("now+999999999y", Formats::default(), false, 0), None);
        assert_eq!(math("9223372036854775807||/y", Formats::default(), true, 0), None);
    }

    #[test]
    fn dates_are_read_in_the_forms_of_their_field_only() {
        let slashed = Formats::parse("yyyy/MM/dd HH:mm:ss||yyyy/MM/dd").unwrap();
        assert_eq!(slashed.read("1970/01/02", false), Some(DAY_MS));
        assert_eq!(slashed.read("1970/01/02 00:00:01", false), Some(DAY_MS + 1000));
        let spaced = Formats::parse("yyyy-MM-dd HH:mm:ss").unwrap();
        assert_eq!(spaced.read("1970-01-02 00:00:01", false), Some(DAY_MS + 1000));
        for (formats, bad) in [
            (slashed, "1970-01-02"),
            (slashed, "1970"),
            (slashed, "86400000"),
            (spaced, "1970-01-02T00:00:01"),
            (spaced, "1970/01/02 00:00:01"),
        ] {
            assert_eq!(formats.read(bad, false), None, "{bad}");
        }
        assert_eq!(slashed.number(86_400_000), None);
        assert_eq!(detected("2020-01"), Some(DEFAULT));
        assert_eq!(detected("2020-01-01T10:00:00Z"), Some(DEFAULT));
        assert_eq!(detected("2020/01/31 10:00:00"), Some(SLASHED));
        for text in ["2020", "2020-01-01 10:00:00", "2020/01", "2020-1-1", "word", "12345678"] {
            assert_eq!(detected(text), None, "{text}");
        }
    }
}
