//! Numbers written as text, as Java reads them.

/// A real number. Infinities and not-a-number have one spelling each, and a number may end
/// with the letter of its type.
pub(super) fn real(text: &str) -> Option<f64> {
    plain(text)?.parse().ok()
}

/// As [`real`], rounded once.
pub(super) fn single(text: &str) -> Option<f32> {
    plain(text)?.parse().ok()
}

/// The text without what Rust's own reader does not know; nothing where it knows more than Java.
fn plain(text: &str) -> Option<&str> {
    let text = text.trim_matches(|c: char| c <= ' ');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, "Infinity" | "NaN") {
        return Some(text);
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    Some(text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_java() {
        for (text, expected) in [
            ("5", 5.0),
            (" 5 ", 5.0),
            ("+5.5", 5.5),
            ("-.5", -0.5),
            ("5f", 5.0),
            ("5D", 5.0),
            ("1e400", f64::INFINITY),
            ("Infinity", f64::INFINITY),
            ("+Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(real(text), Some(expected), "{text}");
            assert_eq!(single(text), Some(expected as f32), "{text}");
        }
        assert!(real("NaN").is_some_and(f64::is_nan));
        for text in
            ["", " ", "inf", "-inf", "infinity", "nan", "INFINITY", "true", "5 5", "0x5", "5ff"]
        {
            assert_eq!(real(text), None, "{text}");
        }
    }
}
