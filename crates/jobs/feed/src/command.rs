//! `plimsoll feed`: sends document operations from files to the document API and accounts for each.

mod by_agents;
mod course;
mod finish;
mod merging;
mod probe;
mod shown;
mod task;

use crate::Tally;
use crate::page::FORMS;
use crate::statistics::statistics as as_vespa;
use anyhow::Result;
pub use by_agents::{Fed, feed_by_agents};
use clap::{Args, ValueEnum};
pub use finish::{Ended, result as feed_result, verdict as feed_verdict};
use merging::FeedPart;
use plimsoll_core::feed::FeedScenario;
use plimsoll_core::interval::Interval;
use plimsoll_core::schedule::{Arrivals, LoadModel};
use plimsoll_core::units::{Rate, Span};
use plimsoll_job::contact::reach;
use plimsoll_job::execute::{code, page};
use plimsoll_job::flags::{OutputFlags, PartFlag, TlsFlags, status};
use plimsoll_job::job::{Job, Program};
use plimsoll_job::keeping::{About, Finished, JobEnd, Keeping, carry_out};
use plimsoll_job::output::{Output, note, print_out, put_result};
use plimsoll_job::progress::AgentsProgress;
use plimsoll_job::results::write_results;
use plimsoll_job::signals;
use plimsoll_job::throughput;
use plimsoll_job::together::{gather, has_agents, is_coordinator, own_place};
use plimsoll_job::usage::usage;
use plimsoll_record::JobResults;
use plimsoll_record::feed::FeedResult;
use plimsoll_report::forms::Forms;
use plimsoll_workloads::http::Troubles;
use shown::FeedProgress;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
pub use task::{Task, forms_of};

const EXAMPLES: &str = "\
Examples:
  A dump, over two containers; rejected operations go to a file that can be fed again:
    plimsoll feed http://127.0.0.1:8080 http://127.0.0.1:8081 music.ndjson.zst --failed rest.ndjson
  From one cluster to another:
    plimsoll visit http://127.0.0.1:8080 --cluster music --format vespa-feed |
      plimsoll feed http://127.0.0.1:9080 -
  At a fixed rate (open model), with the statistics that `vespa feed` prints:
    plimsoll feed http://127.0.0.1:8080 music.json --rate 500 --vespa-statistics -

Input: a JSON array of operations, or one operation after the other, compressed or not. An operation
has put (or id), update or remove, and may have condition, create and fields.
Exit codes: 0 every operation was accepted, 3 some were not (they are named) or plimsoll limited the
speed, 4 the target failed, 64 wrong usage.";

/// Compression of request bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompressionFlag {
    /// Bodies above 512 bytes, unless all targets are loopback addresses.
    Auto,
    /// All bodies.
    Gzip,
    /// No compression.
    None,
}

/// Write documents from files to Vespa
///
/// To Vespa or plimsoll serve search: put, update and remove operations, in order for each document, as fast as the target
/// accepts them. After 429 and other failures plimsoll sends an operation again, after a backoff that grows (docs/feed.md).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct FeedArgs {
    /// Addresses of the containers, and files of operations
    ///
    /// Addresses begin with http:// or https://; - is stdin.
    #[arg(required = true, value_name = "URL|FILE")]
    sources: Vec<String>,

    /// Operations in flight over all threads [default: as needed]
    ///
    /// By default, plimsoll raises the number as long as throughput grows.
    #[arg(long, value_name = "N", help_heading = "Requests")]
    inflight: Option<u32>,
    /// Number of connections [default: as needed]
    ///
    /// The default with HTTP/2 is 8, or one per address if that is more; with HTTP/1.1 as many as --inflight, and at most 256 without
    /// --inflight.
    #[arg(long, value_name = "N", help_heading = "Requests")]
    connections: Option<u32>,
    /// Use HTTP/1.1 even if the target supports HTTP/2
    #[arg(long, conflicts_with = "http2", help_heading = "Requests")]
    http1: bool,
    /// Use HTTP/2
    ///
    /// plimsoll does not check that the target supports it.
    #[arg(long, help_heading = "Requests")]
    http2: bool,
    /// Open model: requests per second, such as 1000 or 1k
    ///
    /// Each operation is a request. Requests arrive at their own time, even if earlier ones were not answered. Without
    /// --rate, plimsoll sends as fast as the target accepts them.
    #[arg(long, value_name = "PER_S", help_heading = "Requests")]
    rate: Option<Rate>,
    /// Compress bodies: auto, gzip or none
    ///
    /// auto: bodies above 512 bytes, unless all targets are loopback addresses; gzip: all bodies.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        default_value = "auto",
        help_heading = "Requests"
    )]
    compression: CompressionFlag,
    /// Route through Vespa, as its route parameter
    #[arg(long, value_name = "ROUTE", help_heading = "Requests")]
    route: Option<String>,
    /// Let the target reply at once and write nothing
    ///
    /// This finds the limit of the network, HTTP and plimsoll.
    #[arg(long, help_heading = "Requests")]
    dry_run: bool,
    /// Number of generator threads
    ///
    /// They send; one more thread reads the input.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Requests")]
    threads: u32,
    /// Header of every request, 'Name: value' or @FILE
    ///
    /// ${VARIABLE} in the value is taken from the environment; @FILE has one header a line. The value of the variable and the
    /// contents of the file are not recorded. May be repeated; all are sent.
    #[arg(long, value_name = "LINE|@FILE", help_heading = "Requests")]
    header: Vec<String>,

    /// Longest time for an operation, with retries [default: 180s]
    ///
    /// If you set it, plimsoll also sends it to the server.
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    timeout: Option<Span>,
    /// Retries of an operation after a failure
    ///
    /// After 500, 502, 503, 504, 408 or no answer. 429 is retried until --timeout.
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Failures")]
    retries: u32,
    /// End the feed if nothing was accepted for this time
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    deadline: Option<Span>,
    /// Statuses that count as accepted besides 2xx: 404, 412
    ///
    /// 404 (no such document or type), 412 (condition not met). vespa feed accepts both.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status, help_heading = "Failures")]
    accept: Vec<u16>,
    /// File for operations that were not accepted
    ///
    /// It can be fed again; reasons go to FILE.reasons.
    #[arg(long, value_name = "FILE", help_heading = "Failures")]
    failed: Option<PathBuf>,
    /// Skip the first N operations of the input
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Failures")]
    skip: u64,

    /// Write the statistics of vespa feed as JSON to FILE
    ///
    /// - is stdout; the text then goes to stderr.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    vespa_statistics: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    part: PartFlag,
    #[command(flatten)]
    output: OutputFlags,
}

impl FeedArgs {
    /// The flags as a scenario.
    ///
    /// # Errors
    /// Flags that contradict each other.
    pub fn scenario(&self) -> Result<FeedScenario> {
        let is_url = |word: &&String| word.starts_with("http://") || word.starts_with("https://");
        let targets: Vec<String> = self.sources.iter().filter(is_url).cloned().collect();
        let files: Vec<_> = self.sources.iter().filter(|w| !is_url(w)).map(PathBuf::from).collect();
        let stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        if stdout(&self.vespa_statistics) && stdout(&self.output.results.json) {
            return Err(usage(
                "--vespa-statistics - and --json - cannot both go to stdout; name a file for one",
            ));
        }
        if stdout(&self.vespa_statistics) && self.output.outlets.takes_stdout() {
            return Err(usage(
                "--vespa-statistics - and --stream - cannot both go to stdout; name a file for one",
            ));
        }
        let load = self
            .rate
            .map(|rate| LoadModel::Open { rate_per_s: rate.per_s, arrivals: Arrivals::Uniform });
        let compression = match self.compression {
            CompressionFlag::Auto => "auto",
            CompressionFlag::Gzip => "gzip",
            CompressionFlag::None => "none",
        };
        let http = match (self.http1, self.http2) {
            (true, _) => "1.1",
            (_, true) => "2",
            _ => "auto",
        };
        Ok(FeedScenario {
            targets,
            files,
            headers: self.header.clone(),
            http: http.to_owned(),
            connections: self.connections,
            inflight: self.inflight,
            load,
            duration: None,
            timeout: self.timeout,
            deadline: self.deadline,
            retries: self.retries,
            accept: self.accept.clone(),
            compression: compression.to_owned(),
            route: self.route.clone(),
            skip: self.skip,
            dry_run: self.dry_run,
            failed: self.failed.clone(),
            threads: self.threads,
            slice: self.part.slice(),
            seed: 1,
            tls: self.tls.scenario(),
        })
    }
}

impl Job for FeedArgs {
    const NAME: &'static str = "feed";
    const FORMS: Forms = Forms { merge: merging::merge, ..FORMS };

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or files that cannot be read or written.
fn run(args: &FeedArgs) -> Result<u8> {
    let mut asked = args.scenario()?;
    let output = args.output.output();
    output.check()?;
    let statistics = args.vespa_statistics.as_deref();
    if let Some(path) = statistics.filter(|path| *path != Path::new("-")) {
        // A path that cannot be written fails before the feed, not after it.
        let written = std::fs::write(path, "");
        written
            .map_err(|error| usage(format!("--vespa-statistics {}: {error}", path.display())))?;
    }
    if let Some(path) = &asked.failed {
        asked.failed = Some(own_place(path, output.runs.as_deref(), asked.slice)?);
    }
    let task = Task::new(&asked, false)?;
    if has_agents() {
        // A target that an agent does not accept has no address there; the run is refused before the start.
        let unknown = task.plan.targets.iter().filter(|target| target.addresses.is_empty());
        let unknown: Vec<_> = unknown.cloned().collect();
        reach(&unknown, task.scenario.connect_timeout)?;
    }
    let (finished, result) = carry(task, &output)?;
    show(&finished, &result, &output, statistics)
}

/// Runs the feed and keeps its record.
fn carry(mut task: Task, output: &Output) -> Result<(Finished, FeedResult)> {
    let plan = task.plan.clone();
    let about = About {
        plan: &plan,
        class_names: vec!["feed".to_owned()],
        distinct_requests: None,
        troubles: Troubles::default(),
    };
    let progress = FeedProgress::new(task.feed.clone(), output.voice());
    let mut told = FeedResult::default();
    let scenario = task.scenario.clone();
    let of_agents = AgentsProgress::new(output.voice());
    let finished = carry_out(&scenario, &about, output, |keeping| {
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::new(AtomicBool::new(false));
        let (causes, started) = (vec![keeping.stop.clone()], keeping.started.clone());
        let watch = task.watch(causes, stop.clone(), over.clone(), started)?;
        if !is_coordinator() {
            task.start_reader()?;
        }
        let (http, (sessions, counted)) = (task.http, task.sessions());
        let mut second = |second: &Interval| match &of_agents {
            Some(progress) => progress.show(second),
            None => progress.show(),
        };
        let mut keeping = Keeping { stop, ..keeping };
        let end = keeping.run(&plan, || http, sessions, &mut second);
        over.store(true, Ordering::Relaxed);
        // A watch that broke has no course to show, and the feed is as good as with it.
        let over_time = watch.join().unwrap_or_default();
        progress.done();
        of_agents.iter().for_each(AgentsProgress::done);
        let end = end?;
        let tally = Tally::of_shards(&counted);
        let (cpu_s, stopped) = (end.cpu_s, signals::is_stopped());
        let ended = Ended { started_ns: end.start_ns, cpu_s, stopped, tally, over_time };
        let gathered = gather(|| Ok(FeedPart::of(&task, &ended)))?;
        let files = task.feed.input.names();
        let (result, lacks, warnings) = merging::together(gathered, files, cpu_s)?;
        let mut verdict = finish::verdict(&result, ended.stopped);
        verdict.reasons.extend(lacks);
        let verdict = throughput::judge(verdict, &end, Some(finish::input(&result)));
        let results = JobResults::of(result.clone());
        told = result;
        Ok(JobEnd { end, results, verdict: Some(verdict), warnings })
    });
    progress.done();
    Ok((finished?, told))
}

/// Prints the result.
fn show(
    finished: &Finished,
    result: &FeedResult,
    output: &Output,
    statistics: Option<&Path>,
) -> Result<u8> {
    let json_on_stdout = write_results(output, finished, &[FORMS])?;
    let text = || page(finished, output, &FORMS);
    match statistics {
        Some(path) if path == Path::new("-") => {
            print_out(&as_vespa(result))?;
            if !output.quiet {
                note(text().trim_end());
            }
        }
        other => {
            if let Some(path) = other {
                let statistics = as_vespa(result);
                put_result("--vespa-statistics", path, &statistics);
            }
            if !json_on_stdout {
                print_out(&text())?;
            }
        }
    }
    Ok(code(finished))
}
