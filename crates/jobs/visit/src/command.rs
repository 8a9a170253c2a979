//! `plimsoll visit`: reads a whole corpus in parallel slices and counts each document.

mod carry;
mod cells;
mod contact;
mod destination;
mod finish;
mod merging;
mod shown;
mod task;

use crate::page::FORMS;
use crate::{Destination, Visit, VisitForm};
use anyhow::Result;
use carry::carry;
use clap::{Args, ValueEnum};
use contact::{Contact, contact};
use plimsoll_core::clock::now_ns;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::units::Span;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::target::Target;
use plimsoll_job::execute::{code, page};
use plimsoll_job::flags::{OutputFlags, PartFlag, TlsFlags};
use plimsoll_job::headers::read_headers;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::keeping::{Finished, without_run};
use plimsoll_job::output::{Output, note, print_out};
use plimsoll_job::prepare::only_whole;
use plimsoll_job::results::write_results;
use plimsoll_job::together::share;
use plimsoll_job::url::Url;
use plimsoll_job::usage::usage;
use plimsoll_record::JobResults;
use plimsoll_record::visit::VisitResult;
use plimsoll_report::forms::Forms;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use task::{ROOT, Task, path_of, pins_buckets, time_us};

const EXAMPLES: &str = "\
Examples:
  Everything, over two containers, into one packed file:
    plimsoll visit http://127.0.0.1:8080 http://127.0.0.1:8081 --cluster music \\
      --out music.ndjson.zst
  A selection, in the form that `vespa feed` reads; the same command also resumes it:
    plimsoll visit http://127.0.0.1:8080 --cluster music --selection 'music.year > 2000' \\
      --format vespa-feed --out music.json --resume music.state
  Compare slices, streaming and concurrency on this target:
    plimsoll visit http://127.0.0.1:8080 --cluster music --measure

Exit codes: 0 complete, 3 something is missing (it is named) or plimsoll limited the speed,
4 the target failed, 64 wrong usage.";

/// Numbers of slices per container that are tried, in this order, to find the best.
const SLICES_EACH: [u32; 4] = [1, 4, 16, 32];
/// The most slices of a visit.
const SLICES_MAX: u32 = 4096;
/// Documents after which a streamed reply may end, on servers that support it: this many may be repeated after a failure.
const WANTED_STREAMED: u32 = 100_000;
/// Documents of a chunked reply.
const WANTED_CHUNKED: u32 = 1024;
/// Time that a request waits beyond the server's own timeout.
const PATIENCE: Span = Span::seconds(15);

/// Form of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatFlag {
    /// One {"id":...,"fields":...} per line, as `vespa visit` prints them.
    Documents,
    /// One {"put":...,"fields":...} per line, as `vespa feed` reads them.
    VespaFeed,
}

/// Compression of output files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompressFlag {
    /// No compression.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// Read a whole corpus from Vespa, in parallel slices
///
/// From Vespa or plimsoll serve search, in parallel slices over all containers. plimsoll counts each document, and an
/// interrupted visit can be resumed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct VisitArgs {
    /// http:// or https:// addresses of the containers
    ///
    /// A path such as /document/v1/ns/type/docid restricts the visit.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// Content cluster [default: the only one of the target]
    ///
    /// If the target has several, plimsoll lists them.
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    cluster: Option<String>,
    /// Selection of documents [default: all]
    ///
    /// In Vespa's document selection language.
    #[arg(long, value_name = "EXPRESSION", help_heading = "Selection")]
    selection: Option<String>,
    /// Fields to read, such as music:title,year
    ///
    /// type:field,field, [all], [document] or [id].
    #[arg(long, value_name = "FIELDS", help_heading = "Selection")]
    field_set: Option<String>,
    /// Only documents written at this time or later
    ///
    /// Seconds since 1970, or 2026-11-22T12:00:00+02:00.
    #[arg(long, value_name = "TIME", help_heading = "Selection")]
    from: Option<String>,
    /// Only documents written before this time
    ///
    /// Seconds since 1970, or 2026-11-22T12:00:00+02:00.
    #[arg(long, value_name = "TIME", help_heading = "Selection")]
    to: Option<String>,
    /// Include the ids of removed documents
    #[arg(long, help_heading = "Selection")]
    include_removes: bool,
    /// Bucket space: default or global [default: both]
    ///
    /// Both are read one after the other, unless the path names a document type.
    #[arg(long, value_name = "SPACE", help_heading = "Selection")]
    bucket_space: Vec<String>,

    /// Slices, each with its own chain of requests
    ///
    /// auto makes 32 per container, of which as many run at once as increase throughput.
    #[arg(long, value_name = "N|auto", default_value = "auto", help_heading = "Requests")]
    slices: String,
    /// Read only this slice of --slices N, counted from 0
    ///
    /// To divide a visit among processes or machines.
    #[arg(long, value_name = "I", help_heading = "Requests")]
    slice_id: Option<u32>,
    /// Request replies compressed with gzip
    ///
    /// Fewer bytes on the network, more CPU time on both sides.
    #[arg(long, help_heading = "Requests")]
    gzip: bool,
    /// Request one chunk after the other, not a stream
    #[arg(long, help_heading = "Requests")]
    chunked: bool,
    /// Buckets visited at once [default: the server's choice]
    ///
    /// For each request.
    #[arg(long, value_name = "N", help_heading = "Requests")]
    concurrency: Option<u32>,
    /// Documents after which a reply ends
    ///
    /// The default is 1024 with --chunked, otherwise 100,000.
    #[arg(long, value_name = "N", help_heading = "Requests")]
    wanted: Option<u32>,
    /// Longest time of the server for one reply
    #[arg(long, value_name = "TIME", default_value = "20s", help_heading = "Requests")]
    request_timeout: Span,
    /// Retries in a row after which a slice is given up
    ///
    /// The backoff between them grows from 0.2 s to 10 s.
    #[arg(long, value_name = "N", default_value_t = 15, help_heading = "Requests")]
    retries: u32,
    /// Number of generator threads
    ///
    /// Each has its share of the slices.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Requests")]
    threads: u32,
    /// Header of every request, 'Name: value' or @FILE
    ///
    /// ${VARIABLE} in the value is taken from the environment; @FILE has one header a line. The value of the variable and the
    /// contents of the file are not recorded. May be repeated; all are sent.
    #[arg(long, value_name = "LINE|@FILE", help_heading = "Requests")]
    header: Vec<String>,

    /// Output file; - is stdout
    ///
    /// The file is compressed if its name ends in .gz or .zst.
    #[arg(long, value_name = "FILE", default_value = "-", help_heading = "Documents")]
    out: PathBuf,
    /// Output folder with one file per slice, instead of --out
    ///
    /// The files are compressed only with --compress.
    #[arg(long, value_name = "DIR", conflicts_with = "out", help_heading = "Documents")]
    out_dir: Option<PathBuf>,
    /// Compression: none, gzip or zstd [default: by the name]
    ///
    /// By default, a file is compressed if its name ends in .gz or .zst.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "HOW",
        help_heading = "Documents"
    )]
    compress: Option<CompressFlag>,
    /// Form of each line: documents or vespa-feed
    ///
    /// documents: {"id":...,"fields":...}, as vespa visit prints them; vespa-feed: {"put":...,"fields":...}, as vespa feed
    /// reads them.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        default_value = "documents",
        help_heading = "Documents"
    )]
    format: FormatFlag,
    /// File with the progress of the visit, to resume it
    ///
    /// If the file exists, the visit resumes from it.
    #[arg(long, value_name = "FILE", help_heading = "Documents")]
    resume: Option<PathBuf>,
    /// Measure the speed of several settings, write nothing
    ///
    /// plimsoll measures combinations of slices, streaming and concurrency for some seconds each.
    #[arg(long, conflicts_with_all = ["out", "out_dir", "resume"], help_heading = "Documents")]
    measure: bool,
    /// Time for each combination of --measure [default: 3s]
    #[arg(long, value_name = "TIME", help_heading = "Documents")]
    measure_for: Option<Span>,

    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    part: PartFlag,
    #[command(flatten)]
    output: OutputFlags,
}

impl VisitArgs {
    fn task(&self) -> Result<Task> {
        let urls = self.urls.iter().map(|url| Url::parse(url)).collect::<Result<Vec<_>>>()?;
        let path = path_of(&urls)?;
        let headers = read_headers(&self.header)?;
        if self.threads == 0 || self.threads > 64 {
            return Err(usage("--threads: use a number from 1 to 64"));
        }
        let timeout_s = self.request_timeout.ns.div_ceil(1_000_000_000);
        if timeout_s == 0 || timeout_s > 86_400 {
            return Err(usage("--request-timeout: use a time from 1s to 24h"));
        }
        if self.measure_for.is_some() && !self.measure {
            return Err(usage("--measure-for goes with --measure; add --measure, or leave it out"));
        }
        if [self.concurrency, self.wanted].contains(&Some(0)) {
            return Err(usage("--concurrency and --wanted: use at least 1"));
        }
        let form = VisitForm {
            bucket_spaces: self.spaces(&path)?,
            path,
            cluster: self.cluster.clone(),
            selection: self.selection.clone(),
            field_set: self.field_set.clone(),
            from_us: self.from.as_deref().map(|text| time_us("--from", text)).transpose()?,
            to_us: self.to.as_deref().map(|text| time_us("--to", text)).transpose()?,
            include_removes: self.include_removes,
            slices: 1,
            slice_id: self.slice_id,
            part: self.part.slice(),
            gzip: self.gzip,
            stream: !self.chunked,
            concurrency: self.concurrency,
            wanted: Some(self.wanted_documents(!self.chunked)),
            timeout_s: timeout_s as u32,
        };
        let scenario = Scenario {
            job: "visit".to_owned(),
            targets: self.urls.clone(),
            headers: self.header.clone(),
            // A visit ends when all slices are finished; each wait in it has its own limit.
            duration: Some(Span::seconds(365 * 86_400)),
            threads: self.threads,
            slice: self.part.slice(),
            timeout: Span { ns: self.request_timeout.ns + PATIENCE.ns },
            tls: self.tls.scenario(),
            ..Scenario::default()
        };
        let targets =
            urls.iter().map(|u| Target::resolve(&u.authority.host, u.authority.port)).collect();
        Ok(Task { scenario, targets, urls, form, headers, failures_max: self.retries })
    }

    fn wanted_documents(&self, stream: bool) -> u32 {
        self.wanted.unwrap_or(if stream { WANTED_STREAMED } else { WANTED_CHUNKED })
    }

    fn spaces(&self, path: &str) -> Result<Vec<String>> {
        if let Some(other) = self.bucket_space.iter().find(|s| *s != "default" && *s != "global") {
            return Err(usage(format!("--bucket-space '{other}': write default or global")));
        }
        Ok(match (&self.bucket_space[..], path) {
            ([], ROOT) => vec!["default".to_owned(), "global".to_owned()],
            // The document type determines the bucket space.
            ([], _) => vec![String::new()],
            (named, _) => named.to_vec(),
        })
    }

    /// The number of slices, unless it is `auto`.
    fn slices(&self) -> Result<Option<u32>> {
        if self.slices == "auto" {
            return Ok(None);
        }
        let number = self.slices.parse().ok().filter(|n| (1..=SLICES_MAX).contains(n));
        number
            .map(Some)
            .ok_or_else(|| usage("--slices: write auto, or a number from 1 to 4096".to_owned()))
    }
}

impl Job for VisitArgs {
    const NAME: &'static str = "visit";
    const FORMS: Forms = Forms { merge: merging::merge, ..FORMS };

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or files that cannot be written.
fn run(args: &VisitArgs) -> Result<u8> {
    args.check()?;
    if args.measure {
        only_whole(args.part.slice(), "--measure", "it compares the speed of whole visits")?;
    }
    let mut task = args.task()?;
    let output = args.output.output();
    output.check()?;
    let fixed = args.slices()?;
    let pinned = pins_buckets(&task.form);
    if fixed.is_some_and(|slices| slices > 1) && pinned {
        return Err(usage(
            "--slices: this selection names its buckets, so Vespa would return all of it for each slice; \
             use --slices 1",
        ));
    }
    let to_stdout = args.destination().0 == Destination::Stdout && !args.measure;
    match shared_contact(&mut task)? {
        Contact::Ready => {}
        Contact::Failed(why) => {
            let finished = not_begun(&task, &output, VerdictKind::TargetFailed, why)?;
            return show(&finished, &output, to_stdout);
        }
        Contact::Stopped => {
            let why = "stopped before the visit began".to_owned();
            let finished = not_begun(&task, &output, VerdictKind::Partial, why)?;
            return show(&finished, &output, to_stdout);
        }
    }
    if args.measure {
        return cells::measure(&mut task, args, &output);
    }
    let resumed = args.resume.as_deref().filter(|path| path.exists());
    let most = SLICES_EACH[SLICES_EACH.len() - 1] * task.targets.len() as u32;
    task.form.slices = match (fixed, resumed) {
        (Some(slices), _) => slices,
        (None, _) if pinned => 1,
        (None, Some(path)) => Visit::saved_slices(path).map_err(|e| usage(e.to_string()))?,
        (None, None) => most.min(SLICES_MAX),
    };
    task.check_parts()?;
    let to = args.written(&output)?;
    let (form, failures_max) = (task.form.clone(), task.failures_max);
    let visit = match resumed {
        Some(path) => Visit::resume(path, form, to, failures_max),
        None => Visit::begin(form, to, failures_max),
    };
    let mut visit = visit.map_err(|error| usage(error.to_string()))?;
    if fixed.is_none() && task.form.slices > 1 {
        // All parts together ask as many slices at once as one process does.
        let (slices, of) = (task.form.visited().len() as u32, task.form.part.of);
        let each = SLICES_EACH.iter().map(|each| each * task.targets.len() as u32);
        let each = each.map(|each| each.div_ceil(of).min(slices));
        let mut numbers: Vec<u32> = each.collect();
        numbers.dedup();
        visit.climb(numbers);
    }
    let visit = Arc::new(visit);
    if let Some(path) = &args.resume {
        visit.save(path).map_err(|error| usage(error.to_string()))?;
    }
    let finished = carry(&task, &visit, args.resume.as_deref(), &output)?;
    show(&finished, &output, to_stdout)
}

/// The contact of all parts of the visit: one is enough, and all visit the same cluster.
fn shared_contact(task: &mut Task) -> Result<Contact> {
    let (contact, cluster) = share(|| Ok((contact(task)?, task.form.cluster.clone())))?;
    task.form.cluster = cluster;
    Ok(contact)
}

/// The record of a visit that never began.
fn not_begun(task: &Task, output: &Output, kind: VerdictKind, why: String) -> Result<Finished> {
    let result = VisitResult { trouble: Some(why.clone()), ..VisitResult::default() };
    let results = JobResults::of(result);
    without_run(&task.scenario, output, Verdict::new(kind, vec![why]), results)
}

/// Prints the result; to stderr if the documents go to stdout.
fn show(finished: &Finished, output: &Output, documents_on_stdout: bool) -> Result<u8> {
    if !write_results(output, finished, &[FORMS])? {
        let text = page(finished, output, &FORMS);
        match documents_on_stdout {
            true if output.quiet => {}
            true => note(text.trim_end()),
            false => print_out(&text)?,
        }
    }
    Ok(code(finished))
}

/// A flag that is set after this time, or when the user stops the run.
fn alarm(after: Span) -> Result<(Arc<AtomicBool>, std::thread::JoinHandle<()>)> {
    let rings = Arc::new(AtomicBool::new(false));
    let own = rings.clone();
    let until_ns = now_ns() + after.ns;
    let watch = std::thread::Builder::new().name("alarm".to_owned()).spawn(move || {
        while now_ns() < until_ns
            && !plimsoll_job::signals::is_stopped()
            && !own.load(Ordering::Relaxed)
        {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        own.store(true, Ordering::Relaxed);
    })?;
    Ok((rings, watch))
}
