//! The real clients of Vespa, unmodified, against the embedded server; what curl sees of the contract that
//! they rely on; and what is left when something is killed.

pub mod clients;
mod commands;
mod container;
mod contract;
mod corpus;
mod kill;
mod overload;
mod pyvespa;
mod sets;
mod types;
mod visiting;
