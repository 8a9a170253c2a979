//! Slow and silent clients: they connect, and then send a byte every few seconds, or nothing.

use plimsoll_core::clock::now_ns;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time to connect.
const CONNECTING: Duration = Duration::from_secs(5);
/// Clients that the thread serves before it looks whether it is over.
const TURN: usize = 64;

/// Connected clients; all are closed when dropped.
pub struct Crowd {
    /// Clients that could connect.
    pub connected: usize,
    over: Arc<AtomicBool>,
    open: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

struct Client {
    stream: Option<TcpStream>,
    /// Bytes that it has sent; a silent one sends none.
    sent: Option<usize>,
}

impl Crowd {
    /// Connects `count` clients. Every second one sends a byte every `every`: first those of `opening`, then the letter a for
    /// ever, so that its request is never complete.
    #[must_use]
    pub fn start(
        address: SocketAddr,
        count: usize,
        opening: &'static [u8],
        every: Duration,
    ) -> Self {
        let client = |at: usize| {
            let stream = TcpStream::connect_timeout(&address, CONNECTING).ok()?;
            stream.set_nonblocking(true).ok()?;
            let _ = stream.set_nodelay(true);
            Some(Client { stream: Some(stream), sent: (at % 2 == 1).then_some(0) })
        };
        let mut clients: Vec<Client> = (0..count).filter_map(client).collect();
        let connected = clients.len();
        let (over, open) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(connected)));
        let (ended, counted) = (over.clone(), open.clone());
        let act = move || {
            let turns = clients.len().div_ceil(TURN).max(1) as u32;
            while !ended.load(Ordering::Relaxed) {
                let begun_ns = now_ns();
                for (turn, some) in clients.chunks_mut(TURN).enumerate() {
                    some.iter_mut().for_each(|client| client.act(opening));
                    // Spread over the whole time: the bytes do not come together.
                    let due_ns = begun_ns + (every / turns * (turn as u32 + 1)).as_nanos() as u64;
                    std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                }
                let open = clients.iter().filter(|client| client.stream.is_some()).count();
                counted.store(open, Ordering::Relaxed);
            }
        };
        Self { connected, over, open, thread: Some(std::thread::spawn(act)) }
    }

    /// Clients whose connection the server had not closed when each was last looked at.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

impl Client {
    fn act(&mut self, opening: &[u8]) {
        let Some(stream) = &mut self.stream else { return };
        let was_closed = match stream.read(&mut [0; 512]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        let is_open = !was_closed
            && self.sent.as_mut().is_none_or(|sent| {
                let byte = opening.get(*sent).copied().unwrap_or(b'a');
                *sent += 1;
                stream.write(&[byte]).is_ok()
            });
        if !is_open {
            self.stream = None;
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn half_of_them_send_a_byte_now_and_then_and_the_others_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = std::thread::spawn(move || -> Vec<TcpStream> {
            (0..4).map(|_| listener.accept().unwrap().0).collect()
        });
        let crowd = Crowd::start(address, 4, b"GET", Duration::from_millis(10));
        let mut servers = accepting.join().unwrap();
        assert_eq!(crowd.connected, 4);
        for (at, server) in servers.iter_mut().enumerate() {
            if at % 2 == 1 {
                let mut bytes = [0; 5];
                server.read_exact(&mut bytes).unwrap();
                assert_eq!(&bytes, b"GETaa");
            } else {
                server.set_nonblocking(true).unwrap();
                assert_eq!(server.read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        }
        // Of a client whose connection is closed by the server nothing is left.
        servers.truncate(3);
        while crowd.open() != 3 {
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(crowd);
        servers[0].set_nonblocking(false).unwrap();
        assert_eq!(servers[0].read(&mut [0; 9]).unwrap(), 0, "dropped, they are closed");
    }
}
