//! The load line: the highest rate at which every limit holds, sought with as little load as it takes.
//!
//! [`search::seek`] drives any [`plant::Plant`] and returns a [`finding::Finding`]; `docs/seek.md` has the method
//! and what it was measured to be worth.

pub mod basis;
mod below;
mod bracket;
mod capacity;
mod certify;
mod completed;
mod drift;
mod enough;
mod evidence;
mod failing;
pub mod finding;
pub mod fit;
mod focus;
pub mod goal;
#[cfg(test)]
mod made;
pub mod notes;
mod peak;
pub mod plant;
pub mod rivals;
pub mod search;
mod steady;
pub mod steps;
mod stretches;
pub mod traffic;
mod verdicts;
pub mod watch;
mod watched;
