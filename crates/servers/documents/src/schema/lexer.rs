//! The tokens of a schema file.

/// Beginning of a token, both counted from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The least part that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Letters, digits, `_` and `-` in between.
    Word(&'a str),
    /// Between quotes on one line.
    Text(&'a str),
    /// Any other character.
    Symbol(char),
    /// The end of a line, which ends most statements.
    Newline,
    End,
}

/// Cuts a schema into tokens; comments and spaces are left out.
pub(super) fn tokens(text: &str) -> Vec<(Place, Token<'_>)> {
    let mut tokens = Vec::new();
    for (line_number, line) in text.split('\n').enumerate() {
        let place = |start: usize| Place {
            line: line_number + 1,
            column: line.get(..start).map_or(1, |before| before.chars().count() + 1),
        };
        let mut at = 0;
        while let Some(c) = line.get(at..).and_then(|rest| rest.chars().next()) {
            let rest = &line[at..];
            let length = match c {
                '#' => break,
                c if c.is_whitespace() => c.len_utf8(),
                '"' => match rest[1..].find('"') {
                    Some(end) => {
                        tokens.push((place(at), Token::Text(&rest[1..=end])));
                        end + 2
                    }
                    None => {
                        tokens.push((place(at), Token::Symbol(c)));
                        1
                    }
                },
                c if is_word(c) => {
                    let inside = |c: char| is_word(c) || c == '-';
                    let end = rest.find(|c: char| !inside(c)).unwrap_or(rest.len());
                    tokens.push((place(at), Token::Word(&rest[..end])));
                    end
                }
                c => {
                    tokens.push((place(at), Token::Symbol(c)));
                    c.len_utf8()
                }
            };
            at += length;
        }
        tokens.push((place(line.len()), Token::Newline));
    }
    let last = tokens.last().map_or(Place { line: 1, column: 1 }, |(place, _)| *place);
    tokens.push((last, Token::End));
    tokens
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
