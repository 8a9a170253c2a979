//! Floods that protocols allow, and servers of plimsoll, also that of the live page, that meet them while an honest client asks as well.

mod attacks;
mod bodies;
mod frames;
mod list;
mod served;
mod values;

pub use list::all;
pub use served::Endpoint;

use crate::process::unprintable;
use plimsoll_core::clock::now_ns;
use served::Served;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Pause between two requests of the honest client.
const PAUSE: Duration = Duration::from_millis(100);
/// Time after which a blocked write of an attacker looks whether the flood is over.
const GLANCE: Duration = Duration::from_millis(50);

/// A request of an honest client, and the longest wait for each of its answers.
pub type Honest = fn(&Endpoint, Duration) -> std::io::Result<()>;

/// A server, what floods it, and what must hold.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    /// Arguments of plimsoll that start the server, or a run with a live page.
    pub server: &'static str,
    /// The flood itself.
    pub name: &'static str,
    /// Sends it until the ground says that it is over.
    pub attack: fn(&Ground<'_>),
    /// One request of an honest client, which waits for each answer no longer than it is given.
    pub honest: Honest,
    /// True if the flood leaves the processors of this machine to the process.
    pub is_nice: bool,
    /// Index of the address in the ready line.
    pub port: usize,
    /// Most memory that the server may have, bytes.
    pub memory_max: u64,
}

/// The measure of a flood.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its length, s.
    pub seconds: u32,
    /// Connections of an attack that is made of many.
    pub connections: usize,
    /// Longest time that an honest client waits for an answer, and that the server may take to end: of a machine that does nothing
    /// else, a claim; of one that is shared, a guard against waiting for ever.
    pub patience: Duration,
}

/// The place of an attack.
pub struct Ground<'a> {
    /// Address of the server.
    pub address: SocketAddr,
    /// Connections of an attack that is made of many.
    pub connections: usize,
    over: &'a AtomicBool,
}

impl Ground<'_> {
    /// Returns true if the flood is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Opens a connection whose writes give up after a moment.
    ///
    /// # Errors
    /// When the server does not take it.
    pub fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(2))?;
        stream.set_write_timeout(Some(GLANCE))?;
        stream.set_read_timeout(Some(GLANCE))?;
        Ok(stream)
    }

    /// Sends bytes whole; false if the connection is lost, or the flood over.
    pub fn send(&self, stream: &mut TcpStream, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.is_over() {
                return false;
            }
            match stream.write(bytes) {
                Ok(count) if count > 0 => bytes = &bytes[count..],
                Err(error) if is_timeout(&error) => {}
                _ => return false,
            }
        }
        true
    }

    /// Sends `first` and then `again` without end, reads nothing, and begins again on a new connection if the server ends it.
    pub fn pour(&self, first: &[u8], again: &[u8]) {
        let again = again.repeat((32 << 10) / again.len().max(1) + 1);
        while !self.is_over() {
            let Ok(mut stream) = self.connect() else {
                std::thread::sleep(GLANCE);
                continue;
            };
            if self.send(&mut stream, first) {
                while self.send(&mut stream, &again) {}
            }
        }
    }

    /// Does something on this many threads at once.
    pub fn on_threads(&self, count: usize, work: impl Fn() + Sync) {
        std::thread::scope(|scope| {
            for _ in 0..count {
                scope.spawn(&work);
            }
        });
    }

    /// Waits until the flood is over.
    pub fn wait(&self) {
        while !self.is_over() {
            std::thread::sleep(GLANCE);
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// The result of a flood.
#[derive(Clone, Debug, Default)]
pub struct Withstood {
    /// Most memory of the server, bytes.
    pub peak_bytes: u64,
    /// Requests of the honest client, and those that were answered.
    pub asked: u32,
    /// Those that were answered.
    pub answered: u32,
    /// Longest time of an answered one.
    pub longest: Duration,
    /// The reason why one was not answered.
    pub refusal: String,
    /// The server runs at the end, and ends when it is asked to.
    pub ended_well: bool,
    /// Time that it took to end.
    pub ended_after: Duration,
    /// Its output.
    pub output: String,
}

impl Flood {
    /// Floods a server.
    ///
    /// # Errors
    /// When the server does not start.
    pub fn play(
        &self,
        program: &Path,
        place: &Path,
        measure: Measure,
    ) -> std::io::Result<Withstood> {
        let Measure { seconds, connections, patience } = measure;
        let served = Served::start(program, place, self.server)?;
        let Some(endpoint) = served.endpoints.get(self.port).cloned() else {
            return Err(std::io::Error::other(format!("no address {} of it", self.port)));
        };
        let over = AtomicBool::new(false);
        let ground = Ground { address: endpoint.address, connections, over: &over };
        let mut found = Withstood::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if self.is_nice {
                    // Of this thread and those that it starts.
                    let _ = rustix::process::nice(19);
                }
                (self.attack)(&ground);
            });
            let until_ns = now_ns() + u64::from(seconds) * 1_000_000_000;
            while now_ns() < until_ns || found.asked == 0 {
                std::thread::sleep(PAUSE);
                found.ask(self.honest, &endpoint, patience);
            }
            found.peak_bytes = served.peak_bytes();
            over.store(true, Ordering::Relaxed);
        });
        // It serves on when the flood is over.
        found.ask(self.honest, &endpoint, patience);
        found.peak_bytes = found.peak_bytes.max(served.peak_bytes());
        let asked_ns = now_ns();
        (found.ended_well, found.output) = served.end(patience);
        found.ended_after = Duration::from_nanos(now_ns() - asked_ns);
        Ok(found)
    }

    /// The faults of a result; empty if there are none.
    #[must_use]
    pub fn faults(&self, found: &Withstood) -> Vec<String> {
        let mut faults = Vec::new();
        if found.peak_bytes > self.memory_max {
            let (peak, most) = (found.peak_bytes >> 20, self.memory_max >> 20);
            faults.push(format!("{peak} MiB of memory, more than {most} MiB"));
        }
        if found.answered < found.asked {
            let Withstood { asked, answered, refusal, .. } = found;
            faults.push(format!(
                "answered {answered} of {asked} requests of an honest client: {refusal}"
            ));
        }
        if !found.ended_well {
            faults
                .push(format!("did not run to its end, or did not end in {:?}", found.ended_after));
        }
        if let Some(text) = unprintable(&found.output) {
            faults.push(format!("printed what is not printable: {text}"));
        }
        faults
    }
}

impl Withstood {
    fn ask(&mut self, honest: Honest, endpoint: &Endpoint, patience: Duration) {
        let start_ns = now_ns();
        self.asked += 1;
        match honest(endpoint, patience) {
            Ok(()) => {
                self.answered += 1;
                self.longest = self.longest.max(Duration::from_nanos(now_ns() - start_ns));
            }
            Err(error) => self.refusal = error.to_string(),
        }
    }
}

/// A request of an honest client of HTTP.
///
/// # Errors
/// Anything but a reply of status 200.
pub fn get(endpoint: &Endpoint, path: &str, patience: Duration) -> std::io::Result<()> {
    let address = endpoint.address;
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut reply = [0; 12];
    stream.read_exact(&mut reply)?;
    if &reply == b"HTTP/1.1 200" {
        return Ok(());
    }
    Err(std::io::Error::other(String::from_utf8_lossy(&reply).into_owned()))
}
