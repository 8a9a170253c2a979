//! The work of the rank target for a request, and its threads.

use super::reply_size::{ReplySize, ReplySizeError};
use super::walk;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use serde::Serialize;
use thiserror::Error;

/// Threads by what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RankThreads {
    /// Threads that take a request through its stages and run those without threads of their own: as many
    /// requests are in service. FeedSim's thrift threads.
    pub workers: usize,
    /// Compute PageRank: each request makes one task for each of them.
    pub cpu: usize,
    /// Build, serialise and compress stories: each request makes one task for each of them.
    /// FeedSim's srvIO threads.
    pub srv_io: usize,
    /// Chase pointers. FeedSim's srvCPU threads.
    pub srv_cpu: usize,
    /// Read requests and write replies. FeedSim's event-base threads.
    pub net: usize,
}

/// The work of the rank target, stage by stage. `docs/rank.md` has the sources of the numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankConfig {
    /// Seed of the data and of what each request draws.
    pub seed: u64,
    /// The threads.
    pub threads: RankThreads,
    /// Functions called at least in the instruction walk; 0 with a scale of 0 leaves it out.
    pub walk_calls: u64,
    /// Shape of the gamma distribution of further calls.
    pub walk_gamma_shape: f64,
    /// Scale of it; 0 for none.
    pub walk_gamma_scale: f64,
    /// The graph has `2^scale` nodes.
    pub scale: u32,
    /// Edges a node, on average.
    pub degree: u32,
    /// Nodes whose score a request computes, over all its tasks.
    pub subset_nodes: usize,
    /// The wait off the CPU, ns.
    pub wait_ns: u64,
    /// True if a worker is held during the wait, as in the original, or freed for another request.
    pub wait_holds_worker: bool,
    /// Random letters in memory, of which each request compresses a part, bytes.
    pub text_bytes: usize,
    /// Letters that are compressed, bytes; 0 for none.
    pub compress_bytes: usize,
    /// Stories built, serialised and half compressed, over all tasks; 0 for none.
    pub stories: usize,
    /// Objects in each story.
    pub objects: usize,
    /// Stories in the reply, of which its payload is the beginning.
    pub reply_stories: usize,
    /// Entries of 8 bytes in the cycle of the pointer chase.
    pub chase_entries: usize,
    /// Tasks of the pointer chase.
    pub chase_tasks: usize,
    /// Steps of the pointer chase, over all tasks; 0 for none.
    pub chase_steps: u64,
    /// The size of replies.
    pub reply_bytes: ReplySize,
    /// Requests that may be in the server, from read to reply written; more are refused at once.
    pub in_flight_max: usize,
    /// Longest payload of a request, bytes; a longer one ends its connection.
    pub request_bytes_max: u32,
}

/// A configuration that the rank target refuses.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RankConfigError {
    /// A number is out of its range.
    #[error("{name} is {value}, but must be between {least} and {most}")]
    Range {
        /// Name of the number.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The least that is allowed.
        least: f64,
        /// The most that is allowed.
        most: f64,
    },
    /// The reply size is no distribution.
    #[error(transparent)]
    Reply(#[from] ReplySizeError),
    /// The processor is not one that the walk's functions were written for.
    #[error(
        "the instruction walk is written for x86-64 and 64-bit ARM; on this processor give 0 calls"
    )]
    NoWalk,
}

impl RankConfig {
    /// FeedSim's own numbers, with its formulas for threads: `processors` logical ones, with or
    /// without simultaneous multi-threading.
    #[must_use]
    pub fn feedsim(processors: usize, has_smt: bool) -> Self {
        let share = |of_20: usize| (processors * of_20 / 20).max(1);
        let (cpu, srv_io) = if has_smt { (share(7), share(7)) } else { (share(15), share(11)) };
        let srv_io = srv_io.min(55);
        Self {
            seed: 1,
            threads: RankThreads {
                workers: processors.clamp(1, 216),
                cpu,
                srv_io,
                srv_cpu: 8,
                net: 4,
            },
            walk_calls: 1_600_000,
            walk_gamma_shape: 0.7,
            walk_gamma_scale: 20_000.0,
            scale: 21,
            degree: 16,
            subset_nodes: 2_000_000,
            wait_ns: 200 * MILLISECOND_NS,
            wait_holds_worker: true,
            text_bytes: 3_145_728,
            compress_bytes: 131_072,
            stories: 2_000,
            objects: 20,
            reply_stories: (2_000 / srv_io).max(1),
            chase_entries: 10_000_000,
            chase_tasks: 8,
            chase_steps: 5_120,
            reply_bytes: ReplySize::Fixed(16_310),
            in_flight_max: 10_000,
            request_bytes_max: 1 << 20,
        }
    }

    /// The same stages for two processors and some 100 MB: about 10 ms of CPU a request, a wait of
    /// 20 ms that holds no worker, and work that does not depend on the machine.
    #[must_use]
    pub fn mini() -> Self {
        Self {
            threads: RankThreads { workers: 4, cpu: 2, srv_io: 2, srv_cpu: 2, net: 1 },
            walk_calls: 40_000,
            walk_gamma_scale: 500.0,
            scale: 17,
            subset_nodes: 62_500,
            wait_ns: 20 * MILLISECOND_NS,
            wait_holds_worker: false,
            compress_bytes: 65_536,
            stories: 40,
            reply_stories: 5,
            chase_entries: 2_000_000,
            chase_tasks: 2,
            ..Self::feedsim(2, false)
        }
    }

    /// Another size of graph; a request computes the same share of it.
    #[must_use]
    pub fn with_scale(self, scale: u32) -> Self {
        let share = self.subset_nodes as f64 / 2f64.powi(self.scale as i32);
        let subset_nodes = (share * 2f64.powi(scale.min(SCALE_MAX) as i32)).round().max(1.0);
        Self { scale, subset_nodes: subset_nodes as usize, ..self }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn validate(&self) -> Result<(), RankConfigError> {
        let within = |name, value: f64, least: f64, most: f64| match value {
            value if (least..=most).contains(&value) => Ok(()),
            value => Err(RankConfigError::Range { name, value, least, most }),
        };
        let threads = &self.threads;
        let nodes = f64::from(1 << self.scale.min(SCALE_MAX));
        for (name, value, least, most) in [
            ("--threads", threads.workers as f64, 1.0, THREADS_MAX),
            ("the number of cpu threads", threads.cpu as f64, 1.0, THREADS_MAX),
            ("the number of srvIO threads", threads.srv_io as f64, 1.0, THREADS_MAX),
            ("the number of srvCPU threads", threads.srv_cpu as f64, 1.0, THREADS_MAX),
            ("the number of net threads", threads.net as f64, 1.0, 64.0),
            ("the number of calls", self.walk_calls as f64, 0.0, 1e9),
            ("the shape of the calls' gamma", self.walk_gamma_shape, 0.01, 1e4),
            ("the scale of the calls' gamma", self.walk_gamma_scale, 0.0, 1e7),
            ("the scale of the graph", f64::from(self.scale), 1.0, f64::from(SCALE_MAX)),
            ("the degree of the graph", f64::from(self.degree), 1.0, 256.0),
            ("the subset of nodes", self.subset_nodes as f64, 1.0, nodes),
            ("the wait in ns", self.wait_ns as f64, 0.0, 10.0 * SECOND_NS as f64),
            ("the letters in memory", self.text_bytes as f64, 1.0, 1e9),
            ("the letters compressed", self.compress_bytes as f64, 0.0, self.text_bytes as f64),
            ("the number of stories", self.stories as f64, 0.0, 1e5),
            ("the number of objects in a story", self.objects as f64, 0.0, 1e3),
            ("the number of stories in a reply", self.reply_stories as f64, 0.0, 1e5),
            ("the entries of the pointer chase", self.chase_entries as f64, 1.0, 1e9),
            ("the tasks of the pointer chase", self.chase_tasks as f64, 1.0, 1e3),
            ("the steps of the pointer chase", self.chase_steps as f64, 0.0, 1e9),
            ("the limit of requests in flight", self.in_flight_max as f64, 1.0, 1e6),
            ("the longest request in bytes", f64::from(self.request_bytes_max), 0.0, 1e9),
        ] {
            within(name, value, least, most)?;
        }
        self.reply_bytes.validate()?;
        let walks = self.walk_calls > 0 || self.walk_gamma_scale > 0.0;
        if walks && !walk::IS_SUPPORTED { Err(RankConfigError::NoWalk) } else { Ok(()) }
    }

    /// About how much memory the server takes, bytes: its data, and requests in service. Replies
    /// that wait for their readers come on top: at most `in_flight_max` by frames, and one a
    /// connection by HTTP.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let nodes = 1u64 << self.scale.min(SCALE_MAX);
        let graph = 2 * (8 * nodes + 4 * nodes * u64::from(self.degree)) + 8 * nodes;
        let scores = 4 * nodes * (1 + self.threads.cpu as u64);
        let chase = 8 * self.chase_entries as u64;
        // The srvIO threads together build the stories of one request at a time.
        let built = self.stories + self.reply_stories * self.threads.workers;
        let stories = (built * self.objects) as u64 * OBJECT_BYTES;
        graph + scores + chase + self.text_bytes as u64 + stories
    }
}

const THREADS_MAX: f64 = 4_096.0;
const SCALE_MAX: u32 = 26;
/// Approximate size of an object in memory and serialised.
const OBJECT_BYTES: u64 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_have_feedsims_threads() {
        for (processors, smt, workers, cpu, srv_io) in [
            (95, true, 95, 33, 33),
            (380, true, 216, 133, 55),
            (2, false, 2, 1, 1),
            (64, false, 64, 48, 35),
            (1, true, 1, 1, 1),
        ] {
            let config = RankConfig::feedsim(processors, smt);
            config.validate().unwrap();
            let RankThreads { workers: w, cpu: c, srv_io: i, .. } = config.threads;
            assert_eq!((w, c, i), (workers, cpu, srv_io), "{processors} processors");
            assert_eq!(config.reply_stories, 2_000 / srv_io);
        }
        RankConfig::mini().validate().unwrap();
        assert!(RankConfig::mini().memory_bytes() < 200_000_000);
    }

    #[test]
    fn a_smaller_graph_keeps_the_share_of_a_request() {
        let config = RankConfig::feedsim(2, false).with_scale(18);
        assert_eq!((config.scale, config.subset_nodes), (18, 250_000));
        assert!(config.with_scale(99).validate().is_err());
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let error = |change: fn(&mut RankConfig)| {
            let mut config = RankConfig::mini();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert_eq!(
            error(|config| config.threads.cpu = 0),
            "the number of cpu threads is 0, but must be between 1 and 4096"
        );
        assert!(error(|config| config.subset_nodes = 200_000).contains("between 1 and 131072"));
        assert!(error(|config| config.walk_gamma_shape = f64::NAN).contains("shape"));
        assert!(error(|config| config.reply_bytes = ReplySize::Fixed(1 << 30)).contains("large"));
        assert!(error(|config| config.compress_bytes = 4_000_000).contains("3145728"));
    }
}
