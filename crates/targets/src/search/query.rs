//! What a search asks for, independent of the language that it was written in.
//!
//! A query language is a parser that ends in a [`Search`]; the planner and the executor know
//! nothing of languages. Field names are checked by the planner, so that every language has the
//! same rules.

use std::ops::Bound;

/// The largest edit distance that a fuzzy term may have.
pub(crate) const MAX_EDITS: u64 = 2;
/// The largest edit distance of [`Similar`] where words are found by an automaton.
pub(crate) const MAX_AUTOMATON_EDITS: u64 = 4;

/// Default distance of words in `near` and `onear`.
pub(crate) const DEFAULT_DISTANCE: u32 = 2;

/// One node of a boolean query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// Matches every document.
    All,
    /// Matches no document.
    Nothing,
    /// Every document of the type of this name.
    Type(String),
    /// All of the children match. A [`Node::Not`] child takes documents away.
    And(Vec<Node>),
    /// At least one of the children matches.
    Or(Vec<Node>),
    /// The child does not match.
    Not(Box<Node>),
    /// The first child matches; the relevance of the others that match is added.
    Rank(Vec<Node>),
    /// Text without a word to look for: nothing was asked. Taken out before planning, see
    /// [`Node::asked`].
    Null,
    /// The text as it was written; several words of a text field are a phrase.
    Term { field: String, text: String },
    /// The words follow one another.
    Phrase { field: String, words: Vec<String> },
    /// A word (or keyword) that begins so.
    Prefix { field: String, text: String },
    /// A word (or keyword) within this many single-character edits; the first `prefix_length`
    /// characters must be the same.
    Fuzzy { field: String, text: String, max_edits: u64, prefix_length: usize },
    /// A number between two bounds.
    Range { field: String, lower: Bound<Number>, upper: Bound<Number> },
    /// The value is one of these.
    OneOf { field: String, values: Vec<Literal> },
    /// All of the first, and so many of the others; each that matches adds to the relevance.
    AtLeast(Box<AtLeast>),
    /// The same documents with their relevance multiplied.
    Boost(Box<Node>, f32),
    /// The same documents, all with this relevance.
    Constant(Box<Node>, f32),
    /// One indexed term, which is not cut or folded. Scored, also in a keyword.
    Exact { field: String, term: String },
    /// Words that follow one another within so many moves of a word.
    Near { field: String, words: Vec<String>, slop: u32 },
    /// Words of one field within a window of positions.
    Within(Within),
    /// Words that resemble one. Like [`Node::Fuzzy`], with the choices that Lucene has.
    Similar(Similar),
    /// A term of the index that begins so; the text is not cut or folded.
    Beginning { field: String, text: String },
    /// The field has a value.
    Exists(String),
    /// The relevance of the best child counts, and a share of those of the others.
    Best { children: Vec<Node>, tie_breaker: f32 },
}

impl Node {
    /// The query without its parts that ask for nothing; nothing when no other part is left.
    pub(crate) fn asked(self) -> Option<Self> {
        let list = |children: Vec<Self>, make: fn(Vec<Self>) -> Self| {
            let empty = children.is_empty();
            let mut left: Vec<Self> = children.into_iter().filter_map(Self::asked).collect();
            match left.len() {
                0 if !empty => None,
                1 => left.pop(),
                _ => Some(make(left)),
            }
        };
        match self {
            Self::Null => None,
            Self::And(children) => list(children, Self::And),
            Self::Or(children) => list(children, Self::Or),
            Self::Rank(children) => list(children, Self::Rank),
            Self::Not(child) => child.asked().map(|child| Self::Not(Box::new(child))),
            Self::Constant(child, score) => {
                child.asked().map(|child| Self::Constant(Box::new(child), score))
            }
            other => Some(other),
        }
    }
}

/// One word of [`Within`]: any of these alternatives, each of words that follow one another.
pub(crate) type Place = Vec<Vec<String>>;

/// See [`Node::Within`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Within {
    pub(crate) field: String,
    pub(crate) places: Vec<Place>,
    /// The positions of all places are at most this far from each other.
    pub(crate) distance: u32,
    /// Each place comes after the one before it.
    pub(crate) ordered: bool,
}

/// See [`Node::AtLeast`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AtLeast {
    pub(crate) must: Vec<Node>,
    pub(crate) should: Vec<Node>,
    /// How many of `should`; 0 needs a `must`.
    pub(crate) at_least: usize,
}

/// A word and how far the words found may be from it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Similar {
    pub(crate) field: String,
    /// The term as it is looked up; for a scan the text as it was written.
    pub(crate) term: String,
    pub(crate) max_edits: u64,
    /// This many characters at the beginning must be the same.
    pub(crate) prefix_length: usize,
    /// Swapping two neighbours is one edit instead of two.
    pub(crate) transpositions: bool,
    pub(crate) expansion: Expansion,
}

/// What is done with the words found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expansion {
    /// Lucene's way: the words nearest to the term, at most so many in one index, scored as if all
    /// were as frequent as the most frequent of them.
    Nearest(usize),
    /// All words, with the same relevance.
    All,
    /// The text itself is read, not its words; what counts as an error.
    Scan(plimsoll_scan::Metric),
}

/// A number as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Whole(i64),
    /// With a fraction, or too large for a 64-bit integer.
    Real(f64),
}

/// A value in a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Number(Number),
    Text(String),
}

/// One sort criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrderBy {
    pub(crate) field: String,
    pub(crate) descending: bool,
}

/// How hits are valued when no order is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ranking {
    /// BM25 over the text fields.
    Bm25,
    /// Relevance 0 and index order.
    Unranked,
}

/// The fields of a hit that the reply shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    All,
    Named(Vec<String>),
}

/// A statement of a query language, before request parameters have their say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    pub(crate) selection: Selection,
    /// The document types searched; empty means every one.
    pub(crate) sources: Vec<String>,
    pub(crate) filter: Node,
    pub(crate) order: Vec<OrderBy>,
    pub(crate) limit: Option<u64>,
    pub(crate) offset: Option<u64>,
    pub(crate) timeout_ms: Option<u64>,
}

/// A search that is ready to be planned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Search {
    pub(crate) filter: Node,
    /// Numbers of the document types searched; empty means every one.
    pub(crate) types: Vec<u16>,
    pub(crate) order: Vec<OrderBy>,
    pub(crate) ranking: Ranking,
    pub(crate) hits: usize,
    pub(crate) offset: usize,
}
