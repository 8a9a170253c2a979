//! The query type `any`, which is also that of groups: any of the items will do, unless one has a
//! sign.

use super::item::Item;
use super::tokens::Kind;
use super::{Parser, without};

impl Parser<'_> {
    /// Items up to the end, or to the end of the group.
    pub(super) fn any(&mut self) -> Result<Option<Item>, String> {
        let (mut required, mut unwanted) = (Vec::new(), Vec::new());
        let mut top: Option<Item> = None;
        while self.reader.peek().is_some() {
            self.reader.skip_space();
            if self.groups > 0 && self.reader.at(Kind::Close) {
                break;
            }
            if let Some(item) = self.positive()? {
                required.push(item);
            } else if let Some(item) = self.negative()? {
                unwanted.push(item);
            } else if let Some(group) = self.group()? {
                top = Some(with_group(top, group));
            } else if let Some((item, _)) = self.reader.indexable()? {
                top = Some(with_item(top, item));
            } else {
                self.reader.skip();
            }
        }
        if required.is_empty() {
            return Ok(without(top, unwanted));
        }
        let required =
            if required.len() == 1 { required.pop() } else { Some(Item::Joined(required)) };
        let Some(required) = without(required, unwanted) else { return Ok(top) };
        Ok(Some(match top {
            None => required,
            Some(Item::Or(items) | Item::Rank(items)) => {
                Item::Rank(std::iter::once(required).chain(items).collect())
            }
            Some(item) => Item::Rank(vec![required, item]),
        }))
    }
}

/// One more word, phrase or comparison.
fn with_item(top: Option<Item>, item: Item) -> Item {
    match top {
        None => item,
        Some(Item::Or(mut items)) => {
            items.push(item);
            Item::Or(items)
        }
        Some(Item::Rank(mut items)) => {
            items.push(item);
            Item::Rank(items)
        }
        Some(other) => Item::Or(vec![other, item]),
    }
}

/// One more group. Vespa has a rule of its own here: a group after a word says which documents
/// match, and the word counts for the order alone.
fn with_group(top: Option<Item>, group: Item) -> Item {
    match (top, group) {
        (None, group) => group,
        (Some(Item::Or(items)), Item::Or(more)) => Item::Or(vec![Item::Or(items), Item::Or(more)]),
        (Some(Item::Rank(mut items)), group) => {
            items.insert(0, group);
            Item::Rank(items)
        }
        (Some(top), group) => Item::Rank(vec![group, top]),
    }
}
