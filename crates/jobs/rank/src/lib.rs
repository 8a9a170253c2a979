//! The job `rank`: FeedSim's runner over ranking servers, embedded or elsewhere.

mod command;
mod sessions;

pub use command::RankArgs;
