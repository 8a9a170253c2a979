//! `plimsoll visit`: a whole corpus, in parallel slices, counted to the last document.

mod cells;
mod finish;
mod shown;

use super::common::{OutputFlags, TlsFlags};
use crate::execute::{Output, code, note, print_out, style, write_json};
use crate::keeping::{About, Finished, JobEnd, carry_out};
use crate::prepare::{plan_of, tls_of};
use crate::url::Url;
use crate::usage::usage;
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::clock::{now_ns, parse_utc};
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{CLIENTS_MAX, LoadModel, Think};
use plimsoll_core::units::Span;
use plimsoll_engine::run::run as run_engine;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::target::Target;
use plimsoll_wire::Sessions;
use plimsoll_wire::http::Http;
use plimsoll_workloads::header::parse_header;
use plimsoll_workloads::http::Troubles;
use plimsoll_workloads::render::HttpForm;
use plimsoll_workloads::visit::{
    Destination, DocumentFormat, Packing, Visit, VisitForm, VisitSessions,
};
use serde_json::Map;
use shown::VisitProgress;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const EXAMPLES: &str = "\
Examples:
  Everything, over two containers, into one packed file:
    plimsoll visit http://127.0.0.1:8080 http://127.0.0.1:8081 --cluster music --out music.ndjson.zst
  A part of it, so that `vespa feed` can read it back, and that goes on after an interruption:
    plimsoll visit http://127.0.0.1:8080 --cluster music --selection 'music.year > 2000' \\
      --format vespa-feed --out music.json --resume music.state
  What slices, streaming and concurrency are worth here:
    plimsoll visit http://127.0.0.1:8080 --cluster music --measure

Exit codes: 0 complete, 3 something is missing (it is named), 4 the target failed, 64 wrong usage.";

/// The path of a visit of everything.
const ROOT: &str = "/document/v1/";
/// Documents after which a streamed reply may end, on servers that heed it: so much may come again after a failure.
const WANTED_STREAMED: u32 = 100_000;
/// Documents of a chunked reply.
const WANTED_CHUNKED: u32 = 1024;
/// How much longer than the server a request waits.
const PATIENCE: Span = Span::seconds(15);
/// Between two savings of the state of a visit that can be resumed, ns.
const SAVE_EVERY_NS: u64 = 1_000_000_000;

/// What the documents are wanted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatFlag {
    /// {"id":...,"fields":...} a line, as `vespa visit` prints them.
    Documents,
    /// {"put":...,"fields":...} a line, as `vespa feed` reads them.
    VespaFeed,
}

/// How files are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompressFlag {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// Read a whole corpus from Vespa or `plimsoll serve search`: all slices at once, over all containers.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct VisitArgs {
    /// http:// or https:// addresses of the containers; a path such as /document/v1/ns/type/docid visits below it.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// Content cluster; Vespa wants its name where more than one document type or cluster is there.
    #[arg(long, value_name = "NAME", help_heading = "What")]
    cluster: Option<String>,
    /// Which documents, in Vespa's document selection language.
    #[arg(long, value_name = "EXPRESSION", help_heading = "What")]
    selection: Option<String>,
    /// Which fields: `type:field,field`, `[all]`, `[document]` or `[id]`.
    #[arg(long, value_name = "FIELDS", help_heading = "What")]
    field_set: Option<String>,
    /// Only what was written at this time or later: seconds since 1970, or 2026-11-22T10:00:00Z.
    #[arg(long, value_name = "TIME", help_heading = "What")]
    from: Option<String>,
    /// Only what was written before this time.
    #[arg(long, value_name = "TIME", help_heading = "What")]
    to: Option<String>,
    /// Also the ids of removed documents.
    #[arg(long, help_heading = "What")]
    include_removes: bool,
    /// Bucket space, default or global; both, one after the other, unless the path names a document type.
    #[arg(long, value_name = "SPACE", help_heading = "What")]
    bucket_space: Vec<String>,

    /// Slices, each a chain of requests of its own; auto measures a few numbers and takes the best.
    #[arg(long, value_name = "N|auto", default_value = "auto", help_heading = "How")]
    slices: String,
    /// Ask for one chunk after the other instead of a stream.
    #[arg(long, help_heading = "How")]
    chunked: bool,
    /// Buckets that the server visits at once for each request; by default its own choice.
    #[arg(long, value_name = "N", help_heading = "How")]
    concurrency: Option<u32>,
    /// Documents after which a reply ends; by default 1024 when chunked, and 100,000 of those that stream.
    #[arg(long, value_name = "N", help_heading = "How")]
    wanted: Option<u32>,
    /// How long the server may work on one reply.
    #[arg(long, value_name = "TIME", default_value = "20s", help_heading = "How")]
    request_timeout: Span,
    /// Failures in a row after which a slice is given up; pauses between them grow from 0.2 s to 10 s.
    #[arg(long, value_name = "N", default_value_t = 15, help_heading = "How")]
    retries: u32,
    /// Threads; each takes its share of the slices.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "How")]
    threads: u32,
    /// A header of every request, 'Name: value'; may be repeated.
    #[arg(long, value_name = "LINE", help_heading = "How")]
    header: Vec<String>,

    /// File of the documents; - is stdout. Packed if it ends in .gz or .zst.
    #[arg(long, value_name = "FILE", default_value = "-", help_heading = "Documents")]
    out: PathBuf,
    /// Folder with a file for each slice, instead of --out.
    #[arg(long, value_name = "DIR", conflicts_with = "out", help_heading = "Documents")]
    out_dir: Option<PathBuf>,
    /// How files are packed; by default as their name says.
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Documents")]
    compress: Option<CompressFlag>,
    /// What a line is.
    #[arg(long, value_enum, default_value = "documents", help_heading = "Documents")]
    format: FormatFlag,
    /// File that remembers how far the visit has come; when it is there, the visit goes on from it.
    #[arg(long, value_name = "FILE", help_heading = "Documents")]
    resume: Option<PathBuf>,
    /// Write no documents; measure slices x streaming x concurrency instead, some seconds each.
    #[arg(long, conflicts_with_all = ["out", "out_dir", "resume"], help_heading = "Documents")]
    measure: bool,
    /// How long each way is measured.
    #[arg(long, value_name = "TIME", default_value = "3s", help_heading = "Documents")]
    measure_for: Span,

    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// Everything that is needed to run a visit in whatever way.
struct Task {
    scenario: Scenario,
    targets: Vec<Target>,
    urls: Vec<Url>,
    /// As it is asked for, before the number of slices is known.
    form: VisitForm,
    headers: Vec<(String, String)>,
    failures_max: u32,
}

impl VisitArgs {
    fn task(&self) -> Result<Task> {
        let urls = self.urls.iter().map(|url| Url::parse(url)).collect::<Result<Vec<_>>>()?;
        let path = path_of(&urls)?;
        let headers = self
            .header
            .iter()
            .map(|line| parse_header(line).map_err(|e| usage(format!("--header: {e}"))))
            .collect::<Result<Vec<_>>>()?;
        if self.threads == 0 || self.threads > 64 {
            return Err(usage("--threads: use a number from 1 to 64"));
        }
        let timeout_s = self.request_timeout.ns.div_ceil(1_000_000_000);
        if timeout_s == 0 || timeout_s > 86_400 {
            return Err(usage("--request-timeout: use a time from 1s to 24h"));
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
            stream: !self.chunked,
            concurrency: self.concurrency,
            wanted: Some(self.wanted_documents(!self.chunked)),
            timeout_s: timeout_s as u32,
        };
        let scenario = Scenario {
            job: "visit".to_owned(),
            targets: self.urls.clone(),
            headers: self.header.clone(),
            // A visit ends when it is through; every wait in it has a limit of its own.
            duration: Some(Span::seconds(365 * 86_400)),
            threads: self.threads,
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
            // The document type tells where it is.
            ([], _) => vec![String::new()],
            (named, _) => named.to_vec(),
        })
    }

    /// The number of slices, if it was given.
    fn slices(&self) -> Result<Option<u32>> {
        if self.slices == "auto" {
            return Ok(None);
        }
        let number = self.slices.parse().ok().filter(|n| (1..=CLIENTS_MAX.min(4096)).contains(n));
        number
            .map(Some)
            .ok_or_else(|| usage("--slices: write auto, or a number from 1 to 4096".to_owned()))
    }

    fn destination(&self) -> (Destination, Packing) {
        let by_flag = self.compress.map(|how| match how {
            CompressFlag::None => Packing::Plain,
            CompressFlag::Gzip => Packing::Gzip,
            CompressFlag::Zstd => Packing::Zstd,
        });
        match &self.out_dir {
            Some(folder) => {
                (Destination::Folder(folder.clone()), by_flag.unwrap_or(Packing::Plain))
            }
            None if self.out == Path::new("-") => (Destination::Stdout, Packing::Plain),
            None => {
                let packing = by_flag.unwrap_or_else(|| Packing::of_name(&self.out));
                (Destination::File(self.out.clone()), packing)
            }
        }
    }

    /// Refuses what cannot be had together.
    fn check(&self) -> Result<()> {
        let (destination, _) = self.destination();
        let to_stdout = destination == Destination::Stdout && !self.measure;
        if to_stdout && self.output.json.as_deref() == Some(Path::new("-")) {
            return Err(usage("the documents and --json - both want stdout; give --out FILE"));
        }
        if to_stdout && self.resume.is_some() {
            return Err(usage("--resume: what went to stdout cannot be gone on with; give --out"));
        }
        if to_stdout && self.compress.is_some_and(|how| how != CompressFlag::None) {
            return Err(usage("--compress packs files; give --out, or pipe stdout into a packer"));
        }
        Ok(())
    }
}

/// The one path that all addresses name.
fn path_of(urls: &[Url]) -> Result<String> {
    let path = |url: &Url| match url.target.trim_end_matches('/') {
        "" | "/document/v1" => ROOT.to_owned(),
        below => format!("{below}/"),
    };
    let first = urls.first().map(path).unwrap_or_default();
    if urls.iter().any(|url| path(url) != first) {
        return Err(usage("the addresses name different paths; visit them one after the other"));
    }
    if !first.starts_with(ROOT) || first.contains('?') {
        return Err(usage(format!(
            "'{first}' is no collection; write no path, or /document/v1/NAMESPACE/TYPE/docid"
        )));
    }
    Ok(first)
}

/// Whether Vespa looks only into the buckets that the visit names, and then does not cut it into slices.
fn pins_buckets(form: &VisitForm) -> bool {
    let selection = form.selection.as_deref().unwrap_or_default();
    let words = ["id.user", "id.group", "id =", "id=="];
    let located =
        form.path.split('/').nth(5).is_some_and(|part| part == "number" || part == "group");
    located || words.iter().any(|word| selection.to_ascii_lowercase().contains(word))
}

/// Reads seconds since 1970 or a UTC time, as us.
fn time_us(flag: &str, text: &str) -> Result<u64> {
    let seconds = text.parse::<f64>().ok().filter(|s| *s >= 0.0 && *s < 1e11);
    let us = seconds.map(|s| (s * 1e6) as u64).or_else(|| parse_utc(text));
    us.ok_or_else(|| {
        usage(format!("{flag} '{text}': write seconds since 1970, or 2026-11-22T10:00:00Z"))
    })
}

/// Connections for so many slices and containers, opened as they are needed: a slice whose container dies finds one
/// to any other that lives, and all slices do when a single one is left. Less than that beyond 512, since each may
/// take a descriptor.
fn connections(slices: u32, containers: usize) -> u32 {
    let containers = u32::try_from(containers).unwrap_or(u32::MAX).max(1);
    let enough = (2 * slices).max(containers).max(512);
    slices.saturating_mul(containers).min(enough)
}

impl Task {
    /// The engine's plan for so many slices, and a form for each target.
    fn plan(&self, form: &VisitForm) -> Result<(ShardPlan, Arc<Vec<HttpForm>>)> {
        let mut scenario = self.scenario.clone();
        let slices = form.slices;
        scenario.load = LoadModel::Closed { clients: slices, think: Think::None, cycle_ns: 0 };
        scenario.connections = Some(connections(slices, self.targets.len()));
        scenario.threads = scenario.threads.min(slices);
        let tls = tls_of(&scenario, &self.urls)?;
        let mut plan = plan_of(&scenario, self.targets.clone(), tls, 1);
        plan.preconnect = false;
        let mut headers = form.headers();
        headers.extend(self.headers.iter().cloned());
        let forms = self
            .urls
            .iter()
            .map(|url| HttpForm::new(&url.authority, &headers, false).map_err(usage))
            .collect::<Result<Vec<_>>>()?;
        Ok((plan, Arc::new(forms)))
    }

    fn sessions(
        &self,
        visit: &Arc<Visit>,
        forms: &Arc<Vec<HttpForm>>,
    ) -> Vec<Box<dyn Sessions<Http> + Send>> {
        let shards = self.scenario.threads.min(visit.form().slices);
        (0..shards)
            .map(|shard| {
                let own = VisitSessions::new(visit.clone(), forms.clone(), shard, shards);
                Box::new(own) as Box<dyn Sessions<Http> + Send>
            })
            .collect()
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or files that cannot be written.
pub fn run(args: &VisitArgs) -> Result<u8> {
    args.check()?;
    let mut task = args.task()?;
    let output = args.output.output();
    output.check()?;
    if args.measure {
        return cells::measure(&mut task, args, &output);
    }
    let resumed = args.resume.as_deref().filter(|path| path.exists());
    task.form.slices = match args.slices()? {
        Some(slices) if slices > 1 && pins_buckets(&task.form) => {
            return Err(usage(
                "--slices: this selection names its buckets, and Vespa gives every slice all of it \
                 then; use --slices 1",
            ));
        }
        Some(slices) => slices,
        None if pins_buckets(&task.form) => 1,
        None => match resumed {
            Some(path) => Visit::saved_slices(path).map_err(|e| usage(e.to_string()))?,
            None => cells::best_slices(&task, output.quiet)?,
        },
    };
    let (destination, packing) = args.destination();
    let format = match args.format {
        FormatFlag::Documents => DocumentFormat::Documents,
        FormatFlag::VespaFeed => DocumentFormat::VespaFeed,
    };
    let (form, failures_max) = (task.form.clone(), task.failures_max);
    let visit = match resumed {
        Some(path) => Visit::resume(path, form, destination, format, packing, failures_max),
        None => Visit::begin(form, destination, format, packing, failures_max),
    };
    let visit = Arc::new(visit.map_err(|error| usage(error.to_string()))?);
    if let Some(path) = &args.resume {
        visit.save(path).map_err(|error| usage(error.to_string()))?;
    }
    let finished = carry(&task, &visit, args.resume.as_deref(), &output)?;
    show(&finished, &output, args.destination().0 == Destination::Stdout)
}

/// Runs the visit and keeps its record.
fn carry(
    task: &Task,
    visit: &Arc<Visit>,
    state: Option<&Path>,
    output: &Output,
) -> Result<Finished> {
    let (plan, forms) = task.plan(visit.form())?;
    let about = About {
        plan: &plan,
        class_names: vec!["visit".to_owned()],
        distinct_requests: None,
        troubles: Troubles::default(),
    };
    let before = visit.totals();
    let progress = VisitProgress::new(visit.clone(), output.quiet);
    let sessions = task.sessions(visit, &forms);
    let finished = carry_out(&task.scenario, &about, output, |keeping| {
        let saved_ns = AtomicU64::new(now_ns());
        let mut second = |_: &_| {
            progress.show();
            let Some(path) = state else { return };
            if now_ns() - saved_ns.load(Ordering::Relaxed) >= SAVE_EVERY_NS {
                saved_ns.store(now_ns(), Ordering::Relaxed);
                // The next second tries again; at the end an error is told.
                let _ = visit.save(path);
            }
        };
        let started_ns = now_ns();
        let end =
            run_engine(&plan, Http::default, sessions, keeping.sink, &mut second, &keeping.stop)?;
        let seconds = (now_ns() - started_ns) as f64 / 1e9;
        progress.done();
        let mut warnings = Vec::new();
        let kept = match state {
            Some(path) => visit.save(path).map_err(|error| error.to_string()),
            None => visit.flush().map_err(|error| error.to_string()),
        };
        if let Err(error) = kept {
            warnings.push(format!("the documents or the state cannot be written: {error}"));
        }
        let result = finish::result(visit, &before, seconds, end.cpu_s);
        let verdict = finish::verdict(&result, &end, !warnings.is_empty());
        let results = Map::from_iter([("visit".to_owned(), serde_json::to_value(&result)?)]);
        Ok(JobEnd { end, results, verdict: Some(verdict), warnings })
    });
    progress.done();
    finished
}

/// Prints the result; on stderr where stdout has the documents.
fn show(finished: &Finished, output: &Output, documents_on_stdout: bool) -> Result<u8> {
    if !write_json(output, &finished.record)? {
        let folder = finished.folder.as_deref();
        let text = plimsoll_report::text::render(&finished.record, folder, &style());
        match documents_on_stdout {
            true if output.quiet => {}
            true => note(text.trim_end()),
            false => print_out(&text)?,
        }
    }
    Ok(code(finished))
}

/// A flag that is set after so long, or when the user wants the end.
fn alarm(after: Span) -> Result<(Arc<AtomicBool>, std::thread::JoinHandle<()>)> {
    let rings = Arc::new(AtomicBool::new(false));
    let own = rings.clone();
    let until_ns = now_ns() + after.ns;
    let watch = std::thread::Builder::new().name("alarm".to_owned()).spawn(move || {
        while now_ns() < until_ns && !crate::signals::is_stopped() && !own.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        own.store(true, Ordering::Relaxed);
    })?;
    Ok((rings, watch))
}
