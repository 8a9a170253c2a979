//! Votes per second and per CPU second of the embedded database, with each durability.
//! `cargo bench -p plimsoll-voterdb --bench votes`

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use plimsoll_core::clock::now_ns;
use plimsoll_serving::stop::Stop;
use plimsoll_voterdb::{Durability, Server, VoterConfig};
use plimsoll_wire::volt::{Login, Request, Value, frame_length};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// The contestants of the benchmark, as `Initialize` takes them.
const NAMES: &str =
    "Edwina Burnam,Tabatha Gehling,Kelly Clauss,Jessie Alloway,Alana Bregman,Jessie Eichman";

/// Connections, and calls in flight of each.
const CLIENTS: usize = 20;
const DEPTH: usize = 10;
const ROUNDS: usize = 5_000;

/// CPU time of the threads of this process whose names begin so, in s. The kernel counts it in ticks of 10 ms.
fn cpu_s(name: &str) -> f64 {
    let mut ticks = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let text = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
        let (head, rest) = text.rsplit_once(')').unwrap_or_default();
        if head.contains(&format!("({name}")) {
            let fields: Vec<u64> =
                rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
            ticks += fields[11] + fields[12];
        }
    }
    ticks as f64 / 100.0
}

/// A connection that has logged in.
struct Client {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Client {
    fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self { stream, input: Vec::new() };
        client.send(Login::new("", "").message());
        client.skip(1);
        client
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Waits for this many messages, and does not read them.
    fn skip(&mut self, mut messages: usize) {
        let mut buffer = [0; 64 * 1024];
        loop {
            let mut used = 0;
            while messages > 0
                && let Some(length) = frame_length(&self.input[used..]).unwrap()
            {
                used += length;
                messages -= 1;
            }
            self.input.drain(..used);
            if messages == 0 {
                return;
            }
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the server closed the connection");
            self.input.extend_from_slice(&buffer[..count]);
        }
    }
}

fn drive(address: SocketAddr) -> f64 {
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::open(address)).collect();
    let mut request = Request::default();
    let began_ns = now_ns();
    for round in 0..ROUNDS {
        for (number, client) in (0i64..).zip(&mut clients) {
            let mut bytes = Vec::new();
            for call in 0..DEPTH as i64 {
                let phone = 2_120_000_000 + number * 10_000_000 + round as i64 * 100 + call;
                let contestant = 1 + (phone % 6) as i32;
                request.call(
                    "Vote",
                    &[Value::BigInt(phone), Value::Integer(contestant), Value::BigInt(2)],
                );
                request.put(call, &mut bytes);
            }
            client.send(&bytes);
        }
        for client in &mut clients {
            client.skip(DEPTH);
        }
    }
    (now_ns() - began_ns) as f64 / 1e9
}

fn main() {
    for durability in [Durability::None, Durability::Async, Durability::Sync] {
        let folder = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
        let config = VoterConfig {
            partitions: 2,
            durability,
            data: Some(folder.path().to_owned()),
            ..VoterConfig::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (server, stop) = (Server::open(config).unwrap(), Stop::new().unwrap());
        let requested = stop.clone();
        let serving = std::thread::spawn(move || server.serve(listener, None, &requested));
        let mut client = Client::open(address);
        let (mut request, mut bytes) = (Request::default(), Vec::new());
        request.call("Initialize", &[Value::Integer(6), Value::String(NAMES)]);
        request.put(1, &mut bytes);
        client.send(&bytes);
        client.skip(1);
        let before_s = cpu_s("voter-");
        let took_s = drive(address);
        let (votes, cpu_s) = ((CLIENTS * DEPTH * ROUNDS) as f64, cpu_s("voter-") - before_s);
        let (per_s, per_cpu_s) = (votes / took_s, votes / cpu_s);
        println!("{durability:?}: {per_s:.0} votes/s, {per_cpu_s:.0} votes per CPU s");
        drop(client);
        stop.request();
        serving.join().unwrap().unwrap();
    }
}
