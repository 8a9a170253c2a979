//! Functions that are conditions, and what stands to the right of `contains`.

use super::annotations::{Annotations, Bounds};
use super::lexer::Token;
use super::{FreeText, Parser, YqlError};
use plimsoll_index::query::{DEFAULT_DISTANCE, MAX_EDITS, Node, Number, Place, Within};
use std::ops::Bound;

/// The edit distance of `fuzzy("w")` without an annotation, as in Vespa.
const DEFAULT_EDITS: u64 = 2;
/// Functions of YQL that this server does not have, to say so plainly.
const UNSUPPORTED_FUNCTIONS: [&str; 10] = [
    "wand",
    "dotProduct",
    "weightedSet",
    "nearestNeighbor",
    "geoLocation",
    "geoBoundingBox",
    "predicate",
    "nonEmpty",
    "labeled",
    "regexp",
];
/// Those of them that stand behind `contains`.
const UNSUPPORTED_TERMS: [&str; 3] = ["sameElement", "alternatives", "uri"];

impl Parser<'_> {
    pub(super) fn function(&mut self, name: &str, outer: &Annotations) -> Result<Node, YqlError> {
        let position = self.position();
        match name {
            "userQuery" => {
                self.next += 2;
                self.expect(")")?;
                let node = self.scope.user_query();
                node.map_err(|message| YqlError::at(position, message))
            }
            "userInput" => self.free_text(outer.default_index.as_deref(), false, outer),
            "range" => {
                self.next += 2;
                self.range(outer.bounds)
            }
            "weakAnd" => {
                self.next += 2;
                self.arguments(outer).map(Node::Or)
            }
            "rank" => {
                self.next += 2;
                self.arguments(outer).map(Node::Rank)
            }
            "not" => {
                self.next += 1;
                self.nested(|parser| {
                    Ok(Node::Not(Box::new(parser.primary(Annotations::default())?)))
                })
            }
            name if UNSUPPORTED_FUNCTIONS.contains(&name) => {
                Err(self.error(format!("{name}() is not supported by this server")))
            }
            _ => Err(self.expected("a condition")),
        }
    }

    /// The conditions between the parentheses of a function.
    fn arguments(&mut self, outer: &Annotations) -> Result<Vec<Node>, YqlError> {
        let conditions = self.inside(outer, |parser| {
            let mut conditions = vec![parser.expression()?];
            while parser.accept(",") {
                conditions.push(parser.expression()?);
            }
            Ok(conditions)
        })?;
        self.expect(")")?;
        Ok(conditions)
    }

    /// `userInput("text")` or `text("text")`, from the name on.
    fn free_text(
        &mut self,
        field: Option<&str>,
        only_words: bool,
        outer: &Annotations,
    ) -> Result<Node, YqlError> {
        let position = self.position();
        self.next += 1;
        self.expect("(")?;
        let text = self.string_argument()?;
        self.expect(")")?;
        let (grammar, distance) = (&outer.grammar, outer.distance);
        let text = FreeText { text: &text, field, grammar, distance, only_words };
        let node = self.scope.free_text(&text);
        let node = node.map_err(|message| YqlError::at(position, message))?;
        if node == Node::Null && outer.allow_empty != Some(true) {
            let message = format!(
                "'{}' has no word to look for; with allowEmpty: true it may be empty",
                text.text
            );
            return Err(YqlError::at(position, message));
        }
        Ok(ranked(node, outer))
    }

    fn range(&mut self, open: Option<Bounds>) -> Result<Node, YqlError> {
        let field = self.name("a field name")?;
        self.expect(",")?;
        let lower = self.bound()?;
        self.expect(",")?;
        let upper = self.bound()?;
        self.expect(")")?;
        let bound = |number, open| {
            if open { Bound::Excluded(number) } else { Bound::Included(number) }
        };
        let lower = bound(lower, open.is_some_and(|open| open.left_open));
        let upper = bound(upper, open.is_some_and(|open| open.right_open));
        Ok(Node::Range { field, lower, upper })
    }

    /// A number, or an infinity of either sign for no bound. An infinity on the wrong side is an
    /// empty range.
    fn bound(&mut self) -> Result<Number, YqlError> {
        let start = self.next;
        let negative = self.accept("-");
        if self.accept_keyword("Infinity") {
            return Ok(Number::Real(if negative { f64::NEG_INFINITY } else { f64::INFINITY }));
        }
        self.next = start;
        self.number("a number or Infinity")
    }

    /// Returns what stands to the right of `contains`.
    pub(super) fn term(&mut self, field: &str, outer: Annotations) -> Result<Node, YqlError> {
        if self.peek() == &Token::Symbol("{") {
            let annotations = self.annotations()?.or(outer);
            return self.nested(|parser| parser.term(field, annotations));
        }
        if self.accept("(") {
            let node = self.nested(|parser| parser.term(field, outer))?;
            self.expect(")")?;
            return Ok(node);
        }
        if let Token::Word(word) = self.peek() {
            let word = word.clone();
            return Ok(ranked(self.term_function(&word, field, &outer)?, &outer));
        }
        let text = self.string_argument()?;
        let field = field.to_owned();
        let prefix = outer.prefix;
        let node = if prefix { Node::Prefix { field, text } } else { Node::Term { field, text } };
        Ok(ranked(node, &outer))
    }

    fn term_function(
        &mut self,
        name: &str,
        field: &str,
        outer: &Annotations,
    ) -> Result<Node, YqlError> {
        match name {
            "phrase" => {
                self.next += 1;
                let words = self.strings()?;
                Ok(Node::Phrase { field: field.to_owned(), words })
            }
            "equiv" => {
                self.next += 1;
                let words = self.strings()?;
                let term = |text| Node::Term { field: field.to_owned(), text };
                Ok(Node::Or(words.into_iter().map(term).collect()))
            }
            "fuzzy" => self.fuzzy(field, outer),
            "near" | "onear" => {
                self.next += 1;
                let places = self.places(name)?;
                let distance = outer.distance.unwrap_or(DEFAULT_DISTANCE);
                let (field, ordered) = (field.to_owned(), name == "onear");
                Ok(Node::Within(Within { field, places, distance, ordered }))
            }
            "text" => self.free_text(Some(field), true, outer),
            name if UNSUPPORTED_TERMS.contains(&name) => {
                Err(self.error(format!("{name}() is not supported by this server")))
            }
            _ => {
                let known = "phrase(...), near(...), onear(...), fuzzy(...), equiv(...)";
                Err(self.expected(&format!("a string, {known} or text(...)")))
            }
        }
    }

    /// The words of `near` and `onear`: strings, phrases, and words that mean the same.
    fn places(&mut self, name: &str) -> Result<Vec<Place>, YqlError> {
        self.expect("(")?;
        let mut places = vec![self.near_place(name)?];
        while self.accept(",") {
            places.push(self.near_place(name)?);
        }
        self.expect(")")?;
        Ok(places)
    }

    fn near_place(&mut self, name: &str) -> Result<Place, YqlError> {
        if self.peek() == &Token::Symbol("!") {
            let message = format!("a word with '!' in {name}() is not supported by this server");
            return Err(self.error(message));
        }
        let Token::Word(word) = self.peek() else {
            return Ok(vec![vec![self.string_argument()?]]);
        };
        let word = word.clone();
        match word.as_str() {
            "phrase" => {
                self.next += 1;
                Ok(vec![self.strings()?])
            }
            "equiv" => {
                self.next += 1;
                Ok(self.strings()?.into_iter().map(|word| vec![word]).collect())
            }
            _ => Err(self.expected("a string, phrase(...) or equiv(...)")),
        }
    }

    fn fuzzy(&mut self, field: &str, outer: &Annotations) -> Result<Node, YqlError> {
        if outer.prefix {
            return Err(self.error("fuzzy(...) with prefix is not supported by this server"));
        }
        self.next += 1;
        self.expect("(")?;
        let text = self.string_argument()?;
        self.expect(")")?;
        let max_edits = outer.max_edits.map_or(DEFAULT_EDITS, |(_, edits)| edits);
        if let Some((position, edits)) = outer.max_edits.filter(|(_, edits)| *edits > MAX_EDITS) {
            let message = format!("maxEditDistance {edits} is not supported: use 0 to {MAX_EDITS}");
            return Err(YqlError::at(position, message));
        }
        let prefix_length = outer.prefix_length.map_or(0, |(_, length)| length);
        let prefix_length = usize::try_from(prefix_length).unwrap_or(usize::MAX);
        Ok(Node::Fuzzy { field: field.to_owned(), text, max_edits, prefix_length })
    }

    fn strings(&mut self) -> Result<Vec<String>, YqlError> {
        self.expect("(")?;
        let mut strings = vec![self.string_argument()?];
        while self.accept(",") {
            strings.push(self.string_argument()?);
        }
        self.expect(")")?;
        Ok(strings)
    }
}

/// A term that does not count for the relevance if its annotation says so.
fn ranked(node: Node, annotations: &Annotations) -> Node {
    match annotations.ranked {
        Some(false) if node != Node::Null => Node::Constant(Box::new(node), 0.0),
        _ => node,
    }
}
