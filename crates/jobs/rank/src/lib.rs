//! The job `rank`: FeedSim's runner over ranking servers, embedded or elsewhere.

mod command;
mod page;
mod sessions;

pub use command::RankArgs;
