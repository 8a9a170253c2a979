//! A line with a delay: what a target answers arrives this much later, whatever protocol it speaks.

use crate::sabotages::cores;
use plimsoll_core::clock::now_ns;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running proxy; it ends when dropped.
pub struct Proxy {
    /// Address on which it listens.
    pub address: SocketAddr,
    over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy before `target` on a free port, on this core.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start(target: SocketAddr, delay: Duration, core: usize) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = over.clone();
        let accept = move || {
            cores::bind_to(core);
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            while let Ok((client, _)) = listener.accept() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                // Without the target the client sees its connection closed.
                let _ = join(client, target, delay);
            }
        };
        let acceptor = Some(std::thread::Builder::new().spawn(accept)?);
        Ok(Self { address, over, acceptor })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // The acceptor sees it when somebody comes.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Three threads a connection: requests go on at once, answers are read with their times, and written later.
fn join(client: TcpStream, target: SocketAddr, delay: Duration) -> std::io::Result<()> {
    let server = TcpStream::connect(target)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let (sender, receiver) = channel();
    let mut from_server = server;
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok(read @ 1..) = from_server.read(&mut buffer) {
            let due_ns = now_ns() + delay.as_nanos() as u64;
            if sender.send((due_ns, buffer[..read].to_vec())).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        let _ = deliver(&receiver, &client);
        let _ = client.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn deliver(pieces: &Receiver<(u64, Vec<u8>)>, mut client: &TcpStream) -> std::io::Result<()> {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    while let Ok((due_ns, bytes)) = pieces.recv() {
        std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
        client.write_all(&bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::server::{Script, Server};

    #[test]
    fn answers_come_later_by_the_delay() {
        let server = Server::start(Script::default(), 0).unwrap();
        let proxy = Proxy::start(server.address, Duration::from_millis(30), 0).unwrap();
        let mut stream = TcpStream::connect(proxy.address).unwrap();
        for _ in 0..3 {
            let begun_ns = now_ns();
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let read = stream.read(&mut [0; 1000]).unwrap();
            assert!(read > 0 && now_ns() - begun_ns >= 30_000_000);
        }
    }
}
