//! Feeding: operations on documents from files to Vespa's /document/v1, as fast as the target takes them.
//!
//! The walk of an operation: the reader's thread takes bytes from a file, [`Splitter`] finds where an operation
//! ends, [`parse`] which document it is about, and [`Batch`] carries it, rendered as far as possible, to the
//! shard that all operations on this document go to. There [`Order`] lets it wait for an earlier one on the same
//! document, [`Window`] says how many may be in flight, [`Circuit`] whether the target is worth asking at
//! all, and [`FeedSessions`] sends it until it is settled: accepted, or written to the [`FailedOperations`].
//!
//! ```
//! use plimsoll_feed::{Kind, parse};
//!
//! let operation = parse(br#"{"put":"id:shop:music::1","fields":{"year":1977}}"#).unwrap();
//! assert!(matches!(operation.kind, Kind::Put));
//! assert_eq!(operation.id.as_str(), "id:shop:music::1");
//! ```

mod answer;
mod batch;
mod circuit;
mod command;
mod failed;
mod figures;
mod form;
pub mod fuzz;
mod input;
mod operation;
mod order;
mod pace;
pub mod page;
mod sessions;
mod set;
mod shared;
pub mod sheet;
mod slots;
mod source;
mod splitter;
mod statistics;
mod tally;
mod window;

pub use batch::{Batch, Item, Parameters};
pub use circuit::Circuit;
pub use command::{
    Ended, Fed, FeedArgs, Task, feed_by_agents, feed_result, feed_verdict, forms_of,
};
pub use failed::{FailedOperations, Refusal};
pub use form::{FeedForm, PACKED_ABOVE_BYTES, Packed, Packer};
pub use input::{Input, Position, Reader};
pub use operation::{Kind, Operation, Problem, parse};
pub use order::Order;
pub use sessions::FeedSessions;
pub use set::{OperationSessions, OperationSet, SetError};
pub use shared::{Feed, FeedNow, InflightChoice, Settings};
pub use source::Source;
pub use splitter::{Piece, Splitter};
pub use tally::{CodeTally, Left, Tally};
pub use window::Window;

/// Longest operation, bytes; a longer one is malformed.
pub const OPERATION_MAX_BYTES: usize = 128 << 20;

/// Reads arbitrary bytes as a feed's input would be; returns how many pieces there were. For fuzzing.
#[must_use]
pub fn fuzz_operations(data: &[u8]) -> usize {
    let mut splitter = Splitter::default();
    let (mut batch, mut pieces) = (Batch::default(), 0);
    let half = data.len() / 2;
    for (part, at_end) in [(&data[..half], false), (&data[half..], true)] {
        splitter.space().extend_from_slice(part);
        while let Some(piece) = splitter.next(at_end) {
            pieces += 1;
            if piece.problem.is_none()
                && let Ok(operation) = parse(piece.text)
            {
                batch.push(&operation, (pieces as u64, 0, piece.line), &Parameters::default());
            }
        }
    }
    let mut line = Vec::new();
    while let Some((item, bytes)) = batch.take() {
        line.clear();
        item.write_line(bytes, &mut line);
    }
    pieces
}
