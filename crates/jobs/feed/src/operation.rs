//! One feed operation as text: which document, what is done with it, under which condition.
//!
//! Only the top level is read. The fields are found by their brackets and go to the server as they are.

use plimsoll_wire::vespa::DocumentId;
use plimsoll_workloads::json_skip::container_length;
use std::borrow::Cow;
use thiserror::Error;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Writes a whole document: `put`, or `id` as `vespa visit` prints it.
    #[default]
    Put,
    /// Changes fields of a document.
    Update,
    /// Removes a document.
    Remove,
}

impl Kind {
    /// The key that names the document in an operation of this kind.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Kind::Put => "put",
            Kind::Update => "update",
            Kind::Remove => "remove",
        }
    }

    /// The method that does it.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Kind::Put => "POST",
            Kind::Update => "PUT",
            Kind::Remove => "DELETE",
        }
    }
}

/// One operation. The slices point into its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Put, update or remove.
    pub kind: Kind,
    /// The document.
    pub id: DocumentId,
    /// The id as the text has it, with its quotes.
    pub id_json: &'a [u8],
    /// Condition of the operation: its text, and the same with its quotes.
    pub condition: Option<(Cow<'a, str>, &'a [u8])>,
    /// True if an update of a document that is not there makes it.
    pub create: bool,
    /// The object of the fields; empty for a remove.
    pub fields: &'a [u8],
}

/// Problem of an operation, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// It does not begin with a brace.
    #[error(
        "no operation begins here; write an object such as {{\"put\":\"id:...\",\"fields\":{{}}}}"
    )]
    NoObject,
    /// It does not come to its end.
    #[error("the operation is not closed before the next one or the end; was the file cut?")]
    NotClosed,
    /// The array around the operations does not come to its end.
    #[error("the array of operations is not closed; was the file cut?")]
    ArrayNotClosed,
    /// It is longer than an operation may be.
    #[error("the operation is longer than {} MiB", super::OPERATION_MAX_BYTES >> 20)]
    TooLong,
    /// The text is not JSON at this place.
    #[error("the text is not JSON: {expected} is missing at byte {at} of the operation")]
    Json {
        /// Expected syntax.
        expected: &'static str,
        /// Position, counted from the operation's first byte.
        at: usize,
    },
    /// A key that no operation has.
    #[error(
        "key '{0}' is not known; an operation has put, id, update or remove, and condition, create, fields"
    )]
    Key(String),
    /// Two keys that exclude each other, or one twice.
    #[error("key '{0}' is a duplicate; write it once")]
    Twice(&'static str),
    /// No document is named.
    #[error("the document id is missing; write put, update or remove with an id")]
    NoId,
    /// A value of the wrong kind.
    #[error("the value of '{key}' must be {wanted}")]
    Value {
        /// Key that has the value.
        key: &'static str,
        /// Kind of value that the key must have, in words: `a string`.
        wanted: &'static str,
    },
    /// No fields where some are needed.
    #[error("'{0}' needs \"fields\", an object")]
    NoFields(&'static str),
    /// The id is none.
    #[error("{0}")]
    Id(String),
}

/// Reads one operation. `text` begins with `{` and ends with the `}` that closes it.
///
/// # Errors
/// The problem with it.
pub fn parse(text: &[u8]) -> Result<Operation<'_>, Problem> {
    let mut scan = Scan { text, at: 0 };
    let mut found = Found::default();
    scan.expect(b'{', "'{'")?;
    scan.blanks();
    if scan.byte() == Some(b'}') {
        return Err(Problem::NoId);
    }
    loop {
        scan.blanks();
        let key = scan.string()?;
        scan.blanks();
        scan.expect(b':', "':'")?;
        scan.blanks();
        let value = scan.value()?;
        found.take(key, value)?;
        scan.blanks();
        match scan.byte() {
            Some(b',') => scan.at += 1,
            Some(b'}') => break,
            _ => return Err(Problem::Json { expected: "',' or '}'", at: scan.at }),
        }
    }
    found.finish()
}

/// Kind of value of an id and of a condition, in words.
const STRING: &str = "a string; escape control characters in it, such as \\n";

/// Parts of an operation that were read so far.
#[derive(Default)]
struct Found<'a> {
    kind: Option<Kind>,
    id_json: &'a [u8],
    condition: Option<(Cow<'a, str>, &'a [u8])>,
    create: Option<bool>,
    fields: Option<&'a [u8]>,
}

impl<'a> Found<'a> {
    fn take(&mut self, key: &'a [u8], value: &'a [u8]) -> Result<(), Problem> {
        let kind = match key {
            b"\"put\"" | b"\"id\"" => Kind::Put,
            b"\"update\"" => Kind::Update,
            b"\"remove\"" => Kind::Remove,
            b"\"fields\"" => return self.take_fields(value),
            // As in Vespa's own clients and in its handler: not there.
            b"\"condition\"" | b"\"create\"" if value == b"null" => return Ok(()),
            b"\"condition\"" => {
                let wanted = Problem::Value { key: "condition", wanted: STRING };
                let text = decoded(value).ok_or(wanted)?;
                let before = self.condition.replace((text, value));
                return once(before.is_none(), "condition");
            }
            b"\"create\"" => {
                let create = match value {
                    b"true" => true,
                    b"false" => false,
                    _ => return Err(Problem::Value { key: "create", wanted: "true or false" }),
                };
                return once(self.create.replace(create).is_none(), "create");
            }
            other => {
                let name = decoded(other).unwrap_or_default();
                return Err(Problem::Key(name.chars().take(60).collect()));
            }
        };
        once(self.kind.replace(kind).is_none(), kind.key())?;
        self.id_json = value;
        Ok(())
    }

    fn take_fields(&mut self, value: &'a [u8]) -> Result<(), Problem> {
        if value.first() != Some(&b'{') {
            return Err(Problem::Value { key: "fields", wanted: "an object" });
        }
        once(self.fields.replace(value).is_none(), "fields")
    }

    fn finish(self) -> Result<Operation<'a>, Problem> {
        let kind = self.kind.ok_or(Problem::NoId)?;
        let wanted = Problem::Value { key: kind.key(), wanted: STRING };
        let id = decoded(self.id_json).ok_or(wanted)?;
        let id = DocumentId::parse(&id).map_err(|error| Problem::Id(error.to_string()))?;
        let fields = match (kind, self.fields) {
            // Nothing can be done with them, and Vespa's own clients pass over them.
            (Kind::Remove, _) => &[][..],
            (_, Some(fields)) => fields,
            (_, None) => return Err(Problem::NoFields(kind.key())),
        };
        let create = self.create.unwrap_or(false);
        Ok(Operation { kind, id, id_json: self.id_json, condition: self.condition, create, fields })
    }
}

fn once(first: bool, key: &'static str) -> Result<(), Problem> {
    if first { Ok(()) } else { Err(Problem::Twice(key)) }
}

/// The text of a JSON string; only one with escapes is copied. `None` when it is no string, or has a control character that is not
/// escaped.
fn decoded(json: &[u8]) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if !inner.iter().any(|byte| *byte == b'\\' || *byte < b' ') {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(json).ok().map(Cow::Owned)
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), Problem> {
        if self.byte() != Some(byte) {
            return Err(Problem::Json { expected, at: self.at });
        }
        self.at += 1;
        Ok(())
    }

    /// A string with its quotes.
    fn string(&mut self) -> Result<&'a [u8], Problem> {
        let start = self.at;
        self.expect(b'"', "a string")?;
        let unclosed = Problem::Json { expected: "the end of the string", at: start };
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(found) = memchr::memchr2(b'"', b'\\', rest) else { return Err(unclosed) };
            self.at += found + 1;
            if self.text[self.at - 1] == b'"' {
                return Ok(&self.text[start..self.at]);
            }
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<&'a [u8], Problem> {
        let start = self.at;
        match self.byte() {
            Some(b'"') => return self.string(),
            Some(b'{' | b'[') => {
                let unclosed = Problem::Json { expected: "the end of the value", at: start };
                self.at += container_length(&self.text[start..]).ok_or(unclosed)?;
            }
            _ => {
                let rest = &self.text[start..];
                let end = rest.iter().position(|byte| b",]}: \n\r\t".contains(byte));
                self.at += end.unwrap_or(rest.len());
            }
        }
        if self.at == start {
            return Err(Problem::Json { expected: "a value", at: start });
        }
        Ok(&self.text[start..self.at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn operations_are_read_at_their_top_level_only() {
        let text = br#" { "fields" : {"a":"}\"{","b":[{}]} , "condition":"a.b == \"x\"","update":"id:n:t:g=x:y","create":true}"#;
        let operation = parse(&text[1..]).unwrap();
        assert_eq!(operation.kind, Kind::Update);
        assert_eq!(operation.id.as_str(), "id:n:t:g=x:y");
        assert_eq!(operation.id_json, b"\"id:n:t:g=x:y\"");
        assert_eq!(operation.fields, br#"{"a":"}\"{","b":[{}]}"#);
        let (condition, json) = operation.condition.unwrap();
        assert_eq!((&*condition, json), ("a.b == \"x\"", &br#""a.b == \"x\"""#[..]));
        assert!(operation.create);
        let put = parse(br#"{"id":"id:a:b::c","fields":{}}"#).unwrap();
        assert_eq!((put.kind, put.create, put.condition), (Kind::Put, false, None));
        let remove = parse(br#"{"remove":"id:a:b::c\u00e6"}"#).unwrap();
        assert_eq!(
            (remove.kind, remove.id.name(), remove.fields),
            (Kind::Remove, "c\u{e6}", &[][..])
        );
    }

    /// Serializers write what is not set as null; Vespa takes it as not there.
    #[test]
    fn null_is_no_condition() {
        let text = r#"{"put":"id:n:t::a","condition":null,"create":null,"fields":{"a":null}}"#;
        let put = parse(text.as_bytes()).unwrap();
        assert_eq!((put.condition, put.create), (None, false));
        assert_eq!(put.fields, br#"{"a":null}"#);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("{}", "the document id is missing"),
            ("{\"fields\":{}}", "the document id is missing"),
            ("{\"put\":\"id:a:b::c\"}", "'put' needs \"fields\""),
            ("{\"put\":\"id:a:b::c\",\"fields\":[]}", "must be an object"),
            ("{\"put\":7,\"fields\":{}}", "'put' must be a string"),
            ("{\"put\":\"c\",\"fields\":{}}", "Scheme missing"),
            ("{\"put\":\"id:a:b::c\",\"id\":\"id:a:b::c\",\"fields\":{}}", "is a duplicate"),
            ("{\"put\":\"id:a:b::c\",\"condtion\":\"x\",\"fields\":{}}", "'condtion' is not known"),
            ("{\"update\":\"id:a:b::c\",\"create\":\"true\",\"fields\":{}}", "true or false"),
            ("{\"put\" \"id:a:b::c\"}", "':' is missing at byte 7"),
            ("{\"put\":}", "a value is missing"),
            ("{\"put\":\"id:a:b::c\" \"fields\":{}}", "',' or '}' is missing"),
            ("{\"put\":\"id:a:b::c\",\"condition\":\"\\q\",\"fields\":{}}", "a string"),
            ("{\"put\":\"id:a:b::c\nd\",\"fields\":{}}", "'put' must be a string; escape control"),
            ("{\"remove\":\"id:a:b::c\",\"condition\":\"a\td\"}", "'condition' must be a string"),
        ] {
            let problem = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(problem.contains(part), "{text}: {problem}");
            assert!(!problem.contains('\n'));
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in prop::collection::vec(
            prop::sample::select(b"{}[]\",:\\ putidfields0\n".to_vec()), 0..80)) {
            let _ = parse(&bytes);
            let mut text = b"{\"put\":\"id:a:b::c\",".to_vec();
            text.extend(&bytes);
            let _ = parse(&text);
        }

        #[test]
        fn agrees_with_a_tree(
            name in "[a-z\"\\\\/ \u{e6}]{1,8}",
            condition in prop::option::of(".{0,12}"),
            create in any::<bool>(),
            value in ".{0,12}",
            pretty in any::<bool>(),
        ) {
            let mut tree = serde_json::json!({"put": format!("id:n:t::{name}")});
            if let Some(condition) = &condition {
                tree["condition"] = condition.as_str().into();
            }
            tree["create"] = create.into();
            tree["fields"] = serde_json::json!({"a": value, "b": [{"c": null}]});
            let text = if pretty { format!("{tree:#}") } else { tree.to_string() };
            let operation = parse(text.as_bytes()).unwrap();
            prop_assert_eq!(operation.id.name(), name);
            prop_assert_eq!(operation.create, create);
            prop_assert_eq!(operation.condition.map(|(text, _)| text.into_owned()), condition);
            let fields: serde_json::Value = serde_json::from_slice(operation.fields).unwrap();
            prop_assert_eq!(&fields, &tree["fields"]);
        }
    }
}
