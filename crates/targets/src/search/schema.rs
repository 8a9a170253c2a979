//! What a document of the embedded server consists of, and how its text becomes words.

use tantivy::Index;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{
    LowerCaser, RawTokenizer, SimpleTokenizer, TextAnalyzer, TokenStream, TokenizerManager,
};

/// The only document type that the server holds.
pub(crate) const DOCUMENT_TYPE: &str = "doc";
/// The name of the content cluster in replies and messages.
pub(crate) const CLUSTER: &str = "plimsoll";
/// The field set that `userQuery()` and the field name `default` search.
pub(crate) const DEFAULT_FIELD_SET: [&str; 2] = ["title", "body"];
/// The name by which a query addresses the default field set.
pub(crate) const DEFAULT_FIELD: &str = "default";
/// How many fields a document has.
pub(crate) const FIELD_COUNT: usize = FIELDS.len();

const WORDS: &str = "plimsoll_words";
const EXACT: &str = "plimsoll_exact";
const LID: &str = "_lid";

/// How the values of a field are kept and matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// Text cut into lower-cased words with positions.
    Text,
    /// A string that matches as a whole, ignoring case, and can be sorted by.
    Keyword,
    /// A 64-bit signed number that can be compared and sorted by.
    Long,
}

/// One field of the document type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldDef {
    pub(crate) name: &'static str,
    pub(crate) kind: FieldKind,
}

/// The fields, in the order in which replies render them.
pub(crate) const FIELDS: [FieldDef; 5] = [
    FieldDef { name: "title", kind: FieldKind::Text },
    FieldDef { name: "body", kind: FieldKind::Text },
    FieldDef { name: "category", kind: FieldKind::Keyword },
    FieldDef { name: "author", kind: FieldKind::Keyword },
    FieldDef { name: "score", kind: FieldKind::Long },
];

/// The position of a field in [`FIELDS`], by name.
pub(crate) fn field_number(name: &str) -> Option<usize> {
    FIELDS.iter().position(|field| field.name == name)
}

/// The names of all fields, for messages.
pub(crate) fn field_names() -> String {
    FIELDS.map(|field| field.name).join(", ")
}

/// The tantivy side of the schema.
#[derive(Clone)]
pub(crate) struct IndexSchema {
    pub(crate) schema: Schema,
    /// The number of the document in the store, by which the index refers to it.
    pub(crate) lid: Field,
    pub(crate) fields: [Field; FIELD_COUNT],
}

impl IndexSchema {
    pub(crate) fn new() -> Self {
        let mut builder = Schema::builder();
        let lid = builder.add_u64_field(LID, INDEXED | FAST);
        let fields = FIELDS.map(|field| match field.kind {
            FieldKind::Text => {
                let indexing = TextFieldIndexing::default()
                    .set_tokenizer(WORDS)
                    .set_index_option(IndexRecordOption::WithFreqsAndPositions);
                let options = TextOptions::default().set_indexing_options(indexing);
                builder.add_text_field(field.name, options)
            }
            FieldKind::Keyword => {
                let indexing = TextFieldIndexing::default()
                    .set_tokenizer(EXACT)
                    .set_fieldnorms(false)
                    .set_index_option(IndexRecordOption::Basic);
                let options = TextOptions::default().set_indexing_options(indexing).set_fast(EXACT);
                builder.add_text_field(field.name, options)
            }
            FieldKind::Long => {
                let options = NumericOptions::default().set_indexed().set_fast();
                builder.add_i64_field(field.name, options)
            }
        });
        Self { schema: builder.build(), lid, fields }
    }

    /// Makes the index know the two ways of cutting text.
    pub(crate) fn register_tokenizers(index: &mut Index) {
        index.set_tokenizers(tokenizers());
        index.set_fast_field_tokenizers(tokenizers());
    }
}

/// The name of the column that holds the document numbers.
pub(crate) fn lid_column() -> &'static str {
    LID
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
