//! Sabotage in virtual time: the generator's own code on a simulated network, by the thousand.

pub mod asker;
pub mod draw;
pub mod scene;
