//! Filters: text whose items restrict a query that is already there (`filter` and `recall`).
//!
//! `+item` is required, `-item` is taken away, and an item without a sign only adds to the relevance.

use super::super::query_type::Composite;
use super::{Item, Parser, Text};
use plimsoll_index::query::Node;

/// The items of a filter.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub(crate) required: Vec<Node>,
    pub(crate) unwanted: Vec<Node>,
    pub(crate) ranked: Vec<Node>,
}

/// Reads a filter; the query type of `text` does not count.
///
/// # Errors
/// When it asks for what this server does not have.
pub(crate) fn filter(text: &Text<'_>) -> Result<Filter, String> {
    let mut parser = Parser::new(text);
    // What stands in a group behind `-` must all be there for a document to be taken away.
    parser.combining.composite = Composite::And;
    let mut filter = Filter::default();
    while parser.reader.peek().is_some() {
        if let Some(item) = parser.positive()? {
            filter.required.push(item.node());
        } else if let Some(item) = parser.negative()? {
            filter.unwanted.push(item.node());
        } else if let Some((item, _)) = parser.reader.indexable()? {
            filter.ranked.push(Item::node(item));
        } else {
            parser.reader.skip();
        }
    }
    Ok(filter)
}

impl Filter {
    /// The documents of `query` that the filter lets through.
    pub(crate) fn apply(self, query: Node) -> Node {
        let unwanted = self.unwanted.into_iter().map(|node| Node::Not(Box::new(node)));
        let restricted = self.required.into_iter().chain(unwanted);
        let mut nodes: Vec<Node> = std::iter::once(query).chain(restricted).collect();
        let query = if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::And(nodes) };
        if self.ranked.is_empty() {
            return query;
        }
        Node::Rank(std::iter::once(query).chain(self.ranked).collect())
    }

    /// The same without any part in the relevance.
    pub(crate) fn unranked(mut self) -> Self {
        let constant = |node| Node::Constant(Box::new(node), 0.0);
        self.required = self.required.into_iter().map(constant).collect();
        self
    }
}
