//! The elements of a text, before its words are combined.

use super::super::query_type::Composite;
use plimsoll_index::query::{Node, Place, Within};

/// A piece of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    /// A word, a phrase, a comparison.
    Leaf(Node),
    /// Words joined without a space, as in `e-mail`: all of them.
    Joined(Vec<Item>),
    /// The halves of a word such as `don't`, which count like words of their own.
    Halves(Vec<Item>),
    Or(Vec<Item>),
    /// The first says which documents match, the others count for the order.
    Rank(Vec<Item>),
    /// Documents of the first (all, without one) that match none of the others.
    Without(Option<Box<Item>>, Vec<Item>),
    /// The result of the default combination.
    Combined(Node),
}

impl Item {
    /// The item as a node of the query.
    pub(super) fn node(self) -> Node {
        match self {
            Self::Leaf(node) | Self::Combined(node) => node,
            Self::Joined(items) | Self::Halves(items) => several(items, Node::And),
            Self::Or(items) => several(items, Node::Or),
            Self::Rank(items) => several(items, Node::Rank),
            Self::Without(wanted, unwanted) => {
                let not = |item: Self| Node::Not(Box::new(item.node()));
                let unwanted = unwanted.into_iter().map(not);
                let wanted = match wanted.map(|item| item.node()) {
                    Some(Node::And(nodes)) => nodes,
                    Some(node) => vec![node],
                    None => Vec::new(),
                };
                let mut nodes: Vec<Node> = wanted.into_iter().chain(unwanted).collect();
                if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::And(nodes) }
            }
        }
    }
}

fn several(items: Vec<Item>, make: fn(Vec<Node>) -> Node) -> Node {
    let mut nodes: Vec<Node> = items.into_iter().map(Item::node).collect();
    if nodes.len() == 1 { nodes.swap_remove(0) } else { make(nodes) }
}

/// Combination of the items of a text, and the distance of words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combining {
    pub(super) composite: Composite,
    pub(super) distance: u32,
}

impl Combining {
    /// Combines items; nothing without any.
    ///
    /// # Errors
    /// When they cannot stand near each other.
    pub(super) fn combine(self, items: Vec<Item>) -> Result<Option<Item>, String> {
        if items.is_empty() {
            return Ok(None);
        }
        let make = match self.composite {
            Composite::And => Node::And,
            Composite::Or | Composite::WeakAnd => Node::Or,
            Composite::Phrase => return self.phrase(items).map(Some),
            Composite::Near | Composite::ONear => return self.near(items).map(Some),
        };
        let split = |item| match item {
            Item::Halves(halves) => halves,
            item => vec![item],
        };
        let items = items.into_iter().flat_map(split).collect();
        Ok(Some(Item::Combined(several(items, make))))
    }

    fn near(self, items: Vec<Item>) -> Result<Item, String> {
        let (field, mut places) = places(items)?;
        if let [place] = places.as_mut_slice()
            && let [words] = place.as_mut_slice()
        {
            return Ok(Item::Combined(Node::Phrase { field, words: std::mem::take(words) }));
        }
        let ordered = self.composite == Composite::ONear;
        Ok(Item::Combined(Node::Within(Within { field, places, distance: self.distance, ordered })))
    }

    fn phrase(self, items: Vec<Item>) -> Result<Item, String> {
        let (field, places) = places(items)?;
        let words = places.into_iter().flatten().flatten().collect();
        Ok(Item::Combined(Node::Phrase { field, words }))
    }
}

/// The words of items, all in one field.
fn places(items: Vec<Item>) -> Result<(String, Vec<Place>), String> {
    let mut field: Option<String> = None;
    let mut places = Vec::new();
    let mut waiting: Vec<Item> = items.into_iter().rev().collect();
    while let Some(item) = waiting.pop() {
        let (name, words) = match item {
            Item::Leaf(Node::Term { field, text }) => (field, vec![text]),
            Item::Leaf(Node::Phrase { field, words }) => (field, words),
            Item::Joined(items) | Item::Halves(items) => {
                waiting.extend(items.into_iter().rev());
                continue;
            }
            _ => return Err("only words and phrases can stand near each other".to_owned()),
        };
        if field.as_ref().is_some_and(|field| *field != name) {
            return Err("words that stand near each other must be of one field".to_owned());
        }
        field = Some(name);
        places.push(vec![words]);
    }
    Ok((field.unwrap_or_default(), places))
}
