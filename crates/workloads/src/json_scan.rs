//! Finds the value of a JSON pointer in a reply without building a tree.
//!
//! Checks look at one or two values of a reply that may hold a thousand hits, so the scanner stops
//! at the value and skips what lies before it by looking only at quotes and brackets. It does not
//! validate what it skips: on text that is not JSON the answer is "not found" or some slice of it.
//! Of keys that occur twice in one object it takes the first.

use crate::json_skip::container_length;

/// A JSON pointer (RFC 6901), parsed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    key: String,
    /// The token as an array index, if it is one: digits without a leading zero.
    index: Option<usize>,
}

impl Pointer {
    /// Reads a pointer: empty for the whole text, else it starts with `/`; `~1` is `/` and `~0` is
    /// `~`. `None` if it is neither, or another `~` stands in it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut tokens = Vec::new();
        if !text.is_empty() {
            for part in text.strip_prefix('/')?.split('/') {
                let key = part.replace("~1", "/").replace("~0", "~");
                let escapes = part.matches("~0").count() + part.matches("~1").count();
                if part.matches('~').count() != escapes {
                    return None;
                }
                let digits = part.bytes().all(|b| b.is_ascii_digit());
                let index = (digits && (part == "0" || !part.starts_with('0')))
                    .then(|| part.parse().ok())
                    .flatten();
                tokens.push(Token { key, index });
            }
        }
        Some(Self { text: text.to_owned(), tokens })
    }

    /// The pointer as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text of the value the pointer leads to.
    #[must_use]
    pub fn find<'a>(&self, json: &'a [u8]) -> Option<&'a [u8]> {
        let mut scan = Scanner { json, at: 0 };
        scan.enter(&self.tokens)?;
        let start = scan.at;
        scan.skip_value()?;
        // Inside of an object or array something follows a number: one at the end of the text was cut, and may be longer.
        let cut = scan.at == json.len() && !self.tokens.is_empty() && !ends_by_itself(json[start]);
        (!cut).then(|| &json[start..scan.at])
    }

    /// Returns true if the pointer leads to a value, of which only the first byte is looked at.
    #[must_use]
    pub fn leads_into(&self, json: &[u8]) -> bool {
        let mut scan = Scanner { json, at: 0 };
        scan.enter(&self.tokens).is_some() && scan.byte().is_some_and(|b| !b"}],:".contains(&b))
    }
}

/// The members of an object: each key, with its quotes and as it is written, and its value. A value that is not an object has none, and
/// behind a place that is not JSON there are no more.
pub fn members(json: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut scan = Scanner { json, at: 0 };
    let mut left = scan.begin(b'{');
    std::iter::from_fn(move || {
        left.take()?;
        scan.blanks();
        let key_at = scan.at;
        if scan.byte()? != b'"' {
            return None;
        }
        scan.skip_string()?;
        let key = &json[key_at..scan.at];
        scan.blanks();
        if scan.byte()? != b':' {
            return None;
        }
        scan.at += 1;
        let value = scan.value()?;
        left = scan.comma();
        Some((key, value))
    })
}

/// The elements of an array, in the same way.
pub fn elements(json: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut scan = Scanner { json, at: 0 };
    let mut left = scan.begin(b'[');
    std::iter::from_fn(move || {
        left.take()?;
        let value = scan.value()?;
        left = scan.comma();
        Some(value)
    })
}

/// Returns true if the end of a value that begins so can be seen from itself: of texts, objects and arrays.
fn ends_by_itself(first: u8) -> bool {
    matches!(first, b'"' | b'{' | b'[')
}

/// The number that a value's text is, if it is one.
#[must_use]
pub fn number(value: &[u8]) -> Option<f64> {
    let first = *value.first()?;
    // Rust's parser also takes "inf" and "+1", which JSON does not.
    if first != b'-' && !first.is_ascii_digit() {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok().filter(|n: &f64| n.is_finite())
}

/// The whole number from 0 that a value's text is, if it is one.
#[must_use]
pub fn unsigned(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    if digits { std::str::from_utf8(value).ok()?.parse().ok() } else { None }
}

struct Scanner<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Into a container that begins with `bracket`.
    fn begin(&mut self, bracket: u8) -> Option<()> {
        self.blanks();
        (self.byte()? == bracket).then(|| self.at += 1)
    }

    /// The next value.
    fn value(&mut self) -> Option<&'a [u8]> {
        self.blanks();
        let start = self.at;
        self.skip_value()?;
        Some(&self.json[start..self.at])
    }

    /// Over the comma that another item follows.
    fn comma(&mut self) -> Option<()> {
        self.blanks();
        (self.byte()? == b',').then(|| self.at += 1)
    }

    fn byte(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
    }

    /// To the first byte of the value that the tokens lead to.
    fn enter(&mut self, tokens: &[Token]) -> Option<()> {
        for token in tokens {
            self.blanks();
            match self.byte()? {
                b'{' => self.enter_member(&token.key)?,
                b'[' => self.enter_element(token.index?)?,
                _ => return None,
            }
        }
        self.blanks();
        Some(())
    }

    /// From `{` to the value of `key`.
    fn enter_member(&mut self, key: &str) -> Option<()> {
        self.at += 1;
        loop {
            self.blanks();
            if self.byte()? != b'"' {
                return None;
            }
            let start = self.at;
            self.skip_string()?;
            let found = key_is(&self.json[start..self.at], key);
            self.blanks();
            if self.byte()? != b':' {
                return None;
            }
            self.at += 1;
            self.blanks();
            if found {
                return Some(());
            }
            self.next_item()?;
        }
    }

    /// From `[` to the element at `index`.
    fn enter_element(&mut self, index: usize) -> Option<()> {
        self.at += 1;
        self.blanks();
        for _ in 0..index {
            self.next_item()?;
            self.blanks();
        }
        (self.byte()? != b']').then_some(())
    }

    /// Over a value and the comma after it.
    fn next_item(&mut self) -> Option<()> {
        self.skip_value()?;
        self.blanks();
        if self.byte()? != b',' {
            return None;
        }
        self.at += 1;
        Some(())
    }

    fn skip_value(&mut self) -> Option<()> {
        match self.byte()? {
            b'"' => self.skip_string(),
            b'{' | b'[' => self.skip_container(),
            b'}' | b']' | b',' | b':' => None,
            _ => {
                let rest = &self.json[self.at..];
                let end = rest.iter().position(|b| b",]} \n\r\t".contains(b));
                self.at += end.unwrap_or(rest.len());
                Some(())
            }
        }
    }

    fn skip_string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            let found = memchr::memchr2(b'"', b'\\', self.json.get(self.at..)?)?;
            self.at += found + 1;
            if self.json[self.at - 1] == b'"' {
                return Some(());
            }
            self.at += 1;
        }
    }

    fn skip_container(&mut self) -> Option<()> {
        self.at += container_length(&self.json[self.at..])?;
        Some(())
    }
}

/// Compares a quoted key with a plain one; only a key with escapes needs to be decoded.
fn key_is(quoted: &[u8], key: &str) -> bool {
    let raw = &quoted[1..quoted.len() - 1];
    if memchr::memchr(b'\\', raw).is_none() {
        return raw == key.as_bytes();
    }
    serde_json::from_slice::<String>(quoted).is_ok_and(|decoded| decoded == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn find(json: &str, pointer: &str) -> Option<String> {
        let found = Pointer::parse(pointer).unwrap().find(json.as_bytes())?;
        Some(String::from_utf8(found.to_vec()).unwrap())
    }

    #[test]
    fn finds_what_a_reply_of_a_search_holds() {
        let reply = r#"{"timing":{"a":[1,{"b":"]}"}]},"root":{
            "id":"x","fields":{ "totalCount" : 42 },
            "coverage":{"full":true},"children":[{"id":"a\"b"},{"id":"c"}]}}"#;
        assert_eq!(find(reply, "/root/fields/totalCount").unwrap(), "42");
        assert_eq!(find(reply, "/root/coverage/full").unwrap(), "true");
        assert_eq!(find(reply, "/root/children/1/id").unwrap(), "\"c\"");
        assert_eq!(find(reply, "/root/errors"), None);
        assert_eq!(find(reply, "/root/children/2"), None);
        assert_eq!(find(reply, "/root/children/01"), None);
        assert_eq!(find(reply, "/root/id/x"), None);
    }

    #[test]
    fn walks_over_members_and_elements() {
        let text = |slice: &[u8]| String::from_utf8(slice.to_vec()).unwrap();
        let of = |json: &str| -> Vec<(String, String)> {
            members(json.as_bytes()).map(|(key, value)| (text(key), text(value))).collect()
        };
        let told = [("\"a\"", "1"), ("\"b\"", "[2, {}]"), ("\"c\"", "\"}\"")];
        let told = told.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(of(r#" { "a" : 1 , "b":[2, {}],"c":"}" } "#), told);
        assert_eq!(of(r#"{"a":1,"b":[2, {}"#), told[..1]);
        for none in ["", "{}", "[1]", "x", "{\"a\"", "{\"a\":}", "{1:2}"] {
            assert_eq!(of(none), [], "{none}");
        }
        let items = |json: &str| -> Vec<String> { elements(json.as_bytes()).map(text).collect() };
        assert_eq!(items(r#"[1, "a]", {"b":[]} ]"#), ["1", "\"a]\"", "{\"b\":[]}"]);
        for none in ["", "[]", "[ ]", "{\"a\":1}", "[,", "]"] {
            assert_eq!(items(none), [""; 0], "{none}");
        }
    }

    #[test]
    fn escaped_keys_and_pointers_meet() {
        assert_eq!(find(r#"{"a/b":1,"m~n":2,"\u00e9":3,"":4}"#, "/a~1b").unwrap(), "1");
        assert_eq!(find(r#"{"a/b":1,"m~n":2,"\u00e9":3,"":4}"#, "/m~0n").unwrap(), "2");
        assert_eq!(find(r#"{"a/b":1,"m~n":2,"\u00e9":3,"":4}"#, "/é").unwrap(), "3");
        assert_eq!(find(r#"{"a/b":1,"m~n":2,"\u00e9":3,"":4}"#, "/").unwrap(), "4");
        assert!(Pointer::parse("a").is_none());
        assert!(Pointer::parse("/a~2").is_none());
    }

    #[test]
    fn cut_or_foreign_text_is_not_found() {
        let whole = r#"{"root":{"fields":{"totalCount":42}}}"#;
        for cut in 0..whole.len() - 5 {
            let found = find(&whole[..cut], "/root/fields/totalCount");
            assert!(found.is_none() || "42".starts_with(found.unwrap().as_str()), "{cut}");
        }
        for foreign in ["<html>", "", "}", "[[[[", "{\"root\"", "{\"a\\", "{]}", ":"] {
            assert_eq!(find(foreign, "/root"), None, "{foreign}");
        }
        assert_eq!(find(&"[".repeat(1_000_000), "/5"), None);
    }

    #[test]
    fn numbers_are_those_of_json() {
        assert_eq!(number(b"-1.5e3"), Some(-1500.0));
        assert_eq!((number(b"inf"), number(b"\"1\""), number(b"+1")), (None, None, None));
        assert_eq!((unsigned(b"18446744073709551615"), unsigned(b"-1")), (Some(u64::MAX), None));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let key = "[a-c\"\\\\/~é0-2]{0,3}";
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(|b| json!(b)),
            any::<i64>().prop_map(|n| json!(n)),
            ".{0,6}".prop_map(|s| json!(s)),
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                prop::collection::vec((key, inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn pointers(value: &Value, base: &str, into: &mut Vec<String>) {
        into.push(base.to_owned());
        match value {
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    pointers(item, &format!("{base}/{i}"), into);
                }
                into.push(format!("{base}/{}", items.len()));
            }
            Value::Object(members) => {
                for (key, item) in members {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    pointers(item, &format!("{base}/{key}"), into);
                }
                into.push(format!("{base}/absent"));
            }
            _ => into.push(format!("{base}/x")),
        }
    }

    proptest! {
        #[test]
        fn finds_the_same_as_a_tree(value in any_json(), pretty in any::<bool>()) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let mut all = Vec::new();
            pointers(&value, "", &mut all);
            for pointer in all {
                let expected = value.pointer(&pointer);
                let found = Pointer::parse(&pointer).unwrap().find(text.as_bytes())
                    .map(|slice| serde_json::from_slice::<Value>(slice).unwrap());
                prop_assert_eq!(found.as_ref(), expected, "{} in {}", pointer, text);
            }
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(
            prop::sample::select(b"{}[]\",:\\a01 ".to_vec()), 0..60)) {
            for pointer in ["", "/a", "/0", "/a/0/1"] {
                let _ = Pointer::parse(pointer).unwrap().find(&bytes);
            }
            assert!(members(&bytes).count() + elements(&bytes).count() <= bytes.len());
        }
    }
}
