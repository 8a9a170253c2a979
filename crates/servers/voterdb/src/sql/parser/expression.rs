//! Values and conditions.

use super::{Parser, Token};
use crate::sql::syntax::{Aggregate, Compare, Expr, Function, Sum};

/// Brackets, NOTs and signs that may be open at once. Each costs the stack of whoever reads, checks and computes.
const DEPTH_MAX: usize = 64;
/// Operators of a statement that nest to the left.
const SUMS_MAX: usize = 500;

impl Parser {
    /// A value, not a condition.
    pub(super) fn value(&mut self) -> Result<Expr, String> {
        let found = self.either()?;
        if found.is_condition() {
            return Err("a condition stands where a value is expected".to_owned());
        }
        Ok(found)
    }

    /// A condition, not a value.
    pub(super) fn condition(&mut self) -> Result<Expr, String> {
        let found = self.either()?;
        if !found.is_condition() {
            return Err("a value stands where a condition is expected".to_owned());
        }
        Ok(found)
    }

    fn either(&mut self) -> Result<Expr, String> {
        self.nested(|parser| {
            parser.chain("OR", Expr::Or, |parser| parser.chain("AND", Expr::And, Self::negation))
        })
    }

    fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.depth == DEPTH_MAX {
            return Err(format!("expressions are nested more than {DEPTH_MAX} deep"));
        }
        self.depth += 1;
        let found = inner(self);
        self.depth -= 1;
        found
    }

    /// Conditions with the same word between them.
    fn chain(
        &mut self,
        word: &str,
        make: impl Fn(Vec<Expr>) -> Expr,
        one: impl Fn(&mut Self) -> Result<Expr, String>,
    ) -> Result<Expr, String> {
        let first = one(self)?;
        if !self.is_word(word) {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.take_word(word) {
            all.push(one(self)?);
        }
        if all.iter().any(|part| !part.is_condition()) {
            return Err(format!("a value stands beside {word}, where a condition is expected"));
        }
        Ok(make(all))
    }

    fn negation(&mut self) -> Result<Expr, String> {
        if !self.take_word("NOT") {
            return self.comparison();
        }
        let inner = self.nested(Self::negation)?;
        if !inner.is_condition() {
            return Err("a value follows NOT, where a condition is expected".to_owned());
        }
        Ok(Expr::Not(Box::new(inner)))
    }

    fn comparison(&mut self) -> Result<Expr, String> {
        let left = self.sum()?;
        if self.take_word("IS") {
            let is_negated = self.take_word("NOT");
            self.expect_word("NULL")?;
            return Ok(negated(Expr::IsNull(Box::new(left)), is_negated));
        }
        let is_negated = self.take_word("NOT");
        if self.take_word("BETWEEN") {
            let low = self.sum()?;
            self.expect_word("AND")?;
            let high = self.sum()?;
            let between = Expr::Between(Box::new(left), Box::new(low), Box::new(high));
            return Ok(negated(between, is_negated));
        }
        if self.take_word("IN") {
            self.expect_sign("(")?;
            if self.is_word("SELECT") {
                return Err("sub-queries are not supported".to_owned());
            }
            let list = self.list(Self::value)?;
            self.expect_sign(")")?;
            return Ok(negated(Expr::In(Box::new(left), list), is_negated));
        }
        if self.take_word("LIKE") {
            let pattern = self.sum()?;
            return Ok(negated(Expr::Like(Box::new(left), Box::new(pattern)), is_negated));
        }
        if is_negated {
            return Err(self.unexpected("BETWEEN, IN or LIKE"));
        }
        let Some(compare) = self.compare() else { return Ok(left) };
        let right = self.sum()?;
        if left.is_condition() || right.is_condition() {
            return Err("a condition is compared like a value".to_owned());
        }
        Ok(Expr::Compare(compare, Box::new(left), Box::new(right)))
    }

    fn compare(&mut self) -> Option<Compare> {
        let found = match self.peek()? {
            Token::Sign("=") => Compare::Equal,
            Token::Sign("<>" | "!=") => Compare::Unequal,
            Token::Sign("<") => Compare::Less,
            Token::Sign("<=") => Compare::LessOrEqual,
            Token::Sign(">") => Compare::Greater,
            Token::Sign(">=") => Compare::GreaterOrEqual,
            _ => return None,
        };
        self.at += 1;
        Some(found)
    }

    fn sum(&mut self) -> Result<Expr, String> {
        let signs = [("+", Sum::Add), ("-", Sum::Subtract)];
        self.sums(&signs, |parser| {
            parser.sums(&[("*", Sum::Multiply), ("/", Sum::Divide)], Self::signed)
        })
    }

    fn sums(
        &mut self,
        signs: &[(&str, Sum)],
        one: impl Fn(&mut Self) -> Result<Expr, String>,
    ) -> Result<Expr, String> {
        let mut left = one(self)?;
        while let Some((sign, sum)) = signs.iter().find(|(sign, _)| self.is_sign(sign)) {
            self.expect_sign(sign)?;
            self.sums += 1;
            if self.sums > SUMS_MAX {
                return Err(format!("more than {SUMS_MAX} operators in one statement"));
            }
            let right = one(self)?;
            if left.is_condition() || right.is_condition() {
                return Err(format!("a condition stands beside '{sign}'"));
            }
            left = Expr::Sum(*sum, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Expr, String> {
        if self.take_sign("+") {
            return self.nested(Self::signed);
        }
        if !self.take_sign("-") {
            return self.primary();
        }
        match self.nested(Self::signed)? {
            Expr::Int(number) => Ok(Expr::Int(-number)),
            Expr::Float(number) => Ok(Expr::Float(-number)),
            inner if inner.is_condition() => Err("a condition follows '-'".to_owned()),
            inner => Ok(Expr::Negate(Box::new(inner))),
        }
    }

    fn primary(&mut self) -> Result<Expr, String> {
        let Some(token) = self.peek().cloned() else {
            return Err(self.unexpected("a value"));
        };
        let found = match token {
            Token::Int(number) => Expr::Int(number),
            Token::Float(number) => Expr::Float(number),
            Token::Text(text) => Expr::Text(text),
            Token::Param => {
                self.params += 1;
                Expr::Param(self.params - 1)
            }
            Token::Sign("(") => {
                self.at += 1;
                if self.is_word("SELECT") {
                    return Err("sub-queries are not supported".to_owned());
                }
                let inner = self.either()?;
                self.expect_sign(")")?;
                return Ok(inner);
            }
            Token::Word(word) if word == "NULL" => Expr::Null,
            Token::Word(word) if matches!(self.tokens.get(self.at + 1), Some(Token::Sign("("))) => {
                self.at += 2;
                return self.call(&word);
            }
            Token::Word(_) | Token::Quoted(_) => {
                let name = self.name("a value")?;
                if self.take_sign(".") {
                    return Ok(Expr::Name(Some(name), self.name("a column")?));
                }
                return Ok(Expr::Name(None, name));
            }
            Token::Sign(_) => return Err(self.unexpected("a value")),
        };
        self.at += 1;
        Ok(found)
    }

    /// The rest of `NAME(`.
    fn call(&mut self, name: &str) -> Result<Expr, String> {
        let aggregate = match name {
            "COUNT" => Some(Aggregate::Count),
            "SUM" => Some(Aggregate::Sum),
            "MIN" => Some(Aggregate::Min),
            "MAX" => Some(Aggregate::Max),
            "AVG" => Some(Aggregate::Avg),
            _ => None,
        };
        if let Some(kind) = aggregate {
            if kind == Aggregate::Count && self.take_sign("*") {
                self.expect_sign(")")?;
                return Ok(Expr::Aggregate { kind, is_distinct: false, of: None });
            }
            let is_distinct = self.take_word("DISTINCT");
            let of = Some(Box::new(self.value()?));
            self.expect_sign(")")?;
            return Ok(Expr::Aggregate { kind, is_distinct, of });
        }
        let (function, wanted) = match name {
            "MOD" => (Function::Mod, 2),
            "ABS" => (Function::Abs, 1),
            "UPPER" => (Function::Upper, 1),
            "LOWER" => (Function::Lower, 1),
            "CHAR_LENGTH" => (Function::CharLength, 1),
            _ => {
                return Err(format!(
                    "user lacks privilege or object not found: {name}; known functions: COUNT, SUM, \
                     MIN, MAX, AVG, MOD, ABS, UPPER, LOWER, CHAR_LENGTH"
                ));
            }
        };
        let values = self.list(Self::value)?;
        self.expect_sign(")")?;
        if values.len() != wanted {
            return Err(format!("{name} takes {wanted} values, but {} are given", values.len()));
        }
        Ok(Expr::Call(function, values))
    }
}

fn negated(condition: Expr, is_negated: bool) -> Expr {
    if is_negated { Expr::Not(Box::new(condition)) } else { condition }
}
