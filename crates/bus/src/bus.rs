//! The contract: a bus that delivers at most once, and the subscriptions to it.

use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Largest payload in bytes. A NATS server accepts 1 MiB unless it is configured otherwise, so every bus accepts this one.
pub const PAYLOAD_MAX: usize = 256 * 1024;

/// A connection to a bus, used from any number of threads.
///
/// Delivery is at most once: a message may be lost, and through proxies or [`crate::Faulty`] also repeated, delayed or
/// overtaken. Users number their messages and acknowledge them.
pub trait Bus: Send + Sync {
    /// Hands a message to the bus. `Ok` means that it was accepted on this side, not that it arrived.
    ///
    /// The call takes at most about [`PUBLISH_WAIT_MAX`], and nothing is kept for a server that is away.
    ///
    /// # Errors
    /// An invalid subject, a payload above [`PAYLOAD_MAX`], no connection, or a connection that takes nothing.
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError>;

    /// Subscribes to a subject; `*` stands for one token, `>` at the end for one or more. When the call returns, the bus
    /// delivers what is published from then on.
    ///
    /// # Errors
    /// An invalid subject, no connection, or a server that forbids the subject or does not answer.
    fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError>;

    /// Waits until the server has processed everything that this connection published or subscribed to before.
    ///
    /// # Errors
    /// No connection, or no answer in time.
    fn flush(&self, within: Duration) -> Result<(), BusError>;

    /// Returns the state of the connection as far as this side knows it.
    fn state(&self) -> Link;
}

/// Longest time that [`Bus::publish`] waits for a connection that does not take bytes.
pub const PUBLISH_WAIT_MAX: Duration = Duration::from_millis(500);

/// A subscription; dropping it ends it.
pub trait Subscription: Send {
    /// Waits for the next message; `None` means that none came in time.
    ///
    /// # Errors
    /// [`BusError::Closed`] after the end of the bus, once the queue is empty.
    fn next(&self, within: Duration) -> Result<Option<Message>, BusError>;

    /// Number of messages that arrived and were dropped because the queue was full.
    fn lost(&self) -> u64;
}

/// A message as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The subject under which it was published.
    pub subject: String,
    /// Its bytes; receivers of one message share them.
    pub payload: Bytes,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Messages are accepted.
    Connected,
    /// The connection is lost, and messages are rejected.
    Disconnected {
        /// Time of the loss, on the clock of [`plimsoll_core::clock::now_ns`].
        since_ns: u64,
    },
}

impl Link {
    /// Returns true if messages are accepted.
    #[must_use]
    pub fn is_connected(self) -> bool {
        self == Self::Connected
    }
}

/// Failure of a call to a bus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The payload is too large.
    #[error(
        "a message of {bytes} bytes does not fit on the bus; the largest has {PAYLOAD_MAX} bytes"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The subject cannot be published or subscribed to.
    #[error("invalid subject '{subject}': {why}")]
    Subject {
        /// The subject.
        subject: String,
        /// The rule that it breaks.
        why: &'static str,
    },
    /// The server does not let this client use the subject.
    #[error(
        "the bus does not permit '{subject}' to this client; check the permissions of its user"
    )]
    Forbidden {
        /// The subject.
        subject: String,
    },
    /// There is no connection to the bus now.
    #[error("no connection to the bus")]
    Disconnected,
    /// The bus did not take or answer something in time.
    #[error("the bus did not answer within {} ms", .within.as_millis())]
    NotInTime {
        /// The time that the call waited.
        within: Duration,
    },
    /// The bus has ended on this side.
    #[error("the bus is closed")]
    Closed,
}

impl<B: Bus + ?Sized> Bus for Arc<B> {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        (**self).publish(subject, payload)
    }

    fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError> {
        (**self).subscribe(subject)
    }

    fn flush(&self, within: Duration) -> Result<(), BusError> {
        (**self).flush(within)
    }

    fn state(&self) -> Link {
        (**self).state()
    }
}

impl<B: Bus + ?Sized> Bus for Box<B> {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        (**self).publish(subject, payload)
    }

    fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError> {
        (**self).subscribe(subject)
    }

    fn flush(&self, within: Duration) -> Result<(), BusError> {
        (**self).flush(within)
    }

    fn state(&self) -> Link {
        (**self).state()
    }
}

/// Checks a payload against [`PAYLOAD_MAX`].
pub(crate) fn check_payload(payload: &[u8]) -> Result<(), BusError> {
    if payload.len() > PAYLOAD_MAX {
        return Err(BusError::TooLarge { bytes: payload.len() });
    }
    Ok(())
}
