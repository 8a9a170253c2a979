//! Values of flags: one reader for each kind, with errors in plain words.

/// Reads a rate and returns requests per second: `1000`, `1000/s`, `1k`, `1.5M/s`, `90/m`, `100/h`.
///
/// # Errors
/// One line: what is wrong, and what to write.
pub fn rate(text: &str) -> Result<f64, String> {
    let wrong = |problem: &str| {
        format!("'{text}' {problem}; write requests per second, such as 1000, 1000/s or 1k")
    };
    let (number, span_s) = match text.trim().split_once('/') {
        None => (text.trim(), 1.0),
        Some((number, "s")) => (number, 1.0),
        Some((number, "m" | "min")) => (number, 60.0),
        Some((number, "h")) => (number, 3600.0),
        Some(_) => return Err(wrong("is not a rate per s, m or h")),
    };
    let (digits, scale) = match number.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => number.strip_suffix('M').map_or((number, 1.0), |digits| (digits, 1e6)),
    };
    let number = digits.trim_end().parse::<f64>().ok().filter(|number| number.is_finite());
    number.map(|number| number * scale / span_s).ok_or_else(|| wrong("is not a rate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, per_s) in [
            ("1000", 1000.0),
            ("1000/s", 1000.0),
            ("1k", 1000.0),
            ("2.5k/s", 2500.0),
            ("1M", 1e6),
            ("90/m", 1.5),
            ("90/min", 1.5),
            ("7200/h", 2.0),
            ("0.5", 0.5),
            ("-5", -5.0),
        ] {
            assert_eq!(rate(text), Ok(per_s), "{text}");
        }
        for wrong in ["", "x", "k", "1000/d", "1000/", "inf", "nan", "1kk", "/s"] {
            let error = rate(wrong).unwrap_err();
            assert!(error.contains("such as 1000, 1000/s or 1k"), "{wrong}: {error}");
        }
    }
}
