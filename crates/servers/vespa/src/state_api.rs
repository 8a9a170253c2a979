//! Health, readiness, metrics and the refresh.

use super::container::Container;
use super::{App, MAX_VISITS};
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, StatusCode};
use plimsoll_core::clock::wall_us;
use plimsoll_front::metrics::Gauges;
use plimsoll_front::{Reply, json, reads};
use plimsoll_serving::json::push_text;
use plimsoll_serving::parameters::{Parameters, duration_us};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const JSON_TYPE: &str = "application/json; charset=UTF-8";
const HTML_TYPE: &str = "text/html; charset=UTF-8";
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Time that a refresh waits when the request does not say.
const REFRESH: Duration = Duration::from_secs(10);
/// Longest time that a refresh may wait.
const MAX_REFRESH: Duration = Duration::from_secs(600);

/// The list of handlers, in the format that Vespa's command line expects.
pub const HANDLERS: &str = concat!(
    r#"{"handlers":[{"id":"com.yahoo.search.handler.SearchHandler","#,
    r#""class":"com.yahoo.search.handler.SearchHandler","#,
    r#""bundle":"container-search-and-docproc:8.0.0","#,
    r#""serverBindings":["http://*/search/*"]},"#,
    r#"{"id":"com.yahoo.document.restapi.resource.DocumentV1ApiHandler","#,
    r#""class":"com.yahoo.document.restapi.resource.DocumentV1ApiHandler","#,
    r#""bundle":"vespaclient-container-plugin:8.0.0","#,
    r#""serverBindings":["http://*/document/v1/*","http://*/document/v1/*/"]}]}"#,
);

/// Returns true if a path is one of this module, and not of Elasticsearch's API.
pub(crate) fn owns(path: &str) -> bool {
    let prefixes = ["/state/", "/plimsoll/", "/metrics/"];
    let paths = ["/metrics", "/ApplicationStatus", "/status.html"];
    prefixes.iter().any(|prefix| path.starts_with(prefix)) || paths.contains(&path)
}

/// Answers everything that is neither a search nor a document operation.
pub(crate) async fn handle(
    container: &Container,
    method: &Method,
    path: &str,
    query: &str,
) -> Reply {
    let app = &container.app;
    if path == "/plimsoll/v1/container/stop" {
        return if *method == Method::POST { stop(container) } else { not_allowed(method, "POST") };
    }
    if path == "/state/v1/refresh" {
        return if method == Method::POST {
            refresh(app, query).await
        } else {
            not_allowed(method, "POST")
        };
    }
    let page: fn(&Container) -> Reply = match path {
        "/" => |_| json(StatusCode::OK, JSON_TYPE, HANDLERS.into()),
        "/ApplicationStatus" => application_status,
        "/status.html" => |_| {
            let page = "<title>OK</title>OK\n";
            json(StatusCode::OK, HTML_TYPE, page.into())
        },
        "/state/v1/health" => health,
        "/metrics" => metrics,
        _ => return not_found(path),
    };
    if reads(method) { page(container) } else { not_allowed(method, "GET") }
}

fn application_status(container: &Container) -> Reply {
    let vespa = format!("{{\"version\":\"plimsoll {}\"}}", env!("CARGO_PKG_VERSION"));
    let documents = container.app.store.progress.documents.load(Ordering::Relaxed);
    let body = format!("{{\"application\":{{\"vespa\":{vespa},\"documents\":{documents}}}}}");
    json(StatusCode::OK, JSON_TYPE, body.into_bytes())
}

fn health(container: &Container) -> Reply {
    let app = &container.app;
    let failure = app.failure();
    let (status, code) = match failure {
        None => (StatusCode::OK, "up"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "down"),
    };
    let mut message = Vec::new();
    if let Some(failure) = failure {
        message.extend_from_slice(b",\"message\":");
        push_text(&mut message, &failure);
    }
    let value =
        |name: &str, value: u64| format!("{{\"name\":\"{name}\",\"values\":{{\"last\":{value}}}}}");
    let metrics = [
        value("documents", app.store.progress.documents.load(Ordering::Relaxed)),
        value("searchable_documents", app.reader.searcher().num_docs()),
        value("requests", container.port.metrics.requests()),
    ]
    .join(",");
    let time_ms = wall_us() / 1000;
    let mut body = format!("{{\"time\":{time_ms},\"status\":{{\"code\":\"{code}\"").into_bytes();
    body.extend_from_slice(&message);
    body.extend_from_slice(format!("}},\"metrics\":{{\"values\":[{metrics}]}}}}").as_bytes());
    json(status, JSON_TYPE, body)
}

fn metrics(container: &Container) -> Reply {
    let app = &container.app;
    let progress = &app.store.progress;
    let page = container.port.metrics.render(&Gauges {
        documents: progress.documents.load(Ordering::Relaxed),
        tombstones: progress.tombstones.load(Ordering::Relaxed),
        under_way: container.port.under_way() as u64,
        visits: (MAX_VISITS - app.visits.available_permits().min(MAX_VISITS)) as u64,
        searchable_documents: app.reader.searcher().num_docs(),
        segments: app.reader.searcher().segment_readers().len() as u64,
        waiting: app.pools.queries.waiting() as u64,
        commits: progress.commits.load(Ordering::Relaxed),
        committed: progress.committed.load(Ordering::Relaxed),
        indexed: progress.indexed.load(Ordering::Relaxed),
    });
    json(StatusCode::OK, METRICS_TYPE, page.into_bytes())
}

/// Waits until everything acknowledged before this request can be found.
async fn refresh(app: &Arc<App>, query: &str) -> Reply {
    let timeout = match Parameters::from_query(query) {
        Ok(parameters) => match parameters.get("timeout").map(duration_us) {
            None => Some(REFRESH),
            Some(us) => us.map(Duration::from_micros),
        },
        Err(_) => None,
    };
    let Some(timeout) = timeout else {
        let message = "Expected 'timeout' to be a time such as 500ms or 2s";
        return message_reply(StatusCode::BAD_REQUEST, message);
    };
    match tokio::time::timeout(timeout.min(MAX_REFRESH), app.refreshed()).await {
        Ok(Some(sequence)) => {
            let documents = app.reader.searcher().num_docs();
            let body = format!("{{\"sequence\":{sequence},\"documents\":{documents}}}");
            json(StatusCode::OK, JSON_TYPE, body.into_bytes())
        }
        Ok(None) => {
            let message = app.failure().unwrap_or_else(|| "The server is stopping".to_owned());
            message_reply(StatusCode::SERVICE_UNAVAILABLE, &message)
        }
        Err(_) => {
            let message = format!("Timeout after {}ms", timeout.as_millis());
            message_reply(StatusCode::GATEWAY_TIMEOUT, &message)
        }
    }
}

/// Ends this container alone: the port is closed and all its connections are cut.
fn stop(container: &Container) -> Reply {
    container.port.cut_soon();
    let body = format!("{{\"stopping\":{}}}", container.port.number);
    json(StatusCode::OK, JSON_TYPE, body.into_bytes())
}

fn not_found(path: &str) -> Reply {
    let message = format!(
        "Nothing at '{path}'. Available paths are:\n/\n/search/\n\
         /document/v1/\n/state/v1/health\n/state/v1/refresh\n\
         /plimsoll/v1/container/stop\n/ApplicationStatus\n/status.html\n/metrics"
    );
    message_reply(StatusCode::NOT_FOUND, &message)
}

fn not_allowed(method: &Method, allowed: &'static str) -> Reply {
    let message = format!("{method} is not allowed here: use {allowed}");
    let mut reply = message_reply(StatusCode::METHOD_NOT_ALLOWED, &message);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

fn message_reply(status: StatusCode, message: &str) -> Reply {
    let mut body = b"{\"message\":".to_vec();
    push_text(&mut body, message);
    body.push(b'}');
    json(status, JSON_TYPE, body)
}
