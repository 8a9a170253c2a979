//! Reading foreign text: whole reports, long logs line by line, numbers with units, times of day.

use crate::error::ImportError;
use plimsoll_core::clock::parse_utc;
use serde_json::Value;
use std::io::{BufRead, Read};

/// Most bytes of a file that is read as a whole; longer are only logs, which are read line by line.
pub const WHOLE_BYTES_MAX: u64 = 64_000_000;
/// Most bytes of one line of a log: a reply body can be in it.
const LINE_BYTES_MAX: u64 = 64_000_000;

/// Reads a report as text. Bytes that are not UTF-8, colours and carriage returns are taken out.
///
/// # Errors
/// If it cannot be read, or is too large for a report.
pub fn whole(input: &mut dyn BufRead) -> Result<String, ImportError> {
    let mut bytes = Vec::new();
    input.take(WHOLE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > WHOLE_BYTES_MAX {
        return Err(ImportError::Form(format!(
            "larger than {} MB, which no report of this format is",
            WHOLE_BYTES_MAX / 1_000_000
        )));
    }
    Ok(plain(&String::from_utf8_lossy(&bytes)))
}

/// The text without colours. A progress bar ends its lines with carriage returns.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.peek() == Some(&'[') => {
                chars.next();
                while chars.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
                chars.next();
            }
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            c => out.push(c),
        }
    }
    out
}

/// Reads a whole JSON document.
///
/// # Errors
/// If it cannot be read or is not JSON; the error names the place.
pub fn whole_json(input: &mut dyn BufRead) -> Result<Value, ImportError> {
    let text = whole(input)?;
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
        ImportError::Form(format!("not whole JSON: {error}; the file is cut or damaged"))
    })
}

/// The lines of a log, one in memory at a time.
pub struct Lines<'a> {
    input: &'a mut dyn BufRead,
    line: Vec<u8>,
    /// Number of the line that was read last, from 1.
    pub number: u64,
    /// True if the line that was read last has its end.
    pub has_end: bool,
}

impl<'a> Lines<'a> {
    /// The lines of a file.
    pub fn new(input: &'a mut dyn BufRead) -> Self {
        Self { input, line: Vec::new(), number: 0, has_end: true }
    }

    /// The next line without its end; `None` after the last one.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is too long.
    pub fn next(&mut self) -> Result<Option<&[u8]>, ImportError> {
        self.line.clear();
        let read = (&mut *self.input).take(LINE_BYTES_MAX).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.has_end = self.line.last() == Some(&b'\n');
        if !self.has_end && read as u64 == LINE_BYTES_MAX {
            return Err(ImportError::line(self.number, "longer than 64 MB"));
        }
        while matches!(self.line.last(), Some(b'\n' | b'\r')) {
            self.line.pop();
        }
        Ok(Some(&self.line))
    }

    /// The next line as text.
    ///
    /// # Errors
    /// As [`Lines::next`], or if the line is not UTF-8.
    pub fn next_text(&mut self) -> Result<Option<&str>, ImportError> {
        let number = self.number + 1;
        match self.next()? {
            None => Ok(None),
            Some(line) => std::str::from_utf8(line)
                .map(Some)
                .map_err(|_| ImportError::line(number, "not text; the file is damaged")),
        }
    }
}

/// The note about a last line that was cut while it was written.
pub fn torn_note(line: u64) -> String {
    format!("line {line}, the last one, is cut and is left out")
}

/// The text after `label` in the first line that has it.
pub fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.split_once(label)?.1.trim()))
}

/// The text after `label` at the beginning of a line, blanks before it aside.
pub fn field<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.trim_start().strip_prefix(label)?.trim()))
}

/// The number at the beginning of a text, commas between thousands aside; finite and not negative.
pub fn number(text: &str) -> Option<f64> {
    let (value, _) = split_number(text)?;
    Some(value)
}

/// Largest count that is read: sums of many stay far below what a number holds, and no tool counts so far.
pub const COUNT_MAX: u64 = 1 << 50;

/// The whole number at the beginning of a text.
pub fn count(text: &str) -> Option<u64> {
    let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|count| *count <= COUNT_MAX)
}

/// A number and what follows it.
pub fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | '+' | '-');
    let mut end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    // `5e` would be a number and the letter of a unit.
    while end > 0 {
        if let Ok(value) = text[..end].parse::<f64>() {
            return (value.is_finite() && value >= 0.0).then_some((value, &text[end..]));
        }
        end -= 1;
    }
    None
}

/// A time with its unit, ms: `1.36ms`, `89.00us`, `361.65µs`, `2.00 secs`, `1m2.5s`.
pub fn time_ms(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut sum = None;
    while !rest.is_empty() {
        let (value, after) = split_number(rest)?;
        let after = after.trim_start();
        let end = after.find(|c: char| c.is_ascii_digit() || c.is_whitespace());
        let (unit, more) = after.split_at(end.unwrap_or(after.len()));
        let ms = match unit.trim_end_matches(',') {
            "ns" => 1e-6,
            "us" | "µs" | "μs" => 1e-3,
            "ms" => 1.0,
            "s" | "sec" | "secs" | "seconds" => 1e3,
            "m" | "min" => 6e4,
            "h" => 3.6e6,
            _ => return None,
        };
        *sum.get_or_insert(0.0) += value * ms;
        // Only Go's durations go on, and without a blank.
        if more.starts_with(char::is_whitespace) {
            break;
        }
        rest = more;
    }
    // A second and three decimals are so many milliseconds, and no more digits.
    sum.map(|ms| (ms * 1e9).round() / 1e9)
}

/// Bytes with their unit: `206.07MB`, `721.87KB`. Units of wrk and h2load are powers of 1024.
pub fn bytes(text: &str) -> Option<f64> {
    let (value, unit) = split_number(text)?;
    let unit: String = unit.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    let scale = match unit.as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KiB" => 1,
        "M" | "MB" | "MiB" => 2,
        "G" | "GB" | "GiB" => 3,
        "T" | "TB" | "TiB" => 4,
        _ => return None,
    };
    Some(value * 1024f64.powi(scale))
}

/// Nanoseconds since the Unix epoch of a time as in RFC 3339, with a fraction and any offset.
pub fn rfc3339_ns(text: &str) -> Option<u64> {
    let date = text.get(..19)?;
    let mut rest = text.get(19..)?;
    let mut fraction_ns = 0;
    if let Some(after) = rest.strip_prefix('.') {
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        let nine = format!("{digits:0<9}");
        fraction_ns = nine.get(..9)?.parse().ok()?;
        rest = after.get(digits.len()..)?;
    }
    let seconds = i64::try_from(parse_utc(&format!("{date}Z"))? / 1_000_000).ok()?;
    let offset_s = match rest.as_bytes().first()? {
        b'Z' | b'z' if rest.len() == 1 => 0,
        sign @ (b'+' | b'-') => {
            let (h, m) = rest.get(1..)?.split_once(':')?;
            let s = h.parse::<i64>().ok()? * 3_600 + m.parse::<i64>().ok()? * 60;
            if *sign == b'-' { -s } else { s }
        }
        _ => return None,
    };
    let ns = u64::try_from(seconds - offset_s).ok()?.checked_mul(1_000_000_000)?;
    ns.checked_add(fraction_ns)
}

/// A time in ms as whole nanoseconds; one that no histogram holds is taken for the largest.
pub fn ms_to_ns(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

/// A number of a JSON document, also one that is written as text.
pub fn json_number(value: Option<&Value>) -> Option<f64> {
    let number = match value? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|n| n.is_finite() && *n >= 0.0)
}

/// A count of a JSON document, also one that is written as text.
pub fn json_count(value: Option<&Value>) -> Option<u64> {
    json_number(value).map(|n| n.round() as u64).filter(|count| *count <= COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_units() {
        for (text, ms) in [
            ("1.36ms", 1.36),
            ("89.00us", 0.089),
            ("361.65µs", 0.361_65),
            ("2.0065 secs", 2_006.5),
            ("1m2.5s", 62_500.0),
            ("1.5s", 1_500.0),
            ("250ns", 0.000_25),
        ] {
            let read = time_ms(text).unwrap();
            assert!((read - ms).abs() < 1e-9, "{text}: {read}");
        }
        for wrong in ["", "fast", "3", "-1ms", "nanms"] {
            assert_eq!(time_ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_time_of_day_has_a_fraction_and_an_offset() {
        assert_eq!(rfc3339_ns("2026-11-25T09:46:41.14Z"), Some(1_795_600_001_140_000_000));
        assert_eq!(rfc3339_ns("2026-11-25T10:46:41.14+01:00"), Some(1_795_600_001_140_000_000));
        assert_eq!(rfc3339_ns("2026-11-25T09:46:41"), None);
    }

    #[test]
    fn colours_and_redrawn_lines_are_taken_out() {
        assert_eq!(plain("\u{1b}[32mok\u{1b}[0m\r\n10%\r20%"), "ok\n10%\n20%");
    }

    #[test]
    fn a_number_ends_where_its_unit_begins() {
        assert_eq!(split_number(" 4.39k"), Some((4.39, "k")));
        assert_eq!(split_number("1e3 x"), Some((1000.0, " x")));
        assert_eq!(split_number("nan"), None);
        assert_eq!(bytes("206.07MB"), Some(206.07 * 1_048_576.0));
    }
}
