//! The stages of one request: what each does with the data, and what it costs.

use super::RankConfig;
use super::chase::Chase;
use super::graph::Graph;
use super::metrics::{Stage, StageTimes};
use super::pagerank::{Part, Ranked, Served, by_rank};
use super::pool::{Pool, TaskFailed};
use super::story::{Response, letters};
use super::walk::Walk;
use plimsoll_core::clock::now_ns;
use plimsoll_core::rng::{Rng, derive_seed, splitmix64};
use plimsoll_serving::cpu_time::thread_cpu_ns;
use plimsoll_serving::draws::standard_gamma;
use std::hint::black_box;
use std::io;
use std::sync::Arc;

/// Ranked nodes that a request asks of each task, and ranked stories in its reply.
pub(crate) const BEST: usize = 10;
/// Size of the pieces in which serialised stories are compressed, as the original's buffers.
const PIECE_BYTES: usize = 16_384;
/// zstd's own default level.
const ZSTD_LEVEL: i32 = zstd::DEFAULT_COMPRESSION_LEVEL;

/// Reason why a request ended without a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageFailed;

impl From<TaskFailed> for StageFailed {
    fn from(_: TaskFailed) -> Self {
        Self
    }
}

/// The data, shared by all threads and never changed.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) graph: Graph,
    served: Served,
    walk: Walk,
    chase: Chase,
    text: Vec<u8>,
}

impl Data {
    fn new(config: &RankConfig) -> Self {
        let rng = |purpose| Rng::new(derive_seed(config.seed, purpose));
        let graph = Graph::uniform(config.scale, config.degree, derive_seed(config.seed, "graph"));
        Self {
            served: Served::new(&graph),
            graph,
            walk: Walk::new(&mut rng("walk")),
            chase: Chase::new(config.chase_entries, &mut rng("chase")),
            text: letters(config.text_bytes, &mut rng("text")),
        }
    }
}

/// The state of a thread that compresses.
pub(crate) struct Codec {
    compressor: zstd::bulk::Compressor<'static>,
    decompressor: zstd::bulk::Decompressor<'static>,
    compressed: Vec<u8>,
    plain: Vec<u8>,
}

impl Codec {
    /// Contexts of zstd and buffers, all used again and again.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            compressor: zstd::bulk::Compressor::new(ZSTD_LEVEL)?,
            decompressor: zstd::bulk::Decompressor::new()?,
            compressed: Vec::new(),
            plain: Vec::new(),
        })
    }

    /// Compresses into the buffer of this thread.
    fn compress(&mut self, bytes: &[u8]) -> Result<usize, StageFailed> {
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        let made = self.compressor.compress_to_buffer(bytes, &mut self.compressed);
        made.map_err(|_| StageFailed)
    }

    /// Decompresses what was compressed last; gives how many bytes that made.
    fn decompress(&mut self, bytes: usize) -> Result<usize, StageFailed> {
        self.plain.clear();
        self.plain.reserve(bytes);
        let made = self.decompressor.decompress_to_buffer(&self.compressed, &mut self.plain);
        made.map_err(|_| StageFailed)
    }
}

/// The data and the threads that the stages run on.
pub(crate) struct Stages {
    config: RankConfig,
    pub(crate) data: Arc<Data>,
    /// Each thread has the shares of all nodes of its own.
    cpu: Pool<Vec<f32>>,
    srv_io: Pool<Option<Codec>>,
    srv_cpu: Pool<()>,
}

/// The data that a request carries from one stage to the next.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) best: Vec<Ranked>,
    pub(crate) times: StageTimes,
}

impl Progress {
    /// Runs a stage on this thread and adds up what it took.
    fn timed<T>(&mut self, stage: Stage, run: impl FnOnce(&mut Self) -> T) -> T {
        let (cpu_ns, wall_ns) = (thread_cpu_ns(), now_ns());
        let result = run(self);
        let spent = &mut self.times[stage as usize];
        spent.wall_ns += now_ns().saturating_sub(wall_ns);
        spent.cpu_ns += thread_cpu_ns().saturating_sub(cpu_ns);
        result
    }
}

impl Stages {
    /// Makes the data and starts the threads.
    pub(crate) fn open(config: &RankConfig) -> io::Result<Self> {
        let data = Arc::new(Data::new(config));
        let threads = &config.threads;
        let shares = data.served.shares(&data.graph);
        Ok(Self {
            cpu: Pool::start("rank-cpu", threads.cpu, move || shares.clone())?,
            srv_io: Pool::start("rank-srv-io", threads.srv_io, || Codec::new().ok())?,
            srv_cpu: Pool::start("rank-srv-cpu", threads.srv_cpu, || ())?,
            config: config.clone(),
            data,
        })
    }

    /// Ends the threads. No stage may be run afterwards.
    pub(crate) fn stop(&self) {
        self.cpu.stop();
        self.srv_io.stop();
        self.srv_cpu.stop();
    }

    /// The random numbers of one task of one stage of one request: the same whatever else runs.
    fn rng(&self, id: u64, stage: Stage, task: usize) -> Rng {
        let place = (stage as u64) << 32 | task as u64;
        Rng::new(splitmix64(splitmix64(self.config.seed ^ splitmix64(id)) ^ place))
    }

    /// The stages before the wait.
    pub(crate) fn before_wait(&self, id: u64, to: &mut Progress) -> Result<(), StageFailed> {
        to.timed(Stage::Walk, |_| self.walk(id));
        to.timed(Stage::Pagerank, |to| self.pagerank(id, to))
    }

    /// The stages after the wait; gives the payload of the reply.
    pub(crate) fn after_wait(
        &self,
        id: u64,
        to: &mut Progress,
        codec: &mut Codec,
    ) -> Result<Vec<u8>, StageFailed> {
        to.timed(Stage::Compress, |_| self.compress(id, codec))?;
        to.timed(Stage::Stories, |to| self.stories(id, to))?;
        to.timed(Stage::Chase, |to| self.chase(id, to))?;
        to.timed(Stage::Reply, |to| self.reply(id, to, codec))
    }

    fn walk(&self, id: u64) {
        let config = &self.config;
        let mut rng = self.rng(id, Stage::Walk, 0);
        let drawn = standard_gamma(config.walk_gamma_shape, &mut rng) * config.walk_gamma_scale;
        let calls = config.walk_calls + drawn as u64;
        black_box(self.data.walk.run(rng.below(u64::MAX) as usize, calls));
    }

    fn pagerank(&self, id: u64, to: &mut Progress) -> Result<(), StageFailed> {
        let tasks = self.config.threads.cpu;
        let (nodes, subset) = (self.data.graph.nodes(), self.config.subset_nodes);
        let parts: Vec<Part> = (0..tasks)
            .map(|task| {
                let mut rng = self.rng(id, Stage::Pagerank, task);
                Part {
                    share_from: rng.below(nodes as u64) as usize,
                    share_nodes: nodes.div_ceil(tasks),
                    score_from: rng.below(nodes as u64) as usize,
                    score_nodes: subset.div_ceil(tasks),
                }
            })
            .collect();
        let data = Arc::clone(&self.data);
        let joined = self.cpu.join(tasks, move |task, shares| {
            data.served.iterate(&data.graph, parts[task], shares, BEST)
        })?;
        to.times[Stage::Pagerank as usize].cpu_ns += joined.cpu_ns;
        to.best = joined.results.into_iter().flatten().collect();
        to.best.sort_by(by_rank);
        // Tasks may overlap, and then have found the same node.
        to.best.dedup_by_key(|ranked| ranked.node);
        to.best.truncate(BEST);
        Ok(())
    }

    fn compress(&self, id: u64, codec: &mut Codec) -> Result<(), StageFailed> {
        let bytes = self.config.compress_bytes;
        if bytes == 0 {
            return Ok(());
        }
        let text = &self.data.text;
        let places = (text.len() - bytes + 1) as u64;
        let from = self.rng(id, Stage::Compress, 0).below(places) as usize;
        codec.compress(&text[from..from + bytes]).map(drop)
    }

    fn stories(&self, id: u64, to: &mut Progress) -> Result<(), StageFailed> {
        let tasks = self.config.threads.srv_io;
        let (stories, objects) = (self.config.stories, self.config.objects);
        if stories == 0 {
            return Ok(());
        }
        let rngs: Vec<Rng> = (0..tasks).map(|task| self.rng(id, Stage::Stories, task)).collect();
        let joined = self.srv_io.join(tasks, move |task, codec| {
            let count = stories * (task + 1) / tasks - stories * task / tasks;
            let mut rng = rngs[task].clone();
            let codec = codec.as_mut().ok_or(StageFailed)?;
            let made = Response::random(id, count, objects, &mut rng);
            let bytes = made.serialise(std::mem::take(&mut codec.plain));
            let compressed = compress_half(&bytes, codec);
            codec.plain = bytes;
            compressed
        })?;
        to.times[Stage::Stories as usize].cpu_ns += joined.cpu_ns;
        joined.results.into_iter().collect()
    }

    fn chase(&self, id: u64, to: &mut Progress) -> Result<(), StageFailed> {
        let (tasks, steps) = (self.config.chase_tasks, self.config.chase_steps);
        if steps == 0 {
            return Ok(());
        }
        let data = Arc::clone(&self.data);
        let entries = data.chase.entries();
        let starts: Vec<u64> =
            (0..tasks).map(|task| self.rng(id, Stage::Chase, task).below(entries)).collect();
        let steps_each = steps.div_ceil(tasks as u64);
        let joined = self.srv_cpu.join(tasks, move |task, ()| {
            black_box(data.chase.run(starts[task], steps_each));
        })?;
        to.times[Stage::Chase as usize].cpu_ns += joined.cpu_ns;
        Ok(())
    }

    fn reply(&self, id: u64, to: &mut Progress, codec: &mut Codec) -> Result<Vec<u8>, StageFailed> {
        let config = &self.config;
        let mut rng = self.rng(id, Stage::Reply, 0);
        let mut response = Response::random(id, config.reply_stories, config.objects, &mut rng);
        response.rank(&to.best);
        let mut payload = response.serialise(Vec::new());
        if config.compress_bytes > 0 {
            let bytes = codec.decompress(config.compress_bytes)?;
            black_box(bytes);
        }
        black_box(Response::deserialise(&payload).map_err(|_| StageFailed)?);
        let bytes = config.reply_bytes.draw(&mut rng) as usize;
        // A reply that is longer than what there is to say says it again.
        while payload.len() < bytes {
            let more = payload.len().min(bytes - payload.len());
            payload.extend_from_within(..more);
        }
        payload.truncate(bytes);
        payload.shrink_to_fit();
        Ok(payload)
    }
}

/// Compresses pieces until half of the bytes are done.
fn compress_half(bytes: &[u8], codec: &mut Codec) -> Result<(), StageFailed> {
    let mut done = 0;
    for piece in bytes.chunks(PIECE_BYTES) {
        if done >= bytes.len() / 2 {
            break;
        }
        codec.compress(piece)?;
        done += piece.len();
    }
    Ok(())
}
