//! Form of a streamed visit that the client prefers.

use hyper::header::{ACCEPT, HeaderMap};

/// Returns true if the `Accept` headers prefer JSON lines to JSON; with equal weight lines win, and
/// without any header JSON does.
///
/// # Errors
/// When a header cannot be read.
pub(super) fn prefers_lines(headers: &HeaderMap) -> Result<bool, String> {
    let mut json: Option<(u8, u32)> = None;
    let mut lines: Option<(u8, u32)> = None;
    for value in headers.get_all(ACCEPT) {
        let text = value.to_str().map_err(|_| "Failed parsing the Accept header".to_owned())?;
        for range in text.split(',').map(str::trim).filter(|range| !range.is_empty()) {
            let bad = || format!("Failed parsing '{range}' in the Accept header");
            let (kind, weight) = media_range(range).ok_or_else(bad)?;
            match kind.as_str() {
                "application/jsonl" => improve(&mut lines, (2, weight)),
                "application/json" => improve(&mut json, (2, weight)),
                "application/*" => improve(&mut json, (1, weight)),
                "*/*" => improve(&mut json, (0, weight)),
                _ => {}
            }
        }
    }
    let json = json.map_or(0, |(_, weight)| weight);
    Ok(lines.is_some_and(|(_, weight)| weight > 0 && weight >= json))
}

/// The most specific range counts.
fn improve(best: &mut Option<(u8, u32)>, with: (u8, u32)) {
    if best.is_none_or(|best| best.0 <= with.0) {
        *best = Some(with);
    }
}

/// The type in lower case, and its weight in thousandths.
fn media_range(range: &str) -> Option<(String, u32)> {
    let mut parts = range.split(';').map(str::trim);
    let kind = parts.next()?.to_ascii_lowercase();
    let (left, right) = kind.split_once('/')?;
    let token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-*".contains(&b))
    };
    if !token(left) || !token(right) {
        return None;
    }
    let mut weight = 1000;
    for part in parts {
        let (name, value) = part.split_once('=')?;
        if name.trim().eq_ignore_ascii_case("q") {
            let q: f64 = value.trim().parse().ok()?;
            if !(0.0..=1.0).contains(&q) {
                return None;
            }
            weight = (q * 1000.0).round() as u32;
        }
    }
    Some((kind, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefers(values: &[&str]) -> Result<bool, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, value.parse().unwrap());
        }
        prefers_lines(&headers)
    }

    #[test]
    fn lines_are_sent_to_those_who_want_them() {
        assert_eq!(prefers(&[]), Ok(false));
        assert_eq!(prefers(&["application/json, application/jsonl"]), Ok(true));
        assert_eq!(prefers(&["application/json", "application/jsonl"]), Ok(true));
        assert_eq!(prefers(&["application/jsonl;q=0.5, application/json"]), Ok(false));
        assert_eq!(prefers(&["application/jsonl;q=0.5, application/json;q=0.2"]), Ok(true));
        assert_eq!(prefers(&["APPLICATION/JSONL"]), Ok(true));
        assert_eq!(prefers(&["application/jsonl;q=0"]), Ok(false));
        assert_eq!(prefers(&["*/*"]), Ok(false));
        assert_eq!(prefers(&["application/jsonl;q=0.9, */*"]), Ok(false));
        assert!(prefers(&["nonsense"]).is_err());
        assert!(prefers(&["application/json;q=7"]).is_err());
    }
}
