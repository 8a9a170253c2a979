//! PostgreSQL as it is named and logged in to: addresses, TLS, the first login.

mod address;
mod escapes;
mod login;
mod security;

pub use address::Address;
pub use login::{NoLogin, log_in, settle};

/// Returns true if an address is one of PostgreSQL's.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}
