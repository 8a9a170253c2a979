//! Reads JSON from the front as far as it has come.

use super::reply_error::{ReplyError, form};
use plimsoll_workloads::json_skip::ContainerEnd;

/// A look at JSON from the front.
pub(super) struct Scan<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

/// The first member of an object.
pub(super) struct First<'a> {
    /// With its quotes.
    pub(super) key: &'a [u8],
    pub(super) value_from: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn first_member(object: &'a [u8]) -> Option<First<'a>> {
        let mut scan = Scan { bytes: object, at: 0 };
        (scan.take()? == b'{').then_some(())?;
        scan.blanks();
        let key = scan.string()?;
        scan.blanks();
        (scan.take()? == b':').then_some(())?;
        scan.blanks();
        scan.peek()?;
        Some(First { key, value_from: scan.at })
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    pub(super) fn separators(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace() || byte == b',') {
            self.at += 1;
        }
    }

    /// A string with its quotes; none when it is not there, or not whole.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let begin = self.at;
        if self.peek() != Some(b'"') {
            return None;
        }
        let mut at = begin + 1;
        loop {
            let found = memchr::memchr2(b'"', b'\\', self.bytes.get(at..)?)?;
            if self.bytes[at + found] == b'"' {
                self.at = at + found + 1;
                return Some(&self.bytes[begin..self.at]);
            }
            at += found + 2;
        }
    }

    /// Any value; none when it is not whole.
    pub(super) fn value(&mut self) -> Option<&'a [u8]> {
        let begin = self.at;
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => {
                self.at += ContainerEnd::default().find(&self.bytes[begin..])?;
                Some(&self.bytes[begin..self.at])
            }
            _ => {
                let ends =
                    |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']');
                self.at += self.bytes[begin..].iter().position(ends)?;
                Some(&self.bytes[begin..self.at])
            }
        }
    }

    /// A string is not there: because it has not come yet, or because something else stands there.
    pub(super) fn incomplete(&self, expected: &str) -> Result<Option<usize>, ReplyError> {
        match self.peek() {
            None | Some(b'"') => Ok(None),
            Some(_) => Err(form(expected, &self.bytes[self.at..])),
        }
    }
}
