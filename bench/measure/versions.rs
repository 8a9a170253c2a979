//! Two builds of plimsoll, alternating: what a request costs the generator and the server in each.

use super::{Bench, Claim, Section, feed, search, visit, voter};
use crate::generator::{Tool, Variant};
use crate::server::Server;
use crate::statistics::{median, ratios, short, spread};
use crate::table::Table;
use anyhow::{Context, Result};
use std::path::Path;

/// Largest ratio of costs that counts as unchanged.
const SLOWER_MAX: f64 = 1.03;
/// Rate of the open scenes, requests per second.
const RATE: &str = "20000";

/// Costs of one operation in one run.
pub struct Cost {
    /// CPU time of the generator, us.
    pub generator_us: f64,
    /// CPU time of the server, us.
    pub server_us: f64,
}

/// One kind of load. `run` starts a server of the second bench's program and loads it with the first's.
struct Scene {
    name: &'static str,
    run: fn(&Bench, &Bench, usize) -> Result<Cost>,
}

const SCENES: [Scene; 7] = [
    Scene { name: "http, closed, null", run: |client, host, _| http(client, host, "null", &[]) },
    Scene {
        name: "http, 20,000/s, null",
        run: |client, host, round| {
            http(client, host, "null", &["--rate", RATE, "--seed", &(round + 1).to_string()])
        },
    },
    Scene {
        name: "http, closed, queue",
        run: |client, host, _| http(client, host, "queue", &["--no-batching"]),
    },
    Scene { name: "queries, search", run: |client, host, _| search::versions(client, host) },
    Scene { name: "voter", run: |client, host, round| voter::versions(client, host, round) },
    Scene { name: "visit", run: |client, host, _| visit::versions(client, host) },
    Scene { name: "feed", run: |client, host, _| feed::versions(client, host) },
];

fn http(client: &Bench, host: &Bench, kind: &str, flags: &[&str]) -> Result<Cost> {
    let own: &[&str] = if kind == "queue" { &["--service", "fixed:10us"] } else { &[] };
    let server = Server::plimsoll(host, kind, own)?;
    let variant = Variant::new(client, Tool::Plimsoll, "plimsoll", flags)?;
    variant.run(client, &server.url, 1)?;
    let before_s = server.cpu_s()?;
    let sample = variant.run(client, &server.url, client.seconds)?;
    let server_us = (server.cpu_s()? - before_s) * 1e6 / sample.requests;
    Ok(Cost { generator_us: sample.cpu_us(), server_us })
}

/// The costs of a scene, a round each, and those with the other build on one side.
#[derive(Default)]
struct Costs {
    generator: [Vec<f64>; 2],
    server: [Vec<f64>; 2],
}

impl Costs {
    /// Three runs: this build on both sides, and the build before as the generator, then as the server.
    fn measure(&mut self, scene: &Scene, now: &Bench, before: &Bench, round: usize) -> Result<()> {
        for step in 0..3 {
            match (round + step) % 3 {
                0 => {
                    let cost = (scene.run)(now, now, round)?;
                    self.generator[1].push(cost.generator_us);
                    self.server[1].push(cost.server_us);
                }
                1 => self.generator[0].push((scene.run)(before, now, round)?.generator_us),
                _ => self.server[0].push((scene.run)(now, before, round)?.server_us),
            }
        }
        Ok(())
    }
}

/// This build beside the one before, in each scene.
///
/// # Errors
/// When a run fails.
pub fn versions(now: &Bench, before: &Path) -> Result<Section> {
    let before = now.of(before)?;
    let mut table = Table::new(&["CPU time of an operation, us", "before", "now", "ratio"]);
    let mut claims = Vec::new();
    for scene in &SCENES {
        let mut costs = Costs::default();
        for round in 0..now.rounds as usize {
            eprint!("\rround {} of {}: {:<40}", round + 1, now.rounds, scene.name);
            costs
                .measure(scene, now, &before, round)
                .with_context(|| format!("scene '{}'", scene.name))?;
        }
        for (side, [then, now]) in [("generator", costs.generator), ("server", costs.server)] {
            let ratio = ratios(&now, &then);
            let name = format!("{}: {side}", scene.name);
            claims.push(Claim::most(&format!("{name}, of before"), median(&ratio), SLOWER_MAX));
            table.row(vec![
                name,
                spread(&then, short),
                spread(&now, short),
                spread(&ratio, |ratio| format!("{ratio:.3}")),
            ]);
        }
    }
    eprint!("\r{:<60}\r", "");
    Ok(Section {
        title: "This build beside another".to_owned(),
        tables: vec![table],
        claims,
        notes: vec![
            "The generator of each build loads this build's server, and this build's generator loads the server of \
             each. An operation is a request, a vote, a document."
                .to_owned(),
        ],
    })
}
