//! Free text as tokens that know where they stand.

/// Kind of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters and digits, with one letter at least.
    Word,
    /// Digits only.
    Number,
    Space,
    Quote,
    /// Inside of a word it joins two halves, as in `don't`.
    Apostrophe,
    Plus,
    Minus,
    Star,
    Colon,
    Dot,
    Underscore,
    Exclamation,
    Semicolon,
    Less,
    Greater,
    Open,
    Close,
    OpenSquare,
    CloseSquare,
    /// Anything else; between two words it joins them.
    Noise,
}

/// A piece of text: its bytes are `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Cuts text. Words are those of the index.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        let mut end = start + c.len_utf8();
        let mut kind = sign(c);
        if c.is_alphanumeric() {
            let mut digits = c.is_numeric();
            while let Some((at, c)) = rest.next_if(|(_, c)| c.is_alphanumeric()) {
                digits &= c.is_numeric();
                end = at + c.len_utf8();
            }
            kind = if digits { Kind::Number } else { Kind::Word };
        }
        tokens.push(Token { kind, start, end });
    }
    tokens
}

fn sign(c: char) -> Kind {
    match c {
        '"' | '\u{201c}' | '\u{201d}' => Kind::Quote,
        '\'' | '\u{2019}' => Kind::Apostrophe,
        '+' => Kind::Plus,
        '-' => Kind::Minus,
        '*' => Kind::Star,
        ':' => Kind::Colon,
        '.' => Kind::Dot,
        '_' => Kind::Underscore,
        '!' => Kind::Exclamation,
        ';' => Kind::Semicolon,
        '<' => Kind::Less,
        '>' => Kind::Greater,
        '(' => Kind::Open,
        ')' => Kind::Close,
        '[' => Kind::OpenSquare,
        ']' => Kind::CloseSquare,
        c if c.is_whitespace() => Kind::Space,
        _ => Kind::Noise,
    }
}
