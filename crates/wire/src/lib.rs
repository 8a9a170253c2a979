//! Protocols as sans-IO codecs: bytes in, replies out. Nothing here opens a socket or reads a clock.
//!
//! A codec implements [`Protocol`]. The engine owns the connection and the buffers; the codec owns the
//! meaning of the bytes. The same codec therefore runs over TCP, over TLS and over the simulated network.
//!
//! ```
//! use plimsoll_wire::vespa::DocumentId;
//!
//! let id = DocumentId::parse("id:shop:music::1")?;
//! assert_eq!(id.namespace(), "shop");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod http;
pub mod http1;
pub mod http2;
pub mod postgres;
mod protocol;
pub mod rank;
mod session;
pub mod vespa;
pub mod volt;

pub use protocol::{Event, Fault, Layer, Protocol, Submission};
pub use session::{Judgement, Sessions, Turn, UNTIL_CALLED};
