//! Hours of load with TLS, reconnects and failures, and ten thousand slow clients: what of a process grows meanwhile.

pub mod crowd;
pub mod measure;
pub mod slow;
pub mod target;
pub mod watch;
