//! Visiting: the whole corpus of a Vespa cluster, in parallel slices.
//!
//! A visit is cut into slices, and each slice is a chain of requests: a reply tells where the next one goes on.
//! [`Visit`] holds the slices and the output; [`VisitSessions`] lets the engine ask for them. The walk of a
//! document: a piece of a reply comes in, [`ReplyReader`] finds the documents in it, the slice looks at their ids, the lines go
//! to the output, and only then counts the token that covers them.

mod coverage;
mod digest;
mod form;
mod item;
mod json_front;
mod output;
mod reply;
#[cfg(test)]
mod reply_tests;
mod sessions;
mod slice;

pub use digest::IdDigest;
pub use form::VisitForm;
pub use item::{Entry, ITEM_BYTES_MAX, Item, ReplyError};
pub use output::{Destination, DocumentFormat, Output, Packing, Writer, lines_between};
pub use reply::{ReplyForm, ReplyReader};
pub use sessions::{Unfinished, Visit, VisitError, VisitSessions, VisitTotals};
pub use slice::{SliceProgress, SliceTimes};
