//! Ctrl-C and SIGTERM: the first ends the run in order, the second at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Exit code of a second Ctrl-C, as shells count a death by SIGINT.
const KILLED: i32 = 130;

/// One flag for the whole process: a command of several runs must not continue with the next one.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Error of a program that was stopped before it measured anything: exit code 3, like a run that was cut.
#[derive(Debug)]
pub struct Stopped {
    /// Activity during which it stopped, as in "stopped while the server started".
    pub during: String,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped {}; nothing was measured", self.during)
    }
}

impl std::error::Error for Stopped {}

/// Goes on unless a signal has come; `during` says what it would interrupt.
///
/// # Errors
/// [`Stopped`].
pub fn go_on(during: impl Into<String>) -> Result<(), Stopped> {
    if is_stopped() { Err(Stopped { during: during.into() }) } else { Ok(()) }
}

/// A flag that is set by the first signal.
///
/// # Errors
/// When the system does not let the process handle signals.
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    if let Some(stop) = STOP.get() {
        return Ok(stop.clone());
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Registered first, so that it sees the flag as it was before this signal.
        flag::register_conditional_shutdown(signal, KILLED, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(STOP.get_or_init(|| stop).clone())
}

/// Returns true if a signal has come.
pub fn is_stopped() -> bool {
    STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
}
