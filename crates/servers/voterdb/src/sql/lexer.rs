//! Words, numbers, texts and signs of SQL.

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A keyword or a name, in capitals.
    Word(String),
    /// A name in double quotes, in capitals too: the tables know no others.
    Quoted(String),
    Int(i64),
    Float(f64),
    Text(String),
    Sign(&'static str),
    /// `?`
    Param,
}

impl Token {
    /// The way it is shown when it stands at the wrong place.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Word(word) | Self::Quoted(word) => word.clone(),
            Self::Int(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Text(text) => format!("'{text}'"),
            Self::Sign(sign) => (*sign).to_owned(),
            Self::Param => "?".to_owned(),
        }
    }
}

/// Longest text in a statement, as in VoltDB: what is done to it for each row must come to an end.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;
/// Longer ones first.
const SIGNS: [&str; 16] =
    ["<>", "!=", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "(", ")", ",", ".", ";"];

/// Takes a text apart.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = skip_space(rest)?;
        let Some(first) = rest.chars().next() else { return Ok(found) };
        let (token, length) = match first {
            'a'..='z' | 'A'..='Z' | '_' | '@' => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '@';
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                (Token::Word(rest[..length].to_ascii_uppercase()), length)
            }
            '0'..='9' => number(rest)?,
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => number(rest)?,
            '\'' => {
                let (text, length) = quoted(rest, '\'')?;
                if text.len() > TEXT_BYTES_MAX {
                    return Err(format!("a text has more than {TEXT_BYTES_MAX} bytes"));
                }
                (Token::Text(text), length)
            }
            '"' => {
                let (text, length) = quoted(rest, '"')?;
                (Token::Quoted(text.to_ascii_uppercase()), length)
            }
            '?' => (Token::Param, 1),
            other => match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
                Some(sign) => (Token::Sign(sign), sign.len()),
                None => return Err(format!("unexpected character '{other}'")),
            },
        };
        found.push(token);
        rest = &rest[length..];
    }
}

/// Past blanks, `-- comments` and `/* comments */`.
fn skip_space(mut rest: &str) -> Result<&str, String> {
    loop {
        rest = rest.trim_start();
        if rest.starts_with("--") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").ok_or("a comment does not end: there is no '*/'")?;
            rest = &rest[end + 2..];
        } else {
            return Ok(rest);
        }
    }
}

fn number(rest: &str) -> Result<(Token, usize), String> {
    let bytes = rest.as_bytes();
    let digits_from = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut end = digits_from(0);
    let mut is_whole = true;
    if bytes.get(end) == Some(&b'.') {
        is_whole = false;
        end = digits_from(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let after = digits_from(end + 1 + sign);
        if after > end + 1 + sign {
            is_whole = false;
            end = after;
        }
    }
    let text = &rest[..end];
    if is_whole {
        let number = text.parse().map_err(|_| format!("numeric value out of range: {text}"))?;
        return Ok((Token::Int(number), end));
    }
    let number = text.parse().map_err(|_| format!("'{text}' is not a number"))?;
    Ok((Token::Float(number), end))
}

/// A text between quotes, in which a doubled quote is one.
fn quoted(rest: &str, quote: char) -> Result<(String, usize), String> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            text.push(c);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            text.push(quote);
        } else {
            return Ok((text, at + 1));
        }
    }
    Err(format!("a quoted text does not end: there is no closing {quote}"))
}
