//! The functions of the fuzz targets in `fuzz/`: each takes any bytes, and must neither panic nor take memory without bound.

use super::form::VisitForm;
use super::state::State;
use super::unpacked::Unpacked;
use super::{Answered, read_answer};
use plimsoll_wire::http1::{Encoding, Reply};

/// A reply that may be compressed, in pieces; the bytes that come of it, or that they are wrong.
pub fn unpacked<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> Option<Vec<u8>> {
    let (mut unpacked, mut out) = (Unpacked::default(), Vec::new());
    for piece in pieces {
        let keep = |plain: &[u8]| {
            out.extend_from_slice(plain);
            Ok(())
        };
        unpacked.plain(piece, keep).ok()?;
    }
    out.extend(unpacked.end().ok()?);
    Some(out)
}

/// The state of a visit, as a file has it. One that can be read is written so that it reads as the same.
///
/// # Errors
/// The reason why it cannot be read.
///
/// # Panics
/// When it is written as another.
pub fn state(text: &[u8]) -> Result<(), String> {
    let state: State = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let written = serde_json::to_string(&state).map_err(|error| error.to_string())?;
    let again = serde_json::from_str::<State>(&written);
    let again = again.ok().and_then(|state| serde_json::to_string(&state).ok());
    assert!(again == Some(written), "a state is written as another");
    Ok(())
}

/// The reply to the request before a visit; the message about a strange one.
#[must_use]
pub fn answer(status: u16, body: &[u8]) -> Option<String> {
    let form = r#"{"path": "/document/v1/", "include_removes": false, "bucket_spaces": [""], "slices": 1, "stream": true, "timeout_s": 60}"#;
    let form: VisitForm = match serde_json::from_str(form) {
        Ok(form) => form,
        Err(error) => panic!("the form of the fuzz target cannot be read: {error}"),
    };
    let is_packed = body.first() == Some(&0x1f);
    let encoding = if is_packed { Encoding::Gzip } else { Encoding::Identity };
    let body_bytes = body.len() as u64;
    let reply = Reply { status, head: b"", body, encoding, body_bytes, truncated: false };
    match read_answer(&form, &reply) {
        Answered::Refused(why) | Answered::Stranger(why) => Some(why),
        Answered::Visit | Answered::Unknown => None,
    }
}
