//! The message bus: a real nats-server as `.ci/clients` builds it, and the one that `plimsoll serve nats` starts.

mod real;
mod serving;
mod wrong;

use crate::process::{Place, Running, until};
use plimsoll_bus::{BusAddress, Nats, NatsOptions};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for something that must happen.
const SOON: Duration = Duration::from_secs(20);

/// Folder of the nats-server: beside the folders of the builds.
fn folder() -> PathBuf {
    let wanted = include_str!("../../crates/catalogue/engines/nats.pin");
    let places = Path::new(env!("CARGO_BIN_EXE_plimsoll")).ancestors();
    let is_wanted = |place: &PathBuf| {
        std::fs::read_to_string(place.join("installed")).is_ok_and(|v| v == wanted)
    };
    let found = places.map(|folder| folder.join("clients/nats")).find(is_wanted);
    found.unwrap_or_else(|| {
        panic!("nats-server {} is not built; run: make test-tools", wanted.trim())
    })
}

/// A nats-server on loopback; ended when dropped.
pub struct Server {
    pub port: u16,
    process: Running,
}

impl Server {
    /// Starts it on a free port, with more lines of configuration.
    pub fn start(place: &Place, config: &str) -> Self {
        // Another program may take the port between finding and using it.
        for _ in 0..5 {
            let port = crate::server::closed_port().parse().unwrap();
            if let Some(server) = Self::start_on(place, port, config) {
                return server;
            }
        }
        panic!("nats-server did not start in {}", place.path().display());
    }

    /// Starts it on this port; `None` if it ends.
    pub fn start_on(place: &Place, port: u16, config: &str) -> Option<Self> {
        let text = format!("host: 127.0.0.1\nport: {port}\n{config}\n");
        let config = place.file(&format!("nats-{port}.conf"), text);
        let command =
            place.program(folder().join("nats-server"), ["-c".as_ref(), config.as_os_str()]);
        let mut process = Running::start(command, b"");
        let mut is_there = false;
        until("nats-server listens or ends", SOON, || {
            is_there = TcpStream::connect(("127.0.0.1", port)).is_ok();
            is_there || !process.is_running()
        });
        is_there.then_some(Self { port, process })
    }

    /// The program itself.
    pub fn program() -> PathBuf {
        folder().join("nats-server")
    }

    /// Ends it as a crash does.
    pub fn kill(self) {
        self.process.signal(rustix::process::Signal::KILL);
        self.process.wait(SOON);
    }

    pub fn options(&self) -> NatsOptions {
        options(&format!("nats://127.0.0.1:{}", self.port))
    }
}

/// Options with a short limit, so that tests of silence are short.
fn options(url: &str) -> NatsOptions {
    NatsOptions::new(url.parse::<BusAddress>().unwrap(), "plimsoll test")
}

#[track_caller]
fn connect(options: &NatsOptions) -> Nats {
    Nats::connect(options).unwrap_or_else(|error| panic!("{error}"))
}
