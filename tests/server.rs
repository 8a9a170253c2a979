//! A server that does what a script says and keeps what it saw.

use plimsoll_core::clock::now_ns;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Number of the connection, from 0.
    pub connection: usize,
    /// Number of the request on its connection, from 0.
    pub on_connection: usize,
    /// Number of the request over all connections, from 0.
    pub number: usize,
    /// Every byte of it.
    pub bytes: Vec<u8>,
    /// When its last byte had come, ns on the monotonic clock.
    pub at_ns: u64,
}

impl Seen {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The request target.
    pub fn path(&self) -> String {
        let text = self.text();
        let line = text.lines().next().unwrap_or_default();
        line.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    pub fn body(&self) -> String {
        self.text().split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned())
    }
}

/// One thing that the server does.
#[derive(Clone, Debug)]
pub enum Step {
    Send(Vec<u8>),
    Sleep(Duration),
    /// Ends the connection in order.
    Close,
    /// Ends it with a reset.
    Reset,
    /// Never answers; the connection stays open.
    Hang,
}

type Script = dyn Fn(&Seen) -> Vec<Step> + Send + Sync;

struct Shared {
    script: Box<Script>,
    on_accept: Vec<Step>,
    seen: Mutex<Vec<Seen>>,
    requests: AtomicUsize,
    connections: AtomicUsize,
    /// Connections that are open.
    open: AtomicUsize,
    stop: AtomicBool,
}

/// A scripted server; it ends when dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers each request as `script` says.
    pub fn start(script: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::with(TcpListener::bind("127.0.0.1:0").unwrap(), Vec::new(), Box::new(script))
    }

    /// On another address, such as `[::1]:0`.
    pub fn on(address: &str, script: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::with(TcpListener::bind(address).unwrap(), Vec::new(), Box::new(script))
    }

    /// Does `steps` with each connection before anything is read.
    pub fn greeting(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::with(listener, steps, Box::new(|_| vec![Step::Close]))
    }

    /// Answers every request with 200 and a short body.
    pub fn ok() -> Self {
        Self::start(|_| vec![Step::Send(ok("ok"))])
    }

    /// Reads requests and never answers.
    pub fn silent() -> Self {
        Self::start(|_| vec![Step::Hang])
    }

    fn with(listener: TcpListener, on_accept: Vec<Step>, script: Box<Script>) -> Self {
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script,
            on_accept,
            seen: Mutex::new(Vec::new()),
            requests: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let own = shared.clone();
        let acceptor = std::thread::spawn(move || accept(&listener, &own));
        Self { address, shared, acceptor: Some(acceptor) }
    }

    pub fn port(&self) -> String {
        self.address.port().to_string()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that came, in order of arrival.
    pub fn seen(&self) -> Vec<Seen> {
        let mut seen = self.shared.seen.lock().unwrap().clone();
        seen.sort_by_key(|request| request.number);
        seen
    }

    /// Whole requests that came.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Connections that were accepted, the look at whether the server is there left out.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Request targets in order of arrival.
    pub fn paths(&self) -> Vec<String> {
        self.seen().iter().map(Seen::path).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        if shared.stop.load(Ordering::SeqCst) {
            break;
        }
        // A run looks for its target before it opens connections of its own.
        if shared.open.load(Ordering::SeqCst) == 0 && is_a_look(&stream, listener) {
            continue;
        }
        let connection = shared.connections.fetch_add(1, Ordering::SeqCst);
        shared.open.fetch_add(1, Ordering::SeqCst);
        let own = shared.clone();
        threads.push(std::thread::spawn(move || {
            converse(stream, connection, &own);
            own.open.fetch_sub(1, Ordering::SeqCst);
        }));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// Returns whether a connection is closed again without a byte. One that stays open while the next one comes is none: a run
/// that opens several at once may ask on another one first, and must not be kept waiting for that.
fn is_a_look(stream: &TcpStream, listener: &TcpListener) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut awaited = [PollFd::new(stream, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
    let patience = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let _ = poll(&mut awaited, Some(&patience));
    let has_ended = !awaited[0].revents().is_empty();
    has_ended && stream.peek(&mut [0]).map_or(true, |bytes| bytes == 0)
}

fn converse(mut stream: TcpStream, connection: usize, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
    if !act(&mut stream, &shared.on_accept, shared) {
        return;
    }
    let mut pending = Vec::new();
    let mut on_connection = 0;
    while let Some(bytes) = read_request(&mut stream, &mut pending, shared) {
        let number = shared.requests.fetch_add(1, Ordering::SeqCst);
        let seen = Seen { connection, on_connection, number, bytes, at_ns: now_ns() };
        on_connection += 1;
        let steps = (shared.script)(&seen);
        shared.seen.lock().unwrap().push(seen);
        // A connection that is always busy must not outlive the test.
        if !act(&mut stream, &steps, shared) || shared.stop.load(Ordering::SeqCst) {
            return;
        }
    }
}

/// Does the steps; false when the connection is over.
fn act(stream: &mut TcpStream, steps: &[Step], shared: &Shared) -> bool {
    for step in steps {
        match step {
            Step::Send(bytes) => {
                if stream.write_all(bytes).is_err() {
                    return false;
                }
            }
            Step::Sleep(time) => std::thread::sleep(*time),
            Step::Close => {
                let _ = stream.shutdown(Shutdown::Both);
                return false;
            }
            Step::Reset => {
                let none = Some(Duration::ZERO);
                rustix::net::sockopt::set_socket_linger(&*stream, none).unwrap();
                return false;
            }
            Step::Hang => {
                let mut buffer = [0; 4096];
                loop {
                    match stream.read(&mut buffer) {
                        Ok(0) => return false,
                        Ok(_) => {}
                        Err(error) if is_timeout(&error) => {}
                        Err(_) => return false,
                    }
                    if shared.stop.load(Ordering::SeqCst) {
                        return false;
                    }
                }
            }
        }
    }
    true
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Reads one whole request; `None` when the client is gone or the test is over.
fn read_request(stream: &mut TcpStream, pending: &mut Vec<u8>, shared: &Shared) -> Option<Vec<u8>> {
    let mut buffer = [0; 65_536];
    loop {
        if let Some(length) = request_length(pending) {
            let rest = pending.split_off(length);
            return Some(std::mem::replace(pending, rest));
        }
        match stream.read(&mut buffer) {
            Ok(0) => return None,
            Ok(n) => pending.extend_from_slice(&buffer[..n]),
            Err(error) if is_timeout(&error) => {
                if shared.stop.load(Ordering::SeqCst) {
                    return None;
                }
            }
            Err(_) => return None,
        }
    }
}

/// Length of the first whole request, by its Content-Length.
fn request_length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |value| value.trim().parse().unwrap());
    (bytes.len() >= head + length).then_some(head + length)
}

/// A 200 with a body.
pub fn ok(body: &str) -> Vec<u8> {
    reply(200, "", body.as_bytes())
}

/// A reply with a status, further header lines (each ended by CRLF) and a body.
pub fn reply(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n", body.len())
            .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Steps that send these bytes.
pub fn send(text: &str) -> Vec<Step> {
    vec![Step::Send(text.as_bytes().to_vec())]
}

/// A port on which nobody listens. Another program may take it, as the test itself may.
pub fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

/// A port on which nobody listens while the tests run: it is taken, and refuses connections.
pub fn refusing_port() -> u16 {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
    // It stays open until the process ends.
    std::mem::forget(socket);
    address.port()
}
