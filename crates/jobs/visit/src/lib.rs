//! Visiting: the whole corpus of a Vespa cluster, in parallel slices.
//!
//! A visit is cut into slices, and each slice is a chain of requests: a reply tells where the next one goes on.
//! [`Visit`] holds the slices and the output; [`VisitSessions`] lets the engine ask for them. The walk of a
//! document: a piece of a reply comes in, [`ReplyReader`] finds the documents in it, the slice looks at their ids, the lines go
//! to the output, and only then counts the token that covers them.

mod answer;
mod at_once;
mod command;
mod coverage;
mod digest;
mod form;
mod gather;
mod item;
mod json_front;
mod output;
mod reply;
#[cfg(test)]
mod reply_tests;
mod sessions;
mod slice;
mod state;
mod unpacked;
mod whole;
mod writer;

pub use answer::{Answered, read_answer};
pub use at_once::Step;
pub use command::VisitArgs;
pub use digest::IdDigest;
pub use form::{VisitForm, VisitStep};
pub use item::{Entry, ITEM_BYTES_MAX, Item, ReplyError};
pub use output::{Destination, Output, QUEUE_BYTES};
pub use reply::{ReplyForm, ReplyReader};
pub use sessions::VisitSessions;
pub use slice::{SliceProgress, SliceTimes};
pub use whole::{Unfinished, Visit, VisitError, VisitTotals, Written};
pub use writer::{DocumentFormat, Packing, Writer, lines_between};
