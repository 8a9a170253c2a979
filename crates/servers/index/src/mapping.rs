//! The fields of documents in a text index, whatever the language of their schema.

use crate::row_text::Scan;
use crate::text::Analysis;
use tantivy::Term;
use tantivy::schema::Field;

/// The column that holds the numbers of the documents in the store.
pub const LID: &str = "_lid";

/// The way a field is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Text cut into lower-cased words with positions.
    Text,
    /// A string that matches as a whole, ignoring case.
    Keyword,
    /// A whole number that can be compared; a bool is 0 or 1.
    Long,
    /// A real number that can be compared.
    Real {
        /// The field holds 32 bits, and so do the numbers that it is compared with.
        single: bool,
    },
}

/// One field of one document type in the index.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// The way it is matched.
    pub kind: FieldKind,
    /// Its field in the index.
    pub field: Field,
    /// Tokenizer of text; of no use for numbers.
    pub analysis: Analysis,
    /// Numbers can be looked up like terms; otherwise the column is read.
    pub terms: bool,
    /// For columns that do not say which documents have a value: a field that lists the names of
    /// such fields, and the name.
    pub listed: Option<(Field, String)>,
    /// The name of the column that tells which documents have a value, and sorts them if there is
    /// one value a document. Text by words has one only when it is also an attribute.
    pub column: Option<String>,
    /// One value a document.
    pub single: bool,
    /// The column is a field of its own, beside the one with the words.
    pub extra: Option<Field>,
}

/// Questions of the planner to an index.
pub trait Fields {
    /// Returns the fields that a name in a query stands for, in the document types given (all, when none is): fields
    /// that are in the index. The flag says whether some type knows the name at all.
    fn named(&self, name: &str, types: &[u16]) -> (Vec<&Mapped>, bool);

    /// Error for an unknown name; without it an unknown field matches nothing.
    fn unknown(&self, name: &str) -> Option<String>;

    /// The term of every document of a type, when the index holds several types.
    fn type_term(&self, number: u16) -> Option<Term>;

    /// The number of a document type.
    fn type_number(&self, name: &str) -> Option<u16>;

    /// Reader of the text itself, for approximate matches.
    fn scan(&self) -> Option<&dyn Scan> {
        None
    }
}
