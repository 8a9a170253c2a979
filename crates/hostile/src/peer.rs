//! A server on loopback whose connections are played by a function.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time after which a blocked read or write looks whether the play is over.
const GLANCE: Duration = Duration::from_millis(50);

/// The part of one connection.
pub type Part = fn(&mut Wire) -> std::io::Result<()>;

/// One connection of a client, as the hostile side has it.
pub struct Wire {
    stream: TcpStream,
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    /// Bytes that the client has sent and that were not used yet.
    input: Vec<u8>,
    /// Number of the connection, from 0: a client may look at a server before its run.
    pub number: u64,
}

impl Wire {
    fn new(stream: TcpStream, number: u64, stop: Arc<AtomicBool>, sent: Arc<AtomicU64>) -> Self {
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(Some(GLANCE));
        let _ = stream.set_write_timeout(Some(GLANCE));
        Self { stream, stop, sent, input: Vec::new(), number }
    }

    fn over(&self) -> std::io::Result<()> {
        let is_over = self.stop.load(Ordering::Relaxed);
        if is_over { Err(ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    /// Sends all of `bytes`, however long the client takes for it.
    ///
    /// # Errors
    /// When the client has gone, or the play is over.
    pub fn send(&mut self, mut bytes: &[u8]) -> std::io::Result<()> {
        while !bytes.is_empty() {
            self.over()?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.sent.fetch_add(count as u64, Ordering::Relaxed);
                    bytes = &bytes[count..];
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends `bytes` again and again, in pieces that fill a read of the client.
    ///
    /// # Errors
    /// As [`Wire::send`]; it ends no other way.
    pub fn repeat(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let piece = bytes.repeat((64 << 10) / bytes.len().max(1) + 1);
        loop {
            self.send(&piece)?;
        }
    }

    /// Sends bytes one at a time, with pauses.
    ///
    /// # Errors
    /// As [`Wire::send`].
    pub fn drip(&mut self, bytes: &[u8], pause: Duration) -> std::io::Result<()> {
        for byte in bytes {
            self.send(std::slice::from_ref(byte))?;
            std::thread::sleep(pause);
        }
        Ok(())
    }

    /// Reads until `count` bytes are there, and takes them.
    ///
    /// # Errors
    /// When the client has gone, or the play is over.
    pub fn take(&mut self, count: usize) -> std::io::Result<Vec<u8>> {
        while self.input.len() < count {
            self.more()?;
        }
        let rest = self.input.split_off(count);
        Ok(std::mem::replace(&mut self.input, rest))
    }

    /// Reads up to the end of `mark`, and takes it.
    ///
    /// # Errors
    /// When the client has gone, or the play is over.
    pub fn take_until(&mut self, mark: &[u8]) -> std::io::Result<Vec<u8>> {
        loop {
            let found = self.input.windows(mark.len()).position(|window| window == mark);
            if let Some(at) = found {
                return self.take(at + mark.len());
            }
            self.more()?;
        }
    }

    /// Reads a request of HTTP/1.1 without a body, or with one of declared length.
    ///
    /// # Errors
    /// When the client has gone, or the play is over.
    pub fn request(&mut self) -> std::io::Result<String> {
        let head = String::from_utf8_lossy(&self.take_until(b"\r\n\r\n")?).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        self.take(length.unwrap_or(0))?;
        Ok(head)
    }

    /// Waits until the client goes, or the play is over, and reads what it sends.
    ///
    /// # Errors
    /// Always: there is nothing else to wait for.
    pub fn hold(&mut self) -> std::io::Result<()> {
        loop {
            self.input.clear();
            self.more()?;
        }
    }

    /// Waits until the play is over, and reads nothing.
    ///
    /// # Errors
    /// Always.
    pub fn ignore(&mut self) -> std::io::Result<()> {
        loop {
            self.over()?;
            std::thread::sleep(GLANCE);
        }
    }

    /// Closes the side of the connection that sends.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    fn more(&mut self) -> std::io::Result<()> {
        let mut buffer = [0; 16_384];
        self.over()?;
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.input.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) if is_timeout(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.input.is_empty() {
            self.more()?;
        }
        let count = buffer.len().min(self.input.len());
        buffer[..count].copy_from_slice(&self.input[..count]);
        self.input.drain(..count);
        Ok(count)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.send(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A hostile server; it ends when dropped.
pub struct Peer {
    port: u16,
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    acceptor: Option<JoinHandle<()>>,
}

impl Peer {
    /// Plays `part` with every connection.
    ///
    /// # Errors
    /// When no port is free.
    pub fn start(part: Part) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let connections = Arc::new(AtomicU64::new(0));
        let (own, count, met) = (stop.clone(), sent.clone(), connections.clone());
        let acceptor = std::thread::spawn(move || {
            let mut threads = Vec::new();
            while let Ok((stream, _)) = listener.accept() {
                if own.load(Ordering::Relaxed) {
                    break;
                }
                let number = met.fetch_add(1, Ordering::Relaxed);
                threads.retain(|thread: &JoinHandle<()>| !thread.is_finished());
                let mut wire = Wire::new(stream, number, own.clone(), count.clone());
                let began = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
                    // Each part ends with an error: the client has gone.
                    let _ = part(&mut wire);
                });
                threads.extend(began);
            }
            for thread in threads {
                let _ = thread.join();
            }
        });
        Ok(Self { port, stop, sent, connections, acceptor: Some(acceptor) })
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Bytes that clients have taken.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Connections that have come.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the acceptor.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}
