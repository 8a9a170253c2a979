//! The head of a reply, field by field.

use super::hpack::Meaning;
use crate::Fault;
use crate::http1::{Encoding, Fields, Length, is_refusal};

/// The fields of one header block.
pub(super) struct Gathered<'a> {
    /// Buffer for the header lines, and whether they are kept even when the status is a success.
    lines: &'a mut Vec<u8>,
    keep: bool,
    /// Space for the list of fields, as RFC 9113 10.5.1 counts it.
    room: usize,
    size: usize,
    pub(super) status: u16,
    fields: Fields,
    /// An ordinary field has come: pseudo fields must not follow.
    ordinary: bool,
    bad: Option<&'static str>,
}

impl<'a> Gathered<'a> {
    pub(super) fn new(lines: &'a mut Vec<u8>, keep: bool, room: usize) -> Self {
        Gathered {
            lines,
            keep,
            room,
            size: 0,
            status: 0,
            fields: Fields::default(),
            ordinary: false,
            bad: None,
        }
    }

    #[inline]
    pub(super) fn take(&mut self, meaning: Meaning, name: &[u8], value: &[u8]) {
        self.size += name.len() + value.len() + 32;
        if self.size > self.room {
            self.bad = Some("the reply's head exceeds the limit");
            return;
        }
        match meaning {
            Meaning::Plain => {}
            Meaning::Status => return self.take_status(value),
            Meaning::Length => self.fields.take_length(value),
            Meaning::Encoding => self.fields.take_encoding(value),
            // About the connection: means nothing in HTTP/2, and would mean something else in HTTP/1.1.
            Meaning::Hop => return,
            Meaning::Pseudo => return self.spoil("the reply has a pseudo-header of requests"),
            Meaning::Malformed => {
                return self.spoil("a header of the reply has invalid bytes");
            }
        }
        self.ordinary = true;
        if self.keep {
            self.lines.extend_from_slice(name);
            self.lines.extend_from_slice(b": ");
            self.lines.extend_from_slice(value);
            self.lines.extend_from_slice(b"\r\n");
        }
    }

    #[inline]
    fn take_status(&mut self, value: &[u8]) {
        let [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = *value else {
            return self.spoil("the reply's :status is not three digits");
        };
        if self.status != 0 || self.ordinary {
            return self.spoil("the reply's :status does not stand once and in front");
        }
        let digit = |byte: u8| u16::from(byte - b'0');
        self.status = digit(hundreds) * 100 + digit(tens) * 10 + digit(ones);
        self.keep |= self.status >= 200 && is_refusal(self.status);
    }

    fn spoil(&mut self, why: &'static str) {
        self.bad.get_or_insert(why);
    }

    /// The status, how the body is coded, and how long it says it is.
    ///
    /// # Errors
    /// When this was no head of a reply.
    pub(super) fn finish(self) -> Result<(u16, Encoding, Option<u64>), Fault> {
        if let Some(why) = self.bad {
            return Err(Fault::Protocol(why));
        }
        if self.status == 0 {
            return Err(Fault::Protocol("the reply has no :status"));
        }
        let length = match self.fields.length {
            Length::Absent => None,
            Length::Known(length) => Some(length),
            Length::Bad(why) => return Err(Fault::Protocol(why)),
        };
        Ok((self.status, self.fields.encoding, length))
    }

    /// Checks that these were trailers without fields of a head.
    pub(super) fn finish_trailers(self) -> Result<(), Fault> {
        match self.bad {
            Some(why) => Err(Fault::Protocol(why)),
            None if self.status != 0 => Err(Fault::Protocol("the trailers have a :status")),
            None => Ok(()),
        }
    }
}
