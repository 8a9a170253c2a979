//! A text of any size, made from a seed, whose answers are known beforehand.
//!
//! * Word frequencies follow Zipf and Mandelbrot's law over a fixed vocabulary; typos and numbers
//!   beside it come at the rate of Heaps' law, so that the vocabulary never stops growing, as in
//!   real text. Document lengths are lognormal. The defaults fit English package descriptions.
//! * *Planted* words occur in a known number of documents at each edit distance from 0 to 5; every
//!   other token is further than 5 edits from each planted word. Phrases, categories and scores
//!   have known counts too.
//! * Each document depends on the seed, its number and the size of the corpus only, so that any
//!   number of threads makes the same bytes, and any document can be made again alone.

mod lexicon;
mod math;
mod plan;
#[cfg(test)]
mod tests;
mod writer;

use plimsoll_core::rng::{Rng, derive_seed, splitmix64};

use super::{CorpusError, Document};
use lexicon::Lexicon;
use plan::{Bucket, Plan};
pub use plan::{CategoryTruth, Manifest, PhraseTruth, ScoreTruth, WordTruth};

/// Planted words occur at edit distances 0 to 5.
pub const DISTANCES: usize = 6;
/// Fewest documents, so that every planted count is at least one.
pub const DOCUMENTS_MIN: u64 = 100;
/// Most documents.
pub const DOCUMENTS_MAX: u64 = 100_000_000;
/// Largest corpus, in bytes of NDJSON: 10 GB.
pub const BYTES_MAX: u64 = 10_000_000_000;
/// Scores are spread evenly from 0 to one below this.
pub const SCORES: u64 = 10_000;

/// Resolution of the table of document lengths.
const LENGTH_QUANTILES: usize = 4096;
/// Longest document, in tokens.
const LENGTH_MAX: f64 = 4000.0;
/// Share of tokens that are numbers, in 1/65536.
const NUMBER_ODDS: u64 = 655;

/// Size of a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// This many documents, [`DOCUMENTS_MIN`] to [`DOCUMENTS_MAX`].
    Documents(u64),
    /// About this many bytes of NDJSON, up to [`BYTES_MAX`]; met to within 2 % from 1 MB on.
    Bytes(u64),
}

/// Options of a synthetic corpus. The same options make the same bytes, on every machine.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SyntheticOptions {
    /// Everything random follows from it.
    pub seed: u64,
    /// Size.
    pub size: Size,
    /// Words of the fixed vocabulary, 1000 to 1 000 000.
    pub vocabulary: u32,
    /// The exponent s of odds 1 / (rank + q)^s, 0.5 to 2.
    pub zipf_exponent: f64,
    /// The shift q, 0 to 100.
    pub zipf_shift: f64,
    /// Mean of the logarithm of a body's length in tokens, 0 to 7.
    pub length_mu: f64,
    /// Standard deviation of that logarithm, 0 to 2.
    pub length_sigma: f64,
    /// Number of words that are planted, 0 to 32.
    pub planted_words: u32,
    /// Number of phrases that are planted, 0 to 32.
    pub planted_phrases: u32,
}

impl SyntheticOptions {
    /// English-like text of a size.
    #[must_use]
    pub fn new(seed: u64, size: Size) -> Self {
        Self {
            seed,
            size,
            vocabulary: 60_000,
            zipf_exponent: 1.05,
            zipf_shift: 0.3,
            length_mu: 3.96,
            length_sigma: 0.56,
            planted_words: 8,
            planted_phrases: 4,
        }
    }

    fn check(&self) -> Result<(), CorpusError> {
        let within = |option, value: f64, low: f64, high: f64| {
            if value >= low && value <= high {
                return Ok(());
            }
            Err(CorpusError::Range { option, value, low, high })
        };
        match self.size {
            Size::Documents(n) => {
                within(
                    "number of documents",
                    n as f64,
                    DOCUMENTS_MIN as f64,
                    DOCUMENTS_MAX as f64,
                )?;
            }
            Size::Bytes(n) => within("size in bytes", n as f64, 100_000.0, BYTES_MAX as f64)?,
        }
        within("vocabulary", f64::from(self.vocabulary), 1000.0, 1e6)?;
        within("zipf exponent", self.zipf_exponent, 0.5, 2.0)?;
        within("zipf shift", self.zipf_shift, 0.0, 100.0)?;
        within("length mu", self.length_mu, 0.0, 7.0)?;
        within("length sigma", self.length_sigma, 0.0, 2.0)?;
        within("planted words", f64::from(self.planted_words), 0.0, 32.0)?;
        within("planted phrases", f64::from(self.planted_phrases), 0.0, 32.0)
    }
}

/// Words planted in a document: indices into the lists of its corpus's [`Manifest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planted {
    /// Planted words and the edit distance of the spelling that is there.
    pub words: Vec<(usize, usize)>,
    /// Planted phrases, and whether their words stand side by side.
    pub phrases: Vec<(usize, bool)>,
    /// The category.
    pub category: &'static str,
    /// The score.
    pub score: i64,
}

/// A synthetic corpus: makes any of its documents when asked.
#[derive(Clone, Debug)]
pub struct Synthetic {
    options: SyntheticOptions,
    lexicon: Lexicon,
    plan: Plan,
    /// Lengths in tokens at even quantiles.
    lengths: Vec<u32>,
}

impl Synthetic {
    /// Prepares a corpus: about 0.1 s, and some 3 MB.
    ///
    /// # Errors
    /// [`CorpusError::Range`] for an option out of range.
    pub fn new(options: &SyntheticOptions) -> Result<Self, CorpusError> {
        options.check()?;
        let lengths = (0..LENGTH_QUANTILES).map(|i| {
            let p = (i as f64 + 0.5) / LENGTH_QUANTILES as f64;
            let log = options.length_mu + options.length_sigma * math::normal_quantile(p);
            math::exp(log).round().clamp(1.0, LENGTH_MAX) as u32
        });
        let mut made = Self {
            options: options.clone(),
            lexicon: Lexicon::new(options),
            plan: Plan::new(options, DOCUMENTS_MIN),
            lengths: lengths.collect(),
        };
        let documents = match options.size {
            Size::Documents(documents) => documents,
            Size::Bytes(bytes) => made.documents_for(bytes),
        };
        made.plan = Plan::new(options, documents);
        Ok(made)
    }

    /// Number of documents that make this many bytes: found from a sample of the documents themselves.
    fn documents_for(&mut self, bytes: u64) -> u64 {
        const SAMPLE: u64 = 2000;
        let mut documents = (bytes / 450).clamp(SAMPLE, DOCUMENTS_MAX);
        let (mut document, mut line) = (Document::default(), Vec::new());
        // Twice, because the rate of new words depends on the number of documents.
        for _ in 0..2 {
            self.plan = Plan::new(&self.options, documents);
            line.clear();
            for i in 0..SAMPLE {
                self.fill(i * documents / SAMPLE, &mut document);
                document.to_ndjson(&mut line);
            }
            let wanted = u128::from(bytes) * u128::from(SAMPLE) / line.len() as u128;
            documents = (wanted as u64).clamp(DOCUMENTS_MIN, DOCUMENTS_MAX);
        }
        documents
    }

    /// Number of documents.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.plan.documents
    }

    /// The options it was made from.
    #[must_use]
    pub fn options(&self) -> &SyntheticOptions {
        &self.options
    }

    /// Manifest of the corpus, known without generating it: all but sizes and digest.
    #[must_use]
    pub fn truth(&self) -> Manifest {
        self.plan.truth(&self.options, &self.lexicon)
    }

    /// Tells what is planted in document `number`, from 0, without making its text.
    pub fn planted(&self, number: u64, planted: &mut Planted) {
        planted.words.clear();
        planted.phrases.clear();
        self.plan.buckets(number, |bucket| match bucket {
            Bucket::Word { word, distance } => planted.words.push((word, distance)),
            Bucket::Phrase { phrase, adjacent } => planted.phrases.push((phrase, adjacent)),
        });
        planted.category = self.plan.category(number);
        planted.score = self.plan.score(number);
    }

    /// Makes document `number`, from 0, into a document whose memory is used again.
    pub fn fill(&self, number: u64, document: &mut Document) {
        let mut rng = Rng::new(splitmix64(derive_seed(self.options.seed, "text") ^ number));
        document.id.clear();
        document.id.push('s');
        push_number(&mut document.id, number);
        document.title.clear();
        for i in 0..2 + rng.below(6) {
            if i > 0 {
                document.title.push(' ');
            }
            document.title.push_str(self.lexicon.draw(&mut rng));
        }
        document.category.clear();
        document.category.push_str(self.plan.category(number));
        document.score = self.plan.score(number);
        document.author.clear();
        document.author.push_str("user");
        // The product of two uniforms: some authors write much, most little.
        let most = 1 + rng.below(10_000);
        push_number(&mut document.author, rng.below(most));
        self.fill_body(number, &mut rng, &mut document.body);
    }

    fn fill_body(&self, number: u64, rng: &mut Rng, body: &mut String) {
        body.clear();
        let length = u64::from(self.lengths[rng.below(LENGTH_QUANTILES as u64) as usize]);
        let typo_odds = self.plan.typo_odds(number);
        let mut planted = Vec::new();
        self.plant(number, length, rng, &mut planted);
        let mut planted = planted.into_iter().peekable();
        let mut in_sentence = 0;
        for at in 0..=length {
            while let Some((_, bucket)) = planted.next_if(|(place, _)| *place == at) {
                separate(body, &mut in_sentence);
                self.push_planted(bucket, rng, body);
            }
            if at == length {
                break;
            }
            separate(body, &mut in_sentence);
            let kind = rng.next_u64();
            if kind >> 48 < NUMBER_ODDS {
                push_number(body, rng.below(2100));
            } else if kind & 0xffff < typo_odds {
                self.lexicon.draw_typo(rng, body);
            } else {
                body.push_str(self.lexicon.draw(rng));
            }
        }
    }

    /// Returns the words planted in a document, and the tokens before which they are.
    fn plant(&self, number: u64, length: u64, rng: &mut Rng, found: &mut Vec<(u64, Bucket)>) {
        self.plan.buckets(number, |bucket| found.push((0, bucket)));
        found.iter_mut().for_each(|(place, _)| *place = rng.below(length + 1));
        found.sort_by_key(|(place, _)| *place);
    }

    fn push_planted(&self, bucket: Bucket, rng: &mut Rng, body: &mut String) {
        match bucket {
            Bucket::Word { word, distance } => {
                let spellings = &self.lexicon.planted[word].variants[distance];
                body.push_str(&spellings[rng.below(spellings.len() as u64) as usize]);
            }
            Bucket::Phrase { phrase, adjacent } => {
                let (first, second) = &self.lexicon.phrases[phrase];
                body.push_str(first);
                for _ in 0..if adjacent { 0 } else { 3 } {
                    body.push(' ');
                    body.push_str(self.lexicon.draw(rng));
                }
                body.push(' ');
                body.push_str(second);
            }
        }
    }
}

/// A blank between words, and a full stop after every twelfth.
fn separate(body: &mut String, in_sentence: &mut u32) {
    if !body.is_empty() {
        body.push_str(if *in_sentence == 12 { ". " } else { " " });
        *in_sentence = if *in_sentence == 12 { 0 } else { *in_sentence + 1 };
    }
}

fn push_number(text: &mut String, number: u64) {
    use std::fmt::Write as _;
    // Writing to a String cannot fail.
    let _ = write!(text, "{number}");
}
