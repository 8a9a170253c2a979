//! Selections of one document, number or group, which all lie at one place.

use super::pattern::has_wildcard;
use super::tree::{Expression, IdPart, Node, Operator};
use plimsoll_wire::vespa::{DocumentId, Scope};

/// The common property of all selected documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// The id.
    Document(DocumentId),
    /// The number of the id.
    Number(u64),
    /// The group of the id.
    Group(String),
}

impl Pin {
    /// Location of the documents.
    pub(crate) fn location(&self) -> u64 {
        match self {
            Self::Document(id) => id.location(),
            Self::Number(number) => *number,
            Self::Group(group) => {
                Scope::Group(group.as_str().into()).location().unwrap_or_default()
            }
        }
    }
}

/// Returns the first pin among the terms that must all be true. Alternatives are not
/// examined: they can be in several buckets.
pub(super) fn pinned(node: &Node) -> Option<Pin> {
    match node {
        Node::All(terms) => terms.iter().find_map(pinned),
        Node::Comparison(comparison) => {
            if !matches!(comparison.operator, Operator::Equal | Operator::Glob) {
                return None;
            }
            let is_glob = comparison.operator == Operator::Glob;
            match (&comparison.left, &comparison.right) {
                (Expression::Id(part), value) => pin(*part, value, is_glob),
                // On the right of '=' stands the pattern, which an id is none of.
                (value, Expression::Id(part)) if !is_glob => pin(*part, value, false),
                _ => None,
            }
        }
        _ => None,
    }
}

fn pin(part: IdPart, value: &Expression, is_glob: bool) -> Option<Pin> {
    match (part, value) {
        (IdPart::User, Expression::Integer(number)) => Some(Pin::Number(number.cast_unsigned())),
        (_, Expression::Text(text)) if is_glob && has_wildcard(text) => None,
        (IdPart::Whole, Expression::Text(text)) => DocumentId::parse(text).ok().map(Pin::Document),
        (IdPart::Group, Expression::Text(group)) => Some(Pin::Group(group.clone())),
        _ => None,
    }
}
