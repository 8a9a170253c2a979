//! An engine that speaks Elasticsearch's language, as the benchmarks use it: loaded, warmed, asked and timed.

use crate::http::Client;
use crate::measure::Bench;
use crate::server::Server;
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::now_ns;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Connections that load, and that ask.
const LOADERS: usize = 2;
pub const CLIENTS: usize = 4;
const INDEX: &str = "/packages";
/// How long each query is asked in a turn of warming, ns.
const WARM_NS: u64 = 500_000_000;
/// An engine is warm when so many turns together were no faster than the fastest before them, by this share.
const TURNS_WITHOUT_GAIN: u32 = 3;
const GAIN: f64 = 0.03;
/// Turns of warming at most.
const TURNS_MAX: u32 = 24;

/// A running engine.
pub struct Engine {
    server: Server,
    address: String,
}

/// What a stretch took.
#[derive(Clone, Copy)]
pub struct Took {
    /// What was done.
    pub count: f64,
    /// By the clock.
    pub seconds: f64,
    cpu_s: f64,
}

impl Took {
    /// Of what was done, a CPU second of the engine's.
    pub fn per_cpu_s(&self) -> f64 {
        self.count / self.cpu_s
    }

    /// Of what was done, a second.
    pub fn per_s(&self) -> f64 {
        self.count / self.seconds
    }
}

/// Binds the calling thread to the generator's core.
///
/// # Errors
/// When the kernel refuses.
pub fn pin(bench: &Bench) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(bench.cores.generator);
    Ok(sched_setaffinity(None, &set)?)
}

impl Engine {
    /// Starts `plimsoll serve` with these words.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn start(bench: &Bench, kind: &str, flags: &[&str]) -> Result<Self> {
        let server = Server::plimsoll(bench, kind, flags)?;
        let address = server.address().to_owned();
        Ok(Self { server, address })
    }

    /// A connection to it.
    ///
    /// # Errors
    /// When it is gone.
    pub fn client(&self) -> Result<Client> {
        Client::connect(&self.address)
    }

    /// Runs `work` on threads pinned to the generator's core, each with a connection of its own, and times them and the
    /// server. `work` gives what it has done; `last` is in the time, too.
    fn timed(
        &self,
        bench: &Bench,
        threads: usize,
        work: impl Fn(&mut Client) -> Result<usize> + Sync,
        last: impl FnOnce(&mut Client) -> Result<()>,
    ) -> Result<Took> {
        let mut client = self.client()?;
        let (cpu_s, begun_ns) = (self.server.tree_cpu_s()?, now_ns());
        let done = std::thread::scope(|scope| {
            let one = || -> Result<usize> {
                pin(bench)?;
                work(&mut self.client()?)
            };
            let started: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
            let mut done = 0;
            for thread in started {
                done += thread.join().map_err(|_| anyhow::anyhow!("a client failed"))??;
            }
            Ok::<_, anyhow::Error>(done)
        })?;
        last(&mut client)?;
        let seconds = (now_ns() - begun_ns) as f64 / 1e9;
        Ok(Took { count: done as f64, seconds, cpu_s: self.server.tree_cpu_s()? - cpu_s })
    }

    /// Repeats `turn`, which tells how fast it was, until it grows no faster, with all cores for whatever the engine does
    /// besides: Java compiles what it runs, again and again, and would compete with itself for its one core. Gives the
    /// number of turns.
    fn warm(&self, bench: &Bench, mut turn: impl FnMut() -> Result<f64>) -> Result<u32> {
        self.server.pin(&[bench.cores.target, bench.cores.generator])?;
        let (mut best, mut since) = (0.0_f64, 0);
        for turns in 1..=TURNS_MAX {
            let speed = turn()?;
            since = if speed > best * (1.0 + GAIN) { 0 } else { since + 1 };
            best = best.max(speed);
            if since == TURNS_WITHOUT_GAIN || turns == TURNS_MAX {
                self.server.pin(&[bench.cores.target])?;
                return Ok(turns);
            }
        }
        bail!("no turn of warming")
    }

    /// Loads everything again and again until that grows no faster; gives the number of loads.
    ///
    /// # Errors
    /// As [`Engine::load`].
    pub fn warm_loading(
        &self,
        bench: &Bench,
        bulks: &[Vec<u8>],
        documents: usize,
        shards: u64,
    ) -> Result<u32> {
        self.warm(bench, || Ok(self.load(bench, bulks, documents, shards)?.per_s()))
    }

    /// Asks all queries in turns until they are answered no faster, by their geometric mean; gives the number of turns.
    ///
    /// # Errors
    /// As [`Engine::ask`].
    pub fn warm_asking(&self, bench: &Bench, bodies: &[&[u8]]) -> Result<u32> {
        self.warm(bench, || {
            let mut sum = 0.0;
            for body in bodies {
                sum += self.ask(bench, body, WARM_NS, 1)?.per_s().ln();
            }
            Ok((sum / bodies.len() as f64).exp())
        })
    }

    /// Loads everything into a new index, until it can be searched.
    ///
    /// # Errors
    /// When it refuses a document, or not all are there in the end.
    pub fn load(
        &self,
        bench: &Bench,
        bulks: &[Vec<u8>],
        documents: usize,
        shards: u64,
    ) -> Result<Took> {
        let mut client = self.client()?;
        let (status, _) = client.ask("DELETE", INDEX, b"")?;
        if status != 200 && status != 404 {
            bail!("DELETE {INDEX}: status {status}");
        }
        let settings = json!({"settings": {"number_of_shards": shards, "number_of_replicas": 0}});
        client.done("PUT", INDEX, settings.to_string().as_bytes())?;
        let next = AtomicUsize::new(0);
        let bulk_path = path("_bulk");
        let work = |client: &mut Client| {
            let mut done = 0;
            while let Some(bulk) = bulks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let reply = client.done("POST", &bulk_path, bulk)?;
                let head = String::from_utf8_lossy(&reply[..reply.len().min(120)]);
                if !head.contains("\"errors\":false") {
                    bail!("a bulk was not taken whole: {head}");
                }
                done += 1;
            }
            Ok(done)
        };
        let refresh = |client: &mut Client| client.done("POST", &path("_refresh"), b"").map(|_| ());
        let took = self.timed(bench, LOADERS, work, refresh)?;
        let counted: Value = serde_json::from_slice(client.done("GET", &path("_count"), b"")?)?;
        if counted["count"].as_u64() != Some(documents as u64) {
            bail!("of {documents} documents {} are there", counted["count"]);
        }
        Ok(Took { count: documents as f64, ..took })
    }

    /// Asks one query over and over, until the time is over and it was asked so often.
    ///
    /// # Errors
    /// When a search fails, in part or whole.
    pub fn ask(&self, bench: &Bench, body: &[u8], for_ns: u64, least: usize) -> Result<Took> {
        let search_path = path("_search");
        let end_ns = now_ns() + for_ns;
        let work = |client: &mut Client| {
            let mut done = 0;
            while now_ns() < end_ns || done < least.div_ceil(CLIENTS) {
                let reply = client.done("POST", &search_path, body)?;
                let head = String::from_utf8_lossy(&reply[..reply.len().min(160)]);
                if !head.contains("\"timed_out\":false") || !head.contains("\"failed\":0") {
                    bail!("a search failed in part: {head}");
                }
                done += 1;
            }
            Ok(done)
        };
        self.timed(bench, CLIENTS, work, |_| Ok(()))
    }

    /// How many documents match: hits beyond 10,000 are counted by neither engine unless asked for.
    ///
    /// # Errors
    /// When the engine does not answer with a number.
    pub fn hits(&self, query: &Value) -> Result<u64> {
        let body = json!({"query": query, "size": 0, "track_total_hits": true}).to_string();
        let mut client = self.client()?;
        let reply = client.done("POST", &path("_search"), body.as_bytes())?;
        let reply: Value = serde_json::from_slice(reply)?;
        reply["hits"]["total"]["value"].as_u64().context("a reply without a number of hits")
    }
}

/// A path below the index.
pub fn path(rest: &str) -> String {
    format!("{INDEX}/{rest}")
}
