//! The order of requests in memory.

use crate::http::Way;
use crate::script::Script;
use plimsoll_core::schedule::UserTurn;

/// The order of one shard's requests.
#[derive(Clone, Debug)]
pub struct Course(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// By the number of requests before it, from all users.
    Way(Way),
    /// By the user whose turn it is, in models of users.
    Users(Script, UserTurn),
}

impl Course {
    /// The order of `way`, whoever asks.
    #[must_use]
    pub fn new(way: Way) -> Self {
        Self(Kind::Way(way))
    }

    /// The order of each user by `script`.
    #[must_use]
    pub fn of_users(script: Script) -> Self {
        Self(Kind::Users(script, UserTurn::default()))
    }

    /// Sets the user whose request comes next.
    pub fn user(&mut self, turn: UserTurn) {
        if let Kind::Users(_, own) = &mut self.0 {
            *own = turn;
        }
    }

    /// The index of the next request; `None` when there is none any more.
    pub fn next_index(&mut self) -> Option<usize> {
        match &mut self.0 {
            Kind::Way(way) => way.next_index(),
            Kind::Users(script, turn) => Some(script.index(*turn)),
        }
    }
}
