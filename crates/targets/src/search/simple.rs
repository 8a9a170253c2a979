//! The simple query language of the request parameter `query`.
//!
//! Words, `"phrases"`, `-word` and `-"phrase"` to take away, `+word`, and `field:word`. How the
//! words combine is the parameter `type`: all of them (the default), any of them, or one phrase.

use super::query::Node;
use super::schema::Schemas;
use super::text::words;

/// How the words of a text combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    All,
    Any,
    Phrase,
}

impl Combine {
    /// Reads the request parameter `type`.
    pub(crate) fn from_parameter(text: &str) -> Option<Self> {
        match text {
            "all" => Some(Self::All),
            "any" => Some(Self::Any),
            "phrase" => Some(Self::Phrase),
            _ => None,
        }
    }
}

/// Parses text. Text without any word to look for matches nothing.
pub(crate) fn parse(text: &str, field: &str, combine: Combine, schemas: &Schemas) -> Node {
    if combine == Combine::Phrase {
        let words = words(text);
        let field = field.to_owned();
        return if words.is_empty() { Node::Nothing } else { Node::Phrase { field, words } };
    }
    let mut wanted = Vec::new();
    let mut unwanted = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (term, after) = next_term(rest, schemas);
        rest = after.trim_start();
        let found = words(term.text);
        if found.is_empty() {
            continue;
        }
        let field = term.field.unwrap_or(field).to_owned();
        let node = if term.quoted {
            Node::Phrase { field, words: found }
        } else {
            Node::Term { field, text: term.text.to_owned() }
        };
        if term.negative {
            unwanted.push(Node::Not(Box::new(node)));
        } else {
            wanted.push(node);
        }
    }
    combined(wanted, unwanted, combine)
}

fn combined(mut wanted: Vec<Node>, unwanted: Vec<Node>, combine: Combine) -> Node {
    if wanted.is_empty() {
        return Node::Nothing;
    }
    if combine == Combine::Any && wanted.len() > 1 {
        wanted = vec![Node::Or(wanted)];
    }
    wanted.extend(unwanted);
    if wanted.len() == 1 { wanted.swap_remove(0) } else { Node::And(wanted) }
}

struct Term<'a> {
    field: Option<&'a str>,
    text: &'a str,
    negative: bool,
    quoted: bool,
}

/// Takes one term off the front; the text does not begin with a space and is not empty.
fn next_term<'a>(text: &'a str, schemas: &Schemas) -> (Term<'a>, &'a str) {
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut field = None;
    if let Some((name, after)) = rest.split_once(':')
        && schemas.can_search(name)
    {
        field = Some(name);
        rest = after;
    }
    if let Some(inside) = rest.strip_prefix('"') {
        // A phrase that nobody closed reaches to the end.
        let (text, after) = inside.split_once('"').unwrap_or((inside, ""));
        return (Term { field, text, negative, quoted: true }, after);
    }
    let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len());
    let (text, after) = rest.split_at(end);
    (Term { field, text, negative, quoted: false }, after)
}
