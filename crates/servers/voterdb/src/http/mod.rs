//! The HTTP JSON API 1.0: a gateway in front of the port. Each HTTP connection has a connection to the server behind it,
//! which it logs in to with the user that its requests name, so that there is one way in and one set of rules.

mod gate;
mod json;
mod memory;

use gate::{Gate, GateError};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use json::Asked;
use memory::{FORM_BYTES_MAX, Memory, Unread};
use plimsoll_serving::accept::{ACCEPT_PAUSE, accept};
use plimsoll_serving::room::{Room, Seat};
use plimsoll_serving::stop::Stop;
use plimsoll_serving::write_limit::{WRITE, WriteLimited};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};

type Reply = Response<Full<Bytes>>;

/// HTTP connections at a time; for a further one, the one that has been at rest longest is closed.
const CONNECTIONS_MAX: usize = 1_024;
/// Longest time that a request may take to arrive, and a connection may be idle.
const IDLE: Duration = Duration::from_secs(60);
/// Time for requests in flight when the server stops.
const DRAIN: Duration = Duration::from_secs(2);

/// Serves until a stop is requested. `volt` is where the server listens.
///
/// # Errors
/// When the system has no socket or thread to give.
pub(crate) fn serve(
    listener: std::net::TcpListener,
    volt: SocketAddr,
    stop: &Stop,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(accept_all(listener, volt, stop));
    runtime.shutdown_timeout(DRAIN);
    served
}

async fn accept_all(
    listener: std::net::TcpListener,
    volt: SocketAddr,
    stop: &Stop,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let stop = stop.as_fd().try_clone_to_owned()?;
    // SAFETY: the descriptor is a duplicate that `AsyncFd` owns: it stays open, and the same, as long.
    let stopped = unsafe { AsyncFd::register(stop) }?;
    let (tell, stopping) = watch::channel(false);
    let room = Room::new(CONNECTIONS_MAX);
    let memory = Arc::new(Memory::default());
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.readable() => break,
            accepted = accept(&listener, &room) => accepted,
        };
        match accepted {
            Ok((stream, seat)) => {
                let (stopping, memory) = (stopping.clone(), Arc::clone(&memory));
                tokio::spawn(async move {
                    let seat = Arc::new(seat);
                    tokio::select! {
                        () = seat.sent_away() => {}
                        () = connection(WriteLimited::new(stream, WRITE), (volt, memory), stopping, &seat) => {}
                    }
                });
            }
            Err(_) => {
                room.send_one_away();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let _ = tell.send(true);
    let _ = tokio::time::timeout(DRAIN, room.emptied()).await;
    Ok(())
}

async fn connection(
    stream: WriteLimited<tokio::net::TcpStream>,
    (volt, memory): (SocketAddr, Arc<Memory>),
    mut stopping: watch::Receiver<bool>,
    seat: &Arc<Seat>,
) {
    // Requests of a connection come one after another: the lock is never waited for.
    let gate = Arc::new(Mutex::new(None));
    let own = Arc::clone(seat);
    let service = service_fn(move |request| {
        let (gate, seat, memory) = (Arc::clone(&gate), Arc::clone(&own), Arc::clone(&memory));
        async move { Ok::<_, Infallible>(answer(request, (volt, &memory), &gate, &seat).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // Clients may go away in the middle of anything; that is no event here.
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

async fn answer(
    request: Request<Incoming>,
    (volt, memory): (SocketAddr, &Memory),
    gate: &Mutex<Option<Gate>>,
    seat: &Seat,
) -> Reply {
    let (head, body) = request.into_parts();
    if !matches!(head.uri.path(), "/api/1.0" | "/api/1.0/") {
        let text = "nothing here; there is /api/1.0/?Procedure=NAME&Parameters=[...]\n";
        return reply(StatusCode::NOT_FOUND, "text/plain", text.to_owned());
    }
    let mut text = head.uri.query().unwrap_or_default().to_owned();
    let mut _form = None;
    match head.method {
        Method::GET => {}
        Method::POST => {
            let read = tokio::time::timeout(IDLE, memory.form(body)).await;
            let form = match read.unwrap_or(Err(Unread::Unreadable)) {
                Ok(form) => form,
                Err(Unread::Unreadable) => {
                    let text = format!(
                        "the form cannot be read, or has more than {FORM_BYTES_MAX} bytes\n"
                    );
                    return reply(StatusCode::BAD_REQUEST, "text/plain", text);
                }
                Err(Unread::Busy) => {
                    return busy("forms of other requests take all memory for them");
                }
            };
            text.push('&');
            text.push_str(form.text.trim_end());
            _form = Some(form);
        }
        _ => {
            let text = "the method must be GET or POST\n".to_owned();
            let mut reply = reply(StatusCode::METHOD_NOT_ALLOWED, "text/plain", text);
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
            return reply;
        }
    }
    let _served = seat.serve();
    let asked = match Asked::parse(&text) {
        Ok(asked) => asked,
        Err(why) => return page(memory, StatusCode::OK, None, json::failure(-3, &why)),
    };
    let callback = asked.callback.clone();
    let (status, text) = match call(&asked, volt, gate).await {
        Ok(text) => (StatusCode::OK, text),
        Err(GateError::Refused) => {
            (StatusCode::UNAUTHORIZED, json::failure(-3, "Failed to authenticate client"))
        }
        Err(GateError::Broken(why)) => (StatusCode::SERVICE_UNAVAILABLE, json::failure(-4, &why)),
    };
    page(memory, status, callback.as_deref(), text)
}

/// Makes calls through the connection behind this one, which is opened again for another user.
async fn call(
    asked: &Asked,
    volt: SocketAddr,
    gate: &Mutex<Option<Gate>>,
) -> Result<String, GateError> {
    let mut slot = gate.lock().await;
    let mut open = match slot.take().filter(|open| open.is_of(&asked.login)) {
        Some(open) => open,
        None => Gate::open(volt, asked.login.clone()).await?,
    };
    let message = open.call(&asked.request).await?;
    *slot = Some(open);
    json::response(&message).map_err(GateError::Broken)
}

fn page(memory: &Memory, status: StatusCode, callback: Option<&str>, json: String) -> Reply {
    let (kind, text) = match callback {
        Some(callback) => ("application/javascript", format!("{callback}( {json} )")),
        None => ("application/json", json),
    };
    match memory.reply(text.into_bytes()) {
        Some(bytes) => reply(status, kind, bytes),
        None => busy("replies that their clients have not read take all memory for them"),
    }
}

fn busy(why: &str) -> Reply {
    reply(StatusCode::SERVICE_UNAVAILABLE, "text/plain", format!("{why}; ask again\n"))
}

fn reply(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(text.into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// Reads the query of a request; the message if it is rejected. For fuzzing.
pub(crate) fn fuzz_query(text: &str) -> Option<String> {
    Asked::parse(text).err()
}

/// Writes a message as JSON; the message if it cannot be read. For fuzzing.
pub(crate) fn fuzz_response(message: &[u8]) -> Option<String> {
    json::response(message).err()
}
