//! Keeping secrets in addresses out of whatever is written down.

use std::fmt::Write as _;
use std::sync::{PoisonError, RwLock};

/// Names of parameters whose values are left out, in any case.
const SECRET_PARAMETERS: [&str; 18] = [
    "access_token",
    "api-key",
    "api_key",
    "apikey",
    "auth_token",
    "client_secret",
    "id_token",
    "key",
    "passwd",
    "password",
    "private_token",
    "pwd",
    "refresh_token",
    "secret",
    "sig",
    "signature",
    "token",
    "x-api-key",
];

/// Parts of the names of headers whose values are left out.
const SECRET_HEADERS: [&str; 7] =
    ["authorization", "cookie", "token", "secret", "password", "api-key", "apikey"];

/// Returns true if the value of a header with this name must not be written down.
#[must_use]
pub fn is_secret_header(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    SECRET_HEADERS.iter().any(|part| lower.contains(part))
}

/// The replacement of a secret. It has no blank, so that an address stays one word.
const LEFT_OUT: &str = "***";

/// Shortest value that is left out wherever it stands. A shorter one occurs by chance in many words, and is left out where
/// it stands as a word of its own.
const ANYWHERE_BYTES_MIN: usize = 6;
/// Shortest beginning of a value at the end of a text that was cut.
const CUT_BYTES_MIN: usize = 4;

/// Values that this process has read from its environment and from files of headers, and as a target may write them.
static KEPT: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Remembers a value that no record may have: a target may repeat it in its replies.
pub fn remember(value: &str) {
    let value = value.trim();
    if value.is_empty() {
        return;
    }
    let mut kept = KEPT.write().unwrap_or_else(PoisonError::into_inner);
    for form in forms(value) {
        if !kept.contains(&form) {
            kept.push(form);
        }
    }
    // A value that holds another one is left out as a whole.
    kept.sort_by_key(|one| std::cmp::Reverse(one.len()));
}

/// Forgets every value: for a process that reads many foreign ones in turn, as a fuzzer does.
pub fn forget_all() {
    *KEPT.write().unwrap_or_else(PoisonError::into_inner) = Vec::new();
}

/// A value as it is, and as it stands in JSON, in HTML and in an address.
fn forms(value: &str) -> Vec<String> {
    let json = value.replace('\\', "\\\\").replace('"', "\\\"");
    let slashes = json.replace('/', "\\/");
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let html = html.replace('"', "&quot;");
    let mut percent = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                percent.push(char::from(byte));
            }
            _ => {
                let _ = write!(percent, "%{byte:02X}");
            }
        }
    }
    let plus = percent.replace("%20", "+");
    let mut forms = vec![value.to_owned(), json, slashes, html, percent, plus];
    forms.dedup();
    forms
}

/// A text of a target, such as its reply, with the remembered values left out; also one that the end of the text has cut.
#[must_use]
pub fn without_remembered(text: String) -> String {
    let kept = KEPT.read().unwrap_or_else(PoisonError::into_inner);
    without_values(text, &kept)
}

fn without_values(mut text: String, values: &[String]) -> String {
    for value in values {
        if value.len() < ANYWHERE_BYTES_MIN {
            text = without_word(text, value);
            continue;
        }
        if text.contains(value.as_str()) {
            text = text.replace(value.as_str(), LEFT_OUT);
        }
        let is_cut =
            |length: &usize| value.is_char_boundary(*length) && text.ends_with(&value[..*length]);
        if let Some(length) = (CUT_BYTES_MIN..value.len()).rev().find(is_cut) {
            text.truncate(text.len() - length);
            text.push_str(LEFT_OUT);
        }
    }
    text
}

/// The text without a short value where that is a word of its own, and no part of a longer one.
fn without_word(text: String, value: &str) -> String {
    if !text.contains(value) {
        return text;
    }
    // An edge of the value that is no letter or digit ends it by itself.
    let joins = |inner: Option<char>, outer: Option<char>| {
        inner.is_some_and(char::is_alphanumeric) && outer.is_some_and(char::is_alphanumeric)
    };
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, found) in text.match_indices(value) {
        let (before, after) = (&text[..at], &text[at + found.len()..]);
        let is_part = joins(value.chars().next(), before.chars().next_back())
            || joins(value.chars().next_back(), after.chars().next());
        if !is_part {
            out.push_str(&text[from..at]);
            out.push_str(LEFT_OUT);
            from = at + found.len();
        }
    }
    out + &text[from..]
}

/// The text with users and passwords in addresses (`http://user:password@host`) and the values of parameters
/// that commonly hold secrets (`?token=...`, also in the body of a form, and fields of JSON) left out.
///
/// Percent-encoded names and paths are not looked into.
#[must_use]
pub fn without_address_secrets(text: &str) -> String {
    without_fields(&without_parameters(&without_users(text)))
}

/// Names of headers that are fields of JSON where a target repeats its requests.
const HEADER_FIELDS: [&str; 5] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-auth-token"];

/// Names of [`SECRET_PARAMETERS`] that are words like others in JSON: the buckets of an aggregation have a `key`.
const PLAIN_FIELDS: [&str; 2] = ["key", "sig"];

/// The text with the values of JSON fields that commonly hold secrets left out, also where the JSON is a string of JSON.
fn without_fields(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        rest = after;
        if ends_with_secret_field(&before[..at]) {
            let blanks = after.len() - after.trim_start().len();
            let (kept, length) = secret_value(&after[blanks..]);
            out.push_str(&after[..blanks]);
            out.push_str(&kept);
            rest = &after[blanks + length..];
        }
    }
    out + rest
}

/// Returns true if a text ends with the quoted name of a field that commonly holds a secret.
fn ends_with_secret_field(text: &str) -> bool {
    let Some(text) = text.trim_end().strip_suffix('"') else { return false };
    let text = text.trim_end_matches('\\');
    let name = text.rfind('"').map_or("", |quote| &text[quote + 1..]);
    let is = |names: &[&str]| names.iter().any(|one| one.eq_ignore_ascii_case(name));
    is(&HEADER_FIELDS) || (is(&SECRET_PARAMETERS) && !is(&PLAIN_FIELDS))
}

/// The replacement of the JSON value that a text begins with, and the length of the value, bytes.
fn secret_value(text: &str) -> (String, usize) {
    let slashes = text.len() - text.trim_start_matches('\\').len();
    if text[slashes..].starts_with('"') {
        let quote = &text[..=slashes];
        let inner = &text[quote.len()..];
        let mut from = 0;
        // A quote with more backslashes before it belongs to the value.
        let end = loop {
            let Some(at) = inner[from..].find('"').map(|at| from + at) else { break None };
            let before = &inner[..at];
            if before.len() - before.trim_end_matches('\\').len() == slashes {
                break Some(at - slashes);
            }
            from = at + 1;
        };
        let length = end.map_or(text.len(), |end| quote.len() + end + quote.len());
        let close = if end.is_some() { quote } else { "" };
        return (format!("{quote}{LEFT_OUT}{close}"), length);
    }
    let end = text.find(|c: char| matches!(c, ',' | '}' | ']') || c.is_whitespace());
    let length = end.unwrap_or(text.len());
    match &text[..length] {
        "" | "null" => (text[..length].to_owned(), length),
        value if value.starts_with(['{', '[']) => (value[..1].to_owned(), 1),
        _ => (LEFT_OUT.to_owned(), length),
    }
}

/// Returns true if an address written inside other text ends here.
fn ends_address(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>')
}

fn without_users(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(|c| ends_address(c) || matches!(c, '/' | '?' | '#'));
        let authority = &after[..end.unwrap_or(after.len())];
        rest = after;
        if let Some(at) = authority.rfind('@') {
            out.push_str(LEFT_OUT);
            rest = &after[at..];
        }
    }
    out + rest
}

fn without_parameters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        if let Some(name_len) = secret_parameter(before, rest) {
            let (name, value) = rest.split_at(name_len + 1);
            let end = value.find(|c| ends_address(c) || matches!(c, '&' | '#'));
            out.push_str(name);
            out.push_str(LEFT_OUT);
            rest = &value[end.unwrap_or(value.len())..];
            before = Some('*');
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            before = Some(first);
        }
    }
    out
}

/// The length of the secret parameter's name that `text` begins with, when one can begin behind `before`.
fn secret_parameter(before: Option<char>, text: &str) -> Option<usize> {
    let in_query = matches!(before, None | Some('?' | '&' | ';'));
    if !in_query && !before.is_some_and(ends_address) {
        return None;
    }
    let longest = SECRET_PARAMETERS.iter().map(|name| name.len()).max().unwrap_or(0);
    let equals = text.bytes().take(longest + 1).position(|byte| byte == b'=')?;
    let name = &text.as_bytes()[..equals];
    // In running text, such as a condition of a query language, `key` is a word like others.
    let plain_word = !in_query && name.eq_ignore_ascii_case(b"key");
    let secret = SECRET_PARAMETERS.iter().any(|s| s.as_bytes().eq_ignore_ascii_case(name));
    (secret && !plain_word).then_some(equals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_left_out_whole_and_cut() {
        let values = ["hunter2".to_owned()];
        let of = |text: &str| without_values(text.to_owned(), &values);
        assert_eq!(of("sent hunter2, hunter2!"), "sent ***, ***!");
        assert_eq!(of("sent hunte"), "sent ***");
        assert_eq!(of("sent hun"), "sent hun");
        assert_eq!(of("sent é"), "sent é");
    }

    #[test]
    fn a_short_value_is_left_out_where_it_is_a_word_of_its_own() {
        let values = ["pw1".to_owned(), "7".to_owned(), "a-".to_owned()];
        let of = |text: &str| without_values(text.to_owned(), &values);
        assert_eq!(of("pw1"), "***");
        assert_eq!(of("sent pw1, \"pw1\" and X-Kind:pw1"), "sent ***, \"***\" and X-Kind:***");
        assert_eq!(of("pw12 xpw1 épw1"), "pw12 xpw1 épw1");
        assert_eq!(of("7 of 17 in 70 ms, code=7"), "*** of 17 in 70 ms, code=***");
        assert_eq!(of("a-b ba-"), "***b ba-");
    }

    #[test]
    fn a_value_is_known_as_json_html_and_addresses_have_it() {
        let forms = forms("a \"b\"/<c>");
        for form in [
            "a \"b\"/<c>",
            "a \\\"b\\\"/<c>",
            "a \\\"b\\\"\\/<c>",
            "a &quot;b&quot;/&lt;c&gt;",
            "a%20%22b%22%2F%3Cc%3E",
            "a+%22b%22%2F%3Cc%3E",
        ] {
            assert!(forms.iter().any(|one| one == form), "{form} is not in {forms:?}");
        }
        assert_eq!(super::forms("plain").len(), 1);
    }

    #[test]
    fn users_and_passwords_in_addresses_are_left_out() {
        for (text, shown) in [
            ("http://me:pw@host:1/x@y", "http://***@host:1/x@y"),
            (
                "GET http://a@b@h/ and https://c:d@[::1]:2?e",
                "GET http://***@h/ and https://***@[::1]:2?e",
            ),
            ("http://host/a@b", "http://host/a@b"),
            ("http://host?mail=a@b", "http://host?mail=a@b"),
            ("me@host", "me@host"),
            ("http://me:pw@", "http://***@"),
        ] {
            assert_eq!(without_address_secrets(text), shown);
        }
    }

    #[test]
    fn fields_of_json_that_hold_secrets_are_left_out() {
        for (text, shown) in [
            (r#"{"user":"me","password":"hunter2"}"#, r#"{"user":"me","password":"***"}"#),
            (r#"{"Token" : "a\"b", "n":1}"#, r#"{"Token" : "***", "n":1}"#),
            (r#""{\"password\":\"a b\",\"n\":1}""#, r#""{\"password\":\"***\",\"n\":1}""#),
            (r#"{"pwd": 12345, "secret":null}"#, r#"{"pwd": ***, "secret":null}"#),
            (r#"{"secret":"cut off he"#, r#"{"secret":"***"#),
            (r#"{"token":{"password":"x"}}"#, r#"{"token":{"password":"***"}}"#),
            (
                r#"{"buckets":[{"key":"a"}],"tokens":["x"]}"#,
                r#"{"buckets":[{"key":"a"}],"tokens":["x"]}"#,
            ),
            (
                r#"{"headers":{"Authorization":"Bearer x"}}"#,
                r#"{"headers":{"Authorization":"***"}}"#,
            ),
            ("password: \"x\"", "password: \"x\""),
            ("a:b", "a:b"),
        ] {
            assert_eq!(without_address_secrets(text), shown);
        }
    }

    #[test]
    fn parameters_that_hold_secrets_are_left_out() {
        for (text, shown) in [
            ("GET /a?token=abc&q=two", "GET /a?token=***&q=two"),
            ("GET /?q=1&API_KEY=a%20b#c", "GET /?q=1&API_KEY=***#c"),
            ("/?access_token=x;y&key=1&secret=", "/?access_token=***&key=***&secret=***"),
            ("POST /login password=hunter2&user=me", "POST /login password=***&user=me"),
            ("Location: http://h/?sig=é1 end", "Location: http://h/?sig=*** end"),
            ("GET /?tokens=3&monkey=4&keyword=5", "GET /?tokens=3&monkey=4&keyword=5"),
            ("POST / where key=5", "POST / where key=5"),
            ("GET /?ключ=1&token", "GET /?ключ=1&token"),
        ] {
            assert_eq!(without_address_secrets(text), shown);
        }
    }
}
