//! YQL: text in, [`Statement`] out.
//!
//! Every message names the line and column where it went wrong and what was expected there. Text
//! length, nesting and list lengths are bounded, so that no query can exhaust the stack.

mod annotations;
mod expression;
mod functions;
mod lexer;

use super::query_type::QueryTypeParts;
use annotations::Annotations;
use lexer::{Lexer, Position, Token};
use plimsoll_index::query::{Node, Number, OrderBy, Selection, Statement};

/// The longest query text, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Deepest nesting of parentheses and negations.
pub(crate) const MAX_DEPTH: usize = 64;

/// The names outside the text that it can refer to.
pub(crate) trait Scope {
    /// The value of the request parameter of this name.
    fn parameter(&self, name: &str) -> Option<&str>;

    /// The tree of the request parameter `query`; [`Node::Null`] without one.
    ///
    /// # Errors
    /// When the text asks for what this server does not have.
    fn user_query(&self) -> Result<Node, String>;

    /// The tree of a text that stands in the statement; [`Node::Null`] without a word in it.
    ///
    /// # Errors
    /// As [`Scope::user_query`], and when the field or the grammar is unknown.
    fn free_text(&self, text: &FreeText<'_>) -> Result<Node, String>;
}

/// Text as people type it, inside of a statement.
pub(crate) struct FreeText<'a> {
    pub(crate) text: &'a str,
    /// Field in which words without a field are searched; none: the default fields.
    pub(crate) field: Option<&'a str>,
    pub(crate) grammar: &'a QueryTypeParts,
    /// Distance of words, if the grammar asks for near ones.
    pub(crate) distance: Option<u32>,
    /// The text is cut into words without regard to signs, unless the grammar says otherwise.
    pub(crate) only_words: bool,
}

/// Reason why the text was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("query:L{line}:{column} {message}")]
pub(crate) struct YqlError {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) message: String,
}

impl YqlError {
    fn at(position: Position, message: impl Into<String>) -> Self {
        Self { line: position.line, column: position.column, message: message.into() }
    }
}

/// Parses one statement.
///
/// # Errors
/// When the text is too long, too deep or not a statement of the supported grammar.
pub(crate) fn parse(text: &str, scope: &dyn Scope) -> Result<Statement, YqlError> {
    if text.len() > MAX_TEXT_BYTES {
        let start = Position { line: 1, column: 1 };
        let message =
            format!("the query has {} bytes, at most {MAX_TEXT_BYTES} are accepted", text.len());
        return Err(YqlError::at(start, message));
    }
    let tokens =
        Lexer::tokens(text).map_err(|(position, message)| YqlError::at(position, message))?;
    Parser { tokens, next: 0, depth: 0, scope, inherited: Annotations::default() }.statement()
}

struct Parser<'a> {
    tokens: Vec<(Position, Token)>,
    next: usize,
    depth: usize,
    scope: &'a dyn Scope,
    /// The annotations of the parentheses and functions around.
    inherited: Annotations,
}

impl Parser<'_> {
    fn statement(&mut self) -> Result<Statement, YqlError> {
        self.expect_keyword("select")?;
        let selection = self.selection()?;
        self.expect_keyword("from")?;
        let sources = self.sources()?;
        self.expect_keyword("where")?;
        let filter = self.expression()?;
        let order = if self.accept_keyword("order") {
            self.expect_keyword("by")?;
            self.order()?
        } else {
            Vec::new()
        };
        let mut statement = Statement {
            selection,
            sources,
            filter,
            order,
            limit: None,
            offset: None,
            timeout_ms: None,
        };
        self.tail(&mut statement)?;
        Ok(statement)
    }

    /// `limit`, `offset` and `timeout` in this order, then the end.
    fn tail(&mut self, statement: &mut Statement) -> Result<(), YqlError> {
        if self.accept_keyword("limit") {
            statement.limit = Some(self.count("limit")?);
        }
        if self.accept_keyword("offset") {
            statement.offset = Some(self.count("offset")?);
        }
        if self.accept_keyword("timeout") {
            statement.timeout_ms = Some(self.count("timeout")?);
        }
        if self.peek() == &Token::Symbol("|") {
            return Err(self.error("grouping with '|' is not supported by this server"));
        }
        self.accept(";");
        if self.peek() == &Token::End {
            return Ok(());
        }
        let expected = "'and', 'or', 'order by', 'limit', 'offset', 'timeout' or the end";
        Err(self.expected(expected))
    }

    fn selection(&mut self) -> Result<Selection, YqlError> {
        if self.accept("*") {
            return Ok(Selection::All);
        }
        let mut names = vec![self.name("'*' or a field name")?];
        while self.accept(",") {
            names.push(self.name("a field name")?);
        }
        Ok(Selection::Named(names))
    }

    fn sources(&mut self) -> Result<Vec<String>, YqlError> {
        let listed = self.accept_keyword("sources");
        if self.accept("*") {
            return Ok(Vec::new());
        }
        let expected =
            if listed { "'*' or a document type" } else { "'sources', '*' or a document type" };
        let mut names = vec![self.name(expected)?];
        while self.accept(",") {
            names.push(self.name("a document type")?);
        }
        Ok(names)
    }

    fn order(&mut self) -> Result<Vec<OrderBy>, YqlError> {
        let mut order = Vec::new();
        loop {
            // `{function: ...}` chooses a collation; this server has one.
            if self.peek() == &Token::Symbol("{") {
                self.annotations()?;
            }
            let field = self.name("a field name to order by")?;
            let descending = if self.accept_keyword("desc") {
                true
            } else {
                self.accept_keyword("asc");
                false
            };
            order.push(OrderBy { field, descending });
            if !self.accept(",") {
                return Ok(order);
            }
        }
    }

    fn count(&mut self, what: &str) -> Result<u64, YqlError> {
        if let Token::Number(Number::Whole(value)) = self.peek()
            && let Ok(value) = u64::try_from(*value)
        {
            self.next += 1;
            return Ok(value);
        }
        Err(self.expected(&format!("a whole number of 0 or more after '{what}'")))
    }

    fn peek(&self) -> &Token {
        // The last token is always the end, and nobody moves past it.
        self.tokens.get(self.next).map_or(&Token::End, |(_, token)| token)
    }

    fn peek_second(&self) -> &Token {
        self.tokens.get(self.next + 1).map_or(&Token::End, |(_, token)| token)
    }

    fn position(&self) -> Position {
        let last = self.tokens.len().saturating_sub(1);
        self.tokens
            .get(self.next.min(last))
            .map_or(Position { line: 1, column: 1 }, |(position, _)| *position)
    }

    fn error(&self, message: impl Into<String>) -> YqlError {
        YqlError::at(self.position(), message)
    }

    fn expected(&self, what: &str) -> YqlError {
        self.error(format!("expected {what}, found {}", self.peek().describe()))
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(next) if *next == symbol);
        if found {
            self.next += 1;
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), YqlError> {
        if self.accept(symbol) { Ok(()) } else { Err(self.expected(&format!("'{symbol}'"))) }
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self.peek(), Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn accept_keyword(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword);
        if found {
            self.next += 1;
        }
        found
    }

    fn expect_keyword(&mut self, keyword: &str) -> Result<(), YqlError> {
        if self.accept_keyword(keyword) {
            Ok(())
        } else {
            Err(self.expected(&format!("'{keyword}'")))
        }
    }

    fn name(&mut self, expected: &str) -> Result<String, YqlError> {
        if let Token::Word(word) = self.peek() {
            let word = word.clone();
            self.next += 1;
            return Ok(word);
        }
        Err(self.expected(expected))
    }

    /// Runs a rule inside of what has these annotations.
    fn inside<T>(
        &mut self,
        annotations: &Annotations,
        rule: impl FnOnce(&mut Self) -> Result<T, YqlError>,
    ) -> Result<T, YqlError> {
        let inherited = annotations.clone().or(self.inherited.clone());
        let outer = std::mem::replace(&mut self.inherited, inherited);
        let result = rule(self);
        self.inherited = outer;
        result
    }

    /// Runs a rule one level deeper.
    fn nested<T>(
        &mut self,
        rule: impl FnOnce(&mut Self) -> Result<T, YqlError>,
    ) -> Result<T, YqlError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} levels of nesting")));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }
}
