//! The way calls end, in numbers and in words.

/// Statuses of a response: 1 is success, all others are failures.
#[derive(Clone, Copy, Debug)]
pub enum Status {}

impl Status {
    /// The procedure ran and its transaction is committed.
    pub const SUCCESS: i8 = 1;
    /// The procedure itself gave up; nothing is changed.
    pub const USER_ABORT: i8 = -1;
    /// The server rolled back: a constraint, a wrong parameter, SQL that does not compile.
    pub const GRACEFUL_FAILURE: i8 = -2;
    /// Something that should not happen did, an unknown procedure for instance.
    pub const UNEXPECTED_FAILURE: i8 = -3;
    /// The connection was lost; said by clients.
    pub const CONNECTION_LOST: i8 = -4;
    /// The server takes no calls now: paused, or too much to do.
    pub const SERVER_UNAVAILABLE: i8 = -5;
    /// The connection did not answer in time; said by clients.
    pub const CONNECTION_TIMEOUT: i8 = -6;
    /// A server was lost while it answered: the transaction may be committed or not.
    pub const RESPONSE_UNKNOWN: i8 = -7;
    /// The transaction was restarted elsewhere.
    pub const TXN_RESTART: i8 = -8;
    /// An operation on the database failed.
    pub const OPERATIONAL_FAILURE: i8 = -9;
    /// The call came to a partition that does not hold its key.
    pub const TXN_MISPARTITIONED: i8 = -10;
    /// The call came to a partition that is led elsewhere.
    pub const TXN_MISROUTED: i8 = -11;
    /// The call was never sent; said by clients.
    pub const CLIENT_ERROR_TXN_NOT_SENT: i8 = -14;
    /// The call waited too long at the client.
    pub const CLIENT_REQUEST_TIMEOUT: i8 = -15;
    /// The answer took too long.
    pub const CLIENT_RESPONSE_TIMEOUT: i8 = -16;

    /// The meaning of the number, in a few words.
    #[must_use]
    pub const fn name(status: i8) -> &'static str {
        match status {
            Self::SUCCESS => "success",
            Self::USER_ABORT => "user abort",
            Self::GRACEFUL_FAILURE => "graceful failure",
            Self::UNEXPECTED_FAILURE => "unexpected failure",
            Self::CONNECTION_LOST => "connection lost",
            Self::SERVER_UNAVAILABLE => "server unavailable",
            Self::CONNECTION_TIMEOUT => "connection timeout",
            Self::RESPONSE_UNKNOWN => "response unknown",
            Self::TXN_RESTART => "transaction restarted",
            Self::OPERATIONAL_FAILURE => "operational failure",
            Self::TXN_MISPARTITIONED => "transaction at the wrong partition",
            Self::TXN_MISROUTED => "transaction at the wrong host",
            -12 => "partitioning of a replica differs",
            -13 => "change not possible while running",
            Self::CLIENT_ERROR_TXN_NOT_SENT => "not sent",
            Self::CLIENT_REQUEST_TIMEOUT => "request timeout",
            Self::CLIENT_RESPONSE_TIMEOUT => "response timeout",
            -17 => "compound procedure: user abort",
            -18 => "compound procedure: failure",
            _ => "unknown status",
        }
    }

    /// Returns true if the transaction may be committed although the status is a failure.
    #[must_use]
    pub const fn is_unknown_outcome(status: i8) -> bool {
        matches!(
            status,
            Self::CONNECTION_LOST
                | Self::CONNECTION_TIMEOUT
                | Self::RESPONSE_UNKNOWN
                | Self::CLIENT_RESPONSE_TIMEOUT
        )
    }
}
