//! Cuts YQL text into tokens that know where they stand.

use plimsoll_index::query::Number;

/// Position in the text: both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(String),
    Text(String),
    Number(Number),
    /// `@name`, a reference to a request parameter.
    Parameter(String),
    Symbol(&'static str),
    End,
}

impl Token {
    /// The way a message names the token.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("'{word}'"),
            Self::Text(text) => format!("the string \"{}\"", shorten(text)),
            Self::Number(Number::Whole(value)) => format!("the number {value}"),
            Self::Number(Number::Real(value)) => format!("the number {value}"),
            Self::Parameter(name) => format!("'@{name}'"),
            Self::Symbol(symbol) => format!("'{symbol}'"),
            Self::End => "the end of the query".to_owned(),
        }
    }
}

/// Keeps quoted text in messages short.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 40;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(LONGEST).collect();
    short.push_str("...");
    short
}

/// Two-character symbols come before their first characters.
const SYMBOLS: [&str; 20] = [
    "<=", ">=", "!=", "==", "(", ")", "{", "}", "[", "]", ",", ":", ";", "*", "=", "<", ">", "!",
    "-", "|",
];

/// An error and its position.
pub(super) type LexError = (Position, String);

pub(super) struct Lexer<'a> {
    rest: &'a str,
    position: Position,
}

impl<'a> Lexer<'a> {
    /// All tokens of the text with their positions; the last one is [`Token::End`].
    pub(super) fn tokens(text: &'a str) -> Result<Vec<(Position, Token)>, LexError> {
        let mut lexer = Self { rest: text, position: Position { line: 1, column: 1 } };
        let mut tokens = Vec::new();
        loop {
            lexer.skip_space();
            let position = lexer.position;
            let token = lexer.next()?;
            let ended = token == Token::End;
            tokens.push((position, token));
            if ended {
                return Ok(tokens);
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        if c == '\n' {
            self.position.line = self.position.line.saturating_add(1);
            self.position.column = 1;
        } else {
            self.position.column = self.position.column.saturating_add(1);
        }
        Some(c)
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.bump();
        }
    }

    fn next(&mut self) -> Result<Token, LexError> {
        let Some(c) = self.peek() else { return Ok(Token::End) };
        if c == '"' || c == '\'' {
            return self.text();
        }
        if c.is_ascii_digit() {
            return self.number();
        }
        if c.is_ascii_alphabetic() || c == '_' {
            return Ok(Token::Word(self.word()));
        }
        if c == '@' {
            let position = self.position;
            self.bump();
            let name = self.word();
            if name.is_empty() {
                return Err((position, "expected a parameter name after '@'".to_owned()));
            }
            return Ok(Token::Parameter(name));
        }
        for symbol in SYMBOLS {
            if self.rest.starts_with(symbol) {
                for _ in symbol.chars() {
                    self.bump();
                }
                return Ok(Token::Symbol(symbol));
            }
        }
        Err((self.position, format!("unexpected character '{}'", c.escape_default())))
    }

    fn word(&mut self) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        self.take_while(is_part)
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.peek().filter(|c| accept(*c)) {
            taken.push(c);
            self.bump();
        }
        taken
    }

    fn number(&mut self) -> Result<Token, LexError> {
        let position = self.position;
        let mut digits = self.take_while(|c| c.is_ascii_digit());
        let mut real = false;
        if self.peek() == Some('.') {
            real = true;
            self.bump();
            digits.push('.');
            digits.push_str(&self.take_while(|c| c.is_ascii_digit()));
        }
        if self.peek().is_some_and(|c| c == 'e' || c == 'E') {
            real = true;
            self.bump();
            digits.push('e');
            if let Some(sign) = self.peek().filter(|c| *c == '-' || *c == '+') {
                digits.push(sign);
                self.bump();
            }
            digits.push_str(&self.take_while(|c| c.is_ascii_digit()));
        }
        if !real && self.peek() == Some('L') {
            self.bump();
        }
        if self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err((self.position, format!("expected a space after the number {digits}")));
        }
        if !real && let Ok(value) = digits.parse::<i64>() {
            return Ok(Token::Number(Number::Whole(value)));
        }
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Token::Number(Number::Real(value))),
            _ => Err((position, format!("'{}' is not a number", shorten(&digits)))),
        }
    }

    fn text(&mut self) -> Result<Token, LexError> {
        let start = self.position;
        let quote = self.bump();
        let mut text = String::new();
        loop {
            let position = self.position;
            match self.bump() {
                None => {
                    return Err((start, "this string has no closing quote".to_owned()));
                }
                Some('\\') => text.push(self.escape(position)?),
                c if c == quote => return Ok(Token::Text(text)),
                Some(c) => text.push(c),
            }
        }
    }

    fn escape(&mut self, position: Position) -> Result<char, LexError> {
        Ok(match self.bump() {
            Some(c @ ('"' | '\'' | '\\' | '/')) => c,
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => self.hex_escape(position)?,
            _ => {
                let message = "expected one of \\\" \\' \\\\ \\/ \\n \\t \\r \\b \\f \\uXXXX";
                return Err((position, message.to_owned()));
            }
        })
    }

    fn hex_escape(&mut self, position: Position) -> Result<char, LexError> {
        let unit = self.hex_unit(position)?;
        // Characters outside of the first plane come as two escapes, high half first.
        if (0xD800..0xDC00).contains(&unit) && self.rest.starts_with("\\u") {
            self.bump();
            self.bump();
            let low = self.hex_unit(position)?;
            if (0xDC00..0xE000).contains(&low) {
                let code = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                return char::from_u32(code)
                    .ok_or_else(|| (position, "this is not a character".to_owned()));
            }
        }
        char::from_u32(unit).ok_or_else(|| (position, "this is half a character".to_owned()))
    }

    fn hex_unit(&mut self, position: Position) -> Result<u32, LexError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.bump().and_then(|c| c.to_digit(16));
            let digit =
                digit.ok_or_else(|| (position, "expected four hex digits after \\u".to_owned()))?;
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }
}
