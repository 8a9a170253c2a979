//! `plimsoll feed`: operations on documents from files to the document API, each accounted for.

mod finish;
mod probe;
mod shown;
mod task;

use crate::Tally;
use crate::page::FORMS;
use crate::statistics::statistics as as_vespa;
use anyhow::Result;
use clap::{Args, ValueEnum};
pub use finish::{Ended, result as feed_result, verdict as feed_verdict};
use plimsoll_core::clock::now_ns;
use plimsoll_core::feed::FeedScenario;
use plimsoll_core::schedule::{Arrivals, LoadModel};
use plimsoll_core::units::Span;
use plimsoll_engine::run::run as run_engine;
use plimsoll_job::execute::{code, page};
use plimsoll_job::flags::{OutputFlags, TlsFlags, status};
use plimsoll_job::job::{Job, Program};
use plimsoll_job::keeping::{About, Finished, JobEnd, carry_out};
use plimsoll_job::output::{Output, note, print_out, put_result, write_json};
use plimsoll_job::signals;
use plimsoll_job::throughput;
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
  A dump, packed or not, over two containers; what is not accepted goes to a file that can be fed again:
    plimsoll feed http://127.0.0.1:8080 http://127.0.0.1:8081 music.ndjson.zst --failed rest.ndjson
  From one cluster to another:
    plimsoll visit http://127.0.0.1:8080 --cluster music --format vespa-feed |
      plimsoll feed http://127.0.0.1:9080 -
  At a rate that does not wait for the answers, and the statistics that `vespa feed` prints:
    plimsoll feed http://127.0.0.1:8080 music.json --rate 500 --vespa-statistics -

Input: a JSON array of operations or one after the other; put (or id), update, remove, condition, create, fields.
Exit codes: 0 every operation accepted, 3 not (they are named), or plimsoll was what limited the speed, 4 the target
failed, 64 wrong usage.";

/// How bodies are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompressionFlag {
    /// Above 512 bytes, unless the target is on this machine.
    Auto,
    /// All.
    Gzip,
    /// None.
    None,
}

/// Write operations from files to Vespa or `plimsoll serve search`: in order for each document, as fast as it takes them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct FeedArgs {
    /// http:// or https:// addresses of the containers, and files of operations; - is stdin.
    #[arg(required = true, value_name = "URL|FILE")]
    what: Vec<String>,

    /// Operations under way, all threads together; by default as many as bring more throughput.
    #[arg(long, value_name = "N", help_heading = "How")]
    inflight: Option<u32>,
    /// Connections; by default 8 with HTTP/2, and one for each operation under way, at most 256, with HTTP/1.1.
    #[arg(long, value_name = "N", help_heading = "How")]
    connections: Option<u32>,
    /// HTTP/1.1 even if the target speaks HTTP/2.
    #[arg(long, conflicts_with = "http2", help_heading = "How")]
    http1: bool,
    /// HTTP/2 without asking whether the target speaks it.
    #[arg(long, help_heading = "How")]
    http2: bool,
    /// Operations per second that do not wait for the answers; by default as fast as the target takes them.
    #[arg(long, value_name = "N", help_heading = "How")]
    rate: Option<f64>,
    /// Packing of request bodies.
    #[arg(long, value_enum, default_value = "auto", help_heading = "How")]
    compression: CompressionFlag,
    /// Vespa's route.
    #[arg(long, value_name = "ROUTE", help_heading = "How")]
    route: Option<String>,
    /// The target answers at once and writes nothing: what network, HTTP and this program hold.
    #[arg(long, help_heading = "How")]
    dry_run: bool,
    /// Threads that send; one more reads.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "How")]
    threads: u32,
    /// A header of every request, 'Name: value'; may be repeated.
    #[arg(long, value_name = "LINE", help_heading = "How")]
    header: Vec<String>,

    /// How long an operation may take with all its repetitions; when given, the server is told, too [default: 180s].
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    timeout: Option<Span>,
    /// How often an operation is sent again after 500, 502, 503, 504, 408 or without an answer; 429 does not count.
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Failures")]
    retries: u32,
    /// End the feed when nothing was accepted for so long.
    #[arg(long, value_name = "TIME", help_heading = "Failures")]
    deadline: Option<Span>,
    /// Statuses that count as accepted beside 2xx: 404, 412 (condition not met); `vespa feed` takes both.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status, help_heading = "Failures")]
    accept: Vec<u16>,
    /// File of the operations that were not accepted, to be fed again; the reasons go to FILE.reasons.
    #[arg(long, value_name = "FILE", help_heading = "Failures")]
    failed: Option<PathBuf>,
    /// Pass over the first N operations of the input.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Failures")]
    skip: u64,

    /// The statistics of `vespa feed`, as JSON; - is stdout, instead of the text.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    vespa_statistics: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    output: OutputFlags,
}

impl FeedArgs {
    fn scenario(&self) -> Result<FeedScenario> {
        let is_url = |word: &&String| word.starts_with("http://") || word.starts_with("https://");
        let targets: Vec<String> = self.what.iter().filter(is_url).cloned().collect();
        let files: Vec<_> = self.what.iter().filter(|w| !is_url(w)).map(PathBuf::from).collect();
        let stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        if stdout(&self.vespa_statistics) && stdout(&self.output.json) {
            return Err(usage("--vespa-statistics - and --json - both want stdout; name a file"));
        }
        let load =
            self.rate.map(|rate_per_s| LoadModel::Open { rate_per_s, arrivals: Arrivals::Uniform });
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
            seed: 1,
            tls: self.tls.scenario(),
        })
    }
}

impl Job for FeedArgs {
    const NAME: &'static str = "feed";
    const FORMS: Forms = FORMS;

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or files that cannot be read or written.
fn run(args: &FeedArgs) -> Result<u8> {
    let asked = args.scenario()?;
    let output = args.output.output();
    output.check()?;
    let statistics = args.vespa_statistics.as_deref();
    if let Some(path) = statistics.filter(|path| *path != Path::new("-")) {
        // Now, and not when the feed is over.
        let written = std::fs::write(path, "");
        written
            .map_err(|error| usage(format!("--vespa-statistics {}: {error}", path.display())))?;
    }
    let task = Task::new(&asked, false)?;
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
    let progress = FeedProgress::new(task.feed.clone(), output.quiet);
    let mut told = FeedResult::default();
    let scenario = task.scenario.clone();
    let finished = carry_out(&scenario, &about, output, |keeping| {
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::new(AtomicBool::new(false));
        let watch = task.watch(vec![keeping.stop.clone()], stop.clone(), over.clone())?;
        task.start_reader()?;
        let (http, (sessions, counted)) = (task.http, task.sessions());
        let mut second = |_: &_| progress.show();
        let started_ns = now_ns();
        let end = run_engine(&plan, || http, sessions, keeping.sink, &mut second, &stop);
        over.store(true, Ordering::Relaxed);
        // It only waits; there is nothing to learn from it.
        let _ = watch.join();
        progress.done();
        let end = end?;
        let tally = Tally::of_shards(&counted);
        let ended = Ended { started_ns, cpu_s: end.cpu_s, stopped: signals::is_stopped(), tally };
        let (result, warnings) = finish::result(&task, &ended);
        let verdict = finish::verdict(&result, ended.stopped);
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
    let json_on_stdout = write_json(output, &finished.record)?;
    let text = || page(finished, &FORMS);
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
