//! Replies.

use std::borrow::Cow;

/// Transaction state of a connection after a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transaction {
    /// In no transaction.
    #[default]
    None,
    /// In one that a request has begun and not ended.
    Open,
    /// In one that failed: the server refuses everything until it is rolled back.
    Failed,
}

/// A complete reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Rows of all results; of a COPY to the client, its messages of data (one a row).
    pub rows: u64,
    /// The tag of the last command that was done, such as `SELECT 12`; empty without one.
    pub tag: &'a [u8],
    /// The first error. Commands before it in the same request may have been done.
    pub error: Option<ServerError<'a>>,
    /// Transaction state of the connection.
    pub transaction: Transaction,
    /// Bytes of the reply as they came.
    pub bytes: u64,
    pub(super) first: &'a [u8],
}

impl<'a> Reply<'a> {
    /// A column of the first row, counted from 0, as text. `None` when it is NULL, when there is no such column
    /// or no row, and when it lies behind the first 64 KiB of the row.
    #[must_use]
    pub fn value(&self, column: usize) -> Option<&'a [u8]> {
        let (count, mut rest) = self.first.split_first_chunk::<2>()?;
        let mut at = 0;
        while at < usize::from(u16::from_be_bytes(*count)) {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(i32::from_be_bytes(*length)).ok();
            let value = match length {
                Some(length) => Some(behind.get(..length)?),
                None => None,
            };
            if at == column {
                return value;
            }
            rest = &behind[length.unwrap_or(0)..];
            at += 1;
        }
        None
    }

    /// The number at the end of the tag: rows inserted, changed, deleted, selected or copied.
    #[must_use]
    pub fn affected(&self) -> Option<u64> {
        let last = self.tag.rsplit(|&byte| byte == b' ').next()?;
        std::str::from_utf8(last).ok()?.parse().ok()
    }
}

/// An error of a server, in its own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerError<'a> {
    pub(super) fields: &'a [u8],
}

impl<'a> ServerError<'a> {
    /// The five characters of the SQLSTATE, such as `42P01`; empty when the server named none.
    #[must_use]
    pub fn code(&self) -> &'a [u8] {
        self.field(b'C').unwrap_or_default()
    }

    /// Severity: `ERROR`, `FATAL` or `PANIC`, in English where the server is of version 9.6 or later.
    #[must_use]
    pub fn severity(&self) -> &'a [u8] {
        self.field(b'V').or_else(|| self.field(b'S')).unwrap_or_default()
    }

    /// The error, in one line of the server's language. At most about 4 KiB.
    #[must_use]
    pub fn message(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.field(b'M').unwrap_or_default())
    }

    /// Returns true if the server ends the connection with it.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity(), b"FATAL" | b"PANIC")
    }

    fn field(&self, wanted: u8) -> Option<&'a [u8]> {
        let mut rest = self.fields;
        while let Some((&kind, behind)) = rest.split_first() {
            // The list ends with a NUL, or where it was cut.
            let end = memchr::memchr(0, behind).unwrap_or(behind.len());
            if kind == 0 {
                return None;
            }
            if kind == wanted {
                return Some(&behind[..end]);
            }
            rest = behind.get(end + 1..)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_first_row() {
        let row = b"\0\x04\0\0\0\x0212\xff\xff\xff\xff\0\0\0\0\0\0\0\x05cut";
        let reply = Reply { first: row, tag: b"INSERT 0 17", ..Reply::default() };
        assert_eq!(reply.value(0), Some(&b"12"[..]));
        assert_eq!(reply.value(1), None, "NULL");
        assert_eq!(reply.value(2), Some(&b""[..]));
        assert_eq!(reply.value(3), None, "it was cut");
        assert_eq!(reply.value(4), None);
        assert_eq!(Reply::default().value(0), None);
        assert_eq!(reply.affected(), Some(17));
        assert_eq!(Reply { tag: b"CREATE TABLE", ..reply }.affected(), None);
    }

    #[test]
    fn fields_of_an_error() {
        let error = ServerError { fields: b"SFEHLER\0VERROR\0C42P01\0Mno \"x\"\0\0" };
        assert_eq!((error.severity(), error.code()), (&b"ERROR"[..], &b"42P01"[..]));
        assert_eq!(error.message(), "no \"x\"");
        assert!(!error.is_fatal());
        assert!(ServerError { fields: b"SFATAL\0" }.is_fatal());
        for cut in [&b""[..], b"M", b"Mhalf", b"\0M"] {
            assert!(ServerError { fields: cut }.code().is_empty());
        }
        assert_eq!(ServerError { fields: b"Mhalf" }.message(), "half");
    }
}
