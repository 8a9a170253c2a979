//! One run on several agents over a real nats-server: the same run as on one machine, and what is said when something is lost.

mod accounts;
mod catalogue;
mod jobs;
mod lost;
mod machines;
mod matrix;
mod merged;
mod mixes;
mod namespaces;
mod placement;
mod pods;
mod processes;
mod refused;
mod remade;
mod roles;
mod seeking;
mod up;

use crate::bus::Server;
use crate::process::{Ended, PATIENCE, Place, Running, Target, until};
use serde_json::Value;
use std::time::Duration;

/// Longest wait for an agent to listen.
const SOON: Duration = Duration::from_secs(30);

/// A bus, a target, and agents on this machine.
struct Fleet {
    // First: agents end before their bus.
    agents: Vec<(String, Running)>,
    target: Target,
    server: Option<Server>,
    port: u16,
    place: Place,
}

impl Fleet {
    /// Agents with the names a, b, c ...
    fn of(place: Place, agents: usize, target: &[&str]) -> Self {
        let server = Server::start(&place, "");
        let target = place.serve(target);
        let port = server.port;
        let mut fleet = Self { agents: Vec::new(), target, server: Some(server), port, place };
        for name in ('a'..).take(agents) {
            fleet.add(&name.to_string(), &[]);
        }
        fleet
    }

    fn bus(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Starts an agent and waits until it listens.
    fn add(&mut self, name: &str, flags: &[&str]) {
        let agent = self.start_agent(name, flags);
        wait_until_idle(&agent, 1);
        self.agents.push((name.to_owned(), agent));
    }

    fn start_agent(&self, name: &str, flags: &[&str]) -> Running {
        let (bus, runs) = (self.bus(), self.runs(name));
        let mut words = vec!["agent", "--bus", &bus, "--name", name, "--runs", &runs];
        words.extend(flags);
        self.place.start(words)
    }

    /// Folder of an agent's records.
    fn runs(&self, name: &str) -> String {
        self.place.path().join(format!("runs-{name}")).display().to_string()
    }

    fn agent(&self, name: &str) -> &Running {
        &self.agents.iter().find(|(own, _)| own == name).unwrap().1
    }

    /// The words of a run by all agents, whose record goes to stdout.
    fn words(&self, job: &[&str]) -> Vec<String> {
        let agents = self.agents.len().to_string();
        let own = ["--agents", &agents, "--bus", &self.bus(), "--json", "-", "--quiet"];
        job.iter().chain(&own).map(|word| (*word).to_owned()).collect()
    }

    /// Runs a job on all agents to its end.
    fn run(&self, job: &[&str]) -> Ended {
        self.place.start(self.words(job)).wait(PATIENCE)
    }

    /// Starts a job on all agents, and waits until its load is on.
    fn start(&self, job: &[&str]) -> Running {
        let began = self.target_requests();
        let running = self.place.start(self.words(job));
        until("load comes", SOON, || self.target_requests() > began + 10);
        running
    }

    /// Requests that the target has counted.
    fn target_requests(&self) -> u64 {
        self.target.stats()["requests"].as_u64().unwrap()
    }
}

/// The record of a run by one agent, as JSON.
pub fn sample() -> String {
    let fleet = Fleet::of(Place::new(), 1, &["null"]);
    let url = fleet.target.url.clone();
    fleet.run(&["load", &url, "--requests", "50", "--clients", "2"]).stdout
}

/// Waits until an agent has said as often that it waits for runs.
#[track_caller]
fn wait_until_idle(agent: &Running, times: usize) {
    until("the agent waits for runs", SOON, || {
        agent.stderr_so_far().matches("waits for runs").count() >= times
    });
}

/// The record that a run printed.
#[track_caller]
fn record(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// The reasons of a record's verdict.
fn reasons(record: &Value) -> String {
    record["verdict"]["reasons"].to_string()
}
