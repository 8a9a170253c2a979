//! How text becomes words, for the index and for queries alike.

use tantivy::Index;
use tantivy::tokenizer::{
    LowerCaser, RawTokenizer, SimpleTokenizer, TextAnalyzer, TokenStream, TokenizerManager,
};

/// The name of the analyzer that cuts text into lower-cased words.
pub(crate) const WORDS: &str = "plimsoll_words";
/// The name of the analyzer that keeps a text whole, lower-cased.
pub(crate) const EXACT: &str = "plimsoll_exact";

/// Makes the index know the two ways of cutting text.
pub(crate) fn register_tokenizers(index: &mut Index) {
    index.set_tokenizers(tokenizers());
    index.set_fast_field_tokenizers(tokenizers());
}

fn tokenizers() -> TokenizerManager {
    // tantivy looks up the default analyzer also for fields that are not text.
    let manager = TokenizerManager::default();
    manager.register(WORDS, word_analyzer());
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
pub(crate) fn fold(text: &str) -> String {
    let mut analyzer = TextAnalyzer::builder(RawTokenizer::default()).filter(LowerCaser).build();
    let mut stream = analyzer.token_stream(text);
    if stream.advance() { stream.token().text.clone() } else { String::new() }
}
