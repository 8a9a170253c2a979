//! A proxy before a real server that spoils replies: it cuts, truncates, rejects and inserts, as it is told.
//!
//! One request at a time on a connection, as HTTP/1.1 without pipelining has it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What happens to one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: it passes as it is.
    None,
    /// The request never reaches the server; this status answers it.
    Status(u16),
    /// The request never reaches the server; somebody else answers it with 200 and this.
    Instead(&'static str),
    /// The connection is closed in order after so many bytes of the body.
    Cut(usize),
    /// The same with a reset.
    Reset(usize),
    /// After so many bytes of the body the chunk under way is ended early, and the reply in order with it.
    Truncate(usize),
    /// After so many bytes of the body a line is inserted where a line ends, and the reply ends.
    ErrorLine(usize),
}

/// Says what happens to the reply of a request, by its number from 0 and its head.
type Plan = dyn Fn(usize, &str) -> Fault + Send + Sync;

/// The proxy; it ends when dropped.
pub struct Faults {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    spoilt: Arc<AtomicUsize>,
    acceptor: Option<JoinHandle<()>>,
}

impl Faults {
    /// Before the server at `upstream` (`host:port`).
    pub fn start(
        upstream: &str,
        plan: impl Fn(usize, &str) -> Fault + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, spoilt) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (upstream, plan): (String, Arc<Plan>) = (upstream.to_owned(), Arc::new(plan));
        let (ended, counted) = (Arc::clone(&stop), Arc::clone(&spoilt));
        let requests = Arc::new(AtomicUsize::new(0));
        let acceptor = std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if ended.load(Ordering::SeqCst) {
                    break;
                }
                let (plan, upstream) = (Arc::clone(&plan), upstream.clone());
                let (requests, counted) = (Arc::clone(&requests), Arc::clone(&counted));
                // A broken connection ends its thread; that is what it is for.
                std::thread::spawn(move || {
                    converse(client, &upstream, &*plan, &requests, &counted)
                });
            }
        });
        Self { address, stop, spoilt, acceptor: Some(acceptor) }
    }

    /// Its address, `http://host:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many replies were spoilt.
    pub fn spoilt(&self) -> usize {
        self.spoilt.load(Ordering::SeqCst)
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn converse(
    client: TcpStream,
    upstream: &str,
    plan: &Plan,
    requests: &AtomicUsize,
    spoilt: &AtomicUsize,
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let server = TcpStream::connect(upstream)?;
    server.set_nodelay(true)?;
    let (mut asked, mut answered) =
        (BufReader::new(client.try_clone()?), BufReader::new(server.try_clone()?));
    let (mut client, mut server) = (client, server);
    loop {
        let head = read_head(&mut asked)?;
        if head.is_empty() {
            return Ok(());
        }
        let mut body = vec![0; length_of(&head).unwrap_or(0)];
        asked.read_exact(&mut body)?;
        let fault = plan(requests.fetch_add(1, Ordering::SeqCst), &head);
        if fault != Fault::None {
            spoilt.fetch_add(1, Ordering::SeqCst);
        }
        let instead = match fault {
            Fault::Status(status) => Some((status, r#"{"message":"spoilt on its way"}"#)),
            Fault::Instead(body) => Some((200, body)),
            _ => None,
        };
        if let Some((status, body)) = instead {
            let length = body.len();
            write!(
                client,
                "HTTP/1.1 {status} Spoilt\r\nContent-Type: application/json\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            )?;
            continue;
        }
        server.write_all(head.as_bytes())?;
        server.write_all(&body)?;
        let head = read_head(&mut answered)?;
        client.write_all(head.as_bytes())?;
        let goes_on = match length_of(&head) {
            Some(length) => relay_whole(&mut answered, &mut client, length, fault)?,
            None => relay_chunks(&mut answered, &mut client, fault)?,
        };
        if !goes_on {
            return Ok(());
        }
    }
}

/// A head with its empty line; nothing when the peer has closed.
fn read_head(from: &mut impl BufRead) -> std::io::Result<String> {
    let mut head = String::new();
    while from.read_line(&mut head)? > 0 && !head.ends_with("\r\n\r\n") {}
    Ok(head)
}

fn length_of(head: &str) -> Option<usize> {
    let lower = head.to_ascii_lowercase();
    let line = lower.lines().find_map(|line| line.strip_prefix("content-length:"))?;
    line.trim().parse().ok()
}

/// A body of known length; false when the connection is over.
fn relay_whole(
    from: &mut impl Read,
    client: &mut TcpStream,
    length: usize,
    fault: Fault,
) -> std::io::Result<bool> {
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    let (Fault::Cut(after) | Fault::Reset(after) | Fault::Truncate(after)) = fault else {
        client.write_all(&body)?;
        return Ok(true);
    };
    client.write_all(&body[..after.min(length.saturating_sub(1))])?;
    end(client, fault)
}

/// A body in chunks; false when the connection is over.
fn relay_chunks(
    from: &mut impl BufRead,
    client: &mut TcpStream,
    fault: Fault,
) -> std::io::Result<bool> {
    let (mut passed, mut ended) = (0, false);
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let size = line.trim().split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size, 16).map_err(std::io::Error::other)?;
        let mut chunk = vec![0; size + 2];
        from.read_exact(&mut chunk)?;
        chunk.truncate(size);
        if size == 0 {
            if !ended {
                client.write_all(b"0\r\n\r\n")?;
            }
            return Ok(true);
        }
        if ended {
            // The server's rest is of no interest to anybody, but the connection to it goes on.
            continue;
        }
        let Some(piece) = spoil(&chunk, passed, fault) else {
            write_chunk(client, &chunk)?;
            passed += size;
            continue;
        };
        match fault {
            Fault::Truncate(_) | Fault::ErrorLine(_) => {
                write_chunk(client, &piece)?;
                client.write_all(b"0\r\n\r\n")?;
                ended = true;
            }
            _ => {
                // A chunk that promises more than comes.
                write!(client, "{:x}\r\n", chunk.len())?;
                client.write_all(&piece)?;
                return end(client, fault);
            }
        }
    }
}

fn write_chunk(client: &mut TcpStream, chunk: &[u8]) -> std::io::Result<()> {
    if chunk.is_empty() {
        return Ok(());
    }
    write!(client, "{:x}\r\n", chunk.len())?;
    client.write_all(chunk)?;
    client.write_all(b"\r\n")
}

/// What is left of a chunk that comes after `passed` bytes, when the fault falls into it.
fn spoil(chunk: &[u8], passed: usize, fault: Fault) -> Option<Vec<u8>> {
    let (Fault::Cut(after)
    | Fault::Reset(after)
    | Fault::Truncate(after)
    | Fault::ErrorLine(after)) = fault
    else {
        return None;
    };
    if passed + chunk.len() <= after {
        return None;
    }
    let mut piece = chunk[..after.saturating_sub(passed)].to_vec();
    if matches!(fault, Fault::ErrorLine(_)) {
        let line_end = piece.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if line_end == 0 && passed > 0 && piece.is_empty() {
            return None;
        }
        piece.truncate(line_end);
        piece.extend(br#"{"message":{"text":"a node went away","severity":"error"}}"#);
        piece.push(b'\n');
    }
    Some(piece)
}

fn end(client: &TcpStream, fault: Fault) -> std::io::Result<bool> {
    if matches!(fault, Fault::Reset(_)) {
        rustix::net::sockopt::set_socket_linger(client, Some(Duration::ZERO))?;
    } else {
        client.shutdown(Shutdown::Both)?;
    }
    Ok(false)
}
