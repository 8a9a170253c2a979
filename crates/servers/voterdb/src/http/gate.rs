//! The connection behind an HTTP connection.

use plimsoll_wire::volt::{FRAME_HEAD_BYTES, LoginReply, Request, frame_length};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest time that a call may take. Statements end before.
const CALL: Duration = Duration::from_secs(120);
/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;

/// A connection that has logged in.
pub(super) struct Gate {
    stream: TcpStream,
    /// The message with which it did.
    login: Vec<u8>,
    input: Vec<u8>,
}

/// Reason why there is no answer.
#[derive(Debug)]
pub(super) enum GateError {
    /// The user or the password is wrong.
    Refused,
    /// The server does not answer.
    Broken(String),
}

fn broken(why: impl std::fmt::Display) -> GateError {
    GateError::Broken(format!("the server behind the HTTP port does not answer: {why}"))
}

impl Gate {
    pub(super) async fn open(volt: SocketAddr, login: Vec<u8>) -> Result<Self, GateError> {
        let stream = TcpStream::connect(volt).await.map_err(broken)?;
        stream.set_nodelay(true).map_err(broken)?;
        let mut gate = Self { stream, login, input: Vec::new() };
        gate.stream.write_all(&gate.login).await.map_err(broken)?;
        let message = gate.message().await?;
        match LoginReply::read(&message) {
            Ok(LoginReply::Welcome(_)) => Ok(gate),
            Ok(LoginReply::Refused(_)) => Err(GateError::Refused),
            Err(error) => Err(broken(error)),
        }
    }

    /// Returns true if it was logged in to like this.
    pub(super) fn is_of(&self, login: &[u8]) -> bool {
        self.login == login
    }

    /// Makes one call; its response, without its length.
    pub(super) async fn call(&mut self, request: &Request) -> Result<Vec<u8>, GateError> {
        let mut bytes = Vec::new();
        request.put(0, &mut bytes);
        self.stream.write_all(&bytes).await.map_err(broken)?;
        self.message().await
    }

    async fn message(&mut self) -> Result<Vec<u8>, GateError> {
        let read = async {
            loop {
                if let Some(length) = frame_length(&self.input).map_err(broken)? {
                    let message = self.input[FRAME_HEAD_BYTES..length].to_vec();
                    self.input.drain(..length);
                    return Ok(message);
                }
                self.input.reserve(READ_BYTES);
                if self.stream.read_buf(&mut self.input).await.map_err(broken)? == 0 {
                    return Err(broken("it closed the connection"));
                }
            }
        };
        tokio::time::timeout(CALL, read).await.map_err(broken)?
    }
}
