//! `{key: value, ...}` before a term or an expression.

use super::lexer::{Position, Token};
use super::{Parser, YqlError};
use crate::search::query::Number;

/// Annotations that change how hits are valued or shown by other servers, never which documents
/// match. They may be given and do nothing here.
const WITHOUT_EFFECT: [&str; 20] = [
    "accentDrop",
    "allowEmpty",
    "connectivity",
    "filter",
    "function",
    "id",
    "implicitTransforms",
    "label",
    "language",
    "locale",
    "nfkc",
    "normalizeCase",
    "origin",
    "ranked",
    "significance",
    "stem",
    "strength",
    "usePositionData",
    "weight",
    "grammar",
];

/// The annotations that mean something, as far as they were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Annotations {
    pub(super) prefix: bool,
    pub(super) max_edits: Option<(Position, u64)>,
    pub(super) prefix_length: Option<(Position, u64)>,
    pub(super) default_index: Option<String>,
}

impl Annotations {
    /// Adds those of an outer brace; the inner ones win.
    pub(super) fn or(mut self, outer: Self) -> Self {
        self.prefix |= outer.prefix;
        self.max_edits = self.max_edits.or(outer.max_edits);
        self.prefix_length = self.prefix_length.or(outer.prefix_length);
        self.default_index = self.default_index.or(outer.default_index);
        self
    }
}

enum Value {
    Number(Number),
    Text(String),
    Flag(bool),
    Nested,
}

impl Parser<'_> {
    /// Reads one brace, from `{` to `}`.
    pub(super) fn annotations(&mut self) -> Result<Annotations, YqlError> {
        self.expect("{")?;
        let mut annotations = Annotations::default();
        if self.accept("}") {
            return Ok(annotations);
        }
        loop {
            let position = self.position();
            let key = match self.peek() {
                Token::Word(key) | Token::Text(key) => key.clone(),
                _ => return Err(self.expected("the name of an annotation")),
            };
            self.next += 1;
            self.expect(":")?;
            let at = self.position();
            let value = self.annotation_value()?;
            match (key.as_str(), value) {
                ("prefix", Value::Flag(value)) => annotations.prefix = value,
                ("maxEditDistance", Value::Number(Number::Whole(n))) if n >= 0 => {
                    annotations.max_edits = Some((at, n.unsigned_abs()));
                }
                ("prefixLength", Value::Number(Number::Whole(n))) if n >= 0 => {
                    annotations.prefix_length = Some((at, n.unsigned_abs()));
                }
                ("defaultIndex", Value::Text(name)) => annotations.default_index = Some(name),
                ("prefix", _) => return Err(YqlError::at(at, "'prefix' takes true or false")),
                ("maxEditDistance" | "prefixLength", _) => {
                    let message = format!("'{key}' takes a whole number of 0 or more");
                    return Err(YqlError::at(at, message));
                }
                ("defaultIndex", _) => {
                    return Err(YqlError::at(at, "'defaultIndex' takes a field name in quotes"));
                }
                ("substring" | "suffix", Value::Flag(false)) => {}
                (key, _) if WITHOUT_EFFECT.contains(&key) => {}
                (key, _) => {
                    let message = format!("the annotation '{key}' is not supported by this server");
                    return Err(YqlError::at(position, message));
                }
            }
            if !self.accept(",") {
                break;
            }
        }
        self.expect("}")?;
        Ok(annotations)
    }

    fn annotation_value(&mut self) -> Result<Value, YqlError> {
        if self.accept("{") {
            return self.nested(|parser| parser.nested_values("}"));
        }
        if self.accept("[") {
            return self.nested(|parser| parser.nested_values("]"));
        }
        if self.accept_keyword("true") {
            return Ok(Value::Flag(true));
        }
        if self.accept_keyword("false") {
            return Ok(Value::Flag(false));
        }
        let value = match self.peek() {
            Token::Text(text) => Value::Text(text.clone()),
            Token::Number(_) | Token::Symbol("-") => {
                return Ok(Value::Number(self.number("a number")?));
            }
            _ => return Err(self.expected("a number, a string, true or false")),
        };
        self.next += 1;
        Ok(value)
    }

    /// Skips over the inside of a map or list: no supported annotation has one.
    fn nested_values(&mut self, close: &str) -> Result<Value, YqlError> {
        if self.accept(close) {
            return Ok(Value::Nested);
        }
        loop {
            if close == "}" {
                match self.peek() {
                    Token::Word(_) | Token::Text(_) => self.next += 1,
                    _ => return Err(self.expected("a name")),
                }
                self.expect(":")?;
            }
            self.annotation_value()?;
            if !self.accept(",") {
                break;
            }
        }
        self.expect(close)?;
        Ok(Value::Nested)
    }
}
