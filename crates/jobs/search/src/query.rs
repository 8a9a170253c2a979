//! The neutral query list: what is asked, without saying in whose language.

mod written;

pub use written::{Written, parse, queries};

use std::collections::{BTreeMap, BTreeSet};

/// Hits that a query asks for unless it says otherwise, as many as the comparison that this grew out of asked for.
pub const SIZE: u32 = 1000;
/// Most hits that a query may ask for.
const SIZE_MAX: u32 = 10_000;
/// Most queries of a list: each is a class of the run.
pub const QUERIES_MAX: usize = 60;
/// Deepest nesting of `bool` queries.
const DEPTH_MAX: usize = 8;
/// Largest edit distance that may be asked for.
pub const DISTANCE_MAX: u8 = 8;
/// Most repeats of a query in a list.
const REPEAT_MAX: u32 = 10_000;

/// The fields that every corpus of this program has, with what they are.
pub const FIELDS: [(&str, FieldKind); 5] = [
    ("title", FieldKind::Text),
    ("body", FieldKind::Text),
    ("category", FieldKind::Keyword),
    ("author", FieldKind::Keyword),
    ("score", FieldKind::Number),
];

/// The way a field is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Words, in lower case.
    Text,
    /// The whole value.
    Keyword,
    /// A whole number.
    Number,
}

/// Returns the kind of a field; unknown fields count as text.
#[must_use]
pub fn field_kind(name: &str) -> FieldKind {
    FIELDS.iter().find(|(field, _)| *field == name).map_or(FieldKind::Text, |(_, kind)| *kind)
}

/// A query of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Its name, unique in the list.
    pub name: String,
    /// Condition on a document.
    pub clause: Clause,
    /// Number of times that a user asks it before the next one (`block`), or before the list comes round.
    pub repeat: u32,
    /// Hits to return.
    pub size: u32,
}

/// Number of edits that a word may be away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// This many, whatever the cell.
    Fixed(u8),
    /// As many as the cell says.
    OfCell,
}

impl Distance {
    /// The number of edits in a cell.
    #[must_use]
    pub fn in_cell(self, of_cell: u8) -> u8 {
        match self {
            Distance::Fixed(edits) => edits,
            Distance::OfCell => of_cell,
        }
    }
}

/// A bound of a range.
pub type Bound = Option<serde_json::Number>;

/// Condition on a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    /// A word of the field is within a distance of this one.
    Fuzzy {
        /// The field.
        field: String,
        /// One word, in lower case for text fields.
        word: String,
        /// Edit distance.
        distance: Distance,
    },
    /// All (`and`) or some of the words are in the field, each within a distance.
    Match {
        /// The field.
        field: String,
        /// The words.
        text: String,
        /// True if all must be there.
        all: bool,
        /// Edit distance.
        distance: Distance,
    },
    /// The words stand side by side in this order.
    Phrase {
        /// The field.
        field: String,
        /// The words.
        text: String,
        /// Edit distance of each word; most engines know phrases of exact words only.
        distance: Distance,
    },
    /// The field is this value, or has this word.
    Term {
        /// The field.
        field: String,
        /// The values; one of them suffices.
        values: Vec<serde_json::Value>,
    },
    /// A word of the field, or its value, begins so.
    Prefix {
        /// The field.
        field: String,
        /// The beginning.
        text: String,
    },
    /// The number is within bounds.
    Range {
        /// The field.
        field: String,
        /// At least this.
        at_least: Bound,
        /// More than this.
        above: Bound,
        /// At most this.
        at_most: Bound,
        /// Less than this.
        below: Bound,
    },
    /// The field has a value.
    Exists {
        /// The field.
        field: String,
    },
    /// The document is one of these.
    Ids {
        /// Ids as the corpus has them.
        ids: Vec<String>,
    },
    /// Every document.
    All,
    /// Several together.
    Bool {
        /// All of these hold.
        must: Vec<Clause>,
        /// At least `minimum` of these hold.
        should: Vec<Clause>,
        /// None of these holds.
        must_not: Vec<Clause>,
        /// Smallest number of `should` clauses that must match; unless said, 1 where there is no `must`, else 0.
        minimum: u32,
    },
    /// A text for each dialect, as its user wrote it; `{distance}` in it is the cell's distance.
    Raw(BTreeMap<String, String>),
}

impl Clause {
    /// The word for the kind, as the list has it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Clause::Fuzzy { .. } => "fuzzy",
            Clause::Match { .. } => "match",
            Clause::Phrase { .. } => "phrase",
            Clause::Term { values, .. } if values.len() > 1 => "terms",
            Clause::Term { .. } => "term",
            Clause::Prefix { .. } => "prefix",
            Clause::Range { .. } => "range",
            Clause::Exists { .. } => "exists",
            Clause::Ids { .. } => "ids",
            Clause::All => "all",
            Clause::Bool { .. } => "bool",
            Clause::Raw(_) => "raw",
        }
    }

    /// The same with every text of it changed; a raw one stays, since it is no one's text but a language's.
    ///
    /// # Errors
    /// The first text that cannot be changed.
    pub fn map_texts<E>(&self, change: &impl Fn(&str) -> Result<String, E>) -> Result<Self, E> {
        let mut clause = self.clone();
        let set = |text: &mut String| change(text).map(|changed| *text = changed);
        match &mut clause {
            Clause::Fuzzy { word: text, .. }
            | Clause::Match { text, .. }
            | Clause::Phrase { text, .. }
            | Clause::Prefix { text, .. } => set(text)?,
            Clause::Term { values, .. } => {
                for value in values {
                    if let serde_json::Value::String(text) = value {
                        set(text)?;
                    }
                }
            }
            Clause::Ids { ids } => ids.iter_mut().try_for_each(set)?,
            Clause::Bool { must, should, must_not, .. } => {
                for own in must.iter_mut().chain(should).chain(must_not) {
                    *own = own.map_texts(change)?;
                }
            }
            Clause::Range { .. } | Clause::Exists { .. } | Clause::All | Clause::Raw(_) => {}
        }
        Ok(clause)
    }

    /// The edit distances above 0 that are asked for in a cell of this distance, as far as they can be read: of a text
    /// of its user's own, only the cell's.
    #[must_use]
    pub fn distances(&self, of_cell: u8) -> BTreeSet<u8> {
        let mut all = match self {
            Clause::Fuzzy { distance, .. }
            | Clause::Match { distance, .. }
            | Clause::Phrase { distance, .. } => BTreeSet::from([distance.in_cell(of_cell)]),
            Clause::Bool { must, should, must_not, .. } => {
                let parts = must.iter().chain(should).chain(must_not);
                parts.flat_map(|own| own.distances(of_cell)).collect()
            }
            Clause::Raw(_) if self.is_fuzzy() => BTreeSet::from([of_cell]),
            _ => BTreeSet::new(),
        };
        all.remove(&0);
        all
    }

    /// Returns true if the cell's distance changes what is asked.
    #[must_use]
    pub fn is_fuzzy(&self) -> bool {
        match self {
            Clause::Fuzzy { distance, .. }
            | Clause::Match { distance, .. }
            | Clause::Phrase { distance, .. } => *distance == Distance::OfCell,
            Clause::Bool { must, should, must_not, .. } => {
                must.iter().chain(should).chain(must_not).any(Clause::is_fuzzy)
            }
            Clause::Raw(texts) => texts.values().any(|text| text.contains("{distance}")),
            _ => false,
        }
    }
}

/// The words of a text as every engine here sees them: runs of letters and digits, in lower case. A place for a row's
/// value, `{{name}}`, is a word.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some((before, place, after)) = first_place(rest) {
        all.extend(words_of_no_place(before));
        all.push(place.to_owned());
        rest = after;
    }
    all.extend(words_of_no_place(rest));
    all
}

/// The words of a text without a place for a row's value.
fn words_of_no_place(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// Returns the text before, in and after the first `{{name}}` or `{{{name}}}`.
fn first_place(text: &str) -> Option<(&str, &str, &str)> {
    let from = text.find("{{")?;
    let braces = if text[from..].starts_with("{{{") { "}}}" } else { "}}" };
    let to = from + text[from..].find(braces)? + braces.len();
    Some((&text[..from], &text[from..to], &text[to..]))
}

#[cfg(test)]
mod tests;
