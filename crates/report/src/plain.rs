//! Making foreign text safe to keep and to print: requests and replies come from elsewhere.

use percent_encoding::percent_decode_str;
use plimsoll_core::secrets::without_address_secrets;
use std::fmt::Write as _;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Header fields whose values are left out of records and reports.
const SECRET_FIELDS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
];

/// The text with the values of header lines that carry secrets left out, and with
/// [secrets in addresses](without_address_secrets) left out.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    let clean = |line: &str| match line.split_once(':') {
        Some((name, _)) if is_secret(name) => {
            let end = if line.ends_with('\r') { "\r" } else { "" };
            format!("{name}: (left out){end}")
        }
        _ => without_address_secrets(line),
    };
    text.split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

fn is_secret(field: &str) -> bool {
    SECRET_FIELDS.iter().any(|secret| field.trim().eq_ignore_ascii_case(secret))
}

/// Distinguishing part of a request, for a column that has no room for all of it.
///
/// A search by URL or by a JSON body is shown by its query: the `where` of YQL, or the words of `query` or `q`.
/// Anything else is shown as it is, with its percent-encoding undone.
#[must_use]
pub fn heart_of_request(text: &str) -> String {
    let decoded =
        |part: &str| percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
    let parameters = text.split_once('?').map_or("", |(_, query)| query);
    let parameters = parameters.split(' ').next().unwrap_or("");
    for name in ["yql=", "query=", "q="] {
        if let Some(value) = parameters.split('&').find_map(|p| p.strip_prefix(name)) {
            return after_where(&decoded(value)).to_owned();
        }
    }
    if text.contains("\"yql\"") {
        return after_where(text).to_owned();
    }
    decoded(text)
}

/// The condition of a YQL query; the whole text when it has none.
fn after_where(text: &str) -> &str {
    text.find(" where ").map_or(text, |at| &text[at + 1..])
}

/// Columns that the text takes on a terminal: a wide character takes two, a combining one none.
#[must_use]
pub fn columns_of(text: &str) -> usize {
    text.width()
}

/// The beginning of the text in at most `columns_max` columns, the last three dots when something was cut.
#[must_use]
pub fn clip(text: &str, columns_max: usize) -> String {
    if columns_of(text) <= columns_max {
        return text.to_owned();
    }
    let room = columns_max.saturating_sub(3);
    let mut taken = 0;
    let fits = |c: &char| {
        taken += c.width().unwrap_or(0);
        taken <= room
    };
    let kept: String = text.chars().take_while(fits).collect();
    kept + &"..."[..columns_max.min(3)]
}

/// Returns true for a mark that changes the direction of a text.
#[must_use]
pub fn reorders(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text on one line, with everything that could steer a terminal written as an escape.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Marks that reorder text can make a request read as another one.
            c if reorders(c) => {
                let _ = write!(out, "{}", c.escape_unicode());
            }
            c if c.is_control() => {
                let _ = write!(out, "{}", c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_and_the_rest_stays() {
        let text = "GET http://me:pw@h/?authorization=no&token=abc HTTP/1.1\r\n\
                    Authorization: Bearer abc\r\nCOOKIE: s=1\nAccept: */*\r\n";
        let clean = without_secrets(text);
        assert_eq!(
            clean,
            "GET http://***@h/?authorization=no&token=*** HTTP/1.1\r\n\
             Authorization: (left out)\r\nCOOKIE: (left out)\nAccept: */*\r\n"
        );
    }

    #[test]
    fn a_search_is_shown_by_what_it_asks() {
        let get =
            "GET /search/?hits=10&yql=select%20*%20from%20doc%20where%20title%20contains+%22a%22";
        assert_eq!(heart_of_request(get), "where title contains \"a\"");
        assert_eq!(heart_of_request("GET /search/?query=two+words&hits=3"), "two words");
        let post = "POST /search/ {\"yql\":\"select * from doc where true\"}";
        assert_eq!(heart_of_request(post), "where true\"}");
        assert_eq!(heart_of_request("GET /a%20b?c=d"), "GET /a b?c=d");
    }

    #[test]
    fn clipping_counts_columns_not_bytes() {
        assert_eq!(clip("åäö", 3), "åäö");
        assert_eq!(clip("åäöåäö", 5), "åä...");
        assert_eq!(clip("abcdef", 2), "..");
        assert_eq!(
            (clip("日本語", 6).as_str(), clip("日本語日本", 7).as_str()),
            ("日本語", "日本...")
        );
    }

    #[test]
    fn a_request_cannot_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\nc\u{202e}d"), "a\\u{1b}[2Jb\\nc\\u{202e}d");
    }
}
