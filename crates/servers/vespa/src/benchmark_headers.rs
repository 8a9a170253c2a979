//! The `X-Yahoo-Vespa-*` reply headers, spelt as benchmark clients expect them.
//!
//! hyper writes header names in lower case, and `vespa-fbench` matches them with their case. hyper
//! keeps the spelling of a *request's* headers in a private extension and honours the same
//! extension on a reply; so one request with the names is parsed at the start, and its extension
//! goes with every reply that has such headers.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::Extensions;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use plimsoll_front::Reply;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncWriteExt;

/// The names, in the order in which they are sent.
const NAMES: [&str; 12] = [
    "X-Yahoo-Vespa-AttributeFetchTime",
    "X-Yahoo-Vespa-FillTime",
    "X-Yahoo-Vespa-NumErrors",
    "X-Yahoo-Vespa-NumFastHits",
    "X-Yahoo-Vespa-NumHits",
    "X-Yahoo-Vespa-QueryHits",
    "X-Yahoo-Vespa-QueryOffset",
    "X-Yahoo-Vespa-SearchTime",
    "X-Yahoo-Vespa-TotalHitCount",
    "X-Yahoo-Vespa-DocsSearched",
    "X-Yahoo-Vespa-NodesSearched",
    "X-Yahoo-Vespa-FullCoverage",
];
const ASKED: &str = "x-yahoo-vespa-benchmarkdata";
const COVERAGE_ASKED: &str = "x-yahoo-vespa-benchmarkdata-coverage";

/// The content of the headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Benchmark {
    pub(crate) fill_ns: u64,
    pub(crate) search_ns: u64,
    pub(crate) errors: u64,
    pub(crate) hits: usize,
    /// Hits and offset asked for, when the request was understood.
    pub(crate) wanted: Option<(usize, usize)>,
    pub(crate) total: u64,
    /// Number of documents that were searched, when a search took place.
    pub(crate) documents: Option<u64>,
}

/// The spelling of the names, ready to be attached to replies.
#[derive(Clone, Default)]
pub(crate) struct HeaderCase(Extensions);

impl HeaderCase {
    /// Learns the spelling. Needs a running runtime.
    pub(crate) async fn learn() -> Self {
        let learnt = Arc::new(Mutex::new(Extensions::new()));
        let mut request = b"GET / HTTP/1.1\r\n".to_vec();
        for name in NAMES {
            request.extend_from_slice(name.as_bytes());
            request.extend_from_slice(b": 0\r\n");
        }
        request.extend_from_slice(b"\r\n");
        let (mut client, server) = tokio::io::duplex(request.len() + 4096);
        // A pipe in memory with room for all of it takes it at once.
        let _ = client.write_all(&request).await;
        let slot = Arc::clone(&learnt);
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let extensions = request.extensions().clone();
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = extensions;
            async { Ok::<_, Infallible>(Response::new(http_body_util::Empty::<&[u8]>::new())) }
        });
        let connection = http1::Builder::new()
            .preserve_header_case(true)
            .keep_alive(false)
            .serve_connection(TokioIo::new(server), service);
        let _ = connection.await;
        let learnt = learnt.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self(learnt)
    }
}

/// Adds the headers that the request asked for.
pub(crate) fn add(
    case: &HeaderCase,
    request: &HeaderMap,
    benchmark: &Benchmark,
    reply: &mut Reply,
) {
    let asked = |name: &str| {
        request.get(name).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
    };
    if !asked(ASKED) {
        return;
    }
    let ms = |ns: u64| Some(ns / 1_000_000);
    let hits = Some(benchmark.hits as u64);
    let coverage = benchmark.documents.filter(|_| asked(COVERAGE_ASKED));
    let values = [
        Some(0),
        ms(benchmark.fill_ns),
        Some(benchmark.errors),
        hits,
        hits,
        benchmark.wanted.map(|(hits, _)| hits as u64),
        benchmark.wanted.map(|(_, offset)| offset as u64),
        ms(benchmark.search_ns),
        Some(benchmark.total),
        coverage,
        coverage.map(|_| 1),
        coverage.map(|_| 1),
    ];
    for (name, value) in NAMES.iter().zip(values) {
        let Some(value) = value else { continue };
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
            reply.headers_mut().append(name, HeaderValue::from(value));
        }
    }
    *reply.extensions_mut() = case.0.clone();
}
