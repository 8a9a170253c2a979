//! Agents in network namespaces of their own, joined by a bridge: real links that can be cut.

use super::{reasons, record};
use crate::bus::Server;
use crate::process::{PATIENCE, Place, Running, find_program, until};
use std::time::Duration;

/// Namespaces on one bridge; they are gone when it is dropped.
struct Network {
    tag: String,
    agents: usize,
    place: Place,
}

impl Network {
    /// The host of the bus and the target has the address .1, agent i the address .(2 + i).
    fn of(agents: usize) -> Self {
        let place = Place::busy();
        let tag = format!("pl{}", std::process::id() % 100_000);
        let network = Self { tag, agents, place };
        let tag = &network.tag;
        // In a namespace of its own, so that nothing of the machine's own network is touched.
        network.ip(&["netns", "add", &format!("{tag}h")]);
        network.ip_in("h", &["link", "add", "br0", "type", "bridge"]);
        network.ip_in("h", &["addr", "add", "10.213.7.1/24", "dev", "br0"]);
        network.ip_in("h", &["link", "set", "br0", "up"]);
        network.ip_in("h", &["link", "set", "lo", "up"]);
        for agent in 0..agents {
            let (name, end) = (format!("{tag}a{agent}"), format!("v{agent}"));
            network.ip(&["netns", "add", &name]);
            network.ip_in(
                "h",
                &["link", "add", &end, "type", "veth", "peer", "name", "eth0", "netns", &name],
            );
            network.ip_in("h", &["link", "set", &end, "master", "br0", "up"]);
            let own = format!("a{agent}");
            network.ip_in(
                &own,
                &["addr", "add", &format!("10.213.7.{}/24", 2 + agent), "dev", "eth0"],
            );
            network.ip_in(&own, &["link", "set", "eth0", "up"]);
            network.ip_in(&own, &["link", "set", "lo", "up"]);
        }
        network
    }

    #[track_caller]
    fn ip(&self, words: &[&str]) {
        let command = self.place.program(find_program("ip"), words);
        Running::start(command, b"").wait(PATIENCE).expect(0);
    }

    #[track_caller]
    fn ip_in(&self, host: &str, words: &[&str]) {
        let name = format!("{}{host}", self.tag);
        self.ip(&[&["-n", name.as_str()], words].concat());
    }

    /// Starts a program in the namespace of a host.
    fn start(&self, host: &str, program: impl AsRef<std::ffi::OsStr>, words: &[&str]) -> Running {
        let name = format!("{}{host}", self.tag);
        let program = program.as_ref().to_str().unwrap().to_owned();
        let all = [&["netns", "exec", &name, &program], words].concat();
        Running::start(self.place.program(find_program("ip"), all), b"")
    }

    fn plimsoll(&self, host: &str, words: &[&str]) -> Running {
        self.start(host, env!("CARGO_BIN_EXE_plimsoll"), words)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let agents = (0..self.agents).map(|agent| format!("a{agent}"));
        for host in agents.chain(["h".to_owned()]) {
            let words = ["netns", "del", &format!("{}{host}", self.tag)].map(str::to_owned);
            let command = self.place.program(find_program("ip"), words);
            let _ = Running::start(command, b"").wait(PATIENCE);
        }
    }
}

#[test]
fn agents_in_namespaces_make_the_whole_run_and_one_that_is_cut_off_is_named() {
    let network = Network::of(3);
    let _bus = network.start("h", Server::program(), &["-a", "10.213.7.1", "-p", "4222"]);
    let target =
        network.plimsoll("h", &["serve", "null", "--host", "10.213.7.1", "--port", "8080"]);
    target.wait_for("ready ", super::SOON);
    let bus = "nats://10.213.7.1:4222";
    let agents: Vec<Running> = (0..3)
        .map(|agent| {
            let (host, name) = (format!("a{agent}"), format!("host{agent}"));
            let words = [
                "agent",
                "--bus",
                bus,
                "--name",
                &name,
                "--allow-target",
                "10.213.7.0/24",
                "--runs",
                &name,
            ];
            network.plimsoll(&host, &words)
        })
        .collect();
    agents.iter().for_each(|agent| super::wait_until_idle(agent, 1));
    let words = |more: &[&'static str]| {
        let own = [
            "load",
            "http://10.213.7.1:8080/",
            "--agents",
            "3",
            "--bus",
            bus,
            "--json",
            "-",
            "--quiet",
        ];
        [&own[..], more].concat()
    };
    let whole = record(
        &network.plimsoll("h", &words(&["--requests", "30000", "--clients", "30"])).wait(PATIENCE),
    );
    assert_eq!(whole["ledger"]["ok"], 30_000, "{}", reasons(&whole));
    assert!(whole["fleet"].get("troubles").is_none(), "{}", whole["fleet"]);
    let running = network.plimsoll("h", &words(&["--rate", "300", "--duration", "40s"]));
    std::thread::sleep(Duration::from_secs(4));
    network.ip_in("h", &["link", "set", "v1", "down"]);
    let cut = record(&running.wait(PATIENCE).expect(3));
    assert_eq!(cut["verdict"]["kind"], "partial");
    assert!(
        reasons(&cut).contains("agent host1: it has been silent for 10 s"),
        "{}",
        reasons(&cut)
    );
    // The one that is cut off ends its load by itself, and the others are free.
    until("the agent ends its part", super::SOON, || {
        agents[1].stderr_so_far().contains("the coordinator has been silent for 8 s")
    });
    network.ip_in("h", &["link", "set", "v1", "up"]);
    for agent in &agents {
        super::wait_until_idle(agent, 3);
    }
}
