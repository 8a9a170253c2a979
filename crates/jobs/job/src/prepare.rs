//! From a scenario to something that can run: sources opened and checked, requests rendered, targets resolved.
//! Nothing is sent before all of it has succeeded.

mod parts;
mod sessions;
mod source;
mod users;

pub use parts::{check_parts, only_whole};
pub use sessions::{SessionForm, order_of};
pub use source::render_set;
use source::{Source, SourceKind};
pub use users::{check as check_users, script_of};

use crate::headers::read_headers;
use crate::observing;
use crate::url::Url;
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::assertion::Scope;
use plimsoll_core::interval::CLASSES_MAX;
use plimsoll_core::scenario::{Scenario, TlsScenario};
use plimsoll_core::schedule::{CLIENTS_MAX, Limits, LoadModel, Slice};
use plimsoll_core::slo::ClassSlo;
use plimsoll_core::system_error::with_advice;
use plimsoll_core::units::Span;
use plimsoll_engine::health::openable_connections;
use plimsoll_engine::shard::{Part, ShardPlan, Timeouts};
use plimsoll_engine::target::Target;
use plimsoll_engine::tls::{Speaks, Tls, TlsOptions, Trust};
use plimsoll_fleet::place::is_coordinator;
use plimsoll_wire::Sessions;
use plimsoll_wire::http::Http;
use plimsoll_wire::http2::{Http2, Scheme};
use plimsoll_workloads::checks::{Checks, HitCounter};
use plimsoll_workloads::http::{Form, Judge, Park, Troubles};
use plimsoll_workloads::json_scan::Pointer;
use plimsoll_workloads::render::HttpForm;
use std::sync::Arc;

/// A run that can start.
pub struct Prepared {
    /// Plan of the engine.
    pub plan: ShardPlan,
    /// One a shard.
    pub sessions: Vec<Box<dyn Sessions<Http> + Send>>,
    /// Names of the classes, by index.
    pub class_names: Vec<String>,
    /// Number of different requests that the source holds, if known.
    pub distinct_requests: Option<u64>,
    /// Problems of the sessions, reported at the end.
    pub troubles: Troubles,
}

/// Opens and checks everything that a scenario over HTTP names.
///
/// # Errors
/// One line about the first thing that is wrong.
pub fn prepare(scenario: &Scenario) -> Result<Prepared> {
    let (plan, form) = open(scenario)?;
    form.prepared(scenario, plan)
}

/// Opens and checks everything, and leaves the sessions to be made.
///
/// # Errors
/// As [`prepare`].
pub fn open(scenario: &Scenario) -> Result<(ShardPlan, SessionForm)> {
    check_limits(scenario)?;
    check_users(scenario)?;
    if scenario.targets.is_empty() {
        return Err(usage("no target; name at least one URL, such as http://127.0.0.1:8080/"));
    }
    let urls = scenario.targets.iter().map(|t| Url::parse(t)).collect::<Result<Vec<_>>>()?;
    let tls = tls_of(scenario, &urls)?;
    let (headers, body) = (read_headers(&scenario.headers)?, body_of(scenario)?);
    let headers = with_type(headers, scenario.body_file.is_some());
    let headers = observing::with_traceparent(headers, scenario)?;
    let form = |url| form_of(scenario, url, &headers, body.as_deref());
    let forms = urls.iter().map(form).collect::<Result<Vec<_>>>()?;
    let source = Source::open(scenario, &urls, &forms)?;
    let checks = Checks::new(&scenario.checks)?;
    let mut hits = hit_counter(scenario, &source)?;
    if checks.needs_hits() && hits.is_none() {
        if scenario.hits == "off" {
            return Err(usage("--check hits needs them to be counted; leave out --hits off"));
        }
        hits = Some(HitCounter::default());
    }
    let judge = Judge { checks, hits, ..Judge::default() };
    check_classes(scenario, &source.class_names)?;
    let filling = users::filling(scenario, &source)?;
    let script = users::script(scenario, &source)?;
    let mut scenario = scenario.clone();
    if let (LoadModel::Users { requests, .. }, Some(script)) = (&mut scenario.load, &script) {
        *requests = script.requests();
    }
    let scenario = &scenario;
    let targets = urls.iter().map(|u| Target::resolve(&u.authority.host, u.authority.port));
    let plan = plan_of(scenario, targets.collect(), tls, source.class_names.len());
    let form = SessionForm {
        server_clock: observing::server_clock(scenario)?,
        source,
        forms: Arc::new(forms),
        judge,
        troubles: Troubles::default(),
        parks: (0..scenario.threads).map(|_| Park::default()).collect(),
        script,
        filling,
    };
    Ok((plan, form))
}

/// Refuses numbers that make no sense, whether they come from flags or from a file.
///
/// # Errors
/// The first of them.
pub fn check_limits(scenario: &Scenario) -> Result<()> {
    scenario.load.validate()?;
    one_of_each(&scenario.slo)?;
    let slots = match scenario.admission {
        AdmissionModel::Direct => None,
        AdmissionModel::Managed { slots, .. } => Some(slots),
    };
    let wrong = if scenario.requests == Some(0) {
        "--requests must be at least 1"
    } else if scenario.connections == Some(0) {
        "--connections must be at least 1"
    } else if scenario.own_connections() > CLIENTS_MAX {
        "--connections: use a number from 1 to 100,000"
    } else if scenario.duration == Some(Span::default()) {
        "--duration must be above 0, such as 10s"
    } else if slots == Some(0) {
        "--slots must be at least 1"
    } else if profile_is_all_warmup(scenario) {
        "--warmup is as long as the whole profile, so nothing would be measured; use a shorter one"
    } else if scenario.http2 && !scenario.keepalive {
        "--http2 and --no-keepalive exclude each other: many requests share a connection of HTTP/2"
    } else if scenario.threads == 0 || scenario.threads > 1024 {
        "--threads: use a number from 1 to 1024"
    } else if scenario.timeout.ns == 0 {
        "--timeout: must be more than 0; every wait has a limit"
    } else if scenario.connect_timeout.ns == 0 {
        "--connect-timeout: must be more than 0; every wait has a limit"
    } else {
        check_openable(scenario)?;
        return parts::check_shares(scenario, slots);
    };
    Err(usage(wrong))
}

/// Refuses more connections than this process may have: what it could not open would look like failures of the target.
fn check_openable(scenario: &Scenario) -> Result<()> {
    let wanted = scenario.own_connections();
    let openable = openable(scenario);
    let is_asked = scenario.connections.is_some()
        || scenario.load.clients().is_some()
        || scenario.load.most_users().is_some();
    if !is_asked || wanted <= openable {
        return Ok(());
    }
    Err(usage(format!(
        "{wanted} connections need more files than this process may open ({openable} are left for connections); raise \
         the limit (ulimit -n, ulimit -Hn as root), or use fewer --clients or --connections"
    )))
}

/// Connections that this process may open; a coordinator opens none, and its agents know their own limits.
fn openable(scenario: &Scenario) -> u32 {
    if is_coordinator() { u32::MAX } else { openable_connections(scenario.threads) }
}

/// Refuses two limits on the same figure: a record holds them by name, so one of them would not be judged.
///
/// # Errors
/// The first that comes twice.
pub fn one_of_each(limits: &[ClassSlo]) -> Result<()> {
    for (index, limit) in limits.iter().enumerate() {
        let name = limit.name();
        if let Some(first) = limits[..index].iter().find(|first| first.name() == name) {
            return Err(usage(format!(
                "--slo {first} and --slo {limit} are both limits of {name}; give only one"
            )));
        }
    }
    Ok(())
}

fn profile_is_all_warmup(scenario: &Scenario) -> bool {
    matches!(scenario.load, LoadModel::Profile { .. })
        && scenario.load.own_duration_ns().is_some_and(|own_ns| own_ns <= scenario.warmup.ns)
}

/// Rejects a limit or an assertion about a class that does not exist: it could not but be missed, or held for nothing.
///
/// # Errors
/// The first of them, with the classes that there are.
pub fn check_classes(scenario: &Scenario, classes: &[String]) -> Result<()> {
    for limit in &scenario.slo {
        if let Some(name) = &limit.class
            && !classes.contains(name)
        {
            return Err(usage(format!(
                "--slo '{limit}': unknown class '{name}'; write one of {}",
                classes.join(", ")
            )));
        }
    }
    for assertion in &scenario.assertions {
        if let Scope::Class(name) = &assertion.scope
            && !classes.contains(name)
        {
            return Err(usage(format!(
                "--assert '{assertion}': unknown class '{name}'; write one of {}",
                classes.join(", ")
            )));
        }
    }
    Ok(())
}

/// The engine's plan for this part of a scenario, whatever its sessions are.
pub fn plan_of(
    scenario: &Scenario,
    targets: Vec<Target>,
    tls: Option<Tls>,
    classes: usize,
) -> ShardPlan {
    let duration_ns = scenario.length().ns.saturating_add(scenario.warmup.ns);
    let (connections, connection_limit) = scenario.connections_at_most(openable(scenario));
    let whole = ShardPlan {
        model: scenario.load.clone(),
        slice: Slice::WHOLE,
        seed: scenario.seed,
        limits: Limits { duration_ns, requests: scenario.requests },
        warmup_ns: scenario.warmup.ns,
        ignore_first: scenario.ignore_first,
        connections,
        warm_connections: (scenario.connection_count() < connections)
            .then(|| scenario.connection_count()),
        connection_limit,
        admission: scenario.admission,
        timeouts: Timeouts {
            connect_ns: scenario.connect_timeout.ns,
            request_ns: scenario.timeout.ns,
        },
        targets: Arc::new(targets),
        tls,
        classes: classes.clamp(1, CLASSES_MAX),
        spin_ns: scenario.spin.ns,
        batching: scenario.batching && scenario.load.is_full_speed(),
        preconnect: scenario.keepalive,
        keep_alive: scenario.keepalive,
        part: Part::default(),
    };
    parts::cut(whole, scenario.slice)
}

/// The version of HTTP that a scenario asks for.
pub fn http_of(scenario: &Scenario) -> Http {
    if !scenario.http2 {
        return Http::default();
    }
    let secure = scenario.targets.iter().any(|target| target.starts_with("https:"));
    let scheme = if secure { Scheme::Https } else { Scheme::Http };
    Http::Two(Http2 { scheme, ..Http2::default() })
}

/// TLS for the targets, which must all speak it or none.
pub fn tls_of(scenario: &Scenario, urls: &[Url]) -> Result<Option<Tls>> {
    let secure = urls.iter().filter(|url| url.authority.tls).count();
    if secure == 0 {
        let TlsScenario { ca_file, certificate_file, key_file, server_name, insecure } =
            &scenario.tls;
        let given = [
            (ca_file.is_some(), "--cacert"),
            (certificate_file.is_some(), "--cert"),
            (key_file.is_some(), "--key"),
            (server_name.is_some(), "--sni"),
            (*insecure, "--insecure"),
        ];
        if let Some((_, flag)) = given.iter().find(|(is_given, _)| *is_given) {
            let target = scenario.targets.first().map_or("", String::as_str);
            return Err(usage(format!(
                "{flag} belongs to TLS, but the target is {target}; write https://, or leave {flag} out"
            )));
        }
        return Ok(None);
    }
    if secure < urls.len() {
        return Err(usage(
            "some targets are https:// and some http://; measure them in separate runs",
        ));
    }
    let tls = Tls::new(&TlsOptions {
        ca_file: scenario.tls.ca_file.clone(),
        certificate_file: scenario.tls.certificate_file.clone(),
        key_file: scenario.tls.key_file.clone(),
        server_name: scenario.tls.server_name.clone(),
        trust: if scenario.tls.insecure { Trust::Anything } else { Trust::Full },
        speaks: if scenario.http2 { Speaks::Http2 } else { Speaks::Http1 },
    })?;
    for url in urls {
        tls.name(&url.authority.host)?;
    }
    Ok(Some(tls))
}

/// The body of requests whose source has none.
fn body_of(scenario: &Scenario) -> Result<Option<Vec<u8>>> {
    match (&scenario.body, &scenario.body_file) {
        (Some(_), Some(_)) => {
            Err(usage("body and body_file are different bodies; give one of them"))
        }
        (Some(text), None) => Ok(Some(text.clone().into_bytes())),
        (None, None) => Ok(None),
        (None, Some(path)) => std::fs::read(path).map(Some).map_err(|error| {
            let why = with_advice(&error);
            usage(format!("--body @{}: {why}", path.display()))
        }),
    }
}

/// Headers with a type for a body of bytes, which are not JSON.
fn with_type(mut headers: Vec<(String, String)>, is_bytes: bool) -> Vec<(String, String)> {
    let is_typed = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("Content-Type"));
    if is_bytes && !is_typed {
        headers.push(("Content-Type".to_owned(), "application/octet-stream".to_owned()));
    }
    headers
}

fn form_of(
    scenario: &Scenario,
    url: &Url,
    headers: &[(String, String)],
    body: Option<&[u8]>,
) -> Result<Form> {
    let form = HttpForm::new(&url.authority, headers, !scenario.keepalive)
        .map_err(|e| usage(format!("--header: {e}")))?;
    let method = scenario.default_method();
    if !plimsoll_workloads::header::is_token(method) {
        return Err(usage(format!(
            "--method '{method}' is not a method; write GET, POST, PUT ..."
        )));
    }
    Ok(Form::Own { form, method: method.to_owned(), body: body.map(<[u8]>::to_vec) })
}

/// The way hits are counted: by itself where the requests look like searches.
fn hit_counter(scenario: &Scenario, source: &Source) -> Result<Option<HitCounter>> {
    match scenario.hits.as_str() {
        "off" => Ok(None),
        "auto" => Ok(source.looks_like_search.then(HitCounter::default)),
        pointer => Pointer::parse(pointer)
            .filter(|_| pointer.starts_with('/'))
            .map(|pointer| Some(HitCounter::at(pointer)))
            .ok_or_else(|| {
                usage(format!(
                    "--hits '{pointer}': write auto, off, or a JSON pointer such as /hits/total"
                ))
            }),
    }
}
