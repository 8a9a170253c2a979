//! Cuts the text of a selection into tokens.

use super::SelectionError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A name or keyword.
    Word(&'a str),
    Text(String),
    /// Without its sign; hexadecimal ones name the bits of a signed number.
    Integer {
        magnitude: u64,
        is_hex: bool,
    },
    Float(f64),
    /// `now()`, which is one token and case-sensitive.
    Now,
    Lookup(Lookup),
    Symbol(&'static str),
    End,
}

/// The text in `[]` or `{}` after a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Lookup {
    Index(usize),
    IndexVariable(String),
    Key(String),
    KeyVariable(String),
}

impl Token<'_> {
    /// The way a message names the token.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("'{}'", shorten(word)),
            Self::Text(text) => format!("the string \"{}\"", shorten(text)),
            Self::Integer { magnitude, .. } => format!("the number {magnitude}"),
            Self::Float(value) => format!("the number {value}"),
            Self::Now => "now()".to_owned(),
            Self::Lookup(Lookup::Index(_) | Lookup::IndexVariable(_)) => "'['".to_owned(),
            Self::Lookup(_) => "'{'".to_owned(),
            Self::Symbol(symbol) => format!("'{symbol}'"),
            Self::End => "the end of the selection".to_owned(),
        }
    }
}

/// Keeps quoted text in messages short.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Those of two characters come before their first ones.
const SYMBOLS: [&str; 18] =
    ["=~", "==", "!=", ">=", "<=", "=", ">", "<", "$", ".", "(", ")", ",", "+", "-", "*", "/", "%"];

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn fail<T>(&self, at: usize, message: String) -> Result<T, SelectionError> {
        Err(SelectionError { message, column: self.text[..at].chars().count() + 1 })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n' | '\u{c}');
        self.at = self.text.len() - self.rest().trim_start_matches(is_space).len();
    }

    /// Takes characters as long as the condition holds.
    fn take_while(&mut self, is_taken: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !is_taken(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn take_word(&mut self) -> &'a str {
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return "";
        }
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    /// The next token and where it begins, in bytes.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, usize), SelectionError> {
        self.skip_space();
        let start = self.at;
        let Some(first) = self.rest().chars().next() else { return Ok((Token::End, start)) };
        let token = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                let word = self.take_word();
                if word == "now" && self.rest().starts_with("()") {
                    self.at += 2;
                    Token::Now
                } else {
                    Token::Word(word)
                }
            }
            '0'..='9' => self.number()?,
            '"' | '\'' => Token::Text(self.string(first)?),
            '[' => Token::Lookup(self.index()?),
            '{' => Token::Lookup(self.key()?),
            _ => {
                let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol))
                else {
                    return self.fail(start, format!("unexpected character {first:?}"));
                };
                self.at += symbol.len();
                Token::Symbol(symbol)
            }
        };
        Ok((token, start))
    }

    fn number(&mut self) -> Result<Token<'a>, SelectionError> {
        let start = self.at;
        if self.rest().starts_with("0x") || self.rest().starts_with("0X") {
            self.at += 2;
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            return match u64::from_str_radix(digits, 16) {
                Ok(magnitude) if digits.len() <= 16 => {
                    Ok(Token::Integer { magnitude, is_hex: true })
                }
                _ => self.fail(start, "expected 1 to 16 hexadecimal digits behind 0x".to_owned()),
            };
        }
        let digits = self.take_while(|c| c.is_ascii_digit());
        if !self.rest().starts_with('.') {
            return match digits.parse() {
                Ok(magnitude) => Ok(Token::Integer { magnitude, is_hex: false }),
                Err(_) => self.fail(start, "the number is out of the 64-bit range".to_owned()),
            };
        }
        self.at += 1;
        self.take_while(|c| c.is_ascii_digit());
        let mantissa = self.at;
        if self.rest().starts_with(['e', 'E']) {
            self.at += 1;
            self.at += usize::from(self.rest().starts_with(['+', '-']));
            if self.take_while(|c| c.is_ascii_digit()).is_empty() {
                // An 'e' with nothing behind it belongs to no number.
                self.at = mantissa;
            }
        }
        let value = self.text[start..self.at].parse().ok().filter(|value: &f64| value.is_finite());
        self.at += usize::from(self.rest().starts_with(['f', 'F', 'd', 'D']));
        match value {
            Some(value) => Ok(Token::Float(value)),
            None => self.fail(start, "the number is out of the range of doubles".to_owned()),
        }
    }

    /// A string literal; escapes name bytes, so the result may turn out to be no text.
    fn string(&mut self, quote: char) -> Result<String, SelectionError> {
        let start = self.at;
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let plain = self.take_while(|c| c != quote && c != '\\');
            bytes.extend_from_slice(plain.as_bytes());
            if self.rest().starts_with(quote) {
                self.at += 1;
                break;
            }
            let escape = self.rest().as_bytes();
            let (byte, length) = match escape.get(1) {
                Some(b't') => (b'\t', 2),
                Some(b'n') => (b'\n', 2),
                Some(b'r') => (b'\r', 2),
                Some(b'f') => (b'\x0c', 2),
                Some(byte @ (b'\\' | b'"' | b'\'')) => (*byte, 2),
                Some(b'x') => {
                    let digits = escape.get(2..4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
                    let byte = digits.and_then(|digits| std::str::from_utf8(digits).ok());
                    match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                        Some(byte) => (byte, 4),
                        None => return self.fail(self.at, bad_escape()),
                    }
                }
                Some(_) => return self.fail(self.at, bad_escape()),
                None => return self.fail(start, format!("the string has no closing {quote}")),
            };
            bytes.push(byte);
            self.at += length;
        }
        String::from_utf8(bytes)
            .or_else(|_| self.fail(start, "the string is not UTF-8 text".to_owned()))
    }

    fn index(&mut self) -> Result<Lookup, SelectionError> {
        let start = self.at;
        self.at += 1;
        self.skip_space();
        let lookup = if self.rest().starts_with('$') {
            self.at += 1;
            let name = self.take_word();
            (!name.is_empty()).then(|| Lookup::IndexVariable(name.to_owned()))
        } else {
            self.take_while(|c| c.is_ascii_digit()).parse().ok().map(Lookup::Index)
        };
        self.close(start, ']', lookup, "expected [NUMBER] or [$NAME]")
    }

    fn key(&mut self) -> Result<Lookup, SelectionError> {
        let start = self.at;
        self.at += 1;
        self.skip_space();
        let lookup = match self.rest().chars().next() {
            Some('$') => {
                self.at += 1;
                let name = self.take_word();
                (!name.is_empty()).then(|| Lookup::KeyVariable(name.to_owned()))
            }
            Some('"') => self.quoted_key().map(Lookup::Key),
            Some('0'..='9') => {
                Some(Lookup::Key(self.take_while(|c| c.is_ascii_digit()).to_owned()))
            }
            _ => {
                let word = self.take_word();
                (!word.is_empty()).then(|| Lookup::Key(word.to_owned()))
            }
        };
        self.close(start, '}', lookup, "expected {KEY}, {\"KEY\"} or {$NAME}")
    }

    /// Field paths have fewer escapes than strings: `\"` and `\\`.
    fn quoted_key(&mut self) -> Option<String> {
        let mut key = String::new();
        self.at += 1;
        loop {
            key.push_str(self.take_while(|c| c != '"' && c != '\\'));
            let mut rest = self.rest().chars();
            if rest.next()? == '"' {
                self.at += 1;
                return Some(key);
            }
            key.push(rest.next().filter(|c| matches!(c, '"' | '\\'))?);
            self.at += 2;
        }
    }

    fn close(
        &mut self,
        start: usize,
        bracket: char,
        lookup: Option<Lookup>,
        expected: &str,
    ) -> Result<Lookup, SelectionError> {
        self.skip_space();
        match lookup {
            Some(lookup) if self.rest().starts_with(bracket) => {
                self.at += 1;
                Ok(lookup)
            }
            _ => self.fail(start, expected.to_owned()),
        }
    }
}

fn bad_escape() -> String {
    "unknown escape; expected \\\\ \\\" \\' \\t \\n \\r \\f or \\xHH".to_owned()
}
