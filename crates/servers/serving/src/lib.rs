//! The parts that the servers under test share. Each is a `run(listener, config, stop)` or a `serve` that takes a bound listener,
//! so that tests bind port 0, and returns when [`stop::Stop`] was requested. No server imports the engine: a benchmark
//! must not share a loop with its victim.
//!
//! ```
//! use plimsoll_serving::stop::Stop;
//!
//! let stop = Stop::new()?;
//! let own = stop.clone();
//! let server = std::thread::spawn(move || {
//!     while !own.is_requested() {
//!         std::thread::yield_now();
//!     }
//! });
//! stop.request();
//! server.join().expect("the server ends");
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod accept;
pub mod arrivals;
pub mod cpu_time;
pub mod draws;
pub mod http;
pub mod json;
pub mod parameters;
pub mod room;
pub mod sample;
pub mod stop;
pub mod tickets;
pub mod write_limit;

/// The stack of a thread that reads or evaluates what a client wrote, bytes. The deepest selection takes less than 1 MiB
/// of it, and several in a build without optimisation; what is not touched is not taken from the machine.
pub const STACK_BYTES: usize = 8 << 20;
