//! Messages of a client, written once or for each request, and prepared statements.

use thiserror::Error;

/// Bytes of COPY data in one message.
const COPY_CHUNK_BYTES: usize = 256 << 10;
/// Most parameters of a statement; the protocol counts them in 16 bits.
const PARAMETERS_MAX: usize = u16::MAX as usize;

/// A text that cannot be sent.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RequestError {
    /// Texts end with a NUL byte on the wire.
    #[error("the statement holds a NUL byte, which PostgreSQL does not take")]
    Nul,
    /// The message would not fit.
    #[error("the statement is longer than 1 GiB, which PostgreSQL does not take")]
    TooLong,
}

/// A statement that connections prepare when they first need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    sql: String,
}

impl Statement {
    /// A statement with this text; its parameters are `$1`, `$2` ..., whose types the server infers.
    ///
    /// # Errors
    /// A text that cannot be sent.
    pub fn new(sql: impl Into<String>) -> Result<Self, RequestError> {
        let sql = sql.into();
        check(&sql)?;
        Ok(Self { sql })
    }

    /// Its text.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Appends the message that has the server parse it under the name of its index.
    pub(super) fn parse(&self, index: u32, out: &mut Vec<u8>) {
        message(out, b'P', |out| {
            name(index, out);
            out.extend_from_slice(self.sql.as_bytes());
            // No types of parameters are given.
            out.extend_from_slice(&[0, 0, 0]);
        });
    }
}

/// One request: messages that end in exactly one `ReadyForQuery`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub(super) messages: Vec<u8>,
    /// Prepared statements that it executes, by index, in their order.
    pub(super) statements: Vec<u32>,
    /// True if it brings the data of its own COPY.
    pub(super) copies: bool,
}

impl Request {
    /// Forgets everything and keeps the room.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.statements.clear();
        self.copies = false;
    }

    /// Becomes the same as `other` without allocating once there is room.
    pub fn copy_from(&mut self, other: &Request) {
        self.messages.clone_from(&other.messages);
        self.statements.clone_from(&other.statements);
        self.copies = other.copies;
    }

    /// Asks one or several SQL statements by the simple protocol: parsed, planned and run each time.
    ///
    /// # Errors
    /// A text that cannot be sent; the request is empty then.
    pub fn query(&mut self, sql: &str) -> Result<(), RequestError> {
        self.clear();
        check(sql)?;
        message(&mut self.messages, b'Q', |out| text(sql, out));
        Ok(())
    }

    /// Loads rows: a `COPY ... FROM STDIN` and its data, in the format that the statement names. The data goes
    /// out without waiting for the server's consent; should it refuse, it drops them.
    ///
    /// # Errors
    /// As [`Request::query`].
    pub fn copy_in(&mut self, sql: &str, data: &[u8]) -> Result<(), RequestError> {
        self.query(sql)?;
        self.copies = true;
        for chunk in data.chunks(COPY_CHUNK_BYTES) {
            message(&mut self.messages, b'd', |out| out.extend_from_slice(chunk));
        }
        message(&mut self.messages, b'c', |_| {});
        Ok(())
    }

    /// Executes the statement with this index once, with parameters in text form; `None` is NULL.
    pub fn execute(&mut self, statement: u32, parameters: &[Option<&[u8]>]) {
        self.clear();
        self.push_execute(statement, parameters);
        self.sync();
    }

    /// Appends one execution. Those before one [`Request::sync`] are one transaction unless they say otherwise.
    ///
    /// # Panics
    /// In debug builds, when there are more than 65,535 parameters.
    pub fn push_execute(&mut self, statement: u32, parameters: &[Option<&[u8]>]) {
        debug_assert!(parameters.len() <= PARAMETERS_MAX, "more parameters than can be counted");
        message(&mut self.messages, b'B', |out| {
            // The unnamed portal.
            out.push(0);
            name(statement, out);
            // All parameters as text.
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
            for parameter in parameters {
                match parameter {
                    Some(value) => {
                        out.extend_from_slice(&(value.len() as i32).to_be_bytes());
                        out.extend_from_slice(value);
                    }
                    None => out.extend_from_slice(&(-1i32).to_be_bytes()),
                }
            }
            // All results as text.
            out.extend_from_slice(&[0, 0]);
        });
        // The unnamed portal, all rows.
        message(&mut self.messages, b'E', |out| out.extend_from_slice(&[0, 0, 0, 0, 0]));
        self.statements.push(statement);
    }

    /// Ends the executions that were pushed.
    pub fn sync(&mut self) {
        message(&mut self.messages, b'S', |_| {});
    }

    /// Bytes of its messages, those that prepare statements not counted.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.messages.len()
    }
}

fn check(sql: &str) -> Result<(), RequestError> {
    if sql.as_bytes().contains(&0) {
        Err(RequestError::Nul)
    } else if sql.len() >= (1 << 30) - 64 {
        Err(RequestError::TooLong)
    } else {
        Ok(())
    }
}

/// Appends a message of this kind, with its length in front of its body.
pub(super) fn message(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// A text as it stands in messages.
fn text(value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// The name of a prepared statement on the wire: `s` and its index in eight hexadecimal digits.
fn name(index: u32, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push(b's');
    for shift in (0..8).rev() {
        out.push(DIGITS[(index >> (4 * shift)) as usize & 15]);
    }
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_the_documentation_has_them() {
        let mut request = Request::default();
        request.query("SELECT 1").unwrap();
        assert_eq!(request.messages, b"Q\0\0\0\x0dSELECT 1\0");
        request.execute(0x1f, &[Some(b"ab"), None]);
        let bind = b"B\0\0\0\x1f\0s0000001f\0\0\0\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0";
        assert_eq!(request.messages[..bind.len()], bind[..]);
        assert_eq!(request.messages[bind.len()..], b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"[..]);
        assert_eq!(request.statements, [0x1f]);
        request.copy_in("COPY t FROM STDIN", b"1\t2\n").unwrap();
        assert!(request.messages.ends_with(b"d\0\0\0\x081\t2\nc\0\0\0\x04"));
        assert!(request.copies && request.statements.is_empty());
        let mut parse = Vec::new();
        Statement::new("SELECT $1").unwrap().parse(1, &mut parse);
        assert_eq!(parse, b"P\0\0\0\x1as00000001\0SELECT $1\0\0\0");
        assert_eq!(request.query("a\0b"), Err(RequestError::Nul));
        assert_eq!(Statement::new("\0"), Err(RequestError::Nul));
    }
}
