//! `plimsoll run quickstart`: everything once, on real parts, for someone who has just arrived.

use anyhow::{Context, Result, bail};
use plimsoll_core::clock::now_ns;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{Arrivals, LoadModel, Think};
use plimsoll_core::units::Span;
use plimsoll_engine::target::Target;
use plimsoll_job::embedded::Embedded;
use plimsoll_job::execute::execute;
use plimsoll_job::exit;
use plimsoll_job::keeping::Finished;
use plimsoll_job::output::{Output, note, print_out, put_result, style, with_files};
use plimsoll_job::prepare::{Prepared, plan_of, prepare};
use plimsoll_job::progress::{Far, Part, Progress};
use plimsoll_job::results::page;
use plimsoll_job::signals;
use plimsoll_record::JobResults;
use plimsoll_report::forms::Forms;
use plimsoll_report::number::{count, significant};
use plimsoll_report::text::figures;
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::{Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use plimsoll_workloads::authority::Authority;
use plimsoll_workloads::classes::Classes;
use plimsoll_workloads::corpus::{Corpus, CorpusOptions, Source};
use plimsoll_workloads::http::{Cursor, Form, HttpSessions, Judge, Rendered, Troubles, Way};
use plimsoll_workloads::query_file::Passes;
use plimsoll_workloads::query_mix::{Expect, MixOptions, Query, Rendering, make};
use plimsoll_workloads::render::{HttpForm, RenderedSet, RequestParts};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use std::sync::Arc;

/// Queries of each class.
const EACH: u64 = 100;
/// Clients of the closed run, and of feeding.
const CLIENTS: u32 = 8;
/// Connections that feed.
const FEEDERS: u32 = 32;
/// Longest time that written documents may take to be found.
const SEARCHABLE_WITHIN: Span = Span::seconds(20);
/// Longest time that the index may take to come to rest after that.
const AT_REST_WITHIN: Span = Span::seconds(10);
/// Share of the closed rate that the open run offers.
const OPEN_SHARE: f64 = 0.5;

/// Runs the job.
///
/// # Errors
/// When a part does not work: the server does not start, a document is refused, a query is answered wrongly.
pub fn run(output: &Output) -> Result<u8> {
    // From here on Ctrl-C ends the whole story in order, not only the current run.
    signals::stop_flag()?;
    match story(output) {
        _ if signals::is_stopped() => {
            note("plimsoll: the quickstart was stopped before its end");
            Ok(exit::NOT_VALID)
        }
        told => told,
    }
}

fn story(output: &Output) -> Result<u8> {
    let quiet = Output { quiet: true, ..Output::default() };
    print_out("plimsoll quickstart: a real search server, a real text, a real query mix\n\n")?;
    let corpus = Corpus::open(&Source::Bundled, &CorpusOptions::default())?;
    let cores = Cores::divided();
    let server = Server::start()?;
    cores.take_own();
    print_out(&format!(
        "  server   plimsoll serve search, a process of its own, on {}\n",
        server.url
    ))?;
    feed(&corpus, &server, output)?;
    let mix = make(&corpus, &MixOptions::even(1, EACH))?;
    check(&mix, &server, &quiet)?;
    let queries = QueryFile::write(&mix)?;
    let closed = Scenario {
        job: "quickstart-closed".to_owned(),
        load: LoadModel::Closed { clients: CLIENTS, think: Think::None, cycle_ns: 0 },
        duration: Some(Span::seconds(8)),
        warmup: Span::seconds(2),
        ..scenario(&server, &queries)
    };
    let first = measure(&closed, output)?;
    let rate = (first.record.rate.ok_per_s * OPEN_SHARE).max(1.0).round();
    tell(
        &format!("1. As fast as it can: {CLIENTS} clients that each wait for their answer, 8 s"),
        &first,
        output,
    )?;
    if signals::is_stopped() {
        return Ok(exit::NOT_VALID);
    }
    let open = Scenario {
        job: "quickstart-open".to_owned(),
        load: LoadModel::Open { rate_per_s: rate, arrivals: Arrivals::Poisson },
        duration: Some(Span::seconds(15)),
        warmup: Span::seconds(1),
        ..scenario(&server, &queries)
    };
    let second = measure(&open, output)?;
    tell(
        &format!(
            "2. At half of that: {} requests/s that arrive like independent users, 15 s",
            count(rate as u64)
        ),
        &second,
        output,
    )?;
    put_page(&second, output)?;
    print_out(NEXT)?;
    let worst = [&first, &second].map(|finished| exit::of_record(&finished.record));
    // A generator that shares two cores with its target is often the limit; here that is no failure.
    let code = if worst.contains(&exit::TARGET_FAILED) { exit::TARGET_FAILED } else { exit::FINE };
    Ok(with_files(code))
}

/// Writes the page of the last run, into the folder of its record unless a flag names a file, and says where it is.
fn put_page(finished: &Finished, output: &Output) -> Result<()> {
    let own = finished.folder.as_ref().map(|folder| folder.join(PAGE));
    let Some(path) = output.html.clone().or(own) else { return Ok(()) };
    put_result("--html", &path, &page(finished.into(), &[Forms::LOAD])?);
    print_out(&format!("Page       {}\n", path.display()))
}

/// Name of the page in the folder of a record.
const PAGE: &str = "report.html";

const NEXT: &str = "
Next steps
  plimsoll report                 the page of the last run; --format html, json or csv
  plimsoll load URL --rate 500    your own service
  plimsoll corpus queries         the query mix, to look at
  plimsoll --help                 everything else
";

/// The processors, divided between target and generator so that neither takes CPU time from the other.
struct Cores {
    own: Option<CpuSet>,
}

impl Cores {
    /// Leaves this process, for now, all processors but the last: what it starts inherits them. A machine with
    /// a single one cannot be divided.
    fn divided() -> Self {
        let Ok(all) = sched_getaffinity(None) else { return Self { own: None } };
        let Some(last) = (0..CpuSet::MAX_CPU).rev().find(|&cpu| all.is_set(cpu)) else {
            return Self { own: None };
        };
        let (mut targets, mut own) = (all, CpuSet::new());
        targets.unset(last);
        own.set(last);
        if targets.count() == 0 || sched_setaffinity(None, &targets).is_err() {
            return Self { own: None };
        }
        Self { own: Some(own) }
    }

    /// Moves this process to the processor that is its own.
    fn take_own(&self) {
        if let Some(own) = &self.own {
            // Sharing processors with the target is worse, but no reason to stop.
            let _ = sched_setaffinity(None, own);
        }
    }
}

/// The search server.
struct Server {
    _process: Embedded,
    url: String,
    host: String,
    port: u16,
}

impl Server {
    fn start() -> Result<Self> {
        let process = Embedded::start(&["search", "--port", "0"].map(str::to_owned), &[])?;
        let (host, port) = process.host_and_port()?;
        Ok(Self { url: process.url.clone(), host, port, _process: process })
    }
}

fn scenario(server: &Server, queries: &QueryFile) -> Scenario {
    Scenario {
        targets: vec![server.url.clone()],
        queries: Some(queries.path.to_path_buf()),
        checks: vec!["vespa".to_owned()],
        timeout: Span::seconds(5),
        ..Scenario::default()
    }
}

fn measure(scenario: &Scenario, output: &Output) -> Result<Finished> {
    let prepared = prepare(scenario)?;
    execute(scenario, prepared, output, &mut |_| {}, &|_| JobResults::default())
}

fn tell(title: &str, finished: &Finished, output: &Output) -> Result<()> {
    let page = figures(&finished.record, finished.folder.as_deref(), &style(output.verbose));
    print_out(&format!("\n{title}\n\n{page}"))
}

/// The query mix as a file, which a newcomer may look at and use again.
struct QueryFile {
    path: tempfile::TempPath,
}

impl QueryFile {
    fn write(mix: &[Query]) -> Result<Self> {
        // Under a name that another user cannot guess, and lead elsewhere by a link.
        let file =
            tempfile::Builder::new().prefix("plimsoll-quickstart-").suffix(".ndjson").tempfile()?;
        let mut out = std::io::BufWriter::new(&file);
        Rendering::default().write_ndjson(mix, &mut out)?;
        std::io::Write::flush(&mut out)?;
        drop(out);
        Ok(Self { path: file.into_temp_path() })
    }
}

fn form(server: &Server) -> Result<HttpForm> {
    let authority = Authority { host: server.host.clone(), port: server.port, tls: false };
    HttpForm::new(&authority, &[], false).map_err(anyhow::Error::msg)
}

/// A run over requests that are in memory, each asked once.
fn once(
    server: &Server,
    sessions: Box<dyn Sessions<Http> + Send>,
    requests: u64,
    clients: u32,
) -> (Scenario, Prepared) {
    let scenario = Scenario {
        job: "quickstart-prepare".to_owned(),
        targets: vec![server.url.clone()],
        load: LoadModel::Closed { clients, think: Think::None, cycle_ns: 0 },
        duration: Some(Span::seconds(300)),
        requests: Some(requests),
        ..Scenario::default()
    };
    let targets = vec![Target::resolve(&server.host, server.port)];
    let prepared = Prepared {
        plan: plan_of(&scenario, targets, None, 1),
        sessions: vec![sessions],
        class_names: vec!["all".to_owned()],
        distinct_requests: Some(requests),
        troubles: Troubles::default(),
    };
    (scenario, prepared)
}

fn cursor(set: RenderedSet) -> Cursor {
    let way = Way::new(0..set.len(), 0, 1, Passes::Count(1));
    Cursor::Rendered(Arc::new(Rendered { per_target: vec![set] }), way)
}

fn plain_form(form: HttpForm) -> Arc<Vec<Form>> {
    Arc::new(vec![Form::Own { form, method: "GET".to_owned(), body: None }])
}

/// Feeds the text through the server's document API, with a progress bar, and waits until all can be found.
fn feed(corpus: &Corpus, server: &Server, output: &Output) -> Result<()> {
    let form = form(server)?;
    let mut set = RenderedSet::default();
    let (mut fields, mut documents, mut bytes) = (Vec::new(), 0u64, 0usize);
    for document in corpus.documents()? {
        let document = document?;
        fields.clear();
        document.to_fields_json(&mut fields);
        documents += 1;
        bytes += fields.len();
        let target = format!("/document/v1/quickstart/doc/docid/{}", document.id);
        set.push(0, documents, |out| {
            form.render(
                &RequestParts {
                    method: "POST",
                    target: target.as_bytes(),
                    headers: &[],
                    body: Some(&fields),
                },
                out,
            );
        });
    }
    let sessions = HttpSessions::new(
        vec![cursor(set)],
        plain_form(form),
        Classes::default(),
        Judge::default(),
    );
    let progress = Progress::steady(output.voice());
    let mut done = 0;
    let (scenario, prepared) = once(server, Box::new(sessions), documents, FEEDERS);
    let quiet = Output { quiet: true, ..Output::default() };
    let fed = execute(
        &scenario,
        prepared,
        &quiet,
        &mut |second| {
            let now = second.ledger.finished();
            done += now;
            let rate = significant(now as f64 / second.seconds().max(1e-9));
            let parts = vec![
                Part::first(format!("feeding: {done} of {documents} documents")),
                Part::new(format!("{rate}/s"), 1),
            ];
            progress.show(Far::Share(done as f64 / documents.max(1) as f64), parts);
        },
        &|_| JobResults::default(),
    )?;
    progress.done();
    let ledger = fed.record.ledger;
    if ledger.ok != documents {
        bail!(
            "{} of {documents} documents were refused by the search server",
            documents - ledger.ok
        );
    }
    let waited = until_searchable(documents, server)?;
    print_out(&format!(
        "  corpus   {}: {} documents, {:.1} MB, fed in {:.1} s ({}/s), all found {:.1} s later\n",
        corpus.name(),
        count(documents),
        bytes as f64 / 1e6,
        fed.record.duration_s,
        count((documents as f64 / fed.record.duration_s.max(1e-9)).round() as u64),
        waited.as_seconds(),
    ))?;
    Ok(())
}

/// Waits until every document can be found, and says how long that took. Then waits for the index to come to
/// rest, since a measurement should not begin in the middle of its housekeeping.
fn until_searchable(documents: u64, server: &Server) -> Result<Span> {
    let count = format!("/root/fields/totalCount={documents}");
    let all = "/search/?yql=select%20*%20from%20doc%20where%20true";
    let found = until(server, all, &count, SEARCHABLE_WITHIN)?.with_context(|| {
        format!("not all documents were found {SEARCHABLE_WITHIN} after feeding")
    })?;
    // An index that is not at rest in time is no failure: the figures are then a little less even.
    until(server, "/metrics", "body~plimsoll_search_segments 1", AT_REST_WITHIN)?;
    Ok(found)
}

/// Asks for `path` until the reply passes `check`, and says how long that took; `None` when time ran out.
fn until(server: &Server, path: &str, check: &str, within: Span) -> Result<Option<Span>> {
    let start_ns = now_ns();
    let quiet = Output { quiet: true, ..Output::default() };
    let scenario = Scenario {
        job: "quickstart-wait".to_owned(),
        targets: vec![format!("{}{path}", server.url)],
        checks: vec![check.to_owned()],
        load: LoadModel::Closed { clients: 1, think: Think::None, cycle_ns: 0 },
        requests: Some(1),
        ..Scenario::default()
    };
    loop {
        let asked = measure(&scenario, &quiet)?;
        let waited = Span { ns: now_ns() - start_ns };
        if asked.record.ledger.ok == 1 {
            return Ok(Some(waited));
        }
        if waited > within || signals::is_stopped() {
            return Ok(None);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Asks every query once and holds the answers against what the text says.
fn check(mix: &[Query], server: &Server, quiet: &Output) -> Result<()> {
    let form = form(server)?;
    let rendering = Rendering::default();
    let mut set = RenderedSet::default();
    for (line, query) in (1u64..).zip(mix) {
        let target = rendering.target(query);
        set.push(0, line, |out| {
            let parts =
                RequestParts { method: "GET", target: target.as_bytes(), ..Default::default() };
            form.render(&parts, out);
        });
    }
    let judge = Judge { hits: Some(Default::default()), ..Judge::default() };
    let inner = HttpSessions::new(vec![cursor(set)], plain_form(form), Classes::default(), judge);
    let expected = mix.iter().map(|query| query.expect).collect();
    let sessions = Box::new(Expecting { inner, expected });
    let (scenario, prepared) = once(server, sessions, mix.len() as u64, CLIENTS);
    let asked = execute(&scenario, prepared, quiet, &mut |_| {}, &|_| JobResults::default())?;
    let ledger = asked.record.ledger;
    if ledger.ok == mix.len() as u64 {
        return print_out(&format!(
            "  checked  {} queries of 6 classes: every answer has the hits that the text has\n",
            mix.len()
        ));
    }
    for slow in asked.record.slowest.iter().filter(|slow| slow.outcome != "ok").take(3) {
        note(&format!("wrong: {}", slow.request));
    }
    bail!("{} of {} queries were answered wrongly", mix.len() as u64 - ledger.ok, mix.len())
}

/// Sessions that know how many hits each request must have.
struct Expecting {
    inner: HttpSessions,
    expected: Vec<Expect>,
}

impl Sessions<Http> for Expecting {
    fn next(&mut self, client: u32, target: u32, request: &mut Request) -> Turn {
        self.inner.next(client, target, request)
    }

    fn judge(
        &mut self,
        client: u32,
        what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let mut judgement = self.inner.judge(client, what, reply, times);
        let expected = (what.item as usize).checked_sub(1).and_then(|at| self.expected.get(at));
        let as_expected = match (expected, judgement.hits) {
            (Some(Expect::AtLeast(least)), Some(hits)) => hits >= *least,
            (Some(Expect::None), Some(hits)) => hits == 0,
            _ => false,
        };
        if judgement.outcome == Outcome::Ok && !as_expected {
            judgement.outcome = Outcome::Failed(Failure::Check);
        }
        judgement
    }

    fn lost(&mut self, client: u32, what: &Submission, failure: Failure, times: Times) {
        self.inner.lost(client, what, failure, times);
    }

    fn finish(self: Box<Self>, now_ns: u64) {
        Box::new(self.inner).finish(now_ns);
    }

    fn describe(&self, what: &Submission, request: &Request) -> String {
        self.inner.describe(what, request)
    }

    fn explain(&self, what: &Submission, reply: &Reply<'_>) -> (String, String) {
        self.inner.explain(what, reply)
    }
}
