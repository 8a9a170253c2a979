//! Connections: accepting them, HTTP/1.1 or HTTP/2 as their first bytes say, and sending each
//! request to the API that owns its path.

use crate::metrics::Kind;
use crate::port::Port;
use crate::reply::{self, Reply};
use crate::request_body::{Body, Budget};
use crate::untaken::{Reader, Untaken};
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
use plimsoll_serving::room::Seat;
use plimsoll_serving::stop::Stop;
use plimsoll_serving::write_limit::WriteLimited;
use rustix::net::RecvFlags;
use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, TcpStream};

/// Longest time that a connection may stay silent before it is closed.
const IDLE: Duration = Duration::from_secs(300);
/// Time for requests in flight when the server stops.
const DRAIN: Duration = Duration::from_millis(500);
/// The first bytes of an HTTP/2 client with prior knowledge.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a connection of HTTP/1.1 that are read and not used, and so its longest head.
const READ_BYTES_MAX: usize = 64 << 10;
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
    body_budget: Arc<Budget>,
    untaken: Arc<Untaken>,
    write_timeout: Duration,
}

impl Served {
    /// APIs in the order in which they are asked for a path. A client may take nothing of a reply for `write_timeout`.
    #[must_use]
    pub fn new(apis: Vec<Arc<dyn Api>>, write_timeout: Duration) -> Self {
        Self { apis, body_budget: Arc::default(), untaken: Arc::default(), write_timeout }
    }

    pub(crate) fn begin_stop(&self) {
        self.apis.iter().for_each(|api| api.begin_stop());
    }

    /// Closes all APIs; the error is that of the first that has one.
    pub(crate) fn close(&self) -> io::Result<()> {
        let closed: Vec<io::Result<()>> = self.apis.iter().map(|api| api.close()).collect();
        closed.into_iter().collect()
    }

    /// The API of a path; the first one answers unowned paths.
    fn api(&self, path: &str) -> Option<&Arc<dyn Api>> {
        self.apis.iter().find(|api| api.owns(path)).or_else(|| self.apis.first())
    }
}

/// One connection, as its requests know it.
struct Client {
    seat: Arc<Seat>,
    reader: Arc<Reader>,
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
            accepted = accept(&listener, &port.room) => accepted,
        };
        match accepted {
            Ok((stream, seat)) => {
                let (port, served) = (Arc::clone(&port), Arc::clone(&served));
                let watcher = graceful.watcher();
                tokio::spawn(async move {
                    let cut = Arc::clone(&port);
                    let client =
                        Arc::new(Client { seat: Arc::new(seat), reader: served.untaken.reader() });
                    let own = Arc::clone(&client);
                    // Clients may go away in the middle of anything; that is no event here.
                    tokio::select! {
                        biased;
                        () = cut.cut() => {}
                        () = client.seat.sent_away() => {}
                        () = client.reader.sent_away() => {}
                        () = connection(stream, port, served, watcher, own) => {}
                    }
                });
            }
            Err(_) => {
                port.room.send_one_away();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    port: Arc<Port>,
    served: Arc<Served>,
    watcher: Watcher,
    client: Arc<Client>,
) {
    let patience = served.write_timeout;
    let patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    // A client that takes nothing is cut off by the system too: hyper would wait for it.
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, patience_ms);
    let Ok(Some(two)) = tokio::time::timeout(IDLE, speaks_http2(&stream)).await else { return };
    let service = service_fn(move |request| {
        let (port, served, client) = (Arc::clone(&port), Arc::clone(&served), Arc::clone(&client));
        async move { Ok::<_, Infallible>(answer(&port, &served, request, &client).await) }
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
            .max_buf_size(READ_BYTES_MAX)
            .serve_connection(io, service);
        let _ = watcher.watch(connection).await;
    }
}

/// Looks at the first bytes without taking them; nothing when the client went away at once.
///
/// A preface in pieces leaves its bytes in the socket, which therefore stays readable. Each look that finds no more than a piece
/// ends as one that would block: then the next one waits for more bytes, and a client that sends one byte costs nothing.
async fn speaks_http2(stream: &TcpStream) -> Option<bool> {
    let mut first = [0; PREFACE.len()];
    loop {
        let ready = stream.ready(Interest::READABLE).await.ok()?;
        let looked = stream.try_io(Interest::READABLE, || {
            let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            let (count, _) = rustix::net::recv(stream, &mut first[..], flags)?;
            let is_piece = count < PREFACE.len() && first[..count] == PREFACE[..count];
            if count > 0 && is_piece { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
        });
        match looked {
            Ok(0) => return None,
            Ok(count) => return Some(first[..count] == *PREFACE),
            // Nobody is left who could send the rest.
            Err(_) if ready.is_read_closed() => return None,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

async fn answer(
    port: &Arc<Port>,
    served: &Served,
    request: Request<Incoming>,
    client: &Client,
) -> Reply {
    let start_ns = now_ns();
    let (head, body) = request.into_parts();
    let mut body = Body::new(body, &served.body_budget, &client.seat);
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or(""));
    let (kind, mut reply) = match served.api(path) {
        Some(api) => {
            let (method, headers) = (&head.method, &head.headers);
            let call = Call { port, method, path, query, headers, body: &mut body };
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
    served.untaken.count(&mut reply, &client.reader, head.version);
    port.metrics.record(kind, reply.status(), now_ns() - start_ns);
    reply
}

/// Returns true if a method only reads.
#[must_use]
pub fn reads(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    /// A pair of connected sockets: the client's, and the server's.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    /// Polls a look until its client has done nothing more for a while, and returns the number of polls.
    async fn polls(server: &TcpStream) -> u32 {
        let mut count = 0;
        let mut looking = Box::pin(speaks_http2(server));
        let counted = std::future::poll_fn(|context| {
            count += 1;
            looking.as_mut().poll(context)
        });
        let _ = tokio::time::timeout(Duration::from_millis(200), counted).await;
        count
    }

    #[tokio::test]
    async fn a_client_that_stops_within_the_preface_is_not_polled() {
        let (mut client, server) = pair().await;
        client.write_all(&PREFACE[..1]).await.unwrap();
        // Once by the look itself, once by the byte, and by the timer that ends the test.
        assert!(polls(&server).await <= 5);
    }

    #[tokio::test]
    async fn protocols_are_told_apart_however_their_first_bytes_are_cut() {
        for (bytes, expected) in [(PREFACE, true), (b"POST / HTTP/1.1\r\nHost: a\r\n", false)] {
            let (mut client, server) = pair().await;
            let looking = tokio::spawn(async move { (speaks_http2(&server).await, server) });
            for byte in bytes {
                client.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            // The socket lives until all bytes are written.
            assert_eq!(looking.await.unwrap().0, Some(expected));
        }
        for (bytes, expected) in [(&b""[..], None), (&PREFACE[..3], None), (b"G", Some(false))] {
            let (mut client, server) = pair().await;
            client.write_all(bytes).await.unwrap();
            drop(client);
            assert_eq!(speaks_http2(&server).await, expected, "{bytes:?}");
        }
    }
}
