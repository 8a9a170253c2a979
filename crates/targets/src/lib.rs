//! The search server under test: `run(listener, config, stop)` takes a bound listener, so that tests bind port 0, and
//! returns when the stop was requested.

pub mod search;
