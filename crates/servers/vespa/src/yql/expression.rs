//! The `where` part.

use super::annotations::Annotations;
use super::lexer::Token;
use super::{Parser, YqlError};
use plimsoll_index::query::{Literal, Node, Number};
use std::ops::Bound;

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

    pub(super) fn primary(&mut self, outer: Annotations) -> Result<Node, YqlError> {
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
                self.inside(&outer, Self::expression)?
            };
            self.expect(")")?;
            return Ok(node);
        }
        let Token::Word(word) = self.peek() else {
            return Err(self.expected("a condition"));
        };
        let word = word.clone();
        if self.peek_second() == &Token::Symbol("(") {
            let annotations = outer.or(self.inherited.clone());
            return self.function(&word, &annotations);
        }
        if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") {
            self.next += 1;
            let matches = word.eq_ignore_ascii_case("true");
            return Ok(if matches { Node::All } else { Node::Nothing });
        }
        self.next += 1;
        self.inside(&outer, |parser| parser.condition(word))
    }

    fn condition(&mut self, field: String) -> Result<Node, YqlError> {
        if self.accept_keyword("contains") {
            let node = self.term(&field, self.inherited.clone())?;
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

    /// The value that a field is compared with; a bool is 0 or 1.
    fn operand(&mut self) -> Result<Number, YqlError> {
        if self.accept_keyword("true") {
            return Ok(Number::Whole(1));
        }
        if self.accept_keyword("false") {
            return Ok(Number::Whole(0));
        }
        if let Token::Parameter(name) = self.peek() {
            let value = self.scope.parameter(name).map(|text| number(text.trim()));
            let Some(Some(value)) = value else {
                let message = format!("the request has no parameter '{name}' that is a number");
                return Err(self.error(message));
            };
            self.next += 1;
            return Ok(value);
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

    pub(super) fn string_argument(&mut self) -> Result<String, YqlError> {
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

fn number(text: &str) -> Option<Number> {
    if let Ok(whole) = text.parse() {
        return Some(Number::Whole(whole));
    }
    text.parse().ok().filter(|real: &f64| real.is_finite()).map(Number::Real)
}

/// `sddocname contains "doc"` holds for the documents of the type.
fn document_type(node: Node) -> Node {
    match node {
        Node::Term { text, .. } => Node::Type(text),
        _ => Node::Nothing,
    }
}
