//! Visiting: the whole corpus of a Vespa cluster, in parallel slices.

mod reply;
#[cfg(test)]
mod reply_tests;

pub use reply::{Entry, ITEM_BYTES_MAX, Item, ReplyError, ReplyForm, ReplyReader};
