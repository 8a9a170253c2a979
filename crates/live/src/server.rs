//! The thread of the live page, and the run's end of it.

use crate::access::token;
use crate::address::Address;
use crate::board::{Board, end};
use crate::routes::route;
use crate::shared::{Hooks, Shared};
use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use plimsoll_core::clock::now_ns;
use plimsoll_core::priority::{StepBack, step_back};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Builder;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Most connections at once, with the token and without.
const CONNECTIONS_MAX: usize = 1_024;
/// Connections that may wait to be accepted, and longer than usual when many come without the token.
const ACCEPT_QUEUE: i32 = 1_024;
/// Longest wait for the head of a request.
const HEAD_WAIT: Duration = Duration::from_secs(10);
/// Longest wait, after the end of the run, until readers have the report.
pub const GOODBYE: Duration = Duration::from_secs(1);
/// Time over which the readers of an event are spread.
const SPREAD: Duration = Duration::from_millis(600);
/// Longest time between two readers of an event.
const PAUSE_MAX: Duration = Duration::from_millis(12);

/// The live page of a run.
pub struct Live {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl Live {
    /// Begins to serve on an address.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the system has no thread or no random numbers left.
    pub fn start(address: Address, hooks: Hooks) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address.0)?;
        rustix::net::listen(&listener, ACCEPT_QUEUE)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(token()?, address.ip().is_loopback(), hooks));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let own = shared.clone();
        Builder::new().name("live".to_owned()).spawn(move || {
            step_back(StepBack::Last);
            // As a task, it takes its turn behind the connections: see `Strangers::make_room`.
            let serving = runtime.spawn(async move { serve(listener, &own).await });
            let _ = runtime.block_on(serving);
        })?;
        Ok(Self { shared, address })
    }

    /// The address of the page, with its token.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/?token={}", self.address, self.shared.token)
    }

    /// The path of the events, with the token, as a page of this structure asks for them.
    #[must_use]
    pub fn events(&self, board: &Board) -> String {
        format!("/events?token={}&page={}", self.shared.token, board.edition())
    }

    /// Number of readers that follow.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.shared.lock().readers.count()
    }

    /// Shows `board` from now on, and sends readers everything that has changed. Never waits for a reader, but spreads them over
    /// a part of a second: fifty browsers that draw at the same moment would take every processor of the machine.
    pub fn publish(&self, board: Board) {
        let has_page = !board.page.is_empty();
        let (number, event, ids) = {
            let mut guard = self.shared.lock();
            let shown = &mut *guard;
            let number = shown.number + 1;
            let event = board.since(&shown.board, number);
            if let Some(event) = &event {
                shown.number = number;
                shown.ring.push(number, event.clone());
            }
            if has_page {
                shown.page = Bytes::from(board.page.clone());
                shown.page_ns = now_ns();
            }
            shown.board = board;
            (number, event, shown.readers.ids())
        };
        if has_page {
            self.shared.renewed.notify_waiters();
        }
        let Some(event) = event else { return };
        let pause = SPREAD / u32::try_from(ids.len().max(1)).unwrap_or(u32::MAX);
        for id in ids {
            self.shared.lock().readers.send(id, number, &event);
            std::thread::sleep(pause.min(PAUSE_MAX));
        }
    }

    /// Sends the report to all readers, and ends. Waits at most [`GOODBYE`] until they have it; a reader that takes nothing is
    /// left behind.
    pub fn end(&self, report: &str) {
        let open = {
            let mut guard = self.shared.lock();
            let shown = &mut *guard;
            shown.number += 1;
            let event = end(report, shown.number);
            shown.report = Some(Bytes::from(report.to_owned()));
            shown.ring.push(shown.number, event.clone());
            for id in shown.readers.ids() {
                shown.readers.send(id, shown.number, &event);
            }
            shown.readers.close()
        };
        let until_ns = now_ns() + GOODBYE.as_nanos() as u64;
        let is_left = || {
            open.load(Ordering::SeqCst) > 0 || self.shared.connections.load(Ordering::SeqCst) > 0
        };
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.over.notify_waiters();
        while is_left() && now_ns() < until_ns {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Takes connections until the process ends: a page that comes back within the goodbye still has the report.
async fn serve(listener: std::net::TcpListener, shared: &Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptor is left, for now.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if shared.connections.load(Ordering::SeqCst) >= CONNECTIONS_MAX {
            continue;
        }
        let _ = stream.set_nodelay(true);
        shared.strangers.make_room().await;
        let counted = Counted::one(shared);
        let own = shared.clone();
        // The connection needs to know how it can be ended.
        let (handle, connection) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            // Dropped also when the task is aborted.
            let _counted = counted;
            let Ok(handle) = connection.await else { return };
            let id = AbortHandle::id(&handle);
            connect(stream, &own, handle).await;
            own.strangers.remove(id);
        });
        shared.strangers.add(task.abort_handle());
        let _ = handle.send(task.abort_handle());
    }
}

/// Counts a connection while it lasts, also when it is aborted.
struct Counted(Arc<Shared>);

impl Counted {
    fn one(shared: &Arc<Shared>) -> Self {
        shared.connections.fetch_add(1, Ordering::SeqCst);
        Self(shared.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Serves one connection. At the end of the run it is closed after the answer that is being sent.
async fn connect(stream: TcpStream, shared: &Arc<Shared>, handle: AbortHandle) {
    let service = service_fn(|request| {
        let (shared, handle) = (shared.clone(), handle.clone());
        async move { Ok::<_, Infallible>(route(&shared, &request, &handle).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .max_buf_size(32 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let over = shared.over.notified();
    tokio::pin!(over);
    // Registered before the look at the flag, so that the end is not missed between the two.
    over.as_mut().enable();
    if !shared.is_over.load(Ordering::SeqCst) {
        tokio::select! {
            // A browser that went away is no error.
            _ = connection.as_mut() => return,
            () = over => {}
        }
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use super::{Hooks, Live, now_ns};
    use crate::strangers::{GRACE, STRANGERS_MAX};
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::time::Duration;

    fn live() -> Live {
        let address = "127.0.0.1:0".parse().unwrap();
        let hooks = Hooks {
            renew: Box::new(|| ()),
            stop: Box::new(|| ()),
            metrics: Box::new(String::new),
            metrics_kind: "text/plain",
        };
        Live::start(address, hooks).unwrap()
    }

    fn connect(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// The status of a request with the token.
    fn status(live: &Live, mut stream: TcpStream) -> String {
        let request = format!(
            "GET /stop?token={} HTTP/1.1\r\nHost: {}\r\n\r\n",
            live.shared.token, live.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        String::from_utf8_lossy(&start).into_owned()
    }

    #[test]
    fn a_connection_has_time_to_show_the_token_while_hundreds_come_without() {
        let live = live();
        let mut silent = Vec::new();
        for _ in 0..10 {
            let begin_ns = now_ns();
            let honest = connect(live.address);
            silent.extend((0..2 * STRANGERS_MAX).map(|_| connect(live.address)));
            std::thread::sleep(GRACE / 10);
            // On a busy machine the threads may sleep longer than the time that the connection has.
            if now_ns() - begin_ns < GRACE.as_nanos() as u64 {
                assert_eq!(status(&live, honest), "HTTP/1.1 405");
                return;
            }
            silent.clear();
        }
        panic!("the machine is too busy for this test");
    }

    #[test]
    fn connections_that_stay_silent_make_room() {
        let live = live();
        let mut silent: Vec<_> = (0..STRANGERS_MAX).map(|_| connect(live.address)).collect();
        std::thread::sleep(2 * GRACE);
        assert_eq!(status(&live, connect(live.address)), "HTTP/1.1 405");
        assert_eq!(silent[0].read(&mut [0]).unwrap(), 0, "the oldest is closed");
    }
}
