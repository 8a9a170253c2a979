//! Visiting: the whole corpus of a Vespa cluster, in parallel slices.
//!
//! A visit is cut into slices, and each slice is a chain of requests: a reply tells where the next one goes on.
//! [`Visit`] holds the slices and the output; [`VisitSessions`] lets the engine ask for them. The walk of a
//! document: a piece of a reply comes in, [`ReplyReader`] finds the documents in it, the slice looks at their ids, the lines go
//! to the output, and only then counts the token that covers them.
//!
//! ```
//! use plimsoll_visit::IdDigest;
//!
//! // The digest of a set of documents does not depend on their order.
//! let digest = |ids: [&str; 2]| {
//!     let mut digest = IdDigest::of(ids[0]);
//!     digest.add(IdDigest::of(ids[1]));
//!     digest.to_string()
//! };
//! assert_eq!(digest(["id:a:doc::1", "id:a:doc::2"]), digest(["id:a:doc::2", "id:a:doc::1"]));
//! ```

mod answer;
mod at_once;
mod command;
mod course;
mod coverage;
mod error;
mod figures;
mod form;
mod format;
pub mod fuzz;
mod gather;
mod ids;
mod item;
mod json_front;
mod output;
mod page;
mod reply;
mod reply_error;
#[cfg(test)]
mod reply_tests;
mod saver;
mod sessions;
mod sheet;
mod slice;
mod state;
mod synced;
mod unpacked;
mod whole;

pub use answer::{Answered, read_answer};
pub use at_once::Step;
pub use command::VisitArgs;
pub use error::VisitError;
pub use form::{VisitForm, VisitStep};
pub use format::DocumentFormat;
pub use item::{Entry, Item};
pub use output::{Destination, Output};
pub use plimsoll_workloads::id_digest::IdDigest;
pub use plimsoll_workloads::output::{Packing, lines_between};
pub use reply::{ReplyForm, ReplyReader};
pub use reply_error::{ITEM_BYTES_MAX, ReplyError};
pub use sessions::VisitSessions;
pub use slice::{SliceProgress, SliceTimes};
pub use whole::{Unfinished, Visit, VisitTotals, Written};
