//! The message bus between a coordinator and its agents, with a blocking interface for threads.
//!
//! Delivery is at most once, and no more is promised: a user that needs a message to arrive numbers it and has it acknowledged. The bus
//! is a channel of this process ([`InProcess`]), a Unix socket of this machine ([`Hub`], [`UnixBus`]), or a NATS server.
//! [`Faulty`] loses, repeats, delays and reorders on purpose, so that users of a bus can be tested against all that a network does.
//!
//! ```
//! use plimsoll_bus::{Bus, InProcess};
//! use std::time::Duration;
//!
//! let bus = InProcess::new();
//! let replies = bus.subscribe("run.*.done")?;
//! bus.publish("run.7.done", b"42")?;
//! let message = replies.next(Duration::from_secs(1))?.expect("a message");
//! assert_eq!((message.subject.as_str(), &message.payload[..]), ("run.7.done", &b"42"[..]));
//! # Ok::<(), plimsoll_bus::BusError>(())
//! ```

mod address;
mod bus;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod credentials;
mod faulty;
pub mod fuzz;
mod in_process;
mod nats;
mod queue;
mod subject;
mod unix;

pub use address::{AddressError, BusAddress};
pub use bus::{Bus, BusError, Link, Message, PAYLOAD_MAX, PUBLISH_WAIT_MAX, Subscription};
pub use credentials::{CredentialWords, Credentials, CredentialsError};
pub use faulty::{Faults, Faulty, Injected, Partition};
pub use in_process::InProcess;
pub use nats::{ConnectError, Nats, NatsOptions, Tls};
pub use queue::Bounds;
pub use unix::{Hub, UnixBus};
