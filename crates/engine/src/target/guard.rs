//! A limit on the addresses to which this process sends load, for processes that take their work from others.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A rule about targets.
pub trait Guard: Debug + Send + Sync {
    /// Returns true if load may be sent to this address, to which a name was resolved.
    fn allows(&self, name: &str, address: IpAddr) -> bool;
}

static GUARD: OnceLock<Box<dyn Guard>> = OnceLock::new();
static REJECTED: Mutex<Option<String>> = Mutex::new(None);

/// Sets the rule for all targets that are resolved from now on. The first call counts.
pub fn set(guard: Box<dyn Guard>) {
    let _ = GUARD.set(guard);
}

/// Name of the first target that was not allowed.
#[must_use]
pub fn rejected() -> Option<String> {
    REJECTED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Removes all addresses if one of them is not allowed: a target without addresses gets no load.
pub(super) fn keep_allowed(name: &str, addresses: &mut Vec<SocketAddr>) {
    let Some(guard) = GUARD.get() else { return };
    if !addresses.iter().all(|address| guard.allows(name, address.ip())) {
        addresses.clear();
        let mut rejected = REJECTED.lock().unwrap_or_else(PoisonError::into_inner);
        rejected.get_or_insert_with(|| name.to_owned());
    }
}
