//! Sabotage on real sockets: the built program as a process, its target on one core, itself on another.

pub mod case;
pub mod list;
pub mod loaded;
pub mod process;
pub mod quiet;
pub mod stage;
