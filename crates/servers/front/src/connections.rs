//! Connections: accepting them, HTTP/1.1 or HTTP/2 as their first bytes say, and sending each
//! request to the API that owns its path.

use crate::metrics::Kind;
use crate::port::Port;
use crate::reply::{self, Reply};
use crate::request_body::{Body, budget};
use crate::{Api, Call, gzip};
use hyper::body::Incoming;
use hyper::header::EXPECT;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use plimsoll_core::clock::now_ns;
use plimsoll_serving::accept::{ACCEPT_PAUSE, accept};
use plimsoll_serving::stop::Stop;
use plimsoll_serving::write_limit::WriteLimited;
use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Longest time that a connection may stay silent before it is closed.
const IDLE: Duration = Duration::from_secs(300);
/// Time for requests in flight when the server stops.
const DRAIN: Duration = Duration::from_millis(500);
/// The first bytes of an HTTP/2 client with prior knowledge.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Requests in flight on one HTTP/2 connection.
const MAX_STREAMS: u32 = 1024;
/// Unread bytes that a stream, and a connection, may have sent.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// Bytes that can wait to be sent on one stream.
const SEND_BUFFER_BYTES: usize = 512 << 10;

/// The APIs of a server, and what their requests share.
pub struct Served {
    apis: Vec<Arc<dyn Api>>,
    /// Memory for request bodies, bytes.
    body_budget: Arc<Semaphore>,
    write_timeout: Duration,
}

impl Served {
    /// APIs in the order in which they are asked for a path. A client may take nothing of a reply for `write_timeout`.
    #[must_use]
    pub fn new(apis: Vec<Arc<dyn Api>>, write_timeout: Duration) -> Self {
        Self { apis, body_budget: budget(), write_timeout }
    }

    pub(crate) fn begin_stop(&self) {
        self.apis.iter().for_each(|api| api.begin_stop());
    }

    pub(crate) fn close(&self) {
        self.apis.iter().for_each(|api| api.close());
    }

    /// The API of a path; the first one answers unowned paths.
    fn api(&self, path: &str) -> Option<&Arc<dyn Api>> {
        self.apis.iter().find(|api| api.owns(path)).or_else(|| self.apis.first())
    }
}

/// Serves on all ports until the stop is requested, then lets the requests in flight end.
///
/// # Errors
/// When the system has no socket to give.
pub async fn serve(
    listeners: Vec<(std::net::TcpListener, Arc<Port>)>,
    served: &Arc<Served>,
    stop: &Stop,
) -> io::Result<()> {
    let stop = stop.as_fd().try_clone_to_owned()?;
    // SAFETY: the descriptor is a duplicate that `AsyncFd` owns: it stays open, and the same, as
    // long.
    let stopped = unsafe { AsyncFd::register(stop) }?;
    let graceful = Arc::new(GracefulShutdown::new());
    let mut accepting = Vec::with_capacity(listeners.len());
    for (listener, port) in listeners {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let served = Arc::clone(served);
        accepting.push(tokio::spawn(accept_all(listener, port, served, Arc::clone(&graceful))));
    }
    let _ = stopped.readable().await;
    for task in accepting {
        task.abort();
        // The listener is closed once the task is gone.
        let _ = task.await;
    }
    served.begin_stop();
    // Nobody accepts any more, so nobody else holds it.
    if let Some(graceful) = Arc::into_inner(graceful) {
        let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
    }
    Ok(())
}

/// Accepts connections until the port is cut.
async fn accept_all(
    listener: TcpListener,
    port: Arc<Port>,
    served: Arc<Served>,
    graceful: Arc<GracefulShutdown>,
) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = port.cut() => return,
            accepted = accept(&listener, &port.slots) => accepted,
        };
        match accepted {
            Ok((stream, slot)) => {
                let (port, served) = (Arc::clone(&port), Arc::clone(&served));
                let watcher = graceful.watcher();
                tokio::spawn(async move {
                    let cut = Arc::clone(&port);
                    // Clients may go away in the middle of anything; that is no event here.
                    tokio::select! {
                        biased;
                        () = cut.cut() => {}
                        () = connection(stream, port, served, watcher) => {}
                    }
                    drop(slot);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn connection(stream: TcpStream, port: Arc<Port>, served: Arc<Served>, watcher: Watcher) {
    let patience = served.write_timeout;
    let patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    // A client that takes nothing is cut off by the system too: hyper would wait for it.
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, patience_ms);
    let Ok(Some(two)) = tokio::time::timeout(IDLE, speaks_http2(&stream)).await else { return };
    let service = service_fn(move |request| {
        let (port, served) = (Arc::clone(&port), Arc::clone(&served));
        async move { Ok::<_, Infallible>(answer(&port, &served, request).await) }
    });
    let io = TokioIo::new(WriteLimited::new(stream, patience));
    if two {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .keep_alive_interval(IDLE)
            .serve_connection(io, service);
        let _ = watcher.watch(connection).await;
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .serve_connection(io, service);
        let _ = watcher.watch(connection).await;
    }
}

/// Looks at the first bytes without taking them; nothing when the client went away at once.
async fn speaks_http2(stream: &TcpStream) -> Option<bool> {
    let mut first = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut first).await.ok().filter(|count| *count > 0)?;
        if first[..count] != PREFACE[..count] {
            return Some(false);
        }
        if count == PREFACE.len() {
            return Some(true);
        }
        // A preface in pieces: what is there stays readable, so that waiting for it would spin.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn answer(port: &Arc<Port>, served: &Served, request: Request<Incoming>) -> Reply {
    let start_ns = now_ns();
    let (head, body) = request.into_parts();
    let mut body = Body::new(body, &served.body_budget);
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or(""));
    let (kind, mut reply) = match served.api(path) {
        Some(api) => {
            let (method, headers) = (&head.method, &head.headers);
            let call = Call { port, method, path, query, headers, start_ns, body: &mut body };
            api.answer(call).await
        }
        None => (Kind::State, reply::json(StatusCode::NOT_FOUND, "text/plain", Vec::new())),
    };
    // Over HTTP/1.1 whoever asks first whether to send has not sent anything yet.
    if head.version == Version::HTTP_2 || !head.headers.contains_key(EXPECT) {
        body.discard().await;
    }
    reply::pack(&mut reply, gzip::accepted(&head.headers));
    if head.method == Method::HEAD {
        reply::behead(&mut reply);
    }
    port.metrics.record(kind, reply.status(), now_ns() - start_ns);
    reply
}

/// Returns true if a method only reads.
#[must_use]
pub fn reads(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}
