//! The functions of the fuzz targets in `fuzz/`.

use crate::address::BusAddress;
use crate::nats::hello::{Step, check_line, take};
use crate::nats::options::NatsOptions;
use crate::unix::frame::Frame;
use std::io::Read;

/// Reads a stream of frames, and returns the number of them, and the message for bytes that are no frame.
///
/// # Panics
/// When a frame is written as other bytes than it was read from.
pub fn frames(stream: &mut impl Read) -> (Vec<Vec<u8>>, Option<String>) {
    let mut seen = Vec::new();
    loop {
        match Frame::read(stream) {
            Ok(Some(frame)) => {
                let written = frame.encode();
                let again = Frame::read(&mut &written[..]);
                assert!(
                    again.is_ok_and(|again| again == Some(frame)),
                    "a frame is written as another"
                );
                seen.push(written);
            }
            Ok(None) => return (seen, None),
            Err(error) => return (seen, Some(error.to_string())),
        }
    }
}

/// Takes the greeting of a server in pieces, and judges it for this address. Returns whether the line is whole or foreign, and the
/// message for one that cannot be used.
pub fn greeting<'b>(
    pieces: impl Iterator<Item = &'b [u8]>,
    address: &BusAddress,
) -> (Option<bool>, Option<String>) {
    let options = NatsOptions::new(address.clone(), "fuzz");
    let mut line = Vec::new();
    for piece in pieces {
        match take(&mut line, piece) {
            Step::More => {}
            Step::Foreign => return (Some(false), None),
            Step::Whole => {
                let error = check_line(&line, &options).err().map(|error| error.to_string());
                return (Some(true), error);
            }
        }
    }
    (None, None)
}
