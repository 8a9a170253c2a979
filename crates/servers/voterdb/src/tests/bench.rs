//! Figures, not verdicts: run by hand in a release build.
//!
//! `cargo test --release -p plimsoll-voterdb tests::bench -- --ignored --nocapture`

use super::{Client, TestServer};
use crate::{Durability, VoterConfig};
use plimsoll_core::clock::now_ns;
use plimsoll_wire::volt::{Request, Value};

/// Connections, and calls of each that are under way.
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

fn drive(server: &TestServer) -> f64 {
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| server.client()).collect();
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

#[test]
#[ignore = "a measurement"]
fn votes_per_second() {
    for durability in [Durability::None, Durability::Async, Durability::Sync] {
        let folder = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
        let server = TestServer::start(VoterConfig {
            partitions: 2,
            durability,
            data: Some(folder.path().to_owned()),
            ..VoterConfig::default()
        });
        let mut client = server.voter();
        let before_s = cpu_s("voter-");
        let took_s = drive(&server);
        let (votes, cpu_s) = ((CLIENTS * DEPTH * ROUNDS) as f64, cpu_s("voter-") - before_s);
        let (per_s, per_cpu_s) = (votes / took_s, votes / cpu_s);
        println!("{durability:?}: {per_s:.0} votes/s, {per_cpu_s:.0} votes per CPU s");
        let began_ns = now_ns();
        let rows = client.cell(
            "select count(*) from votes where mod(phone_number, 10000000) between 100 and 5000000",
        );
        println!("  counted {rows} of {votes} in {} ms", (now_ns() - began_ns) / 1_000_000);
    }
}
