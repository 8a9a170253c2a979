//! The faults that a simulated peer commits, and how often it has.

use plimsoll_core::rng::Rng;

macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident = $name:literal,)*) => {
        /// One fault of a peer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        impl Fault {
            /// All faults, in the order of the table.
            pub const ALL: &'static [Fault] = &[$(Fault::$fault,)*];

            /// The fault in the table.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Fault::$fault => $name,)*
                }
            }
        }
    };
}

faults! {
    /// A connection is refused.
    ConnectRefused = "connection refused",
    /// A connection is never answered.
    ConnectSilent = "connection never answered",
    /// A kept connection is closed while nothing is in flight.
    IdleClosed = "closed while idle",
    /// A request is never answered.
    Stalled = "never answered",
    /// A request is answered after its timeout.
    Late = "answered after the timeout",
    /// The connection is reset before the answer.
    Reset = "reset before the answer",
    /// The connection is closed before the answer.
    Closed = "closed before the answer",
    /// The connection is closed when a request has begun and is not complete.
    HalfClosed = "closed inside a request",
    /// The connection is reset inside the answer.
    ResetInside = "reset inside the answer",
    /// The connection is closed inside the answer.
    CutInside = "closed inside the answer",
    /// Bytes that are not the protocol.
    Garbage = "not the protocol",
    /// One bit of the answer is another.
    Flipped = "a flipped bit",
    /// The answer comes twice.
    Twice = "answered twice",
    /// The answer is that to another request.
    Stranger = "another request's answer",
    /// The declared length is more than what follows.
    TooLong = "length too large",
    /// The declared length is less than what follows.
    TooShort = "length too small",
    /// A complete answer that says no.
    Refusal = "a refusal",
    /// A complete answer without content.
    Empty = "an empty answer",
    /// HTTP/2: the stream is reset.
    StreamReset = "RST_STREAM",
    /// HTTP/2: the stream is refused unprocessed; the simulated protocol has the same.
    StreamRefused = "refused unprocessed",
    /// HTTP/2: the server takes no more streams.
    GoAway = "GOAWAY",
    /// HTTP/2: no window for the bodies of requests.
    WindowZero = "window 0",
    /// PostgreSQL: an error behind rows; HTTP/2: a stream reset behind its head.
    ErrorInside = "an error inside the answer",
    /// PostgreSQL: an error that ends the connection; Volt: a login that is refused.
    Fatal = "a fatal error",
    /// A message that no request has asked for.
    Unasked = "a message without a request",
}

/// Number of times that each fault was committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(Vec<u64>);

impl Counts {
    /// Counts a fault.
    pub fn add(&mut self, fault: Fault) {
        self.0.resize(Fault::ALL.len(), 0);
        self.0[fault as usize] += 1;
    }

    /// Adds those of another run.
    pub fn merge(&mut self, other: &Counts) {
        self.0.resize(Fault::ALL.len(), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(own, more)| *own += more);
    }

    /// Returns the number of times that a fault was committed.
    #[must_use]
    pub fn get(&self, fault: Fault) -> u64 {
        self.0.get(fault as usize).copied().unwrap_or(0)
    }

    /// Returns the sum.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Share of the requests that meet each fault, per mille.
#[derive(Clone, Debug, Default)]
pub struct Shares(Vec<(Fault, u64)>);

impl Shares {
    /// Draws the shares of these faults: a third of the runs has none, a third some, a third many.
    #[must_use]
    pub fn draw(rng: &mut Rng, faults: &[Fault]) -> Self {
        let weight = [0, 12, 60][rng.below(3) as usize];
        let share = |rng: &mut Rng| rng.below(2) * rng.below(weight + 1);
        Self(
            faults
                .iter()
                .map(|&fault| (fault, share(rng)))
                .filter(|(_, share)| *share > 0)
                .collect(),
        )
    }

    /// Draws the fault of one request, if it has one.
    pub fn fault(&self, rng: &mut Rng) -> Option<Fault> {
        let mut drawn = rng.below(1000);
        for &(fault, share) in &self.0 {
            if drawn < share {
                return Some(fault);
            }
            drawn -= share;
        }
        None
    }
}
