//! The function of the fuzz target in `fuzz/`.

use super::story::Response;

/// A reply of the ranking server; the message if it cannot be read.
///
/// # Panics
/// When what was read is written so that it reads as another.
pub fn reply(bytes: &[u8]) -> Option<String> {
    let read = match Response::deserialise(bytes) {
        Ok(read) => read,
        Err(error) => return Some(error.to_string()),
    };
    let written = read.serialise(Vec::new());
    let again = Response::deserialise(&written).map(|read| read.serialise(Vec::new()));
    // Numbers that are none differ from themselves: the bytes are compared.
    assert!(again.is_ok_and(|again| again == written), "a reply is written as another");
    None
}
