//! Requests of browsers and scrapes, and their answers.

use crate::access::{has_own_host, has_token, parameter};
use crate::shared::Shared;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use std::convert::Infallible;
use tokio::task::AbortHandle;

/// The body of an answer.
pub type Answer = Response<BoxBody<Bytes, Infallible>>;

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const EVENTS: &str = "text/event-stream";

/// Headers of all answers: nothing is kept, guessed, framed or passed on.
const HEADERS: [(&str, &str); 3] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
];

fn answer(status: StatusCode, kind: &'static str, body: BoxBody<Bytes, Infallible>) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    answer
}

fn whole(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Answer {
    answer(status, kind, BoxBody::new(Full::new(text.into()).map_err(|never| match never {})))
}

fn said(status: StatusCode, text: &'static str) -> Answer {
    whole(status, TEXT, text)
}

/// Answers one request. `connection` ends the connection that it came over.
pub async fn route(
    shared: &Shared,
    request: &Request<Incoming>,
    connection: &AbortHandle,
) -> Answer {
    let (method, path, query) = (request.method(), request.uri().path(), request.uri().query());
    if !has_own_host(request.headers()) {
        return said(
            StatusCode::MISDIRECTED_REQUEST,
            "ask for this page by its IP address, or as localhost\n",
        );
    }
    let is_reading = method == Method::GET || method == Method::HEAD;
    let may = has_token(query, request.headers(), &shared.token);
    if may {
        shared.strangers.remove(connection.id());
    }
    // A scrape of this machine's own Prometheus cannot know the token.
    let is_open = path == "/metrics" && shared.is_loopback;
    if !may && !is_open {
        return said(
            StatusCode::FORBIDDEN,
            "the token is missing or wrong; use the address that plimsoll printed\n",
        );
    }
    match path {
        "/" if is_reading => whole(StatusCode::OK, HTML, shared.page().await),
        "/events" if method == Method::GET => events(shared, request, query, connection),
        "/metrics" if is_reading => {
            whole(StatusCode::OK, shared.hooks.metrics_kind, (shared.hooks.metrics)())
        }
        "/stop" if method == Method::POST => {
            (shared.hooks.stop)();
            said(StatusCode::ACCEPTED, "the run ends, and its record is kept\n")
        }
        "/" | "/events" | "/metrics" => not_allowed("GET"),
        "/stop" => not_allowed("POST"),
        _ => said(StatusCode::NOT_FOUND, "nothing here; the page is at /\n"),
    }
}

fn not_allowed(method: &'static str) -> Answer {
    let mut answer = said(StatusCode::METHOD_NOT_ALLOWED, "this method is not supported here\n");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(method));
    answer
}

/// The events after those that the reader has seen: by the header of a browser that comes back by itself, or by the
/// parameter of a page that does.
fn events(
    shared: &Shared,
    request: &Request<Incoming>,
    query: Option<&str>,
    connection: &AbortHandle,
) -> Answer {
    let of_header = request.headers().get("last-event-id").and_then(|value| value.to_str().ok());
    let seen = of_header.or(parameter(query, "last")).and_then(|text| text.parse().ok());
    let page = parameter(query, "page").and_then(|text| text.parse().ok());
    match shared.follow(seen, page, connection.clone()) {
        Some(body) => answer(StatusCode::OK, EVENTS, body),
        None => {
            said(StatusCode::SERVICE_UNAVAILABLE, "too many readers; close some of the pages\n")
        }
    }
}
