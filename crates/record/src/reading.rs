//! JSON read into types, with errors that name the field.
//!
//! A reader that notes the path of each field while it reads stands in the program once more for each type, a megabyte in all. A
//! reader of text knows where it stopped, and the path follows from that place.

use serde::de::DeserializeOwned;
use serde_json::{Error, Value};
use std::fmt::Write;

/// An error of a reader: the path of the field, such as `cells[3].rate`, `.` for the whole; and the error itself.
pub(crate) type Unread = (String, Error);

/// Reads a text.
pub(crate) fn read_text<T: DeserializeOwned>(text: &[u8]) -> Result<T, Unread> {
    serde_json::from_slice(text)
        .map_err(|error| (path_at(text, place(text, error.line(), error.column())), error))
}

/// Reads a value; the error names no line, since the user sees none.
pub(crate) fn read_value<T: DeserializeOwned>(value: &Value) -> Result<T, (String, String)> {
    read_text(value.to_string().as_bytes()).map_err(|(path, error)| (path, without_line(&error)))
}

fn without_line(error: &Error) -> String {
    let text = error.to_string();
    let line = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&line).unwrap_or(&text).to_owned()
}

/// Number of bytes before this place, of which line and column are counted from 1.
fn place(text: &[u8], line: usize, column: usize) -> usize {
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let start = std::iter::once(0).chain(ends).nth(line.saturating_sub(1)).unwrap_or(0);
    (start + column).min(text.len())
}

/// One step from the whole to a field.
enum Step {
    /// In an object, at this key, once there is one.
    Key(Option<String>),
    /// In an array, at this index.
    Index(usize),
}

/// Path of the field in which the first bytes of a text end.
fn path_at(text: &[u8], end: usize) -> String {
    let (mut steps, mut at): (Vec<Step>, usize) = (Vec::new(), 0);
    while at < end {
        match text[at] {
            b'{' => steps.push(Step::Key(None)),
            b'[' => steps.push(Step::Index(0)),
            b'}' | b']' => {
                steps.pop();
            }
            b',' => match steps.last_mut() {
                Some(Step::Key(key)) => *key = None,
                Some(Step::Index(index)) => *index += 1,
                None => {}
            },
            b'"' => {
                let length = text_length(&text[at..]);
                if let Some(Step::Key(key @ None)) = steps.last_mut() {
                    *key = serde_json::from_slice(&text[at..at + length]).ok();
                }
                at += length - 1;
            }
            _ => {}
        }
        at += 1;
    }
    written(&steps)
}

/// Number of bytes of the JSON string at the front of a text, to the end of the text if it does not end.
fn text_length(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn written(steps: &[Step]) -> String {
    let mut path = String::new();
    for step in steps {
        let written = match step {
            Step::Key(Some(key)) if path.is_empty() => write!(path, "{key}"),
            Step::Key(Some(key)) => write!(path, ".{key}"),
            Step::Index(index) => write!(path, "[{index}]"),
            Step::Key(None) => Ok(()),
        };
        debug_assert!(written.is_ok(), "a string takes all that is written");
    }
    if path.is_empty() { ".".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is only read")]
    struct Inner {
        a: u64,
        b: Vec<(f64, String)>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is only read")]
    struct Outer {
        one: Inner,
        many: Vec<Inner>,
        named: BTreeMap<String, Inner>,
        last: Option<bool>,
    }

    fn whole() -> Value {
        let inner = serde_json::json!({"a": 1, "b": [[1.5, "x,\"{y}\\"], [2.5, "[z"]]});
        serde_json::json!({
            "one": inner, "many": [inner, inner], "named": {"k, \"1\"": inner, "é": inner}, "last": true,
        })
    }

    /// Paths of all values, as JSON pointers.
    fn pointers(value: &Value, own: &str, into: &mut Vec<String>) {
        into.push(own.to_owned());
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                pointers(
                    value,
                    &format!("{own}/{}", key.replace('~', "~0").replace('/', "~1")),
                    into,
                );
            }),
            Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| {
                pointers(value, &format!("{own}/{at}"), into);
            }),
            _ => {}
        }
    }

    /// The same error and path as from a reader that notes the path while it reads.
    fn compare(text: &[u8]) {
        let mut reference = serde_json::Deserializer::from_slice(text);
        let reference = serde_path_to_error::deserialize::<_, Outer>(&mut reference);
        match (read_text::<Outer>(text), reference) {
            (Ok(_), Ok(_)) => {}
            (Err((path, error)), Err(wanted)) => {
                let text = String::from_utf8_lossy(text);
                assert_eq!(path, wanted.path().to_string(), "{text}: {error}");
                assert_eq!(error.to_string(), wanted.inner().to_string(), "{text}");
            }
            // What stands behind the end is looked for by one of them only.
            (Err((_, error)), Ok(_)) => assert!(error.to_string().contains("trailing"), "{error}"),
            (Ok(_), Err(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn each_field_is_named_whatever_is_wrong_with_it() {
        let mut all = Vec::new();
        pointers(&whole(), "", &mut all);
        assert!(all.len() > 40, "{all:?}");
        let wrong = serde_json::json!([null, "text", -1, 2.5, true, {}, [], {"a": "b"}, [[]]]);
        let mut found = 0;
        for pointer in &all {
            for wrong in wrong.as_array().unwrap() {
                let mut value = whole();
                *value.pointer_mut(pointer).unwrap() = wrong.clone();
                for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                    compare(text.as_bytes());
                    found += usize::from(read_text::<Outer>(text.as_bytes()).is_err());
                }
            }
        }
        assert!(found > 500, "{found}");
    }

    #[test]
    fn a_field_that_is_missing_is_missed_in_its_object() {
        let mut value = whole();
        value["many"][1].as_object_mut().unwrap().remove("a");
        let (path, problem) = read_value::<Outer>(&value).unwrap_err();
        assert_eq!((path.as_str(), problem.as_str()), ("many[1]", "missing field `a`"));
        compare(value.to_string().as_bytes());
    }

    proptest! {
        #[test]
        fn cut_and_changed_texts_never_panic(at in 0usize..400, byte: u8, cut: bool) {
            let mut text = whole().to_string().into_bytes();
            let at = at % text.len();
            text[at] = byte;
            text.truncate(if cut { at } else { text.len() });
            let _ = read_text::<Outer>(&text);
        }
    }
}
