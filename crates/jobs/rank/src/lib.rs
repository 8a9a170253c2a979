//! The job `rank`: FeedSim's runner over ranking servers, embedded or elsewhere.
//!
//! ```
//! let command = plimsoll_job::job::Command::of::<plimsoll_rank::RankArgs>();
//! assert!(command.parser().try_get_matches_from(["rank", "-q", "20,40"]).is_ok());
//! ```

mod command;
mod page;
mod sessions;
mod sheet;

pub use command::RankArgs;
