//! Free text as people type it: the request parameter `query` and the function `userInput`.
//!
//! Words, `"phrases"`, `+word`, `-word`, `(groups)`, `field:word` and `prefix*`. How the words
//! combine, and which of these signs count, is the query type; without one a document matches that
//! has any of the words, and those with more and rarer ones come first (weakAnd).

mod any;
mod filter;
mod item;
mod terms;
mod tokens;

use super::query_type::{Composite, QueryType, Syntax};
pub(crate) use filter::filter;
use item::{Combining, Item};
use plimsoll_documents::schema::Schemas;
use plimsoll_index::query::{DEFAULT_DISTANCE, Node};
use plimsoll_index::text::fold;
use terms::Reader;
use tokens::Kind;

/// Deepest nesting of parentheses.
const MAX_GROUPS: usize = 64;

/// A text to be read.
pub(crate) struct Text<'a> {
    pub(crate) text: &'a str,
    /// Field of words without a field.
    pub(crate) field: &'a str,
    pub(crate) kind: QueryType,
    /// Largest distance between words that must be near each other.
    pub(crate) distance: Option<u32>,
    pub(crate) schemas: &'a Schemas,
}

/// Reads a text. One without a word to look for is [`Node::Null`].
///
/// # Errors
/// When it asks for what this server does not have.
pub(crate) fn parse(text: &Text<'_>) -> Result<Node, String> {
    let mut parser = Parser::new(text);
    let item = match text.kind.syntax {
        Syntax::None => parser.combining.combine(parser.reader.bare_words())?,
        Syntax::Web => parser.web()?,
        Syntax::Simple if text.kind.composite == Composite::Or => parser.any()?,
        Syntax::Simple => parser.all()?,
    };
    Ok(item.map_or(Node::Null, Item::node))
}

/// The whole text as one word that is not cut.
pub(crate) fn uncut(text: &str, field: &str, schemas: &Schemas) -> Node {
    let (field, text) = (field.to_owned(), text.to_owned());
    if terms::is_cut(schemas, &field) {
        Node::Exact { field, term: fold(&text) }
    } else {
        Node::Term { field, text }
    }
}

struct Parser<'a> {
    reader: Reader<'a>,
    combining: Combining,
    /// Number of parentheses that are open.
    groups: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &Text<'a>) -> Self {
        let combining = Combining {
            composite: text.kind.composite,
            distance: text.distance.unwrap_or(DEFAULT_DISTANCE),
        };
        Self { reader: Reader::new(text), combining, groups: 0 }
    }

    /// Items that are combined as the query type says; those with `-` are taken away.
    fn all(&mut self) -> Result<Option<Item>, String> {
        let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
        while self.reader.peek().is_some() {
            if let Some(item) = self.negative()? {
                unwanted.push(item);
                continue;
            }
            let item = match self.positive()? {
                Some(item) => Some(item),
                None => match self.reader.indexable()? {
                    Some((item, _)) => Some(item),
                    None => self.group()?,
                },
            };
            match item {
                Some(item) => wanted.push(item),
                None => self.reader.skip(),
            }
        }
        let wanted = self.combining.combine(wanted)?;
        Ok(without(wanted, unwanted))
    }

    /// As [`Parser::all`], with `OR` between words and without groups.
    fn web(&mut self) -> Result<Option<Item>, String> {
        let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
        let mut alternatives: Vec<Item> = Vec::new();
        while self.reader.peek().is_some() {
            if let Some(item) = self.negative()? {
                unwanted.push(item);
                continue;
            }
            if !wanted.is_empty() && self.reader.word_is("OR") {
                alternatives.extend(self.combining.combine(std::mem::take(&mut wanted))?);
                continue;
            }
            let item = match self.positive()? {
                Some(item) => Some(item),
                None => self.reader.indexable()?.map(|(item, _)| item),
            };
            match item {
                Some(item) => wanted.push(item),
                None => self.reader.skip(),
            }
        }
        alternatives.extend(self.combining.combine(wanted)?);
        let wanted = match alternatives.len() {
            0 | 1 => alternatives.pop(),
            _ => Some(Item::Or(alternatives)),
        };
        Ok(without(wanted, unwanted))
    }

    /// `-item`. A number is taken for a negative one, unless a field or a parenthesis goes before.
    fn negative(&mut self) -> Result<Option<Item>, String> {
        let start = self.reader.place();
        if !self.reader.accept(Kind::Minus) || self.reader.at_space() {
            self.reader.return_to(start);
            return Ok(None);
        }
        let number = self.reader.at(Kind::Number);
        let item = match self.reader.indexable()? {
            Some((Item::Leaf(_), false)) if number => None,
            Some((item, _)) => Some(item),
            // An empty group is gone: to read it again would take twice as long for each level.
            None if self.reader.opens_group() => {
                return match self.group()? {
                    Some(Item::Or(items)) => self.combining.combine(items),
                    other => Ok(other),
                };
            }
            None => None,
        };
        if item.is_none() {
            self.reader.return_to(start);
        }
        Ok(item)
    }

    /// `+item`
    fn positive(&mut self) -> Result<Option<Item>, String> {
        let start = self.reader.place();
        let mut plus = false;
        while self.reader.accept(Kind::Plus) {
            plus = true;
        }
        let item = if !plus || self.reader.at_space() {
            None
        } else {
            match self.reader.indexable()? {
                Some((item, _)) => Some(item),
                None if self.reader.opens_group() => return self.group(),
                None => None,
            }
        };
        if item.is_none() {
            self.reader.return_to(start);
        }
        Ok(item)
    }

    /// `(items)`, of which any will do.
    fn group(&mut self) -> Result<Option<Item>, String> {
        if !self.reader.opens_group() {
            return Ok(None);
        }
        self.reader.skip_space();
        self.reader.accept(Kind::Open);
        if self.groups == MAX_GROUPS {
            return Err(format!("more than {MAX_GROUPS} parentheses inside each other"));
        }
        self.groups += 1;
        let item = self.any();
        self.groups -= 1;
        self.reader.accept(Kind::Close);
        item
    }
}

fn without(wanted: Option<Item>, unwanted: Vec<Item>) -> Option<Item> {
    match (wanted, unwanted.is_empty()) {
        (wanted, true) => wanted,
        (wanted, false) => Some(Item::Without(wanted.map(Box::new), unwanted)),
    }
}
