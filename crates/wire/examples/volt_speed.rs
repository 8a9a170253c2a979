//! What VoltDB's codec costs per call: `cargo run --release --example volt_speed`.
//!
//! Prints nanoseconds per vote, the best of several rounds: at the client with one and with two hundred calls
//! under way, with answers in order and in the opposite order; at a server; and for the hash of a key.
#![allow(clippy::print_stdout)]

use std::hint::black_box;

use plimsoll_core::clock::now_ns;
use plimsoll_wire::volt::{
    Call, Conn, FRAME_HEAD_BYTES, Login, LoginReply, Request, ResponseWriter, Ring, Value, Volt,
    Welcome, frame_length,
};
use plimsoll_wire::{Event, Protocol};

const ROUNDS: u32 = 100;
const CALLS: u32 = 10_000;

fn main() {
    let ring = Ring::even(8);
    let one = Batches::new(1, false);
    let (many, backwards) = (Batches::new(200, false), Batches::new(200, true));
    let shapes: [(&str, &dyn Fn() -> u64); 5] = [
        ("client, 1 under way", &|| one.took_ns()),
        ("client, 200 under way", &|| many.took_ns()),
        ("client, 200, the last first", &|| backwards.took_ns()),
        ("server", &server),
        ("partition of a key", &|| partition(&ring)),
    ];
    // All shapes take turns, so that a machine that is slow for a while is slow for all of them.
    let mut best_ns = [u64::MAX; 5];
    for _ in 0..ROUNDS {
        for (best, (_, round)) in best_ns.iter_mut().zip(&shapes) {
            *best = (*best).min(round());
        }
    }
    for ((name, _), best) in shapes.iter().zip(best_ns) {
        println!("{name:30} {:7.1} ns", best as f64 / f64::from(CALLS));
    }
}

fn vote(request: &mut Request, n: u32) {
    let phone = Value::BigInt(2_125_550_000 + i64::from(n));
    request.call("Vote", &[phone, Value::Integer(4), Value::BigInt(2)]);
}

/// A conversation in batches of votes. A server's bytes are made with a first connection that goes the same way,
/// so that only the client is timed with the second.
struct Batches {
    at_once: u32,
    said: Vec<Vec<u8>>,
}

impl Batches {
    fn new(at_once: u32, is_backwards: bool) -> Self {
        let mut client = Client::new(at_once);
        let said = (0..CALLS / at_once).map(|_| {
            client.ask(at_once);
            let said = answer(&client.out, is_backwards);
            client.read(&said);
            said
        });
        Self { at_once, said: said.collect() }
    }

    fn took_ns(&self) -> u64 {
        let mut client = Client::new(self.at_once);
        let start_ns = now_ns();
        for said in &self.said {
            client.ask(self.at_once);
            assert_eq!(client.read(said), i64::from(self.at_once));
        }
        now_ns() - start_ns
    }
}

struct Client {
    codec: Volt,
    conn: Conn,
    request: Request,
    out: Vec<u8>,
}

impl Client {
    fn new(at_once: u32) -> Self {
        let codec = Volt::new(Login::default()).with_depth(at_once);
        let (mut out, mut said) = (Vec::new(), Vec::new());
        let mut conn = codec.open(&mut out);
        let welcome = Welcome {
            host_id: 0,
            connection_id: 1,
            cluster_start_ms: 1,
            leader_address: [127, 0, 0, 1],
            build: "",
        };
        LoginReply::Welcome(welcome).put(&mut said);
        assert!(codec.receive(&mut conn, &said, &mut out).is_ok());
        Self { codec, conn, request: Request::default(), out }
    }

    fn ask(&mut self, at_once: u32) {
        self.out.clear();
        for tag in 0..at_once {
            vote(&mut self.request, tag);
            self.codec.submit(&mut self.conn, &self.request, tag, &mut self.out);
        }
        black_box(&self.out);
    }

    /// The sum of what came back.
    fn read(&mut self, said: &[u8]) -> i64 {
        let (mut rest, mut sum) = (black_box(said), 0);
        while let Ok(Event::Reply { reply, consumed, .. }) =
            self.codec.receive(&mut self.conn, rest, &mut self.out)
        {
            sum += reply.long().unwrap_or(0);
            rest = &rest[consumed..];
        }
        sum
    }
}

/// What a server says to these calls.
fn answer(mut calls: &[u8], is_backwards: bool) -> Vec<u8> {
    let (mut handles, mut said) = (Vec::new(), Vec::new());
    while let Ok(Some(length)) = frame_length(calls) {
        if let Ok(call) = Call::read(&calls[FRAME_HEAD_BYTES..length]) {
            handles.push(call.handle);
        }
        calls = &calls[length..];
    }
    if is_backwards {
        handles.reverse();
    }
    handles.iter().for_each(|&handle| ResponseWriter::vote_like(&mut said, handle, 1, 2));
    said
}

/// Reads votes and answers them.
fn server() -> u64 {
    let (mut request, mut bytes, mut said) = (Request::default(), Vec::new(), Vec::new());
    for n in 0..CALLS {
        vote(&mut request, n);
        request.put(n.into(), &mut bytes);
    }
    said.reserve(60 * CALLS as usize);
    let start_ns = now_ns();
    let mut rest = black_box(&bytes[..]);
    while let Ok(Some(length)) = frame_length(rest) {
        let Ok(call) = Call::read(&rest[FRAME_HEAD_BYTES..length]) else { break };
        let mut params = call.params().map_while(Result::ok);
        let mut number = || params.next().and_then(|(_, value)| value.long());
        black_box((call.procedure == "Vote", number(), number(), number()));
        ResponseWriter::vote_like(&mut said, call.handle, 0, 0);
        rest = &rest[length..];
    }
    let took_ns = now_ns() - start_ns;
    assert_eq!(black_box(&said).len(), 54 * CALLS as usize);
    took_ns
}

fn partition(ring: &Ring) -> u64 {
    let start_ns = now_ns();
    for key in 0..CALLS {
        black_box(ring.partition_of_long(black_box(2_125_550_000 + i64::from(key))));
    }
    now_ns() - start_ns
}
