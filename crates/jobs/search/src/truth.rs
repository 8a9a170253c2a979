//! True results of a query on a synthetic text, counted from the planted words and not from the text itself.

use super::query::{Clause, Query, words};
use plimsoll_workloads::corpus::Synthetic;
use plimsoll_workloads::corpus::synthetic::{DISTANCES, Manifest, Planted};
use plimsoll_workloads::edit_distance::edit_distance;
use serde_json::Value;

/// Number of documents that a query finds within a cell's distance; none where the text's truth does not say, as for
/// words that were not planted.
#[must_use]
pub fn expected(corpus: &Synthetic, query: &Query, distance: u8) -> Option<u64> {
    let truth = corpus.truth();
    let judged = Judged { truth: &truth, distance };
    let mut planted = Planted::default();
    let mut count = 0;
    for number in 0..corpus.documents() {
        corpus.planted(number, &mut planted);
        // Whether the truth says anything does not depend on the document.
        count += u64::from(judged.holds(&query.clause, &planted, number)?);
    }
    Some(count)
}

struct Judged<'a> {
    truth: &'a Manifest,
    distance: u8,
}

impl Judged<'_> {
    fn holds(&self, clause: &Clause, planted: &Planted, number: u64) -> Option<bool> {
        Some(match clause {
            Clause::Fuzzy { field, word, distance } => {
                self.word(field, word, distance.in_cell(self.distance), planted)?
            }
            Clause::Match { field, text, all, distance } => {
                let edits = distance.in_cell(self.distance);
                let mut found = *all;
                for word in words(text) {
                    let one = self.word(field, &word, edits, planted)?;
                    found = if *all { found && one } else { found || one };
                }
                found
            }
            Clause::Phrase { field, text, distance } => {
                if field != "body" || distance.in_cell(self.distance) > 0 {
                    return None;
                }
                let wanted = words(text).join(" ");
                let phrase = self.truth.phrases.iter().position(|one| one.phrase == wanted)?;
                planted.phrases.iter().any(|(own, adjacent)| *own == phrase && *adjacent)
            }
            Clause::Term { field, values } => {
                let mut found = false;
                for value in values {
                    found |= self.value(field, value, planted)?;
                }
                found
            }
            Clause::Prefix { field, text } if field == "category" => {
                planted.category.starts_with(text.as_str())
            }
            Clause::Range { field, at_least, above, at_most, below } if field == "score" => {
                let score = planted.score as f64;
                let within = |bound: &Option<serde_json::Number>, test: fn(f64, f64) -> bool| {
                    bound
                        .as_ref()
                        .and_then(serde_json::Number::as_f64)
                        .is_none_or(|b| test(score, b))
                };
                within(at_least, |s, b| s >= b)
                    && within(above, |s, b| s > b)
                    && within(at_most, |s, b| s <= b)
                    && within(below, |s, b| s < b)
            }
            // Every document of a synthetic text has all five fields.
            Clause::Exists { field } if crate::query::FIELDS.iter().any(|(f, _)| f == field) => {
                true
            }
            Clause::Ids { ids } => ids.iter().any(|id| *id == format!("s{number}")),
            Clause::All => true,
            Clause::Bool { must, should, must_not, minimum } => {
                let mut holds = true;
                for clause in must {
                    holds &= self.holds(clause, planted, number)?;
                }
                let mut some = 0;
                for clause in should {
                    some += u32::from(self.holds(clause, planted, number)?);
                }
                for clause in must_not {
                    holds &= !self.holds(clause, planted, number)?;
                }
                holds && some >= *minimum
            }
            _ => return None,
        })
    }

    fn word(&self, field: &str, word: &str, edits: u8, planted: &Planted) -> Option<bool> {
        let edits = usize::from(edits);
        match field {
            "body" => {
                if edits >= DISTANCES {
                    return None;
                }
                if let Some(index) = self.truth.words.iter().position(|own| own.word == word) {
                    let near = |(own, at): &(usize, usize)| *own == index && *at <= edits;
                    return Some(planted.words.iter().any(near));
                }
                if edits > 0 {
                    return None;
                }
                // A word of a phrase is in a document with the phrase or with both of its words apart.
                let phrases = &self.truth.phrases;
                let index =
                    phrases.iter().position(|own| own.phrase.split(' ').any(|w| w == word))?;
                Some(planted.phrases.iter().any(|(own, _)| *own == index))
            }
            "category" => {
                Some(edit_distance(planted.category.as_bytes(), word.as_bytes()) <= edits)
            }
            _ => None,
        }
    }

    fn value(&self, field: &str, value: &Value, planted: &Planted) -> Option<bool> {
        match (field, value) {
            ("score", value) => Some(value.as_f64()? == planted.score as f64),
            (_, Value::String(word)) => self.word(field, word, 0, planted),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::{Words, ten};
    use crate::query::parse;
    use plimsoll_workloads::corpus::{Document, SyntheticOptions, synthetic::Size};

    /// A search by reading every word of every document.
    fn naive(corpus: &Synthetic, holds: impl Fn(&Document, &[String]) -> bool) -> u64 {
        let mut document = Document::default();
        let mut count = 0;
        for number in 0..corpus.documents() {
            corpus.fill(number, &mut document);
            let body = words(&document.body);
            count += u64::from(holds(&document, &body));
        }
        count
    }

    fn near(body: &[String], word: &str, edits: usize) -> bool {
        body.iter().any(|token| edit_distance(token.as_bytes(), word.as_bytes()) <= edits)
    }

    #[test]
    fn the_truth_is_what_reading_all_of_it_says() {
        let corpus = Synthetic::new(&SyntheticOptions::new(7, Size::Documents(1500))).unwrap();
        let words = Words::planted(&corpus).unwrap();
        let queries = ten(&words).unwrap();
        let of = |name: &str, distance| {
            let query = queries.iter().find(|query| query.name == name).unwrap();
            expected(&corpus, query, distance)
        };
        for edits in [0u8, 2, 4] {
            let k = usize::from(edits);
            let one = naive(&corpus, |_, body| near(body, &words.one, k));
            assert_eq!(of("one word", edits), Some(one), "distance {edits}");
            let either = naive(&corpus, |document, body| {
                words.either.iter().any(|word| near(body, word, k))
                    && document.category != words.category
            });
            assert_eq!(of("words outside a category", edits), Some(either));
            let without = naive(&corpus, |_, body| {
                near(body, &words.without[0], k) && !near(body, &words.without[1], k)
            });
            assert_eq!(of("one without the other", edits), Some(without));
        }
        let phrase = naive(&corpus, |_, body| body.join(" ").contains(&words.phrase));
        assert!(phrase > 0);
        assert_eq!(of("phrase", 2), Some(phrase));
    }

    #[test]
    fn what_was_not_planted_is_not_known() {
        let corpus = Synthetic::new(&SyntheticOptions::new(7, Size::Documents(200))).unwrap();
        let known = |text: &str, distance| {
            let query = parse(&format!("[[query]]\nname=\"q\"\n{text}"), "q").unwrap().remove(0);
            expected(&corpus, &query, distance)
        };
        assert_eq!(known("kind=\"fuzzy\"\ntext=\"harbour\"", 2), None);
        assert_eq!(known("kind=\"prefix\"\ntext=\"a\"", 2), None);
        assert_eq!(known("kind=\"all\"", 2), Some(200));
        assert_eq!(known("kind=\"ids\"\nvalues=[\"s3\", \"s900\"]", 2), Some(1));
        let truth = corpus.truth();
        let score = known("kind=\"range\"\nfield=\"score\"\nat-least=5000", 0);
        let wanted = truth.scores.iter().find(|score| score.at_least == 5000).unwrap();
        assert_eq!(score, Some(wanted.documents));
        let word = format!("kind=\"fuzzy\"\ntext=\"{}\"", truth.words[0].word);
        assert_eq!(known(&word, 3), Some(truth.words[0].documents_within(3)));
        assert_eq!(known(&word, 7), None, "farther than was planted");
    }
}
