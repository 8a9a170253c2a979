//! Makes a tree of the text of a selection, and checks the types and fields that it names.

use super::field_path::step_type;
use super::lexer::{Lexer, Lookup, Token, shorten};
use super::pattern::{Pattern, has_wildcard};
use super::tree::{
    Arithmetic, Comparison, Expression, Field, Function, IdPart, Node, Operator, Step,
};
use super::{MAX_DEPTH, MAX_PATTERNS, MAX_SELECTION_BYTES, SelectionError, Types};

/// Precedence of operators; those of arithmetic follow.
const OR: u8 = 1;
const AND: u8 = 2;
const COMPARE: u8 = 3;

const KEYWORDS: [&str; 6] = ["null", "true", "false", "and", "or", "not"];

pub(super) fn parse(text: &str, types: &dyn Types) -> Result<Node, SelectionError> {
    if text.len() > MAX_SELECTION_BYTES {
        let message = format!(
            "the selection has {} bytes; it must not have more than {MAX_SELECTION_BYTES}",
            text.len()
        );
        return Err(SelectionError { message, column: 1 });
    }
    let mut lexer = Lexer::new(text);
    let (token, start) = lexer.next()?;
    if token == Token::End {
        return Ok(Node::Constant(true));
    }
    let mut parser = Parser { lexer, token, start, types, level: 0, patterns: 0 };
    let whole = parser.expression(OR)?;
    if parser.token != Token::End {
        return parser.unexpected("an operator, 'and', 'or' or the end");
    }
    parser.condition(whole).map(|(node, _)| node)
}

/// A parsed element: until an operator is seen, a field can be a value, or the condition that it is
/// set.
enum Parsed {
    Condition(Node),
    Value(Expression),
}

struct Operand {
    parsed: Parsed,
    /// Beginning, in bytes.
    start: usize,
    depth: usize,
    /// The power of `and` or `or`, as long as further terms belong to the same row.
    row: Option<u8>,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    /// Beginning of the token, in bytes.
    start: usize,
    types: &'a dyn Types,
    /// Levels of parentheses and `not` around the token.
    level: usize,
    /// Patterns compiled so far.
    patterns: usize,
}

#[derive(Clone, Copy)]
enum Binary {
    Row(u8),
    Compare(Operator),
    Arithmetic(Arithmetic),
}

impl<'a> Parser<'a> {
    fn advance(&mut self) -> Result<Token<'a>, SelectionError> {
        let (token, start) = self.lexer.next()?;
        self.start = start;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T, SelectionError> {
        let found = self.token.describe();
        self.lexer.fail(self.start, format!("expected {expected}, found {found}"))
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), SelectionError> {
        if self.token != Token::Symbol(symbol) {
            return self.unexpected(&format!("'{symbol}'"));
        }
        self.advance().map(|_| ())
    }

    fn word(&mut self, expected: &str) -> Result<&'a str, SelectionError> {
        match self.token {
            Token::Word(word) => self.advance().map(|_| word),
            _ => self.unexpected(expected),
        }
    }

    fn check_depth(&self, start: usize, depth: usize) -> Result<usize, SelectionError> {
        if depth > MAX_DEPTH {
            let message = format!("the selection is nested more than {MAX_DEPTH} levels deep");
            return self.lexer.fail(start, message);
        }
        Ok(depth)
    }

    fn condition(&self, operand: Operand) -> Result<(Node, usize), SelectionError> {
        let node = match operand.parsed {
            Parsed::Condition(node) => node,
            Parsed::Value(Expression::Bool(value)) => Node::Constant(value),
            // A field alone is the condition that it has a value.
            Parsed::Value(left @ Expression::Field(_)) => Node::Comparison(Box::new(Comparison {
                left,
                operator: Operator::NotEqual,
                right: Expression::Null,
                pattern: None,
            })),
            Parsed::Value(_) => {
                let message = "expected a condition (a comparison, document type, field, true or \
                               false), found a value";
                return self.lexer.fail(operand.start, message.to_owned());
            }
        };
        Ok((node, operand.depth))
    }

    fn value(&self, operand: Operand) -> Result<(Expression, usize), SelectionError> {
        match operand.parsed {
            Parsed::Value(value) => Ok((value, operand.depth)),
            Parsed::Condition(Node::DocumentType(name)) => {
                let name = shorten(&name);
                let message = format!(
                    "expected a value, found the document type '{name}'; fields are {name}.FIELD"
                );
                self.lexer.fail(operand.start, message)
            }
            Parsed::Condition(_) => {
                self.lexer.fail(operand.start, "expected a value, found a condition".to_owned())
            }
        }
    }

    /// The operator that the token is, and how close it binds.
    fn binary(&self) -> Option<(Binary, u8)> {
        match self.token {
            Token::Word(word) if word.eq_ignore_ascii_case("or") => Some((Binary::Row(OR), OR)),
            Token::Word(word) if word.eq_ignore_ascii_case("and") => Some((Binary::Row(AND), AND)),
            Token::Symbol(symbol) => {
                let compare = Operator::ALL.iter().find(|operator| operator.symbol() == symbol);
                if let Some(operator) = compare {
                    return Some((Binary::Compare(*operator), COMPARE));
                }
                let arithmetic = Arithmetic::ALL.iter().find(|known| known.symbol() == symbol);
                arithmetic.map(|operator| (Binary::Arithmetic(*operator), operator.power()))
            }
            _ => None,
        }
    }

    /// Reads operators that bind at least so close, with what they join.
    fn expression(&mut self, least: u8) -> Result<Operand, SelectionError> {
        let mut left = self.primary()?;
        while let Some((operator, power)) = self.binary() {
            if power < least {
                break;
            }
            self.advance()?;
            let right = self.expression(power + 1)?;
            left = match operator {
                Binary::Row(power) => self.row(left, power, right)?,
                Binary::Compare(operator) => self.comparison(left, operator, right)?,
                Binary::Arithmetic(operator) => self.arithmetic(left, operator, right)?,
            };
        }
        Ok(left)
    }

    fn row(&self, left: Operand, power: u8, right: Operand) -> Result<Operand, SelectionError> {
        let start = left.start;
        let goes_on = left.row == Some(power);
        let ((left, left_depth), (right, right_depth)) =
            (self.condition(left)?, self.condition(right)?);
        let mut depth = right_depth + 1;
        let terms = match left {
            Node::All(mut terms) | Node::Any(mut terms) if goes_on => {
                depth = depth.max(left_depth);
                terms.push(right);
                terms
            }
            left => {
                depth = depth.max(left_depth + 1);
                vec![left, right]
            }
        };
        let depth = self.check_depth(start, depth)?;
        let node = if power == AND { Node::All(terms) } else { Node::Any(terms) };
        Ok(Operand { parsed: Parsed::Condition(node), start, depth, row: Some(power) })
    }

    fn comparison(
        &mut self,
        left: Operand,
        operator: Operator,
        right: Operand,
    ) -> Result<Operand, SelectionError> {
        let (start, right_start) = (left.start, right.start);
        let ((left, left_depth), (right, right_depth)) = (self.value(left)?, self.value(right)?);
        let depth = self.check_depth(start, left_depth.max(right_depth) + 1)?;
        let pattern = match (operator, &right) {
            (Operator::Glob, Expression::Text(glob)) if has_wildcard(glob) => {
                Some(Pattern::glob(glob))
            }
            (Operator::Regex, Expression::Text(regex)) => Some(Pattern::regex(regex)),
            _ => None,
        };
        let pattern =
            pattern.transpose().or_else(|message| self.lexer.fail(right_start, message))?;
        self.patterns += usize::from(pattern.is_some());
        if self.patterns > MAX_PATTERNS {
            let message = format!("more than {MAX_PATTERNS} patterns in a selection");
            return self.lexer.fail(right_start, message);
        }
        let node = Node::Comparison(Box::new(Comparison { left, operator, right, pattern }));
        Ok(Operand { parsed: Parsed::Condition(node), start, depth, row: None })
    }

    fn arithmetic(
        &self,
        left: Operand,
        operator: Arithmetic,
        right: Operand,
    ) -> Result<Operand, SelectionError> {
        let (start, right_start) = (left.start, right.start);
        let ((left, left_depth), (right, right_depth)) = (self.value(left)?, self.value(right)?);
        let depth = self.check_depth(start, left_depth.max(right_depth) + 1)?;
        let is_zero = match right {
            Expression::Integer(number) => number == 0,
            Expression::Float(number) => number == 0.0,
            _ => false,
        };
        if is_zero && matches!(operator, Arithmetic::Divide | Arithmetic::Remainder) {
            return self.lexer.fail(right_start, "division by zero".to_owned());
        }
        let value = Expression::Arithmetic(Box::new(left), operator, Box::new(right));
        Ok(Operand { parsed: Parsed::Value(value), start, depth, row: None })
    }

    /// Reads what is no binary operator, and the functions behind it.
    fn primary(&mut self) -> Result<Operand, SelectionError> {
        let start = self.start;
        let mut operand = match self.token {
            Token::Symbol("(") => {
                let mut inner = self.nested(OR)?;
                self.expect(")")?;
                (inner.row, inner.start) = (None, start);
                inner
            }
            Token::Word(word) if word.eq_ignore_ascii_case("not") => {
                // Behind 'not' stands a comparison or something closer.
                let inner = self.nested(COMPARE)?;
                let (node, depth) = self.condition(inner)?;
                let depth = self.check_depth(start, depth + 1)?;
                let node = Node::Not(Box::new(node));
                return Ok(Operand { parsed: Parsed::Condition(node), start, depth, row: None });
            }
            _ => Operand { parsed: self.leaf()?, start, depth: 1, row: None },
        };
        while self.token == Token::Symbol(".") {
            let (value, depth) = self.value(operand)?;
            self.advance()?;
            let (name_start, name) = (self.start, self.word("the name of a function")?);
            let value = self.call(value, name, name_start)?;
            let depth = self.check_depth(start, depth + 1)?;
            operand = Operand { parsed: Parsed::Value(value), start, depth, row: None };
        }
        Ok(operand)
    }

    /// Reads behind a parenthesis or `not`, one level deeper.
    fn nested(&mut self, least: u8) -> Result<Operand, SelectionError> {
        self.level = self.check_depth(self.start, self.level + 1)?;
        self.advance()?;
        let inner = self.expression(least)?;
        self.level -= 1;
        Ok(inner)
    }

    /// Reads `()` behind the name of a function.
    fn call(
        &mut self,
        of: Expression,
        name: &str,
        start: usize,
    ) -> Result<Expression, SelectionError> {
        let Some(function) = Function::ALL.into_iter().find(|known| known.name() == name) else {
            let name = shorten(name);
            let message = format!("no function '{name}' exists; expected lowercase, hash or abs");
            return self.lexer.fail(start, message);
        };
        if of == Expression::Id(IdPart::Bucket) {
            return self.lexer.fail(start, "no function takes id.bucket".to_owned());
        }
        self.expect("(")?;
        self.expect(")")?;
        Ok(Expression::Call(function, Box::new(of)))
    }

    fn leaf(&mut self) -> Result<Parsed, SelectionError> {
        const EXPECTED: &str = "a value, a document type, 'not' or '('";
        let value = match &mut self.token {
            Token::Text(text) => Expression::Text(std::mem::take(text)),
            Token::Now => Expression::Now,
            Token::Integer { .. } | Token::Float(_) => return self.number(false),
            Token::Symbol(sign @ ("-" | "+")) => {
                let is_negative = *sign == "-";
                self.advance()?;
                return self.number(is_negative);
            }
            Token::Symbol("$") => {
                self.advance()?;
                let name = self.word("the name of a variable")?;
                return Ok(Parsed::Value(Expression::Variable(name.to_owned())));
            }
            Token::Word(word) => {
                let word = *word;
                return self.named(word, EXPECTED);
            }
            _ => return self.unexpected(EXPECTED),
        };
        self.advance()?;
        Ok(Parsed::Value(value))
    }

    fn number(&mut self, is_negative: bool) -> Result<Parsed, SelectionError> {
        let value = match self.token {
            Token::Float(value) => Expression::Float(if is_negative { -value } else { value }),
            Token::Integer { magnitude, is_hex } => {
                let bits = magnitude.cast_signed();
                let value = if is_negative { bits.wrapping_neg() } else { bits };
                let fits = is_hex || magnitude == 0 || (value < 0) == is_negative;
                if !fits {
                    let message = "the number is out of the 64-bit range".to_owned();
                    return self.lexer.fail(self.start, message);
                }
                Expression::Integer(value)
            }
            _ => return self.unexpected("a number behind the sign"),
        };
        self.advance()?;
        Ok(Parsed::Value(value))
    }

    /// Reads what begins with a word: a keyword, a part of the id, a document type or a field.
    fn named(&mut self, word: &'a str, expected: &str) -> Result<Parsed, SelectionError> {
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword);
        let value = match word {
            _ if is("null") => Expression::Null,
            _ if is("true") => Expression::Bool(true),
            _ if is("false") => Expression::Bool(false),
            _ if is("and") || is("or") => return self.unexpected(expected),
            _ if is("id") => {
                self.advance()?;
                return self.id().map(Parsed::Value);
            }
            _ => {
                let start = self.start;
                if !self.types.has_type(word) {
                    let message = format!("Document type '{}' not found", shorten(word));
                    return self.lexer.fail(start, message);
                }
                self.advance()?;
                if self.token != Token::Symbol(".") {
                    return Ok(Parsed::Condition(Node::DocumentType(word.to_owned())));
                }
                return self.field(word).map(Parsed::Value);
            }
        };
        self.advance()?;
        Ok(Parsed::Value(value))
    }

    /// Reads behind `id`.
    fn id(&mut self) -> Result<Expression, SelectionError> {
        if self.token != Token::Symbol(".") {
            return Ok(Expression::Id(IdPart::Whole));
        }
        self.advance()?;
        const EXPECTED: &str = "scheme, namespace, type, specific, user, group, bucket, gid or a \
                                function behind 'id.'";
        let start = self.start;
        let name = match self.token {
            Token::Word(name) => name,
            _ => return self.unexpected(EXPECTED),
        };
        let part = IdPart::NAMED.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
        if let Some((_, part)) = part {
            self.advance()?;
            return Ok(Expression::Id(*part));
        }
        if !Function::ALL.iter().any(|function| function.name() == name) {
            return self.unexpected(EXPECTED);
        }
        self.advance()?;
        self.call(Expression::Id(IdPart::Whole), name, start)
    }

    /// Reads the field behind the name of a document type, at the point.
    fn field(&mut self, document_type: &str) -> Result<Expression, SelectionError> {
        self.advance()?;
        let start = self.start;
        let name = self.word("the name of a field")?;
        if KEYWORDS.iter().any(|keyword| name.eq_ignore_ascii_case(keyword)) {
            return self.lexer.fail(start, format!("'{name}' is a keyword, no name of a field"));
        }
        if self.token == Token::Symbol("(") {
            let message = format!("cannot call '{}' on a document type", shorten(name));
            return self.lexer.fail(start, message);
        }
        let Some(mut of) = self.types.field_type(document_type, name) else {
            let message =
                format!("Document type '{document_type}' has no field '{}'", shorten(name));
            return self.lexer.fail(start, message);
        };
        let mut field = Field {
            document_type: document_type.to_owned(),
            name: name.to_owned(),
            steps: Vec::new(),
        };
        loop {
            let mut start = self.start;
            let step = match &mut self.token {
                Token::Lookup(lookup) => {
                    let step = step(std::mem::replace(lookup, Lookup::Index(0)));
                    self.advance()?;
                    step
                }
                Token::Symbol(".") => {
                    self.advance()?;
                    start = self.start;
                    let name = self.word("'key', 'value' or the name of a function")?;
                    if self.token == Token::Symbol("(") {
                        return self.call(Expression::Field(field), name, start);
                    }
                    match name {
                        "key" => Step::Keys,
                        "value" => Step::Values,
                        _ => {
                            let message = format!(
                                "expected 'key', 'value' or a function with '()', found '{}'",
                                shorten(name)
                            );
                            return self.lexer.fail(start, message);
                        }
                    }
                }
                _ => return Ok(Expression::Field(field)),
            };
            of = match step_type(of, &step) {
                Ok(of) => of,
                Err(message) => return self.lexer.fail(start, message.to_owned()),
            };
            field.steps.push(step);
        }
    }
}

fn step(lookup: Lookup) -> Step {
    match lookup {
        Lookup::Index(index) => Step::Index(index),
        Lookup::IndexVariable(name) => Step::IndexVariable(name),
        Lookup::Key(key) => Step::Key(key),
        Lookup::KeyVariable(name) => Step::KeyVariable(name),
    }
}
