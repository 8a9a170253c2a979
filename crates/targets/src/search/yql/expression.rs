//! The `where` part.

use super::annotations::Annotations;
use super::lexer::Token;
use super::{Parser, YqlError};
use crate::search::query::{Literal, MAX_EDITS, Node, Number};
use crate::search::schema::DEFAULT_FIELD;
use std::ops::Bound;

/// The edit distance of `fuzzy("w")` without an annotation, as in Vespa.
const DEFAULT_EDITS: u64 = 2;
/// Functions of YQL that this server does not have, to say so plainly.
const UNSUPPORTED_FUNCTIONS: [&str; 12] = [
    "rank",
    "weakAnd",
    "wand",
    "dotProduct",
    "weightedSet",
    "nearestNeighbor",
    "geoLocation",
    "geoBoundingBox",
    "predicate",
    "nonEmpty",
    "wordAlternatives",
    "regexp",
];

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Node, YqlError> {
        self.nested(|parser| {
            let first = parser.conjunction()?;
            if !parser.is_keyword("or") {
                return Ok(first);
            }
            let mut children = vec![first];
            while parser.accept_keyword("or") {
                children.push(parser.conjunction()?);
            }
            Ok(Node::Or(children))
        })
    }

    fn conjunction(&mut self) -> Result<Node, YqlError> {
        let first = self.unary()?;
        if !self.is_keyword("and") {
            return Ok(first);
        }
        let mut children = vec![first];
        while self.accept_keyword("and") {
            children.push(self.unary()?);
        }
        Ok(Node::And(children))
    }

    fn unary(&mut self) -> Result<Node, YqlError> {
        if self.accept("!") {
            return self.nested(|parser| Ok(Node::Not(Box::new(parser.unary()?))));
        }
        self.primary(Annotations::default())
    }

    fn primary(&mut self, outer: Annotations) -> Result<Node, YqlError> {
        if self.peek() == &Token::Symbol("{") {
            let annotations = self.annotations()?.or(outer);
            return self.nested(|parser| parser.primary(annotations));
        }
        if self.accept("(") {
            // An annotation inside of the parentheses belongs to what follows it there.
            let node = if self.peek() == &Token::Symbol("{") {
                let annotations = self.annotations()?.or(outer);
                self.nested(|parser| parser.primary(annotations))?
            } else {
                self.expression()?
            };
            self.expect(")")?;
            return Ok(node);
        }
        let Token::Word(word) = self.peek() else {
            return Err(self.expected("a condition"));
        };
        let word = word.clone();
        if self.peek_second() == &Token::Symbol("(") {
            return self.function(&word, &outer);
        }
        if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") {
            self.next += 1;
            let matches = word.eq_ignore_ascii_case("true");
            return Ok(if matches { Node::All } else { Node::Nothing });
        }
        self.next += 1;
        self.condition(word)
    }

    fn function(&mut self, name: &str, outer: &Annotations) -> Result<Node, YqlError> {
        let position = self.position();
        match name {
            "userQuery" => {
                self.next += 2;
                self.expect(")")?;
                let text = self.scope.parameter("query").ok_or_else(|| {
                    YqlError::at(position, "userQuery() needs the request parameter 'query'")
                })?;
                let node = self.scope.simple(text, DEFAULT_FIELD);
                node.map_err(|message| YqlError::at(position, message))
            }
            "userInput" => {
                self.next += 2;
                let text = self.string_argument()?;
                self.expect(")")?;
                let field = outer.default_index.as_deref().unwrap_or(DEFAULT_FIELD);
                let node = self.scope.simple(&text, field);
                node.map_err(|message| YqlError::at(position, message))
            }
            "range" => {
                self.next += 2;
                self.range()
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

    fn range(&mut self) -> Result<Node, YqlError> {
        let field = self.name("a field name")?;
        self.expect(",")?;
        let lower = self.bound()?;
        self.expect(",")?;
        let upper = self.bound()?;
        self.expect(")")?;
        Ok(Node::Range { field, lower, upper })
    }

    /// A number, or an infinity of either sign for no bound. An infinity on the wrong side is an
    /// empty range.
    fn bound(&mut self) -> Result<Bound<Number>, YqlError> {
        let start = self.next;
        let negative = self.accept("-");
        if self.accept_keyword("Infinity") {
            return Ok(Bound::Included(Number::Real(if negative {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            })));
        }
        self.next = start;
        Ok(Bound::Included(self.number("a number or Infinity")?))
    }

    fn condition(&mut self, field: String) -> Result<Node, YqlError> {
        if self.accept_keyword("contains") {
            let node = self.term(&field, Annotations::default())?;
            return Ok(if field == "sddocname" { document_type(node) } else { node });
        }
        if self.accept_keyword("in") {
            return self.list(field);
        }
        if self.is_keyword("matches") {
            return Err(self.error("'matches' is not supported by this server"));
        }
        for (symbol, make) in COMPARISONS {
            if self.accept(symbol) {
                let number = self.operand()?;
                let (lower, upper) = make(number);
                return Ok(Node::Range { field, lower, upper });
            }
        }
        if self.accept("!=") {
            let number = self.operand()?;
            let (lower, upper) = (Bound::Included(number), Bound::Included(number));
            return Ok(Node::Not(Box::new(Node::Range { field, lower, upper })));
        }
        Err(self.expected("'contains', 'in', '=', '<', '>', '<=' or '>='"))
    }

    /// What a field is compared with; a bool is 0 or 1.
    fn operand(&mut self) -> Result<Number, YqlError> {
        if self.accept_keyword("true") {
            return Ok(Number::Whole(1));
        }
        if self.accept_keyword("false") {
            return Ok(Number::Whole(0));
        }
        self.number("a number")
    }

    pub(super) fn number(&mut self, expected: &str) -> Result<Number, YqlError> {
        let start = self.next;
        let negative = self.accept("-");
        if let Token::Number(number) = self.peek() {
            let number = *number;
            self.next += 1;
            return Ok(match number {
                _ if !negative => number,
                Number::Whole(value) => Number::Whole(-value),
                // 2^63 itself is read as a real number, though its negative is a whole one.
                Number::Real(value) if value == -(i64::MIN as f64) => Number::Whole(i64::MIN),
                Number::Real(value) => Number::Real(-value),
            });
        }
        self.next = start;
        Err(self.expected(expected))
    }

    fn list(&mut self, field: String) -> Result<Node, YqlError> {
        self.expect("(")?;
        let mut values = Vec::new();
        loop {
            match self.peek() {
                Token::Text(text) => {
                    values.push(Literal::Text(text.clone()));
                    self.next += 1;
                }
                Token::Parameter(_) => values.push(Literal::Text(self.string_argument()?)),
                _ => values.push(Literal::Number(self.number("a number or a string")?)),
            }
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(Node::OneOf { field, values })
    }

    fn string_argument(&mut self) -> Result<String, YqlError> {
        let text = match self.peek() {
            Token::Text(text) => text.clone(),
            Token::Parameter(name) => self
                .scope
                .parameter(name)
                .map(str::to_owned)
                .ok_or_else(|| self.error(format!("the request has no parameter '{name}'")))?,
            _ => return Err(self.expected("a string or @parameter")),
        };
        self.next += 1;
        Ok(text)
    }

    /// What stands to the right of `contains`.
    fn term(&mut self, field: &str, outer: Annotations) -> Result<Node, YqlError> {
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
            return self.term_function(&word, field, &outer);
        }
        let text = self.string_argument()?;
        let field = field.to_owned();
        Ok(if outer.prefix { Node::Prefix { field, text } } else { Node::Term { field, text } })
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
            "near" | "onear" | "sameElement" | "alternatives" | "text" => {
                Err(self.error(format!("{name}() is not supported by this server")))
            }
            _ => Err(self.expected("a string, phrase(...), fuzzy(...) or equiv(...)")),
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

type Bounds = (Bound<Number>, Bound<Number>);
type Comparison = (&'static str, fn(Number) -> Bounds);

/// The comparison signs, longest first, and the bounds that they mean.
const COMPARISONS: [Comparison; 6] = [
    ("<=", |number| (Bound::Unbounded, Bound::Included(number))),
    (">=", |number| (Bound::Included(number), Bound::Unbounded)),
    ("==", |number| (Bound::Included(number), Bound::Included(number))),
    ("=", |number| (Bound::Included(number), Bound::Included(number))),
    ("<", |number| (Bound::Unbounded, Bound::Excluded(number))),
    (">", |number| (Bound::Excluded(number), Bound::Unbounded)),
];

/// `sddocname contains "doc"` holds for the documents of the type.
fn document_type(node: Node) -> Node {
    match node {
        Node::Term { text, .. } => Node::Type(text),
        _ => Node::Nothing,
    }
}
