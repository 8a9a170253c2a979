//! Keeping secrets in addresses out of whatever is written down.

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

/// The replacement of a secret. It has no blank, so that an address stays one word.
const LEFT_OUT: &str = "***";

/// Shortest value that is left out. A shorter one occurs by chance in many texts.
const KEPT_BYTES_MIN: usize = 6;
/// Shortest beginning of a value at the end of a text that was cut.
const CUT_BYTES_MIN: usize = 4;

/// Values that this process has read from its environment and from files of headers.
static KEPT: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Remembers a value that no record may have: a target may repeat it in its replies.
pub fn remember(value: &str) {
    let value = value.trim();
    if value.len() < KEPT_BYTES_MIN {
        return;
    }
    let mut kept = KEPT.write().unwrap_or_else(PoisonError::into_inner);
    if !kept.iter().any(|one| one == value) {
        kept.push(value.to_owned());
        // A value that holds another one is left out as a whole.
        kept.sort_by_key(|one| std::cmp::Reverse(one.len()));
    }
}

/// A text of a target, such as its reply, with the remembered values left out; also one that the end of the text has cut.
#[must_use]
pub fn without_remembered(text: String) -> String {
    let kept = KEPT.read().unwrap_or_else(PoisonError::into_inner);
    without_values(text, &kept)
}

fn without_values(mut text: String, values: &[String]) -> String {
    for value in values {
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

/// The text with users and passwords in addresses (`http://user:password@host`) and the values of parameters
/// that commonly hold secrets (`?token=...`, also in the body of a form) left out.
///
/// Percent-encoded names, paths, and JSON are not looked into.
#[must_use]
pub fn without_address_secrets(text: &str) -> String {
    without_parameters(&without_users(text))
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
