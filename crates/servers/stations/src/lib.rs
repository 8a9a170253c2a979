//! Servers whose truth is known. [`null`] answers at once, to show what a generator can do; [`queue`] is a station with
//! servers, a queue and a service time, whose response times follow from theory.
//!
//! ```no_run
//! use plimsoll_serving::stop::Stop;
//! use std::net::TcpListener;
//!
//! let stop = Stop::new()?;
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! plimsoll_stations::null::run(listener, plimsoll_stations::null::NullConfig::default(), stop)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod null;
pub mod queue;
