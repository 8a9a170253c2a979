//! Simulations by the million: the engine, its codecs and its sessions on virtual time, against peers that fail on purpose,
//! and a judge who knows what the peers did.
//!
//! A run is drawn from a seed: a load model, connections, a network, and the faults of a peer that speaks the real protocol.
//! The engine drives it with the code that also runs on sockets. Then three accounts are compared with each other: the
//! engine's books, the diary of the client ([`diary`]), and the log of the peer ([`truth`]).
//!
//! ```
//! use plimsoll_simulate::parts::{Order, Part};
//!
//! let http2 = Part::named("http2").expect("a part");
//! let outcome = http2.run_twice(Order { seed: 7, ..Order::default() });
//! assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
//! ```

pub mod asker;
pub mod diary;
pub mod driver;
pub mod faults;
pub mod judge;
pub mod parts;
pub mod planted;
pub mod played;
pub mod scene;
pub mod speakers;
pub mod stage;
pub mod station;
pub mod table;
pub mod truth;
