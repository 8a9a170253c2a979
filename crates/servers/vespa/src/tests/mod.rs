//! Tests that start the server on a free port and speak to it as any client would.

mod collection_tests;
mod combining;
mod dictionary_reads;
mod document_tests;
mod front_tests;
mod http_tests;
mod lifecycle;
mod schema_search;
mod simple_tests;
mod truth;
mod two;
mod visit_tests;
mod yql_tests;

use crate::{Vespa, VespaConfig, run};
use plimsoll_front::{Api, FrontConfig, Pools, Port, Served};
pub(super) use plimsoll_probe::{Client, JSON, Numbers, TestReply, TestServer, document, encode};
use plimsoll_serving::stop::Stop;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A server that shows what was written after 20 ms.
pub(super) fn start(folder: &Path) -> TestServer {
    start_with(VespaConfig {
        refresh_interval: Duration::from_millis(20),
        ..VespaConfig::new(folder)
    })
}

pub(super) fn start_with(config: VespaConfig) -> TestServer {
    start_containers(config, 1).0
}

/// A server with several containers.
pub(super) fn start_containers(config: VespaConfig, count: usize) -> (TestServer, Vec<SocketAddr>) {
    TestServer::start(count, |listeners, stop| run(listeners, config, &stop))
}

/// Opens a server that nobody reaches yet.
pub(super) fn open(config: VespaConfig) -> Result<(Vespa, Pools), crate::VespaError> {
    let front = FrontConfig { read_queue: config.operations(), ..config.front.clone() };
    let pools = Pools::start(&front, 1)?;
    Ok((Vespa::open(config, 1, &pools)?, pools))
}

/// A server whose store and threads the test can block.
pub(super) struct Blockable {
    pub(super) vespa: Arc<Vespa>,
    pub(super) pools: Pools,
    pub(super) address: SocketAddr,
    served: Arc<Served>,
    stop: Stop,
    serving: Option<JoinHandle<()>>,
}

impl Blockable {
    pub(super) fn start(config: VespaConfig) -> Self {
        let front = config.front.clone();
        let (vespa, pools) = open(config).unwrap();
        let vespa = Arc::new(vespa);
        let api: Arc<dyn Api> = Arc::clone(&vespa) as _;
        let served = Arc::new(Served::new(vec![api], front.write_timeout));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Stop::new().unwrap();
        let (asked, all) = (stop.clone(), Arc::clone(&served));
        let serving = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let ports = vec![(listener, Port::new(0, front.max_connections))];
            runtime.block_on(plimsoll_front::serve(ports, &all, &asked)).unwrap();
        });
        Self { vespa, pools, address, served, stop, serving: Some(serving) }
    }
}

impl Drop for Blockable {
    fn drop(&mut self) {
        self.stop.request();
        let _ = self.serving.take().unwrap().join();
        let closed = plimsoll_front::close(&self.served, &self.pools);
        assert!(std::thread::panicking() || closed.is_ok(), "{closed:?}");
    }
}
