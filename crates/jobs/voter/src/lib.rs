//! The voter benchmark: calls, votes, and the meaning of the answers.
//!
//! [`Ballots`] makes the votes, each a pure function of the seed and its number. A shard's sessions ([`VoltVotes`],
//! [`PostgresVotes`], and for the smaller benchmark [`VoltHello`] and [`PostgresHello`]) send them and count the
//! answers in a [`VoterTally`]; [`Voting`] is what all shards share, and whoever watches. A load that keeps a limit by itself
//! is found by [`Tuner`].
//!
//! A vote that the database turns down (an unknown contestant, a telephone that has voted too often) is an answer, and
//! a success in the ledger; the tally tells them apart. Of a call without a definite answer no one knows whether it was
//! done: it is counted as unknown, so that the rows can be compared with the answers exactly
//! ([`WriteCheck`](plimsoll_core::voter::WriteCheck)).
//!
//! ```
//! use plimsoll_voter::{Ballots, Game};
//!
//! let ballots = Ballots::new(Game::default())?;
//! assert_eq!(ballots.ballot(7).phone, ballots.ballot(7).phone);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ballots;
mod command;
mod desk;
mod figures;
mod hello;
mod lap;
mod names;
mod page;
mod postgres;
mod routes;
mod shared;
mod sheet;
mod tally;
mod trace;
mod tune;
mod volt;

pub use ballots::{
    Ballot, BallotError, Ballots, Game, NUMBERS_PER_CODE, UNKNOWN_CONTESTANT, count_sql, digits_of,
};
pub use command::{Database, HelloArgs, Search, VOLT_DEPTH, VoterArgs, ping, seek_votes, volt_of};
pub use hello::{
    GREETINGS, PostgresHello, VoltHello, hello_inserts, hello_statements, hello_table,
};
pub use names::{CONTESTANTS, ContestantsError, check_contestants};
pub use page::FORMS;
pub use postgres::{
    Isolation, PostgresVotes, RETRIES_MAX, SqlWay, contestants_sql, postgres_schema, results_sql,
    vote_statements,
};
pub use routes::Routes;
pub use shared::{Settings, Voting, VotingNow};
pub use tally::VoterTally;
pub use trace::Trace;
pub use tune::{TuneGoal, TuneGoalError, TunedLatency, Tuner};
pub use volt::{VoltVotes, results_of};
