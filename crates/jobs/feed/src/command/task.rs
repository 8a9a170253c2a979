//! From what a feed is asked to do to something that can run.

use super::course::Course;
use super::probe::speaks_http2;
use crate::{
    FailedOperations, Feed, FeedForm, FeedSessions, InflightChoice, Input, PACKED_ABOVE_BYTES,
    Packed, Parameters, Reader, Settings, Source, Tally,
};
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_core::feed::FeedScenario;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{CLIENTS_MAX, Limits, LoadModel, Think};
use plimsoll_core::system_error::with_advice;
use plimsoll_core::units::Span;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::target::Target;
use plimsoll_job::headers::read_headers;
use plimsoll_job::keeping::Started;
use plimsoll_job::prepare::{plan_of, tls_of};
use plimsoll_job::together::{is_coordinator, parts_in_all, share};
use plimsoll_job::url::Url;
use plimsoll_job::usage::usage;
use plimsoll_record::feed::FeedMoment;
use plimsoll_wire::Sessions;
use plimsoll_wire::http::Http;
use plimsoll_wire::http2::{Http2, Scheme};
use plimsoll_workloads::render::HttpForm;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Connections of HTTP/2; as many as `vespa feed` has.
const CONNECTIONS_HTTP2: u32 = 8;
/// Connections of HTTP/1.1 at most, unless they were named.
const CONNECTIONS_HTTP1_MAX: u32 = 256;
/// Requests that a connection of HTTP/2 carries, if the target takes as many.
const STREAMS_MAX: u32 = 512;
/// Longest time that an operation may take unless it was said; the server's own limit.
const TIMEOUT: Span = Span::seconds(180);
/// Longest time that a feed may last: every wait in it has a limit of its own.
const FOR_EVER: Span = Span::seconds(365 * 86_400);
/// Interval at which the watch looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A feed that can run.
pub struct Task {
    /// The scenario as the record keeps it.
    pub scenario: Scenario,
    /// Plan of the engine.
    pub plan: ShardPlan,
    /// The version of HTTP.
    pub http: Http,
    /// State shared by all worker threads.
    pub feed: Arc<Feed>,
    forms: Arc<Vec<FeedForm>>,
    sources: Vec<Source>,
    skip: u64,
    deadline_ns: Option<u64>,
}

impl Task {
    /// Opens the files, looks for the target, and finds out which version of HTTP it speaks. `may_end_early`: someone
    /// may end it before everything is fed, and that is no failure.
    ///
    /// # Errors
    /// One line about the first thing that is wrong.
    pub fn new(asked: &FeedScenario, may_end_early: bool) -> Result<Self> {
        check(asked)?;
        let urls = asked.targets.iter().map(|url| Url::parse(url)).collect::<Result<Vec<_>>>()?;
        if let Some(url) = urls.iter().find(|url| url.target != "/") {
            return Err(usage(format!(
                "'{}': operations have their own paths; write scheme, host and port only",
                url.target
            )));
        }
        let sources =
            asked.files.iter().map(|path| Source::open(path)).collect::<Result<Vec<_>, _>>()?;
        let mut scenario = scenario_of(asked);
        let targets: Vec<Target> =
            urls.iter().map(|u| Target::resolve(&u.authority.host, u.authority.port)).collect();
        scenario.http2 = match asked.http.as_str() {
            "1.1" => false,
            "2" => true,
            // All parts send the same requests.
            _ => share(|| speaks_http2(&scenario, &urls, &targets))?,
        };
        let limit = inflight_limit(asked, scenario.http2);
        let connections = match (asked.connections, scenario.http2) {
            (Some(own), _) => own,
            (None, true) => CONNECTIONS_HTTP2.max(urls.len() as u32),
            (None, false) => limit,
        };
        let least = limit.min(connections);
        let parts = parts_in_all(asked.slice);
        if least < parts {
            return Err(usage(format!(
                "{least} connections or operations in flight cannot be shared out to {parts} parts; use fewer parts, or \
                 more of them"
            )));
        }
        let threads = asked.threads.min(least / parts);
        // A client more than there are places, in each part: otherwise each would keep to a connection of its own, and
        // share the fate of its container.
        let clients = if limit == connections { limit + parts } else { limit };
        scenario.load = LoadModel::Closed { clients, think: Think::None, cycle_ns: 0 };
        scenario.connections = Some(connections);
        scenario.threads = threads;
        let tls = tls_of(&scenario, &urls)?;
        let mut plan = plan_of(&scenario, targets, tls, 1);
        plan.preconnect = scenario.http2;
        let how = (asked.headers.as_slice(), asked.compression.as_str());
        let forms = forms_of(how, &urls, &plan.targets, scenario.http2)?;
        let failed = match &asked.failed {
            // The agents keep the operations that fail.
            _ if is_coordinator() => FailedOperations::nowhere(),
            None => FailedOperations::nowhere(),
            Some(path) => FailedOperations::file(path).map_err(|error| {
                usage(format!("--failed {}: {}", path.display(), with_advice(&error)))
            })?,
        };
        let input = Input::new(&sources, threads).of_part(asked.slice);
        let mut settings = settings_of(asked, limit);
        settings.may_end_early |= may_end_early;
        let feed = Arc::new(Feed::new(settings, input, failed, threads));
        let secure = urls.iter().any(|url| url.authority.tls);
        let scheme = if secure { Scheme::Https } else { Scheme::Http };
        let http = match scenario.http2 {
            true => Http::Two(Http2 { scheme, streams_max: STREAMS_MAX, ..Http2::default() }),
            false => Http::default(),
        };
        let deadline_ns = asked.deadline.map(|span| span.ns);
        let (forms, skip) = (Arc::new(forms), asked.skip);
        Ok(Self { scenario, plan, http, feed, forms, sources, skip, deadline_ns })
    }

    /// Begins to read, on a thread that no one waits for: standard input may have nothing to say for ever.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start_reader(&mut self) -> Result<()> {
        let (feed, sources, skip) =
            (self.feed.clone(), std::mem::take(&mut self.sources), self.skip);
        let body = move || {
            let parameters = feed.settings.parameters.clone();
            Reader::new(&feed.input, &feed.failed, &parameters, skip).read(sources);
        };
        std::thread::Builder::new().name("reader".to_owned()).spawn(body)?;
        Ok(())
    }

    /// Sessions for all shards, and where what they counted arrives at their end.
    pub fn sessions(&self) -> (Vec<Box<dyn Sessions<Http> + Send>>, Receiver<Tally>) {
        let shards = self.scenario.threads;
        let (sender, counted) = channel();
        let one = |shard| {
            let (feed, forms) = (self.feed.clone(), self.forms.clone());
            let own = FeedSessions::new(feed, forms, shard, shards, sender.clone());
            Box::new(own) as Box<dyn Sessions<Http> + Send>
        };
        ((0..shards).map(one).collect(), counted)
    }

    /// Sets `stop` when one of `causes` is set, when the feed is given up, or when nothing was accepted for too
    /// long since it `started`; ends when `over` is set. Returns the feed over time.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn watch(
        &self,
        causes: Vec<Arc<AtomicBool>>,
        stop: Arc<AtomicBool>,
        over: Arc<AtomicBool>,
        started: Started,
    ) -> Result<JoinHandle<Vec<FeedMoment>>> {
        // A coordinator sees no operations; its agents look after theirs.
        let deadline_ns = self.deadline_ns.filter(|_| !is_coordinator());
        let feed = self.feed.clone();
        let body = move || {
            let mut course = None;
            while !over.load(Ordering::Relaxed) {
                let began_ns = started.ns();
                if let Some(began_ns) = began_ns {
                    let course = course.get_or_insert_with(|| Course::new(began_ns));
                    course.look(now_ns(), || feed.now());
                }
                if let (Some(deadline_ns), Some(began_ns)) = (deadline_ns, began_ns)
                    && now_ns().saturating_sub(feed.now().accepted_at_ns.max(began_ns))
                        > deadline_ns
                {
                    let span = Span { ns: deadline_ns };
                    feed.stop(format!("nothing was accepted for {span} (--deadline)"));
                }
                if feed.is_stopped() || causes.iter().any(|cause| cause.load(Ordering::Relaxed)) {
                    stop.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(LOOK_EVERY);
            }
            course.map(|course| course.end(now_ns(), feed.now())).unwrap_or_default()
        };
        Ok(std::thread::Builder::new().name("watch".to_owned()).spawn(body)?)
    }
}

/// Rejects an invalid scenario, from flags or from a file.
fn check(asked: &FeedScenario) -> Result<()> {
    let several = asked.files.iter().filter(|path| *path == Path::new("-")).count() > 1;
    let wrong = if asked.targets.is_empty() {
        "no target; name at least one address, such as http://127.0.0.1:8080"
    } else if asked.files.is_empty() {
        "no file of operations; name one, or '-' for stdin"
    } else if several {
        "'-' is stdin, which can be read only once; name other files"
    } else if !asked.slice.is_whole() && asked.files.iter().any(|path| path == Path::new("-")) {
        "'-' is stdin, which each part of a feed would have its own of; name files that all parts can read"
    } else if asked.threads == 0 || asked.threads > 64 {
        "--threads: use a number from 1 to 64"
    } else if asked.inflight.is_some_and(|n| n == 0 || n >= CLIENTS_MAX) {
        "--inflight: use a number from 1 to 99,999"
    } else if asked.connections.is_some_and(|n| n == 0 || n > 10_000) {
        "--connections: use a number from 1 to 10,000"
    } else if [asked.timeout, asked.deadline, asked.duration].contains(&Some(Span::default())) {
        "--timeout, --deadline and --duration must be above 0"
    } else if asked.accept.iter().any(|status| ![404, 412].contains(status)) {
        "--accept: only 404 (no such document or type) and 412 (condition not met) can be accepted"
    } else if !["auto", "1.1", "2"].contains(&asked.http.as_str()) {
        "http: write auto, 1.1 or 2"
    } else if !["auto", "gzip", "none"].contains(&asked.compression.as_str()) {
        "compression: write auto, gzip or none"
    } else {
        return match &asked.load {
            // Bursts that wait for their backlog have no times of their own either.
            Some(load) if load.has_askers() || matches!(load, LoadModel::PacedBurst { .. }) => {
                Err(usage(
                    "load: a feed has a rate, or is as fast as the target accepts; write an open model, a burst or a profile, or leave it out",
                ))
            }
            Some(load) => Ok(load.validate()?),
            None => Ok(()),
        };
    };
    Err(usage(wrong))
}

fn scenario_of(asked: &FeedScenario) -> Scenario {
    Scenario {
        job: "feed".to_owned(),
        targets: asked.targets.clone(),
        headers: asked.headers.clone(),
        duration: Some(asked.duration.unwrap_or(FOR_EVER)),
        timeout: asked.timeout.unwrap_or(TIMEOUT),
        slice: asked.slice,
        seed: asked.seed,
        tls: asked.tls.clone(),
        ..Scenario::default()
    }
}

/// The most operations that may be in flight.
fn inflight_limit(asked: &FeedScenario, http2: bool) -> u32 {
    match (asked.inflight, http2) {
        (Some(own), _) => own,
        (None, true) => asked.connections.unwrap_or(CONNECTIONS_HTTP2).saturating_mul(STREAMS_MAX),
        (None, false) => asked.connections.unwrap_or(CONNECTIONS_HTTP1_MAX),
    }
    .clamp(1, CLIENTS_MAX - 1)
}

fn settings_of(asked: &FeedScenario, limit: u32) -> Settings {
    let limits = Limits::after(asked.duration.unwrap_or(FOR_EVER).ns);
    Settings {
        inflight: match asked.inflight {
            Some(own) => InflightChoice::Fixed(own),
            None => InflightChoice::Adaptive(limit),
        },
        retries: asked.retries,
        timeout_ns: asked.timeout.unwrap_or(TIMEOUT).ns,
        allowed: asked.accept.clone(),
        pace: asked.load.clone().map(|load| (load, limits)),
        may_end_early: asked.duration.is_some(),
        parameters: Parameters {
            timeout_ms: asked.timeout.map(|span| (span.ns / 1_000_000).max(1)),
            route: asked.route.clone(),
            dry_run: asked.dry_run,
        },
        seed: asked.seed,
        slice: asked.slice,
    }
}

/// The rules by which operations become requests to each target: headers and compression.
///
/// # Errors
/// An invalid header.
pub fn forms_of(
    (headers, compression): (&[String], &str),
    urls: &[Url],
    targets: &[Target],
    http2: bool,
) -> Result<Vec<FeedForm>> {
    let headers = read_headers(headers)?;
    let addresses = || targets.iter().flat_map(|target| &target.addresses);
    let packed = match compression {
        "gzip" => Packed::Above(0),
        "none" => Packed::Never,
        // On one machine packing costs both sides time and saves nothing.
        _ if addresses().all(|address| address.ip().is_loopback()) => Packed::Never,
        _ => Packed::Above(PACKED_ABOVE_BYTES),
    };
    urls.iter()
        .map(|url| {
            let http = HttpForm::new(&url.authority, &headers, false);
            Ok(FeedForm::new(&http.map_err(usage)?, http2, packed))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http1_has_a_connection_for_each_operation_in_flight() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (inflight, connections) in [(None, 256), (Some(1000), 1000)] {
            let asked = FeedScenario {
                targets: vec!["http://127.0.0.1:9".to_owned()],
                files: vec![file.path().to_owned()],
                http: "1.1".to_owned(),
                inflight,
                ..FeedScenario::default()
            };
            let task = Task::new(&asked, false).unwrap();
            assert_eq!(task.scenario.connections, Some(connections));
        }
    }
}
