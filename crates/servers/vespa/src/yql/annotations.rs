//! `{key: value, ...}` before a term or an expression.

use super::lexer::{Position, Token};
use super::{Parser, YqlError};
use crate::query_type::QueryTypeParts;
use plimsoll_index::query::Number;

/// Annotations that change how hits are valued or shown by other servers, never which documents
/// match. They may be given and do nothing here.
const WITHOUT_EFFECT: [&str; 20] = [
    "accentDrop",
    "annotations",
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
    "significance",
    "stem",
    "strength",
    "thresholdBoostFactor",
    "totalTargetHits",
    "usePositionData",
    "weight",
];

/// The annotations that mean something, as far as they were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Annotations {
    pub(super) prefix: bool,
    pub(super) max_edits: Option<(Position, u64)>,
    pub(super) prefix_length: Option<(Position, u64)>,
    pub(super) default_index: Option<String>,
    /// Grammar of free text.
    pub(super) grammar: QueryTypeParts,
    /// Distance of words.
    pub(super) distance: Option<u32>,
    /// Free text may be empty.
    pub(super) allow_empty: Option<bool>,
    /// True if the term counts for the relevance.
    pub(super) ranked: Option<bool>,
    pub(super) bounds: Option<Bounds>,
}

/// Ends of a range that do not belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) left_open: bool,
    pub(super) right_open: bool,
}

impl Bounds {
    fn named(name: &str) -> Option<Self> {
        let (left_open, right_open) = match name {
            "open" => (true, true),
            "leftOpen" => (true, false),
            "rightOpen" => (false, true),
            _ => return None,
        };
        Some(Self { left_open, right_open })
    }
}

impl Annotations {
    /// Adds those of an outer brace; the inner ones win.
    pub(super) fn or(mut self, outer: Self) -> Self {
        self.prefix |= outer.prefix;
        self.max_edits = self.max_edits.or(outer.max_edits);
        self.prefix_length = self.prefix_length.or(outer.prefix_length);
        self.default_index = self.default_index.or(outer.default_index);
        let (grammar, outer_grammar) = (&mut self.grammar, outer.grammar);
        grammar.name = grammar.name.take().or(outer_grammar.name);
        grammar.composite = grammar.composite.take().or(outer_grammar.composite);
        grammar.syntax = grammar.syntax.take().or(outer_grammar.syntax);
        grammar.tokenization = grammar.tokenization.take().or(outer_grammar.tokenization);
        self.distance = self.distance.or(outer.distance);
        self.allow_empty = self.allow_empty.or(outer.allow_empty);
        self.ranked = self.ranked.or(outer.ranked);
        self.bounds = self.bounds.or(outer.bounds);
        self
    }

    /// Takes one annotation.
    ///
    /// # Errors
    /// When the value is not one of the annotation's, or the annotation is unknown.
    fn set(&mut self, key: &str, value: Value, at: Position) -> Result<(), String> {
        let text = |value: Value| match value {
            Value::Text(text) => Ok(Some(text)),
            _ => Err(format!("'{key}' takes a text in quotes")),
        };
        let count = |value: Value| match value {
            Value::Number(Number::Whole(n)) if n >= 0 => Ok(n.unsigned_abs()),
            _ => Err(format!("'{key}' takes a whole number of 0 or more")),
        };
        let flag = |value: Value| match value {
            Value::Flag(flag) => Ok(flag),
            _ => Err(format!("'{key}' takes true or false")),
        };
        match key {
            "prefix" => self.prefix = flag(value)?,
            "ranked" => self.ranked = Some(flag(value)?),
            "allowEmpty" => self.allow_empty = Some(flag(value)?),
            "maxEditDistance" => self.max_edits = Some((at, count(value)?)),
            "prefixLength" => self.prefix_length = Some((at, count(value)?)),
            "distance" => {
                self.distance = Some(u32::try_from(count(value)?).unwrap_or(u32::MAX));
            }
            "defaultIndex" => match value {
                Value::Text(name) => self.default_index = Some(name),
                _ => return Err("'defaultIndex' takes a field name in quotes".to_owned()),
            },
            "grammar" => self.grammar.name = text(value)?,
            "grammar.composite" => self.grammar.composite = text(value)?,
            "grammar.syntax" => self.grammar.syntax = text(value)?,
            "grammar.tokenization" => self.grammar.tokenization = text(value)?,
            "bounds" => {
                let bounds = text(value)?.and_then(|name| Bounds::named(&name));
                let wanted = "'bounds' takes \"open\", \"leftOpen\" or \"rightOpen\"";
                self.bounds = Some(bounds.ok_or_else(|| wanted.to_owned())?);
            }
            // Every document that matches is a candidate here, however many are asked for.
            "targetHits" | "targetNumHits" => match value {
                Value::Number(Number::Whole(_)) => {}
                _ => return Err(format!("'{key}' takes a whole number")),
            },
            "substring" | "suffix" if matches!(value, Value::Flag(false)) => {}
            key if WITHOUT_EFFECT.contains(&key) => {}
            key => return Err(format!("the annotation '{key}' is not supported by this server")),
        }
        Ok(())
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
            let set = annotations.set(&key, value, at);
            set.map_err(|message| {
                // An unknown name is wrong where it stands, a wrong value where that stands.
                let unknown = message.starts_with("the annotation");
                YqlError::at(if unknown { position } else { at }, message)
            })?;
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
