//! The handler of `/search/`.

use super::App;
use super::benchmark_headers::{self, Benchmark};
use super::container::Container;
use super::search_reply::{Code, Failure, ResultPage, Times, render, render_failure};
use super::search_request::{self, SearchRequest};
use super::store::StoreError;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, StatusCode};
use plimsoll_core::clock::now_ns;
use plimsoll_front::{Body, Reply, json};
use plimsoll_index::execute::{self, ExecuteError, Limits, Wanted};
use plimsoll_index::plan;
use plimsoll_serving::parameters::Parameters;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

const JSON_TYPE: &str = "application/json;charset=utf-8";
/// The largest body of a search, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;

/// A rendered result and what the headers say of it.
pub(crate) struct Answer {
    body: Vec<u8>,
    benchmark: Benchmark,
}

/// Marks the query as abandoned when it is dropped, also when the client has left.
struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answers one search.
pub(crate) async fn handle(
    container: &Container,
    method: &Method,
    query: &str,
    headers: &HeaderMap,
    body: &mut Body,
) -> Reply {
    let start_ns = now_ns();
    let result = match parameters(method, query, headers, body).await {
        Ok(parameters) => match search_request::read(&parameters, &container.app.store.schemas) {
            Ok(request) => search(container, request, start_ns).await,
            Err(failure) => Err(failure),
        },
        Err(failure) => Err(failure),
    };
    let (status, body, benchmark) = match result {
        Ok(answer) => (StatusCode::OK, answer.body, answer.benchmark),
        Err(failure) => {
            let benchmark = Benchmark { errors: 1, ..Benchmark::default() };
            (failure.status(), render_failure(&failure), benchmark)
        }
    };
    let benchmark = Benchmark { search_ns: now_ns() - start_ns, ..benchmark };
    let mut reply = json(status, JSON_TYPE, body);
    benchmark_headers::add(&container.app.header_case, headers, &benchmark, &mut reply);
    reply
}

async fn parameters(
    method: &Method,
    query: &str,
    headers: &HeaderMap,
    body: &mut Body,
) -> Result<Parameters, Failure> {
    let invalid = |error: plimsoll_serving::parameters::ParameterError| {
        Failure::new(Code::InvalidParameter, error.to_string())
    };
    if method != Method::GET && method != Method::POST {
        let message = format!("{method} is not allowed here: use GET or POST");
        let failure = Failure::new(Code::InvalidParameter, message);
        return Err(Failure { status: Some(StatusCode::METHOD_NOT_ALLOWED), ..failure });
    }
    let from_url = Parameters::from_query(query).map_err(invalid)?;
    if method == Method::GET {
        return Ok(from_url);
    }
    let body = body.read(headers, MAX_BODY_BYTES).await.map_err(|error| Failure {
        status: Some(error.status),
        ..Failure::new(Code::InvalidParameter, error.message)
    })?;
    let bytes = body.bytes;
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let mut parameters = match kind.as_str() {
        _ if bytes.iter().all(u8::is_ascii_whitespace) => Parameters::default(),
        "application/json" => Parameters::from_json(&bytes).map_err(invalid)?,
        "application/x-www-form-urlencoded" => {
            let text = std::str::from_utf8(&bytes).map_err(|_| {
                Failure::new(Code::InvalidParameter, "the form is not percent-encoded text")
            })?;
            Parameters::from_query(text.trim_end()).map_err(invalid)?
        }
        other => {
            let message = format!(
                "Content-Type '{other}' is not understood: \
                 use application/json or application/x-www-form-urlencoded"
            );
            return Err(Failure::new(Code::InvalidParameter, message));
        }
    };
    parameters.overlay(from_url);
    Ok(parameters)
}

async fn search(
    container: &Container,
    request: SearchRequest,
    start_ns: u64,
) -> Result<Answer, Failure> {
    let app = &container.app;
    let timeout = request.timeout;
    if timeout.is_zero() {
        return Err(timed_out(timeout));
    }
    let abandoned = AbandonOnDrop(Arc::new(AtomicBool::new(false)));
    let (sender, answer) = oneshot::channel();
    let job = {
        let (app, flag) = (Arc::clone(app), Arc::clone(&abandoned.0));
        move || {
            // Nobody listens any more when the deadline has passed.
            let _ = sender.send(run(&app, &request, start_ns, &flag));
        }
    };
    app.pools.queries.submit(job).map_err(|full| {
        container.port.count_rejected();
        let limit = full.limit;
        Failure::new(
            Code::Overloaded,
            format!("Rejected due to overload: {limit} searches already wait"),
        )
    })?;
    let elapsed = Duration::from_nanos(now_ns() - start_ns);
    match tokio::time::timeout(timeout.saturating_sub(elapsed), answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) if app.is_stopping() => {
            Err(Failure::new(Code::Overloaded, "The server is stopping"))
        }
        Ok(Err(_)) => Err(Failure::new(Code::Internal, "The search thread failed")),
        Err(_) => Err(timed_out(timeout)),
    }
}

fn timed_out(timeout: Duration) -> Failure {
    let ms = timeout.as_millis();
    Failure::new(Code::Timeout, format!("The search did not end within its timeout of {ms} ms"))
}

/// Runs on a query thread.
fn run(
    app: &App,
    request: &SearchRequest,
    start_ns: u64,
    abandoned: &AtomicBool,
) -> Result<Answer, Failure> {
    let internal = |error: &dyn std::fmt::Display| Failure::new(Code::Internal, error.to_string());
    let search = &request.search;
    let timeout_ns = u64::try_from(request.timeout.as_nanos()).unwrap_or(u64::MAX);
    let limits = Limits { deadline_ns: start_ns.saturating_add(timeout_ns), abandoned };
    let query_start_ns = now_ns();
    let plan = plan::plan(search, &app.schema)
        .map_err(|error| Failure::new(Code::InvalidParameter, error.to_string()))?;
    let searcher = app.reader.searcher();
    let (ranking, hits, offset) = (search.ranking, search.hits, search.offset);
    let wanted = Wanted { ranking, hits, offset, min_relevance: None };
    let found = match execute::execute(&searcher, &app.lids, &plan, &wanted, &limits) {
        Ok(found) => found,
        Err(ExecuteError::Abandoned) => return Err(timed_out(request.timeout)),
        Err(error) => return Err(internal(&error)),
    };
    let fill_start_ns = now_ns();
    let hits = app.store.fetch(&found.hits, |hit| hit.lid).map_err(|error| internal(&error))?;
    let end_ns = now_ns();
    let times = Times {
        query_ns: fill_start_ns - query_start_ns,
        fill_ns: end_ns - fill_start_ns,
        total_ns: end_ns - start_ns,
    };
    let body = render(&ResultPage {
        schemas: &app.store.schemas,
        total: found.total,
        documents: found.documents,
        hits: &hits,
        selection: &request.selection,
        times: request.timing.then_some(times),
    })
    .map_err(|error| internal(&StoreError::from(error)))?;
    let benchmark = Benchmark {
        fill_ns: times.fill_ns,
        hits: hits.len(),
        wanted: Some((search.hits, search.offset)),
        total: found.total,
        documents: Some(found.documents),
        ..Benchmark::default()
    };
    Ok(Answer { body, benchmark })
}
