//! The fate of one request at a target.

/// The reply to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A good answer.
    Fine,
    /// An answer that says no.
    Failed,
    /// A body that ends too early.
    Cut,
    /// Nothing, and the end of the connection.
    Dropped,
    /// Nothing, and a reset of the connection.
    Reset,
    /// Nothing.
    Hangs,
}
