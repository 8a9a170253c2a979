//! Words, phrases, prefixes and comparisons of free text.

use super::Text;
use super::item::Item;
use super::tokens::{Kind, Token, tokens};
use plimsoll_documents::schema::{Matching, Schemas};
use plimsoll_documents::value::FieldType;
use plimsoll_index::query::{Node, Number};
use std::ops::Bound;

/// Reading of the text for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Words, phrases and prefixes.
    Words,
    /// A value as a whole, up to a space or in quotes.
    Whole,
    /// A number or a range of numbers.
    Numbers,
}

/// Goes through the tokens of a text.
pub(super) struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    field: &'a str,
    schemas: &'a Schemas,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &Text<'a>) -> Self {
        let Text { text, field, schemas, .. } = *text;
        Self { text, tokens: tokens(text), next: 0, field, schemas }
    }

    pub(super) fn place(&self) -> usize {
        self.next
    }

    pub(super) fn return_to(&mut self, place: usize) {
        self.next = place;
    }

    pub(super) fn peek(&self) -> Option<Kind> {
        self.peek_after(0)
    }

    fn peek_after(&self, count: usize) -> Option<Kind> {
        self.tokens.get(self.next + count).map(|token| token.kind)
    }

    pub(super) fn skip(&mut self) {
        self.next += 1;
    }

    pub(super) fn at(&self, kind: Kind) -> bool {
        self.peek() == Some(kind)
    }

    pub(super) fn at_space(&self) -> bool {
        self.at(Kind::Space)
    }

    fn at_word(&self) -> bool {
        matches!(self.peek(), Some(Kind::Word | Kind::Number))
    }

    pub(super) fn accept(&mut self, kind: Kind) -> bool {
        let found = self.at(kind);
        self.next += usize::from(found);
        found
    }

    pub(super) fn skip_space(&mut self) {
        while self.accept(Kind::Space) {}
    }

    /// Returns whether a group begins here, behind any space.
    pub(super) fn opens_group(&self) -> bool {
        let rest = self.tokens.get(self.next..).unwrap_or_default();
        let next = rest.iter().find(|token| token.kind != Kind::Space);
        next.is_some_and(|token| token.kind == Kind::Open)
    }

    /// Takes this word, where it stands alone and in this case.
    pub(super) fn word_is(&mut self, word: &str) -> bool {
        let start = self.next;
        self.skip_space();
        let found = self.at(Kind::Word)
            && self.slice(self.next, self.next + 1) == word
            && matches!(self.peek_after(1), None | Some(Kind::Space));
        if found {
            self.skip();
        } else {
            self.next = start;
        }
        found
    }

    /// The text of some tokens.
    fn slice(&self, from: usize, to: usize) -> &'a str {
        let (Some(first), Some(last)) =
            (self.tokens.get(from), self.tokens.get(to.wrapping_sub(1)))
        else {
            return "";
        };
        self.text.get(first.start..last.end).unwrap_or_default()
    }

    /// All words of the rest, whatever stands between them.
    pub(super) fn bare_words(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while self.peek().is_some() {
            if self.at_word() {
                let text = self.slice(self.next, self.next + 1).to_owned();
                items.push(Item::Leaf(Node::Term { field: self.field.to_owned(), text }));
            }
            self.skip();
        }
        items
    }

    /// A word, words that are joined, a phrase, a prefix or a comparison, and whether the text says
    /// in which field.
    pub(super) fn indexable(&mut self) -> Result<Option<(Item, bool)>, String> {
        let start = self.next;
        self.skip_space();
        while self.empty_quotes() {
            self.skip_space();
        }
        let explicit = self.field_prefix();
        let field = explicit.unwrap_or(self.field);
        let item = match form(self.schemas, field) {
            Form::Whole if explicit.is_some() => self.whole(field),
            Form::Numbers if explicit.is_some() => self.numbers(field)?,
            _ => self.words(field)?,
        };
        if item.is_some() {
            self.weight();
        } else {
            self.next = start;
        }
        Ok(item.map(|item| (item, explicit.is_some())))
    }

    /// Skips quotes without a word between them.
    fn empty_quotes(&mut self) -> bool {
        let start = self.next;
        if self.accept(Kind::Quote) {
            while !matches!(self.peek(), None | Some(Kind::Quote | Kind::Word | Kind::Number)) {
                self.skip();
            }
            if self.accept(Kind::Quote) {
                return true;
            }
        }
        self.next = start;
        false
    }

    /// `name:` of a field that can be searched. A name with nothing behind it does not count.
    fn field_prefix(&mut self) -> Option<&'a str> {
        loop {
            let start = self.next;
            self.accept(Kind::OpenSquare);
            let first = self.next;
            let part = |kind| {
                matches!(kind, Some(Kind::Word | Kind::Number | Kind::Underscore | Kind::Dot))
            };
            while part(self.peek()) {
                self.skip();
            }
            let name = self.slice(first, self.next);
            if self.next == first || !self.accept(Kind::Colon) || !self.schemas.can_search(name) {
                self.next = start;
                return None;
            }
            if self.something_ahead() {
                return Some(name);
            }
            while !matches!(self.peek(), None | Some(Kind::Space)) {
                self.skip();
            }
            self.skip_space();
        }
    }

    /// Returns whether a word comes before the next space, or inside of quotes that begin before it.
    fn something_ahead(&self) -> bool {
        let mut quoted = false;
        for token in self.tokens.get(self.next..).unwrap_or_default() {
            match token.kind {
                Kind::Word | Kind::Number => return true,
                Kind::Quote => quoted = !quoted,
                Kind::Space if !quoted => return false,
                _ => {}
            }
        }
        false
    }

    /// `!`, `!!` or `!200`: a weight, which says nothing of which documents match.
    fn weight(&mut self) {
        if self.accept(Kind::Exclamation) && !self.accept(Kind::Number) {
            while self.accept(Kind::Exclamation) {}
        }
    }

    fn whole(&mut self, field: &str) -> Option<Item> {
        let quoted = self.accept(Kind::Quote);
        let first = self.next;
        let ends = |kind| match kind {
            None | Some(Kind::Quote) => true,
            Some(Kind::Space | Kind::Close) => !quoted,
            Some(_) => false,
        };
        while !ends(self.peek()) {
            self.skip();
        }
        let text = self.slice(first, self.next).to_owned();
        self.accept(Kind::Quote);
        let field = field.to_owned();
        (!text.trim().is_empty()).then_some(Item::Leaf(Node::Term { field, text }))
    }

    /// `12`, `-1.5`, `<3`, `>3`, `[1;5]`
    fn numbers(&mut self, field: &str) -> Result<Option<Item>, String> {
        let (lower, upper) = if self.accept(Kind::OpenSquare) {
            let lower = self.number();
            if !self.accept(Kind::Semicolon) {
                return Err(format!("'{field}:[' needs two numbers with ';' between, as [1;5]"));
            }
            let upper = self.number();
            if self.at(Kind::Semicolon) {
                return Err(format!("a limit of hits in '{field}:[..]' is not supported"));
            }
            self.accept(Kind::CloseSquare);
            let bound = |number: Option<Number>| number.map_or(Bound::Unbounded, Bound::Included);
            (bound(lower), bound(upper))
        } else {
            let less = self.accept(Kind::Less);
            let greater = !less && self.accept(Kind::Greater);
            let Some(number) = self.number() else {
                return Err(format!("'{field}' is a number: a number is missing behind ':'"));
            };
            match (less, greater) {
                (true, _) => (Bound::Unbounded, Bound::Excluded(number)),
                (_, true) => (Bound::Excluded(number), Bound::Unbounded),
                _ => (Bound::Included(number), Bound::Included(number)),
            }
        };
        Ok(Some(Item::Leaf(Node::Range { field: field.to_owned(), lower, upper })))
    }

    fn number(&mut self) -> Option<Number> {
        let start = self.next;
        self.accept(Kind::Minus);
        if self.accept(Kind::Number) {
            if self.at(Kind::Dot) && self.peek_after(1) == Some(Kind::Number) {
                self.next += 2;
            }
            let text = self.slice(start, self.next);
            if let Ok(whole) = text.parse() {
                return Some(Number::Whole(whole));
            }
            if let Ok(real) = text.parse() {
                return Some(Number::Real(real));
            }
        }
        self.next = start;
        None
    }

    fn words(&mut self, field: &str) -> Result<Option<Item>, String> {
        let starred = self.accept(Kind::Star);
        // Behind the name of a field signs before the word mean nothing.
        if !starred && self.field_said() {
            while !matches!(
                self.peek(),
                None | Some(Kind::Space | Kind::Quote | Kind::Word | Kind::Number)
            ) {
                self.skip();
            }
        }
        if self.accept(Kind::Quote) {
            return Ok(self.quoted(field));
        }
        if !self.at_word() {
            return Ok(None);
        }
        let mut words = vec![self.word(field)];
        if self.at(Kind::Star) && !self.joins_to_a_word() {
            self.skip();
            return prefix(words, starred);
        }
        while self.joins_to_a_word() {
            while self.joins() {
                self.skip();
            }
            words.push(self.word(field));
        }
        if starred && words.len() == 1 {
            return Err("a suffix such as *word is not supported by this server".to_owned());
        }
        Ok(if words.len() == 1 { words.pop() } else { Some(Item::Joined(words)) })
    }

    /// Returns whether the token before is the colon of a field.
    fn field_said(&self) -> bool {
        let before = self.next.checked_sub(1).and_then(|before| self.tokens.get(before));
        before.is_some_and(|token| token.kind == Kind::Colon)
    }

    /// A word, with its halves where an apostrophe stands inside.
    fn word(&mut self, field: &str) -> Item {
        let term =
            |text: &str| Item::Leaf(Node::Term { field: field.to_owned(), text: text.to_owned() });
        let mut halves = vec![term(self.slice(self.next, self.next + 1))];
        self.skip();
        while self.at(Kind::Apostrophe)
            && matches!(self.peek_after(1), Some(Kind::Word | Kind::Number))
        {
            self.skip();
            halves.push(term(self.slice(self.next, self.next + 1)));
            self.skip();
        }
        if halves.len() == 1 { halves.swap_remove(0) } else { Item::Halves(halves) }
    }

    /// Returns true if the next token joins the words before and behind it into one item.
    fn joins(&self) -> bool {
        matches!(
            self.peek(),
            Some(
                Kind::Noise
                    | Kind::Dot
                    | Kind::Plus
                    | Kind::Minus
                    | Kind::Underscore
                    | Kind::Star
                    | Kind::Colon
                    | Kind::Apostrophe
            )
        )
    }

    fn joins_to_a_word(&mut self) -> bool {
        let start = self.next;
        while self.joins() {
            self.skip();
        }
        let found = self.next > start && self.at_word();
        self.next = start;
        found
    }

    /// Returns the text between quotes; an unclosed quote extends to the end.
    fn quoted(&mut self, field: &str) -> Option<Item> {
        let mut words = Vec::new();
        while self.peek().is_some() && !self.accept(Kind::Quote) {
            if self.at_word() {
                words.push(self.slice(self.next, self.next + 1).to_owned());
            }
            self.skip();
        }
        let field = field.to_owned();
        match words.len() {
            0 => None,
            1 => Some(Item::Leaf(Node::Term { field, text: words.swap_remove(0) })),
            _ => Some(Item::Leaf(Node::Phrase { field, words })),
        }
    }
}

fn prefix(mut words: Vec<Item>, starred: bool) -> Result<Option<Item>, String> {
    if starred {
        return Err("a substring such as *word* is not supported by this server".to_owned());
    }
    Ok(match words.pop() {
        Some(Item::Leaf(Node::Term { field, text })) => {
            Some(Item::Leaf(Node::Prefix { field, text }))
        }
        other => other,
    })
}

/// Returns whether the text of a field is cut into words.
pub(super) fn is_cut(schemas: &Schemas, name: &str) -> bool {
    form(schemas, name) == Form::Words
}

/// Returns how the text for a name is read: as the first type that knows the name says.
fn form(schemas: &Schemas, name: &str) -> Form {
    let fields = schemas.types().iter().find_map(|schema| {
        let first = schema.searched_as(name).first()?;
        Some(&schema.fields()[*first])
    });
    let Some(field) = fields else { return Form::Words };
    let kind = match &field.kind {
        FieldType::Array(inner) | FieldType::WeightedSet(inner) => inner,
        kind => kind,
    };
    match kind {
        FieldType::String if field.matching == Matching::Words => Form::Words,
        FieldType::Int
        | FieldType::Long
        | FieldType::Byte
        | FieldType::Float
        | FieldType::Double => Form::Numbers,
        _ => Form::Whole,
    }
}
