//! Ten queries of our own for the corpora of this program: one word, several words, two fields, exclusions, phrases.
//!
//! They have the shapes that people compare engines by (a misspelt word, two misspelt words that must or may be
//! there, one field against another, words that must not be there, words spelt right, a phrase), and each shape has
//! its own costs: dictionaries are walked, postings are joined, positions are looked up.

use super::SearchError;
use super::query::{Query, parse};
use plimsoll_workloads::corpus::Synthetic;
use std::fmt::Write as _;

/// Number of times that a user asks a query in a row, as in the comparison that this grew out of.
const REPEAT: u32 = 10;

/// The words that the ten queries are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// Asked alone.
    pub one: String,
    /// Two that must be there together.
    pub both: [String; 2],
    /// Two of which one suffices.
    pub either: [String; 2],
    /// One that must be there without the other.
    pub without: [String; 2],
    /// Two that are spelt right.
    pub right: [String; 2],
    /// Two or more that stand side by side.
    pub phrase: String,
    /// A frequent category.
    pub category: String,
    /// Another one.
    pub other_category: String,
}

impl Words {
    /// Planted words and phrases of a synthetic text, so that every answer is known. The text misspells them, not the
    /// query. None for a text without anything planted.
    #[must_use]
    pub fn planted(corpus: &Synthetic) -> Option<Self> {
        let truth = corpus.truth();
        let word = |index: usize| truth.words.get(index).map(|word| word.word.clone());
        let category = |index: usize| truth.categories.get(index).map(|c| c.category.clone());
        Some(Self {
            one: word(2)?,
            both: [word(0)?, word(1)?],
            either: [word(3)?, word(4)?],
            without: [word(0)?, word(5)?],
            right: [word(1)?, word(0)?],
            phrase: truth.phrases.first()?.phrase.clone(),
            category: category(0)?,
            other_category: category(1)?,
        })
    }

    /// For descriptions of Debian's packages; misspelt as people do.
    #[must_use]
    pub fn debian() -> Self {
        Self::of([
            "libary",
            "grafical",
            "interfase",
            "devlopment",
            "documantation",
            "compresion",
            "arhive",
            "command",
            "line",
            "shared library",
            "libs",
            "devel",
        ])
    }

    /// For WordNet's glosses, the text inside this program.
    #[must_use]
    pub fn bundled() -> Self {
        Self::of([
            "anmial",
            "tropicle",
            "americn",
            "musicle",
            "instrumant",
            "goverment",
            "oficial",
            "small",
            "flowers",
            "united states",
            "noun.plant",
            "noun.person",
        ])
    }

    fn of(words: [&str; 12]) -> Self {
        let [one, a, b, c, d, e, f, g, h, phrase, category, other] = words.map(str::to_owned);
        Self {
            one,
            both: [a, b],
            either: [c, d],
            without: [e, f],
            right: [g, h],
            phrase,
            category,
            other_category: other,
        }
    }
}

/// The ten queries as a file that a user may take and change.
#[must_use]
pub fn ten_as_toml(words: &Words) -> String {
    let Words { one, both, either, without, right, phrase, category, other_category } = words;
    let fuzzy = |text: &str| format!("{{ kind = \"fuzzy\", text = \"{text}\" }}");
    let some = |texts: &[String; 2], operator: &str| {
        format!(
            "{{ kind = \"match\", text = \"{} {}\", operator = \"{operator}\", distance = \"cell\" }}",
            texts[0], texts[1]
        )
    };
    let in_category =
        |name: &str| format!("{{ kind = \"term\", field = \"category\", text = \"{name}\" }}");
    let two = |operator: &str, texts: &[String; 2]| {
        format!(
            "kind = \"match\"\ntext = \"{} {}\"\noperator = \"{operator}\"\ndistance = \"cell\"",
            texts[0], texts[1]
        )
    };
    let list: [(&str, String); 10] = [
        ("one word", format!("kind = \"fuzzy\"\ntext = \"{one}\"")),
        ("both words", two("and", both)),
        ("either word", format!("kind = \"bool\"\nmust = [{}]", some(either, "or"))),
        (
            "word or category",
            format!(
                "kind = \"bool\"\nshould = [{}, {}]\nminimum = 1",
                fuzzy(one),
                in_category(other_category)
            ),
        ),
        (
            "one without the other",
            format!(
                "kind = \"bool\"\nmust = [{}]\nmust-not = [{}]",
                fuzzy(&without[0]),
                fuzzy(&without[1])
            ),
        ),
        (
            "words in a category",
            format!("kind = \"bool\"\nmust = [{}, {}]", some(either, "or"), in_category(category)),
        ),
        (
            "words outside a category",
            format!(
                "kind = \"bool\"\nmust = [{}]\nmust-not = [{}]",
                some(either, "or"),
                in_category(category)
            ),
        ),
        ("spelt right", two("and", right)),
        ("phrase", format!("kind = \"phrase\"\ntext = \"{phrase}\"")),
        (
            "phrase outside a category",
            format!(
                "kind = \"bool\"\nmust = [{{ kind = \"phrase\", text = \"{phrase}\" }}]\nmust-not = [{}]",
                in_category(category)
            ),
        ),
    ];
    let mut text =
        String::from("# A word without a distance of its own is searched within the cell's.\n");
    for (name, rest) in list {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n[[query]]\nname = \"{name}\"\nrepeat = {REPEAT}\n{rest}\n");
    }
    text
}

/// The ten queries.
///
/// # Errors
/// When a word of the text's cannot be written in TOML: never with the words of this module.
pub fn ten(words: &Words) -> Result<Vec<Query>, SearchError> {
    parse(&ten_as_toml(words), "the built-in queries")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use plimsoll_workloads::corpus::{SyntheticOptions, synthetic::Size};

    #[test]
    fn every_engine_can_be_asked_all_ten() {
        let synthetic = Synthetic::new(&SyntheticOptions::new(1, Size::Documents(200))).unwrap();
        let planted = Words::planted(&synthetic).unwrap();
        for words in [planted, Words::debian(), Words::bundled()] {
            let queries = ten(&words).unwrap();
            assert_eq!(queries.len(), 10);
            assert!(queries.iter().all(|query| query.repeat == 10 && query.size == 1000));
            assert_eq!(queries.iter().filter(|query| query.clause.is_fuzzy()).count(), 8);
            for query in &queries {
                for dialect in [Dialect::Elasticsearch, Dialect::Vespa, Dialect::Postgresql] {
                    let said = dialect.shown("i", query, 4);
                    assert!(said.is_ok(), "{} in {}: {said:?}", query.name, dialect.name());
                }
            }
        }
    }

    #[test]
    fn a_text_without_planted_words_has_no_such_queries() {
        let options =
            SyntheticOptions { planted_words: 0, ..SyntheticOptions::new(1, Size::Documents(200)) };
        assert_eq!(Words::planted(&Synthetic::new(&options).unwrap()), None);
    }
}
