//! The functions of the fuzz targets in `fuzz/`.

use super::Item;
use super::answer::{self, Answer};
use plimsoll_wire::http1::Reply;

/// The reply to an operation; the message about a strange one.
#[must_use]
pub fn answer(reply: &Reply<'_>, item: &Item, bytes: &[u8]) -> Option<String> {
    match answer::read(reply, item, bytes) {
        Answer::Stranger(why) => Some(why),
        Answer::Done | Answer::FieldsIgnored | Answer::OperationIgnored => None,
    }
}
