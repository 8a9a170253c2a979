//! The way text becomes words, for the index and for queries alike.

use super::standard::{Cuts, StandardTokenizer, push_lower};
use tantivy::Index;
use tantivy::tokenizer::{
    LowerCaser, RawTokenizer, SimpleTokenizer, TextAnalyzer, TokenStream, TokenizerManager,
};

/// The name of the analyzer that cuts text into lower-cased words.
pub const WORDS: &str = "plimsoll_words";
/// The name of the analyzer that keeps a text whole, lower-cased.
pub const EXACT: &str = "plimsoll_exact";

/// The name of the analyzer that cuts text as Lucene's standard analyzer does.
pub const STANDARD: &str = "plimsoll_standard";
/// The name of the analyzer that keeps a text as it is.
pub const RAW: &str = "plimsoll_raw";

/// The way the text of a field is cut and folded, in the index and in queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Analysis {
    /// Runs of letters and digits, lower-cased.
    Words,
    /// Lucene's standard analyzer.
    Standard,
    /// The whole text, lower-cased.
    Folded,
    /// The whole text.
    Raw,
}

impl Analysis {
    /// The words that the index holds of a text.
    pub fn words(self, text: &str) -> Vec<String> {
        match self {
            Self::Words => words(text),
            Self::Standard => {
                let lower = |(start, end): (usize, usize)| {
                    let mut word = String::with_capacity(end - start);
                    push_lower(&mut word, &text[start..end]);
                    word
                };
                Cuts::new(text).map(lower).collect()
            }
            Self::Folded => vec![fold(text)],
            Self::Raw => vec![text.to_owned()],
        }
    }

    /// The form in which a text that is not cut is indexed and compared.
    pub(crate) fn whole(self, text: &str) -> String {
        match self {
            Self::Raw => text.to_owned(),
            _ => fold(text),
        }
    }
}

/// Makes the index know the ways of cutting text.
pub fn register_tokenizers(index: &mut Index) {
    index.set_tokenizers(tokenizers());
    index.set_fast_field_tokenizers(tokenizers());
}

fn tokenizers() -> TokenizerManager {
    // tantivy looks up the default analyzer also for fields that are not text.
    let manager = TokenizerManager::default();
    manager.register(WORDS, word_analyzer());
    manager.register(STANDARD, TextAnalyzer::from(StandardTokenizer::default()));
    manager.register(RAW, TextAnalyzer::from(RawTokenizer::default()));
    manager
        .register(EXACT, TextAnalyzer::builder(RawTokenizer::default()).filter(LowerCaser).build());
    manager
}

fn word_analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default()).filter(LowerCaser).build()
}

/// Cuts text into the same lower-cased words that the index holds.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut analyzer = word_analyzer();
    let mut stream = analyzer.token_stream(text);
    let mut words = Vec::new();
    while stream.advance() {
        words.push(stream.token().text.clone());
    }
    words
}

/// The form in which a keyword is indexed and compared.
pub fn fold(text: &str) -> String {
    let mut analyzer = TextAnalyzer::builder(RawTokenizer::default()).filter(LowerCaser).build();
    let mut stream = analyzer.token_stream(text);
    if stream.advance() { stream.token().text.clone() } else { String::new() }
}
