//! The message bus: addresses, the greeting of a NATS server, and frames over a Unix socket.

use crate::holds::{choice, one_line, pieces};
use crate::memory::{Allowed, within};
use plimsoll_bus::{BusAddress, fuzz};
use std::io::Read;

/// The longest frame is reserved when its length is known.
const FRAME_MEMORY: Allowed = Allowed { base: 700_000, each: 200 };
const TEXT_MEMORY: Allowed = Allowed { base: 200_000, each: 1000 };

/// An address of a bus. It is shown without its secret, and reads again as the same place.
///
/// # Panics
/// When a property does not hold.
pub fn addresses(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    within(bytes.len(), TEXT_MEMORY, || match text.parse::<BusAddress>() {
        Ok(address) => {
            let shown = address.to_string();
            let again: Result<BusAddress, _> = shown.parse();
            let again = again.unwrap_or_else(|error| panic!("{shown} of {text}: {error}"));
            assert_eq!(again.to_string(), shown, "{text}");
            assert_eq!(again.place(), address.place(), "{text}");
            assert_eq!(again.is_tls(), address.is_tls(), "{text}");
            assert_eq!(again.socket(), address.socket(), "{text}");
            let login = text.rsplit_once('@').map(|(login, _)| login);
            let login = login.filter(|_| address.socket().is_none());
            if let Some(secret) = login.and_then(|login| login.rsplit([':', '/']).next())
                && secret.len() > 8
                // A host may be called as the secret is, and stands behind the mark of the login.
                && !format!("@{}", address.place()).contains(secret)
            {
                assert!(!shown.contains(secret), "the secret is shown: {shown}");
            }
        }
        Err(error) => one_line(&error),
    });
}

/// The greeting of a server, for a client with TLS and one without. The first byte is the length of the pieces.
///
/// # Panics
/// When a property does not hold.
pub fn greetings(bytes: &[u8]) {
    let (size, bytes) = choice(bytes);
    for url in ["nats://h", "tls://h"] {
        let Ok(address) = url.parse::<BusAddress>() else { return };
        let in_pieces = within(bytes.len(), TEXT_MEMORY, || {
            fuzz::greeting(pieces(bytes, size.into()), &address)
        });
        let whole = fuzz::greeting(std::iter::once(bytes), &address);
        assert_eq!(in_pieces, whole, "{url}");
        whole.1.iter().for_each(one_line);
    }
}

/// Frames of either side. The first byte is the length of the pieces.
///
/// # Panics
/// When a property does not hold.
pub fn frames(bytes: &[u8]) {
    let (size, bytes) = choice(bytes);
    let mut stream = Pieces { rest: bytes, size: usize::from(size).max(1) };
    let in_pieces = within(bytes.len(), FRAME_MEMORY, || fuzz::frames(&mut stream));
    let whole = fuzz::frames(&mut &bytes[..]);
    assert_eq!(in_pieces, whole);
    let read: Vec<u8> = whole.0.concat();
    assert!(bytes.starts_with(&read), "frames are written as other bytes than they were read from");
    whole.1.iter().for_each(one_line);
}

/// A stream that gives no more than some bytes at once.
struct Pieces<'b> {
    rest: &'b [u8],
    size: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.size.min(buffer.len()).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(length);
        buffer[..length].copy_from_slice(piece);
        self.rest = rest;
        Ok(length)
    }
}
