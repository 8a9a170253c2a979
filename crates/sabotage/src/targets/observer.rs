//! An observer: a server that answers at once and writes down when each request came, by its number in the path.
//!
//! It shares no code with the generator. The time of an arrival is the kernel's stamp of the segment that completed the request,
//! so that an observer that is late itself, on a loaded machine, does not move it.

use crate::sabotages::cores;
use plimsoll_core::clock::now_ns;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// One request as the observer saw it, ns on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The number in its path.
    pub number: u64,
    /// The kernel had its last byte.
    pub came_ns: u64,
    /// Its answer was about to be handed over.
    pub answered_ns: u64,
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LISTENER: u64 = 0;
/// Largest head of a request; a connection that sends more is closed.
const HEAD_MAX: usize = 16_384;
/// Events taken from the kernel at once.
const EVENTS: usize = 256;
/// A running observer; it ends when dropped.
#[derive(Debug)]
pub struct Observer {
    /// Address on which it listens.
    pub address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Arrival>>>,
}

impl Observer {
    /// Starts one on a free port, on this core.
    ///
    /// # Errors
    /// When there is no port or thread.
    pub fn start(core: usize) -> Result<Self, String> {
        let said = |error: io::Error| format!("the observer cannot start: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(said)?;
        listener.set_nonblocking(true).map_err(said)?;
        // Accepted connections inherit it.
        stamp(&listener).map_err(said)?;
        let address = listener.local_addr().map_err(said)?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = over.clone();
        let work = move || {
            cores::bind_to(core);
            Watching::default().until(&listener, &ended)
        };
        let thread = Some(std::thread::Builder::new().spawn(work).map_err(said)?);
        Ok(Self { address, over, thread })
    }

    /// Ends it and returns all arrivals, in the order of time.
    #[must_use]
    pub fn end(mut self) -> Vec<Arrival> {
        self.stop()
    }

    fn stop(&mut self) -> Vec<Arrival> {
        self.over.store(true, Ordering::Relaxed);
        // Somebody who comes wakes it.
        let _ = TcpStream::connect(self.address);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The state of the thread.
#[derive(Default)]
struct Watching {
    connections: HashMap<u64, (OwnedFd, Vec<u8>)>,
    next: u64,
    arrivals: Vec<Arrival>,
}

impl Watching {
    fn until(mut self, listener: &TcpListener, over: &AtomicBool) -> Vec<Arrival> {
        let Ok(queue) = epoll::create(CreateFlags::CLOEXEC) else { return Vec::new() };
        if epoll::add(&queue, listener, EventData::new_u64(LISTENER), EventFlags::IN).is_err() {
            return Vec::new();
        }
        let empty = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let (mut events, mut buffer) = (vec![empty; EVENTS], vec![0; HEAD_MAX]);
        while !over.load(Ordering::Relaxed) {
            let count = match epoll::wait(&queue, &mut events[..], None) {
                Ok(count) => count,
                Err(Errno::INTR) => 0,
                Err(_) => break,
            };
            for event in &events[..count] {
                let data = event.data;
                match data.u64() {
                    LISTENER => self.accept(listener, &queue),
                    ticket => self.read(ticket, &mut buffer),
                }
            }
        }
        self.arrivals
    }

    fn accept(&mut self, listener: &TcpListener, queue: &OwnedFd) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        while let Ok(stream) = rustix::net::accept_with(listener, flags) {
            let _ = rustix::net::sockopt::set_tcp_nodelay(&stream, true);
            self.next += 1;
            let data = EventData::new_u64(self.next);
            if epoll::add(queue, &stream, data, EventFlags::IN).is_ok() {
                self.connections.insert(self.next, (stream, Vec::new()));
            }
        }
    }

    fn read(&mut self, ticket: u64, buffer: &mut [u8]) {
        let Some((stream, rest)) = self.connections.get_mut(&ticket) else { return };
        let (read, came_ns) = match receive(stream, buffer) {
            Ok((read @ 1.., came_ns)) => (read, came_ns),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            _ => {
                self.connections.remove(&ticket);
                return;
            }
        };
        rest.extend_from_slice(&buffer[..read]);
        let mut used = 0;
        while let Some(length) = head(&rest[used..]) {
            let number = number(&rest[used..used + length]);
            used += length;
            self.arrivals.push(Arrival { number, came_ns, answered_ns: now_ns() });
            let sent = rustix::net::send(&*stream, ANSWER, SendFlags::NOSIGNAL);
            if sent != Ok(ANSWER.len()) {
                self.connections.remove(&ticket);
                return;
            }
        }
        rest.drain(..used);
        if rest.len() > HEAD_MAX {
            self.connections.remove(&ticket);
        }
    }
}

/// Asks the kernel for the time of what a socket receives.
fn stamp(socket: &impl AsRawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let length = size_of_val(&on) as libc::socklen_t;
    // SAFETY: the option is an int, which lives until the call has returned.
    let result = unsafe {
        let (level, name) = (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS);
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const on).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives, and says when the last segment of it had come, ns on the monotonic clock; without a stamp, now.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<(usize, u64)> {
    // Aligned as the headers of control messages.
    let mut control = [0u64; 16];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a zeroed header is a valid one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header points at a buffer and a control buffer of the lengths that it gives.
    let read = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let Ok(read) = usize::try_from(read) else { return Err(io::Error::last_os_error()) };
    // SAFETY: the kernel has filled the header; the macros stay within the control buffer.
    let first = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let stamp = first.filter(|head| {
        (head.cmsg_level, head.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)
    });
    let at_ns = now_ns();
    let Some(stamp) = stamp else { return Ok((read, at_ns)) };
    // SAFETY: a message of this type holds a timespec, which need not be aligned.
    let wall: libc::timespec =
        unsafe { libc::CMSG_DATA(stamp).cast::<libc::timespec>().read_unaligned() };
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let ago_ns = (now.tv_sec - wall.tv_sec) * 1_000_000_000 + (now.tv_nsec - wall.tv_nsec);
    Ok((read, at_ns.saturating_sub(u64::try_from(ago_ns).unwrap_or(0))))
}

/// Length of the first head, its blank line included.
fn head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// The number that follows the first slash.
fn number(head: &[u8]) -> u64 {
    let digits = head.iter().skip_while(|byte| **byte != b'/').skip(1);
    let digits = digits.take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number.wrapping_mul(10) + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn each_request_is_written_down_with_its_number_and_answered() {
        let observer = Observer::start(0).unwrap();
        let mut stream = TcpStream::connect(observer.address).unwrap();
        let begun_ns = now_ns();
        // Two in one piece, the second of them in two.
        stream.write_all(b"GET /7 HTTP/1.1\r\nHost: a\r\n\r\nGET /12 HT").unwrap();
        let mut answers = vec![0; 2 * ANSWER.len()];
        stream.read_exact(&mut answers[..ANSWER.len()]).unwrap();
        stream.write_all(b"TP/1.1\r\n\r\n").unwrap();
        stream.read_exact(&mut answers[ANSWER.len()..]).unwrap();
        let arrivals = observer.end();
        assert_eq!(arrivals.iter().map(|one| one.number).collect::<Vec<_>>(), [7, 12]);
        assert!(arrivals.windows(2).all(|two| two[0].came_ns < two[1].came_ns));
        assert!(
            arrivals.iter().all(|one| begun_ns < one.came_ns && one.came_ns <= one.answered_ns)
        );
        assert_eq!(answers, [ANSWER, ANSWER].concat());
    }
}
