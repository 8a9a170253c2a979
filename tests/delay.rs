//! A long way: a proxy that holds back every byte for half a round trip, in both directions.
//!
//! Bytes keep their order and their pace; only time is added, as on a long line whose bandwidth is not the limit.
//! A connection is made at once on this side, so its first bytes wait a round trip more, as a handshake would.

use plimsoll_core::clock::now_ns;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Pieces that may be on their way at once on one connection and direction: 64 KB each at most.
const PIECES_MAX: usize = 4096;

/// Bytes, and when they arrive, ns on the monotonic clock.
type Piece = (u64, Vec<u8>);

/// The proxy; it ends when dropped.
pub struct Delay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Delay {
    /// Before the server at `upstream` (`host:port`), with this round trip.
    ///
    /// # Errors
    /// When no port is free.
    pub fn start(upstream: &str, round_trip: Duration) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (upstream, own) = (upstream.to_owned(), Arc::clone(&stop));
        let acceptor = std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if own.load(Ordering::SeqCst) {
                    break;
                }
                // A server that is gone is seen as a connection that is closed at once.
                if let Ok(server) = TcpStream::connect(&upstream) {
                    let _ = join(client, server, round_trip);
                }
            }
        });
        Ok(Self { address, stop, acceptor: Some(acceptor) })
    }

    /// Its address, `http://host:port/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the acceptor; the threads of a connection end with it.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Lets bytes flow both ways until both sides have closed.
fn join(client: TcpStream, server: TcpStream, round_trip: Duration) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let half_ns = round_trip.as_nanos() as u64 / 2;
    let shaken_ns = now_ns() + 2 * half_ns;
    way(client.try_clone()?, server.try_clone()?, half_ns, shaken_ns);
    way(server, client, half_ns, 0);
    Ok(())
}

/// One direction: what comes in goes out `delay_ns` later, but what came before `from_ns` as if it had come then.
fn way(mut from: TcpStream, to: TcpStream, delay_ns: u64, from_ns: u64) {
    let (sender, receiver): (SyncSender<Piece>, _) = sync_channel(PIECES_MAX);
    std::thread::spawn(move || deliver(&receiver, to));
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let due_ns = now_ns().max(from_ns) + delay_ns;
            if sender.send((due_ns, buffer[..read].to_vec())).is_err() {
                break;
            }
        }
        // Its end travels as long as its bytes: an empty piece.
        let _ = sender.send((now_ns() + delay_ns, Vec::new()));
    });
}

fn deliver(pieces: &Receiver<Piece>, mut to: TcpStream) {
    for (due_ns, bytes) in pieces {
        let left_ns = due_ns.saturating_sub(now_ns());
        if left_ns > 0 {
            std::thread::sleep(Duration::from_nanos(left_ns));
        }
        if bytes.is_empty() || to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
