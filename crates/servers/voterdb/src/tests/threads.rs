//! Threads that panic: the server ends, and does not stay there without answers.

use super::{Client, LIMIT, NAMES};
use crate::message::{Ask, Batch, Errand, Letter};
use crate::procedures::Procedure;
use crate::shared::Shared;
use crate::{Durability, Server, VoterConfig, VoterError};
use plimsoll_core::clock::now_ns;
use plimsoll_serving::stop::Stop;
use plimsoll_wire::volt::{Login, Value};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// A network thread that does not exist: a thread that answers it panics.
const NOWHERE: usize = 99;

/// A server at work, and the way it ends.
struct Working {
    shared: Arc<Shared>,
    address: SocketAddr,
    stop: Stop,
    ended: Receiver<Result<(), VoterError>>,
}

impl Working {
    fn start(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the address of a bound port");
        let shared = Arc::new(server.shared(&listener).expect("descriptors for the inboxes"));
        let (stop, (sender, ended)) = (Stop::new().expect("a descriptor"), channel());
        let (own, asked) = (Arc::clone(&shared), stop.clone());
        std::thread::spawn(move || sender.send(server.serve_with(&own, listener, None, &asked)));
        Self { shared, address, stop, ended }
    }

    fn end(&self) -> Result<(), VoterError> {
        self.ended.recv_timeout(LIMIT).expect("the server does not end")
    }
}

#[test]
fn a_thread_that_panics_ends_the_server() {
    let start = || {
        let config = VoterConfig { partitions: 2, ..VoterConfig::default() };
        Working::start(Server::open(config).unwrap())
    };
    let server = start();
    let batch = Batch { network: NOWHERE, ..Batch::default() };
    server.shared.partitions[1].put(Letter::Batch(batch));
    assert!(matches!(server.end(), Err(VoterError::Thread)), "of a partition");
    let server = start();
    let ask = Ask {
        network: NOWHERE,
        arrived_ns: 0,
        bytes: 0,
        ticket: 0,
        handle: 0,
        procedure: Procedure::Quiesce,
        params: Vec::new(),
        timeout_ms: None,
    };
    server.shared.transactions.put(Errand::Ask(Box::new(ask)));
    assert!(matches!(server.end(), Err(VoterError::Thread)), "of transactions");
}

#[test]
fn a_stop_ends_although_the_thread_of_a_snapshot_has_panicked() {
    let folder = tempfile::tempdir().unwrap();
    let config = VoterConfig {
        partitions: 2,
        durability: Durability::Sync,
        data: Some(folder.path().to_owned()),
        // Long enough that no second snapshot takes the place of the first one.
        log_bytes_max: 5_000,
        ..VoterConfig::default()
    };
    let has_panicked = Arc::new(AtomicBool::new(false));
    let panics = Arc::clone(&has_panicked);
    let server = Server::open(config).unwrap().telling(move |line| {
        panics.store(true, Ordering::Release);
        panic!("{line}");
    });
    let server = Working::start(server);
    // A folder is where the file of a snapshot should be.
    for number in 2..200 {
        std::fs::create_dir(folder.path().join(format!("{number:010}.unfinished"))).unwrap();
    }
    let mut client = Client::open(server.address);
    client.log_in(&Login::new("", ""));
    client.long("Initialize", &[Value::Integer(6), Value::String(NAMES)]);
    let until_ns = now_ns() + LIMIT.as_nanos() as u64;
    for phone in 2_120_000_000.. {
        if has_panicked.load(Ordering::Acquire) {
            break;
        }
        assert!(now_ns() < until_ns, "no snapshot fails");
        client.vote(phone, 1, 1);
    }
    server.stop.request();
    assert!(matches!(server.end(), Err(VoterError::Thread)));
}
