//! Values in the text of an SQL statement: whatever a value holds, it stays one literal or a part of one.
//!
//! The text is read as PostgreSQL's lexer reads it, with `standard_conforming_strings` on, which sessions log in with:
//! source is PostgreSQL's documentation, "Lexical Structure". A place outside of quotes becomes a literal of its own; one
//! inside of quotes is escaped as those quotes want it. Where nothing can be escaped (between dollars, in comments, behind a backslash,
//! in a literal with UESCAPE) it is an error.

use super::Rows;
use super::template::{TemplateError, first_place};
use super::text::value;

/// Characters that end a line, and a comment with it.
const NEW_LINE: [char; 2] = ['\n', '\r'];

/// A text as SQL has it between quotes, whatever is in it.
#[must_use]
pub fn quoted(text: &str) -> String {
    let inside = text.replace('\'', "''");
    if inside.contains('\\') {
        format!(" E'{}'", inside.replace('\\', "\\\\"))
    } else {
        format!("'{inside}'")
    }
}

/// Context of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    /// Nothing.
    Statement,
    /// Quotes of this kind, which are doubled inside, with the meaning of a backslash between them.
    Quotes { quote: char, backslash: Backslash },
}

/// Meaning of a backslash between quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backslash {
    /// A character like any other.
    Plain,
    /// `U&`: it begins a code point, or stands for itself if doubled; a quote behind it ends the literal.
    Unicode,
    /// `E`: it escapes any character, quotes too.
    Escape,
}

impl Around {
    fn escapes(self) -> bool {
        matches!(self, Around::Quotes { backslash: Backslash::Unicode | Backslash::Escape, .. })
    }

    fn is_unicode(self) -> bool {
        matches!(self, Around::Quotes { backslash: Backslash::Unicode, .. })
    }
}

/// A statement with the values of a row in their places: `{{name}}` safely, `{{{name}}}` as it is.
///
/// # Errors
/// As [`super::fill_text`], and a place where no value is safe.
pub fn fill_sql(text: &str, rows: &Rows, row: usize) -> Result<String, TemplateError> {
    let (mut filled, mut rest) = (String::with_capacity(text.len() + 64), text);
    let mut around = Around::Statement;
    // The first place in the present `U&` literal. Whether UESCAPE names another escape is known at its end.
    let mut escaped = None;
    while !rest.is_empty() {
        if rest.starts_with("{{") {
            let own = first_place(rest.as_bytes(), 0, rows)?;
            let value = value(rows, row, own.column)?;
            match around {
                _ if own.raw => filled.push_str(value),
                // Brackets keep it apart from literals beside it, which it might be taken together with.
                Around::Statement => filled.push_str(&format!("({})", quoted(value))),
                Around::Quotes { quote, .. } => {
                    escaped = escaped.or(around.is_unicode().then_some(rest));
                    put_inside(value, quote, around.escapes(), &mut filled);
                }
            }
            rest = &rest[own.length..];
            continue;
        }
        let (taken, next) = match around {
            Around::Statement => outside(rest, filled.chars().next_back()),
            Around::Quotes { quote, backslash } => inside(rest, quote, backslash),
        };
        let behind_backslash = taken == 1 && rest.starts_with("\\{{") && next.escapes();
        if let Some(at) = rest[..taken].find("{{").or(behind_backslash.then_some(1)) {
            return Err(not_safe(&rest[at..]));
        }
        if next == Around::Statement
            && let Some(place) = escaped.take()
            && is_uescape(&rest[taken..])
        {
            return Err(not_safe(place));
        }
        filled.push_str(&rest[..taken]);
        (rest, around) = (&rest[taken..], next);
    }
    Ok(filled)
}

/// The error of a place, from its text on.
fn not_safe(text: &str) -> TemplateError {
    TemplateError::NotSafe { text: text.chars().take(40).collect(), line: 0 }
}

/// Returns true if the next word is UESCAPE, which names the escape of the literal before it.
fn is_uescape(text: &str) -> bool {
    let mut rest = text.trim_start();
    while rest.starts_with("--") || rest.starts_with("/*") {
        rest = rest[outside(rest, None).0..].trim_start();
    }
    rest.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("UESCAPE"))
}

/// A value inside of quotes.
fn put_inside(value: &str, quote: char, escapes: bool, out: &mut String) {
    for c in value.chars() {
        if c == quote || escapes && c == '\\' {
            out.push(c);
        }
        out.push(c);
    }
}

/// The next piece outside of quotes, bytes of it, and what is around what follows. `before` is the character in front.
fn outside(rest: &str, before: Option<char>) -> (usize, Around) {
    let whole = |bytes| (bytes, Around::Statement);
    if rest.starts_with("--") {
        return whole(rest.find(NEW_LINE).unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return whole(comment(rest));
    }
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let begins_word = !before.is_some_and(in_word);
    for (prefix, quote, backslash) in [
        ("U&'", '\'', Backslash::Unicode),
        ("U&\"", '"', Backslash::Unicode),
        ("E'", '\'', Backslash::Escape),
    ] {
        let own = rest.get(..prefix.len()).is_some_and(|own| own.eq_ignore_ascii_case(prefix));
        if begins_word && own {
            return (prefix.len(), Around::Quotes { quote, backslash });
        }
    }
    match rest.chars().next() {
        Some(quote @ ('\'' | '"')) => (1, Around::Quotes { quote, backslash: Backslash::Plain }),
        Some('$') if begins_word => whole(dollars(rest).unwrap_or(1)),
        first => whole(first.map_or(1, char::len_utf8)),
    }
}

/// The next characters inside of quotes, bytes of them, and what is around what follows.
fn inside(rest: &str, quote: char, backslash: Backslash) -> (usize, Around) {
    let own = Around::Quotes { quote, backslash };
    // A brace is nothing that needs escaping, and may begin a place.
    let is_escaped = |next: char| match backslash {
        Backslash::Plain => false,
        Backslash::Unicode => next != '{' && next != quote,
        Backslash::Escape => next != '{',
    };
    let mut characters = rest.chars();
    let first = characters.next().unwrap_or(quote);
    let two = |next: char| (first.len_utf8() + next.len_utf8(), own);
    match characters.next() {
        Some(next) if first == quote && next == quote => two(next),
        Some(next) if first == '\\' && is_escaped(next) => two(next),
        _ if first != quote => (first.len_utf8(), own),
        // A literal goes on behind the end of a line, by the rules by which it began.
        _ => match continued(&rest[1..]).filter(|_| quote == '\'') {
            Some(bytes) => (1 + bytes, own),
            None => (1, Around::Statement),
        },
    }
}

/// Bytes to the inside of a literal that goes on in another line.
fn continued(rest: &str) -> Option<usize> {
    let (mut at, mut new_line) = (0, false);
    loop {
        let here = &rest[at..];
        if here.starts_with("--") {
            at += here.find(NEW_LINE)?;
        } else {
            match here.chars().next()? {
                '\'' if new_line => return Some(at + 1),
                c if c.is_ascii_whitespace() => {
                    new_line |= NEW_LINE.contains(&c);
                    at += 1;
                }
                _ => return None,
            }
        }
    }
}

/// Bytes of a comment, comments in it included.
fn comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0u32, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Bytes of a text between dollars, `$$...$$` or `$tag$...$tag$`; none where it is none.
fn dollars(rest: &str) -> Option<usize> {
    let tag_end = 1 + rest[1..].find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
    let digit = rest[1..].starts_with(|c: char| c.is_ascii_digit());
    if digit || !rest[tag_end..].starts_with('$') {
        return None;
    }
    let tag = &rest[..=tag_end];
    Some(rest[tag.len()..].find(tag).map_or(rest.len(), |at| at + 2 * tag.len()))
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::rows;
    use super::*;

    /// Values that want out of their literal.
    const WORDS: &[u8] = b"w\n\"'; DROP TABLE t; --\"\nback\\slash\n\"dou\"\"ble\"\n\\'\nplain\n\"$$ */ {{w}}\"\n\\\n";

    fn filled(text: &str, row: usize) -> String {
        fill_sql(text, &rows(WORDS), row).unwrap()
    }

    #[test]
    fn a_value_stays_a_literal_wherever_it_stands() {
        for (text, row, wanted) in [
            ("SELECT {{w}}", 0, "SELECT ('''; DROP TABLE t; --')"),
            ("SELECT {{w}}", 1, r"SELECT ( E'back\\slash')"),
            ("a='x{{w}}y'", 0, "a='x''; DROP TABLE t; --y'"),
            ("a='it''s {{w}}' AND b={{w}}", 4, "a='it''s plain' AND b=('plain')"),
            ("a='{{w}}'", 3, r"a='\'''"),
            ("a=E'{{w}}'", 3, r"a=E'\\'''"),
            (r"a=E'\'{{w}}'", 0, r"a=E'\'''; DROP TABLE t; --'"),
            (r"a=E'\{x}{{w}}'", 4, r"a=E'\{x}plain'"),
            ("a=U&'{{w}}'", 1, r"a=U&'back\\slash'"),
            // A backslash hides no quote in a U& literal, and is a character like any other if UESCAPE names another one.
            (r"U&'\' UESCAPE '!' <> {{w}}", 4, r"U&'\' UESCAPE '!' <> ('plain')"),
            (r"U&'x\\{{w}}' <> {{w}}", 4, r"U&'x\\plain' <> ('plain')"),
            ("U&'!0041' UESCAPE '!' <> '{{w}}'", 6, r"U&'!0041' UESCAPE '!' <> '\'"),
            ("SELECT \"{{w}}\"", 2, "SELECT \"dou\"\"ble\""),
            ("SELECT name'{{w}}'", 1, r"SELECT name'back\slash'"),
            ("SELECT {{{w}}}", 4, "SELECT plain"),
            ("SELECT {{w}}", 5, "SELECT ('$$ */ {{w}}')"),
            // A literal that began with E goes on in the next line as it began.
            ("a=E'x' -- '\n '{{w}}'", 6, "a=E'x' -- '\n '\\\\'"),
            ("a='x' '{{w}}'", 6, r"a='x' '\'"),
            // A comment ends with its line, by whatever that ends.
            ("SELECT 1 -- it's\r, '\n{{w}}'", 0, "SELECT 1 -- it's\r, '\n''; DROP TABLE t; --'"),
        ] {
            assert_eq!(filled(text, row), wanted, "{text}");
        }
        // What is written is written again, whatever quotes it has.
        let text = "SELECT $1, $$it's$$, $a$ ' $a$ /* it's /* */ */ -- it's\n, 'x' {{w}}";
        assert_eq!(filled(text, 4), text.replace("{{w}}", "('plain')"));
    }

    #[test]
    fn a_place_where_nothing_is_safe_is_told() {
        for text in [
            "SELECT $$ {{w}} $$",
            "SELECT 1 -- {{w}}",
            "SELECT /* {{w}} */ 1",
            "$t$ {{w}} ",
            r"E'\{{w}}'",
            "U&'{{w}}' UESCAPE '!'",
            "U&\"{{w}}\" -- it's\n /* ' */ uescape '!'",
            "U&'a' -- and\n '{{w}}'UESCAPE'!'",
        ] {
            let told = fill_sql(text, &rows(WORDS), 0).unwrap_err().to_string();
            assert!(told.contains("where no value is safe"), "{text}: {told}");
        }
        assert!(fill_sql("{{x}}", &rows(WORDS), 0).is_err());
    }
}
