//! The real program against real and scripted servers on loopback, as a sceptic would use it.
//!
//! Each test gets a folder of its own, every server takes a free port, every wait has a limit, and
//! whatever was started is ended by its id when the test ends, also when it fails.

// Everything here is a test, which clippy can only tell of functions marked as such.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod ab;
mod asked_again;
mod bus;
mod certificates;
mod cli;
mod compare;
mod dice;
mod docs;
mod documents;
mod e2e;
mod engines;
mod exchange;
mod faults;
mod fbench;
mod feed;
mod files;
mod fleet;
mod hostile;
mod house;
mod load;
mod machine;
mod nginx;
mod old_kernel;
mod outlets;
mod page;
mod process;
mod record;
mod release;
mod sabotage;
mod schema;
mod search;
mod seek;
mod server;
mod size;
mod slow_output;
mod soak;
mod terminal;
mod unquiet;
mod visit;
mod voltdb;
mod voter;
