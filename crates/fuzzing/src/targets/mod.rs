//! The functions of the targets. Each takes any bytes, and panics when a property does not hold.

pub mod bus;
pub mod documents;
pub mod files;
pub mod fleet;
pub mod http1;
pub mod http2;
pub mod postgres;
pub mod rank;
pub mod records;
pub mod servers;
pub mod settings;
pub mod volt;
