//! Document that holds what is planted, and the truth that follows.
//!
//! For each planted thing a permutation of the documents is cut in ranges of known sizes: a
//! document's place under the permutation tells what it holds. So every count is exact by
//! construction, and no document needs to know of another.

use plimsoll_core::rng::{Rng, derive_seed};
use serde::Serialize;

use super::lexicon::Lexicon;
use super::math::{exp, ln};
use super::{DISTANCES, SCORES, SyntheticOptions};

/// Categories, commonest first: the k-th has odds 1/k.
const CATEGORIES: [&str; 16] = [
    "science",
    "games",
    "music",
    "travel",
    "sports",
    "cooking",
    "history",
    "health",
    "politics",
    "gardening",
    "film",
    "finance",
    "astronomy",
    "poetry",
    "sailing",
    "chess",
];
/// Documents per million that hold the first planted word or phrase; the k-th holds 1/k of that.
const PLANTED_PER_MILLION: u64 = 8000;
/// Shares of a planted word's documents at distances 0 to 5, in per cent.
const DISTANCE_SHARES: [u64; DISTANCES] = [40, 20, 15, 10, 10, 5];
/// Heaps' law V = K n^b of English package descriptions.
const HEAPS_K: f64 = 5.8;
const HEAPS_B: f64 = 0.65;

/// `number -> (a * number + b) mod documents`, with `a` prime to `documents`.
#[derive(Clone, Copy, Debug)]
struct Permutation {
    a: u64,
    b: u64,
    documents: u64,
}

impl Permutation {
    fn new(rng: &mut Rng, documents: u64) -> Self {
        let mut a = 1;
        if documents > 3 {
            loop {
                a = documents / 3 + rng.below(documents / 2);
                if gcd(a, documents) == 1 {
                    break;
                }
            }
        }
        Self { a, b: rng.below(documents), documents }
    }

    #[inline]
    fn place(self, number: u64) -> u64 {
        // Below 1e8 times 1e8: no overflow.
        (self.a * number + self.b) % self.documents
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Something planted in a document.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bucket {
    Word { word: usize, distance: usize },
    Phrase { phrase: usize, adjacent: bool },
}

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub documents: u64,
    words: Vec<(Permutation, [u64; DISTANCES])>,
    /// Documents with the phrase, and with both of its words apart.
    phrases: Vec<(Permutation, [u64; 2])>,
    by_category: Permutation,
    category_ends: [u64; CATEGORIES.len()],
    by_score: Permutation,
    /// Odds of a typo in 1/65536, by the number of bits of the tokens before.
    typo_odds: [u64; 64],
    mean_length: u64,
}

impl Plan {
    pub fn new(options: &SyntheticOptions, documents: u64) -> Self {
        let mut rng = Rng::new(derive_seed(options.seed, "plan"));
        let share = |k: u64, per_cent: u64| {
            (documents * PLANTED_PER_MILLION * per_cent / (100_000_000 * (k + 1))).max(1)
        };
        let words = (0..u64::from(options.planted_words)).map(|k| {
            let counts = DISTANCE_SHARES.map(|per_cent| share(k, per_cent));
            (Permutation::new(&mut rng, documents), counts)
        });
        let words = words.collect();
        let phrases = (0..u64::from(options.planted_phrases))
            .map(|k| (Permutation::new(&mut rng, documents), [share(k, 60), share(k, 40)]));
        let phrases = phrases.collect();
        let total: f64 = (1..=CATEGORIES.len()).map(|k| 1.0 / k as f64).sum();
        let mut sum = 0.0;
        let category_ends = std::array::from_fn(|k| {
            sum += 1.0 / (k + 1) as f64;
            if k + 1 == CATEGORIES.len() {
                documents
            } else {
                (documents as f64 * sum / total) as u64
            }
        });
        let typo_odds = std::array::from_fn(|bits| {
            let tokens = exp(bits as f64 * std::f64::consts::LN_2);
            let rate = HEAPS_K * HEAPS_B * exp((HEAPS_B - 1.0) * ln(tokens));
            (rate.clamp(0.002, 0.05) * 65536.0) as u64
        });
        let mean = options.length_mu + options.length_sigma * options.length_sigma / 2.0;
        Self {
            documents,
            words,
            phrases,
            by_category: Permutation::new(&mut rng, documents),
            category_ends,
            by_score: Permutation::new(&mut rng, documents),
            typo_odds,
            mean_length: exp(mean) as u64 + 1,
        }
    }

    /// Tells everything that is planted in a document.
    #[inline]
    pub fn buckets(&self, number: u64, mut each: impl FnMut(Bucket)) {
        for (word, (permutation, counts)) in self.words.iter().enumerate() {
            if let Some(distance) = cut(permutation.place(number), counts) {
                each(Bucket::Word { word, distance });
            }
        }
        for (phrase, (permutation, counts)) in self.phrases.iter().enumerate() {
            if let Some(range) = cut(permutation.place(number), counts) {
                each(Bucket::Phrase { phrase, adjacent: range == 0 });
            }
        }
    }

    #[inline]
    pub fn category(&self, number: u64) -> &'static str {
        let place = self.by_category.place(number);
        let which = self.category_ends.iter().position(|end| place < *end);
        CATEGORIES[which.unwrap_or(CATEGORIES.len() - 1)]
    }

    #[inline]
    pub fn score(&self, number: u64) -> i64 {
        (self.by_score.place(number) * SCORES / self.documents) as i64
    }

    #[inline]
    pub fn typo_odds(&self, number: u64) -> u64 {
        let tokens = (number + 1) * self.mean_length;
        self.typo_odds[63 - tokens.leading_zeros() as usize]
    }

    pub fn truth(&self, options: &SyntheticOptions, lexicon: &Lexicon) -> Manifest {
        let words = self.words.iter().zip(&lexicon.planted).map(|((_, counts), planted)| {
            WordTruth { word: planted.word.clone(), documents_at_distance: *counts }
        });
        let phrases = self.phrases.iter().zip(&lexicon.phrases);
        let phrases = phrases.map(|((_, counts), (first, second))| PhraseTruth {
            phrase: format!("{first} {second}"),
            documents: counts[0],
            documents_with_both_words: counts[0] + counts[1],
        });
        let starts = std::iter::once(0).chain(self.category_ends);
        let categories = CATEGORIES.iter().zip(starts.zip(self.category_ends));
        let categories = categories.map(|(name, (start, end))| CategoryTruth {
            category: (*name).to_owned(),
            documents: end - start,
        });
        let scores = [0, SCORES / 2, SCORES * 9 / 10, SCORES * 99 / 100].map(|at_least| {
            // The places whose score is at least that: from ceil(at_least * N / SCORES) on.
            let first = (at_least * self.documents).div_ceil(SCORES);
            ScoreTruth { at_least: at_least as i64, documents: self.documents - first }
        });
        Manifest {
            schema: "plimsoll.corpus/1",
            options: options.clone(),
            documents: self.documents,
            words: words.collect(),
            phrases: phrases.collect(),
            categories: categories.collect(),
            scores: scores.to_vec(),
            ndjson_bytes: None,
            ndjson_sha256: None,
        }
    }
}

/// The range in which a place lies, if it lies before the end of the last one.
fn cut(place: u64, counts: &[u64]) -> Option<usize> {
    let mut end = 0;
    counts.iter().position(|count| {
        end += count;
        place < end
    })
}

/// Contents of a synthetic corpus. Counts are of documents, and exact.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manifest {
    /// Name and version of this form.
    pub schema: &'static str,
    /// Options of the corpus.
    pub options: SyntheticOptions,
    /// Documents in all.
    pub documents: u64,
    /// Planted words; they occur in `body` only.
    pub words: Vec<WordTruth>,
    /// Planted phrases; their words occur nowhere else, and in `body` only.
    pub phrases: Vec<PhraseTruth>,
    /// Values of `category`.
    pub categories: Vec<CategoryTruth>,
    /// Truth of filters on `score`.
    pub scores: Vec<ScoreTruth>,
    /// Bytes of the NDJSON, once it has been written.
    pub ndjson_bytes: Option<u64>,
    /// SHA-256 of the NDJSON in hexadecimal, once it has been written.
    pub ndjson_sha256: Option<String>,
}

/// A planted word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WordTruth {
    /// The word.
    pub word: String,
    /// Documents with a token at a Levenshtein distance of exactly 0, 1, ... 5 from the word. No
    /// document holds two of them, so a search within distance k finds the sum of the first k + 1.
    pub documents_at_distance: [u64; DISTANCES],
}

impl WordTruth {
    /// Documents that a search for the word within `distance` edits must find.
    #[must_use]
    pub fn documents_within(&self, distance: usize) -> u64 {
        self.documents_at_distance.iter().take(distance + 1).sum()
    }
}

/// A planted phrase of two words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhraseTruth {
    /// The two words, separated by a blank.
    pub phrase: String,
    /// Documents in which they stand side by side in this order.
    pub documents: u64,
    /// Documents that hold both, side by side or not; this many match when the phrase is searched as
    /// two words.
    pub documents_with_both_words: u64,
}

/// A category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CategoryTruth {
    /// The value.
    pub category: String,
    /// Documents with it.
    pub documents: u64,
}

/// A filter on the score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScoreTruth {
    /// `score >= at_least`.
    pub at_least: i64,
    /// Documents that it lets through.
    pub documents: u64,
}
