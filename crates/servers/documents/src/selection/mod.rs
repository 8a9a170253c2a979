//! The document selection language: which documents a visit, an update or a condition means.
//!
//! `lexer` and `parser` make a `tree` of a text and check it against the document types; `evaluate`
//! asks the tree about a document, with three truth values; `pins` finds out where such documents
//! must lie. `docs/documents.md` tells users what the language means, and where Vespa's own two
//! implementations differ, which one this follows.

mod evaluate;
mod field_path;
mod lexer;
mod parser;
mod pattern;
mod pins;
mod scalar;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use pins::Pin;
pub(crate) use scalar::Truth;
#[cfg(test)]
pub(crate) use tree::quoted;

use super::value::{FieldType, Value};
use plimsoll_wire::vespa::DocumentId;
use std::fmt::{self, Display, Formatter};
use tree::Node;

/// Longer selections are refused, as by Vespa's content nodes.
pub(crate) const MAX_SELECTION_BYTES: usize = 1 << 20;
/// The most levels of parentheses, `not`, operators and functions within each other. Terms that
/// `and` or `or` join in a row are one level, however many they are.
pub(crate) const MAX_DEPTH: usize = 256;
/// Longer concatenated texts are INVALID.
pub(crate) const MAX_TEXT_BYTES: usize = 16 << 20;
/// A document for which variables such as `$i` can be bound in more ways is INVALID.
pub(crate) const MAX_BINDINGS: usize = 65_536;

/// The most patterns of `=` and `=~` that are compiled for one selection; each takes up to 1 MiB.
/// Globs without `*` and `?` do not count.
pub(crate) const MAX_PATTERNS: usize = 64;

/// The document types that selections may name.
pub(crate) trait Types {
    /// Returns true if there is such a type. Names are case-sensitive.
    fn has_type(&self, document_type: &str) -> bool;

    /// The type of a field, if the document type has it.
    fn field_type(&self, document_type: &str, field: &str) -> Option<&FieldType>;
}

/// A document to be asked about.
pub(crate) trait Subject {
    /// Its id.
    fn id(&self) -> &DocumentId;

    /// The name of its type.
    fn document_type(&self) -> &str;

    /// The value of a field; nothing when it has none.
    fn field(&self, name: &str) -> Option<&Value>;
}

/// A text is no selection, or names what does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at column {column}")]
pub(crate) struct SelectionError {
    /// The error: the text found and the text expected.
    pub(crate) message: String,
    /// Column, in characters from 1.
    pub(crate) column: usize,
}

/// A selection cannot be answered for a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// The divisor of `/` or `%` is zero for this document.
    #[error("the selection divides by zero; guard it, as in 'music.plays != 0 and ...'")]
    DivisionByZero,
}

/// A selection, checked. Its text form parses to the same selection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Selection {
    root: Node,
}

impl Selection {
    /// The selection of every document.
    pub(crate) fn everything() -> Self {
        Self { root: Node::Constant(true) }
    }

    /// Reads a selection; an empty one selects everything.
    ///
    /// # Errors
    /// When the text is none, is too long or nested too deeply, or names an unknown type or field.
    pub(crate) fn parse(text: &str, types: &dyn Types) -> Result<Self, SelectionError> {
        parser::parse(text, types).map(|root| Self { root })
    }

    /// The same of bytes that may be anything.
    ///
    /// # Errors
    /// Also when the bytes are not UTF-8.
    pub(crate) fn parse_bytes(bytes: &[u8], types: &dyn Types) -> Result<Self, SelectionError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(text, types),
            Err(error) => {
                let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let message = "the selection is not UTF-8 text".to_owned();
                Err(SelectionError { message, column: good.chars().count() + 1 })
            }
        }
    }

    /// Documents that this and the other select.
    #[cfg(test)]
    pub(crate) fn and(self, other: Self) -> Self {
        Self { root: Node::All(vec![self.root, other.root]) }
    }

    /// Evaluates the selection for a document; `now_s` is the value of `now()`, in seconds since 1970.
    ///
    /// # Errors
    /// When the selection divides by zero for this document.
    pub(crate) fn evaluate<S: Subject + ?Sized>(
        &self,
        subject: &S,
        now_s: i64,
    ) -> Result<Truth, EvaluationError> {
        evaluate::evaluate(&self.root, subject, now_s)
    }

    /// Returns true if the document is selected: only what is true is, not what is INVALID.
    ///
    /// # Errors
    /// When the selection divides by zero for this document.
    pub(crate) fn matches<S: Subject + ?Sized>(
        &self,
        subject: &S,
        now_s: i64,
    ) -> Result<bool, EvaluationError> {
        Ok(self.evaluate(subject, now_s)? == Truth::True)
    }

    /// Returns the common property of all selected documents that limits their buckets: a visit reads
    /// no others.
    pub(crate) fn pinned(&self) -> Option<Pin> {
        pins::pinned(&self.root)
    }
}

impl Display for Selection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}
