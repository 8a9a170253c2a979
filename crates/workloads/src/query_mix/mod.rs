//! Queries that fit a text: classed, made of real words of it, with the least number of hits they
//! must have.
//!
//! | class | query |
//! |---|---|
//! | `one_term` | a word in the title or body |
//! | `two_terms` | two words of one document |
//! | `phrase` | two words side by side in a document |
//! | `fuzzy` | a word with 1 or 2 letters wrong, searched within that distance |
//! | `filter` | a word, and the category or a bound on the score of a document that has it |
//! | `no_hit` | a word that no document has |
//!
//! Words are neither stop words nor rarities: at least 3 documents have them, and at most 5 %. A
//! document is drawn first and a word of it second, so that commoner words are asked for more
//! often.

mod survey;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io::{self, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_core::rng::{Rng, derive_seed};

use crate::corpus::{Corpus, CorpusError, Document};
use survey::{Survey, terms};

/// Characters that stay unencoded in a URL (RFC 3986's unreserved characters).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// Fewest letters of a word that is misspelt: in a shorter one, two wrong letters leave too little.
const FUZZY_LETTERS_MIN: usize = 6;
/// Number of documents that are tried for one query before giving up.
const TRIES: usize = 2000;
/// Most queries of one mix.
pub const QUERIES_MAX: u64 = 1_000_000;

/// A class of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueryClass {
    /// A word.
    OneTerm,
    /// Two words, both needed.
    TwoTerms,
    /// Two words side by side.
    Phrase,
    /// A word with letters wrong.
    Fuzzy,
    /// A word, and a category or score.
    Filter,
    /// A word that is nowhere.
    NoHit,
}

impl QueryClass {
    /// All classes, in the order of reports.
    pub const ALL: [Self; 6] =
        [Self::OneTerm, Self::TwoTerms, Self::Phrase, Self::Fuzzy, Self::Filter, Self::NoHit];

    /// The name that requests are tagged with.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneTerm => "one_term",
            Self::TwoTerms => "two_terms",
            Self::Phrase => "phrase",
            Self::Fuzzy => "fuzzy",
            Self::Filter => "filter",
            Self::NoHit => "no_hit",
        }
    }
}

/// Answer of a correct server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// This many hits or more (stemming and the like may add some).
    AtLeast(u64),
    /// No hit at all.
    None,
}

/// Meaning of a query, before it is put into a query language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// This word in title or body.
    Term(String),
    /// Both words, each in title or body.
    Both(String, String),
    /// The words side by side in a field.
    Phrase {
        /// `title` or `body`.
        field: &'static str,
        /// First word.
        first: String,
        /// Second word.
        second: String,
    },
    /// A word of title or body within some edits of this one.
    Fuzzy {
        /// The misspelt word.
        word: String,
        /// Edits allowed.
        distance: usize,
    },
    /// The word in title or body, and this category.
    InCategory {
        /// The word.
        word: String,
        /// The category.
        category: String,
    },
    /// The word in title or body, and at least this score.
    Scored {
        /// The word.
        word: String,
        /// Least score.
        at_least: i64,
    },
}

impl Ask {
    /// The query in Vespa's YQL, from `sources`.
    #[must_use]
    pub fn yql(&self, sources: &str) -> String {
        let any = |what: &str| format!("title contains {what} or body contains {what}");
        let word = |word: &str| any(&quoted(word));
        let condition = match self {
            Self::Term(term) => word(term),
            Self::Both(a, b) => format!("({}) and ({})", word(a), word(b)),
            Self::Phrase { field, first, second } => {
                format!("{field} contains phrase({}, {})", quoted(first), quoted(second))
            }
            Self::Fuzzy { word, distance } => {
                any(&format!("({{maxEditDistance:{distance}}}fuzzy({}))", quoted(word)))
            }
            Self::InCategory { word: term, category } => {
                format!("({}) and category contains {}", word(term), quoted(category))
            }
            Self::Scored { word: term, at_least } => {
                format!("({}) and score >= {at_least}", word(term))
            }
        };
        format!("select * from sources {sources} where {condition}")
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// One query of a mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its class.
    pub class: QueryClass,
    /// Meaning of the query.
    pub ask: Ask,
    /// Answer of a correct server.
    pub expect: Expect,
}

/// Number of queries of each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixOptions {
    /// Same seed and corpus, same queries.
    pub seed: u64,
    /// Queries of each class, in the order of [`QueryClass::ALL`].
    pub counts: [u64; 6],
}

impl MixOptions {
    /// This many queries of each class.
    #[must_use]
    pub fn even(seed: u64, each: u64) -> Self {
        Self { seed, counts: [each; 6] }
    }
}

/// Reason why there is no mix.
#[derive(Debug, thiserror::Error)]
pub enum MixError {
    /// The corpus cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The corpus has no words that fit a class.
    #[error("too little text for queries of class {class}: {documents} documents; take more")]
    TooLittle {
        /// The class.
        class: &'static str,
        /// Documents of the corpus.
        documents: u64,
    },
    /// Nothing or too much was asked for.
    #[error("a query mix has 1 to 1,000,000 queries, and {0} were asked for")]
    Count(u64),
}

/// Makes a mix. Reads the corpus once, in memory that is bounded: 2 000 000
/// different words and 4000 documents.
///
/// # Errors
/// [`MixError`].
pub fn make(corpus: &Corpus, options: &MixOptions) -> Result<Vec<Query>, MixError> {
    let total = options.counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
    if !(1..=QUERIES_MAX).contains(&total) {
        return Err(MixError::Count(total));
    }
    let mut rng = Rng::new(derive_seed(options.seed, "query-mix"));
    let absent_wanted = options.counts[5] as usize;
    let survey = Survey::of(corpus.documents()?, absent_wanted, &mut rng)?;
    let mut queries = Vec::with_capacity(total as usize);
    for (class, count) in QueryClass::ALL.into_iter().zip(options.counts) {
        for index in 0..count {
            let made = match class {
                QueryClass::NoHit => survey.absent.get(index as usize).map(|word| Query {
                    class,
                    ask: Ask::Term(word.clone()),
                    expect: Expect::None,
                }),
                _ => hit(&survey, class, index, &mut rng),
            };
            let documents = survey.documents;
            queries.push(made.ok_or(MixError::TooLittle { class: class.name(), documents })?);
        }
    }
    rng.shuffle(&mut queries);
    Ok(queries)
}

/// A query that hits at least the document it is made from.
fn hit(survey: &Survey, class: QueryClass, index: u64, rng: &mut Rng) -> Option<Query> {
    (0..TRIES).find_map(|_| {
        // There may be no document at all.
        let document = survey.sample.get(rng.below(survey.sample.len() as u64) as usize)?;
        let words = survey.fit_words(document);
        if words.is_empty() {
            return None;
        }
        let word = words[rng.below(words.len() as u64) as usize].clone();
        let (ask, at_least) = match class {
            QueryClass::OneTerm => {
                let documents = survey.documents_with(&word);
                (Ask::Term(word), documents)
            }
            QueryClass::TwoTerms => {
                let other = words[rng.below(words.len() as u64) as usize].clone();
                if other == word {
                    return None;
                }
                (Ask::Both(word, other), 1)
            }
            QueryClass::Phrase => (phrase(survey, document, rng)?, 1),
            QueryClass::Fuzzy => {
                // The documents with the word itself are within the distance in any case.
                let documents = survey.documents_with(&word);
                (misspelt(&word, rng)?, documents)
            }
            QueryClass::Filter if index.is_multiple_of(2) && !document.category.is_empty() => {
                (Ask::InCategory { word, category: document.category.clone() }, 1)
            }
            QueryClass::Filter => (Ask::Scored { word, at_least: document.score }, 1),
            QueryClass::NoHit => return None,
        };
        Some(Query { class, ask, expect: Expect::AtLeast(at_least) })
    })
}

/// Two words with one blank between them, of which at least one is neither stop word nor rarity.
fn phrase(survey: &Survey, document: &Document, rng: &mut Rng) -> Option<Ask> {
    let mut pairs = Vec::new();
    for (field, text) in [("title", &document.title), ("body", &document.body)] {
        let found: Vec<(usize, usize, String)> = terms(text).collect();
        for pair in found.windows(2) {
            let ((_, end, first), (start, _, second)) = (&pair[0], &pair[1]);
            let beside = text.get(*end..*start) == Some(" ") && first != second;
            if beside && (survey.fits(first) || survey.fits(second)) {
                pairs.push((field, first.clone(), second.clone()));
            }
        }
    }
    if pairs.is_empty() {
        return None;
    }
    let (field, first, second) = pairs.swap_remove(rng.below(pairs.len() as u64) as usize);
    Some(Ask::Phrase { field, first, second })
}

/// The word with one or two letters changed, left out or put in.
fn misspelt(word: &str, rng: &mut Rng) -> Option<Ask> {
    if word.len() < FUZZY_LETTERS_MIN {
        return None;
    }
    let wanted = 1 + rng.below(2) as usize;
    let mut letters = word.as_bytes().to_vec();
    for _ in 0..wanted {
        let letter = b'a' + rng.below(26) as u8;
        let at = rng.below(letters.len() as u64) as usize;
        match rng.below(3) {
            0 => letters.insert(at, letter),
            1 => drop(letters.remove(at)),
            _ => letters[at] = letter,
        }
    }
    // Two edits may undo each other; what counts is the distance that is left.
    let distance = crate::edit_distance::edit_distance(word.as_bytes(), &letters);
    let word = String::from_utf8(letters).ok()?;
    (distance == wanted).then_some(Ask::Fuzzy { word, distance })
}

/// Form and destination of the queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendering {
    /// Sources of YQL's `select`: `*` or a name.
    pub sources: String,
    /// Hits wanted in each reply.
    pub hits: u32,
}

impl Default for Rendering {
    fn default() -> Self {
        Self { sources: "*".into(), hits: 10 }
    }
}

impl Rendering {
    /// The request target of a query by GET: `/search/?yql=...&hits=10`.
    #[must_use]
    pub fn target(&self, query: &Query) -> String {
        let yql = query.ask.yql(&self.sources);
        let mut target = String::from("/search/?yql=");
        // Writing to a String cannot fail.
        let _ = write!(target, "{}&hits={}", utf8_percent_encode(&yql, ENCODED), self.hits);
        target
    }

    /// Writes request lines for `load` ([`crate::ndjson`]), tagged with their class.
    ///
    /// # Errors
    /// The first error of `out`.
    pub fn write_ndjson(&self, queries: &[Query], out: &mut dyn Write) -> io::Result<()> {
        for query in queries {
            // Neither target nor class has characters that JSON escapes.
            let (target, class) = (self.target(query), query.class.name());
            writeln!(out, "{{\"method\":\"GET\",\"path\":\"{target}\",\"class\":\"{class}\"}}")?;
        }
        Ok(())
    }

    /// Writes a query file for GET requests in vespa-fbench's format.
    ///
    /// # Errors
    /// The first error of `out`.
    pub fn write_fbench_get(&self, queries: &[Query], out: &mut dyn Write) -> io::Result<()> {
        queries.iter().try_for_each(|query| writeln!(out, "{}", self.target(query)))
    }

    /// Writes a query file for POST requests in vespa-fbench's format.
    ///
    /// # Errors
    /// The first error of `out`.
    pub fn write_fbench_post(&self, queries: &[Query], out: &mut dyn Write) -> io::Result<()> {
        for query in queries {
            let yql = serde_json::Value::from(query.ask.yql(&self.sources));
            writeln!(out, "/search/\n{{\"yql\":{yql},\"hits\":{}}}", self.hits)?;
        }
        Ok(())
    }
}
