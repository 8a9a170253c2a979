//! Connections: accepting them, reading bodies, and sending each request to its handler.

use super::metrics::Kind;
use super::{App, document_api, search_api, state_api};
use crate::accept::{ACCEPT_PAUSE, accept};
use crate::stop::Stop;
use crate::write_limit::{WRITE, WriteLimited};
use flate2::read::GzDecoder;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use plimsoll_core::clock::now_ns;
use std::convert::Infallible;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// What handlers answer with.
pub(crate) type Reply = Response<Full<Bytes>>;

/// How long a connection may stay silent before it is closed.
const IDLE: Duration = Duration::from_secs(300);
/// How long the body of a request may take to arrive.
const BODY: Duration = Duration::from_secs(60);
/// How long requests under way may take to end when the server stops.
const DRAIN: Duration = Duration::from_millis(500);

/// Serves until the stop is requested, then lets the requests under way end.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    app: Arc<App>,
    stop: &Stop,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let stop = stop.as_fd().try_clone_to_owned()?;
    // SAFETY: the descriptor is a duplicate that `AsyncFd` owns: it stays open, and the same, as
    // long.
    let stopped = unsafe { AsyncFd::register(stop) }?;
    let graceful = GracefulShutdown::new();
    let slots = Arc::new(Semaphore::new(app.config.max_connections));
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.readable() => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        match accepted {
            Ok((stream, slot)) => {
                let connection = connection(stream, &app);
                let connection = graceful.watch(connection);
                tokio::spawn(async move {
                    // Clients may go away in the middle of anything; that is no event here.
                    let _ = connection.await;
                    drop(slot);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
    drop(listener);
    app.begin_stop();
    let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
    Ok(())
}

fn connection(
    stream: TcpStream,
    app: &Arc<App>,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + use<> {
    let app = Arc::clone(app);
    let service = service_fn(move |request| {
        let app = Arc::clone(&app);
        async move { Ok::<_, Infallible>(answer(&app, request).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(WriteLimited::new(stream, WRITE)), service)
}

async fn answer(app: &Arc<App>, request: Request<Incoming>) -> Reply {
    let start_ns = now_ns();
    let (head, body) = request.into_parts();
    let body = Body(body);
    let path = head.uri.path();
    let query = head.uri.query().unwrap_or("");
    let (kind, reply) = match path {
        "/search/" | "/search" => {
            let reply = search_api::handle(app, &head.method, query, &head.headers, body).await;
            (Kind::Search, reply)
        }
        _ if path.starts_with("/document/v1/") => {
            document_api::handle(app, &head.method, path, query, &head.headers, body).await
        }
        _ => (Kind::State, state_api::handle(app, &head.method, path, query).await),
    };
    app.metrics.record(kind, reply.status(), now_ns() - start_ns);
    reply
}

/// Why a body was not accepted.
pub(crate) struct BodyError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

/// The body of a request, not read yet.
pub(crate) struct Body(Incoming);

impl Body {
    /// Reads the whole body, unpacked when it is gzip. The limit holds for both forms.
    pub(crate) async fn read(
        self,
        headers: &HeaderMap,
        max_bytes: usize,
    ) -> Result<Bytes, BodyError> {
        let error = |status, message: String| BodyError { status, message };
        let too_large = || {
            let message = format!("The request body exceeds the maximum size of {max_bytes} bytes");
            error(StatusCode::PAYLOAD_TOO_LARGE, message)
        };
        let collected = tokio::time::timeout(BODY, Limited::new(self.0, max_bytes).collect()).await;
        let bytes = match collected {
            Ok(Ok(collected)) => collected.to_bytes(),
            Ok(Err(failure)) if failure.is::<LengthLimitError>() => return Err(too_large()),
            Ok(Err(failure)) => {
                let message = format!("The request body did not arrive: {failure}");
                return Err(error(StatusCode::BAD_REQUEST, message));
            }
            Err(_) => {
                let message = "The request body took too long to arrive".to_owned();
                return Err(error(StatusCode::REQUEST_TIMEOUT, message));
            }
        };
        match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
            None | Some(b"identity") => Ok(bytes),
            Some(b"gzip") => {
                let mut unpacked = Vec::new();
                let limit = max_bytes as u64 + 1;
                let read = GzDecoder::new(bytes.as_ref()).take(limit).read_to_end(&mut unpacked);
                read.map_err(|failure| {
                    let message = format!("The request body is not gzip: {failure}");
                    error(StatusCode::BAD_REQUEST, message)
                })?;
                if unpacked.len() > max_bytes {
                    return Err(too_large());
                }
                Ok(unpacked.into())
            }
            Some(_) => {
                let message = "The Content-Encoding is not supported: use gzip or none".to_owned();
                Err(error(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
            }
        }
    }
}

/// A reply with a body.
pub(crate) fn json(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// Whether a method only reads.
pub(crate) fn reads(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}
