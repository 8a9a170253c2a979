//! One run on many machines: agents that each carry out a slice, and a coordinator that merges what they measured, exactly.
//!
//! Numbers go over a bus that delivers at most once, so [`link`] numbers and acknowledges every packet. The
//! [`coordinator::Coordinator`] and the [`member::Member`] read no clock and open nothing; [`post`] moves their packets. Every
//! process has a [`place::Place`] in its run: alone, as an agent, or as the coordinator.
//!
//! ```
//! use plimsoll_fleet::link::Link;
//!
//! let (mut here, mut there) = (Link::new(1, 2, 0), Link::new(2, 1, 0));
//! here.send(b"a message")?;
//! let arrived: Vec<_> = here.poll(5).into_iter().flat_map(|packet| there.receive(packet, 6)).collect();
//! assert_eq!(arrived, [b"a message".to_vec()]);
//! # Ok::<(), plimsoll_fleet::link::LinkError>(())
//! ```

pub mod coordinator;
pub mod end;
pub mod figures;
pub mod files;
pub mod gathering;
pub mod hall;
pub mod link;
pub mod member;
pub mod message;
pub mod place;
pub mod post;
