//! `plimsoll fleet`: places the bus and the agents of a fleet.

mod placement;
mod quoting;
mod render;
mod up;
mod values;

use anyhow::Result;
use clap::{Args, Subcommand};
use plimsoll_job::job::{Job, Program};

const EXAMPLES: &str = "\
Examples:
  Three agents and a bus on this machine, until Ctrl-C:
    plimsoll fleet up --local 3
  A manifest for Kubernetes: eight agents that may send load to one name
    plimsoll fleet render --k8s --agents 8 --allow-target search.prod --target-label app=search";

/// Place the agents and the bus of a run on many machines
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct FleetArgs {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// Print a text that places a fleet with Kubernetes, Compose, systemd, Slurm or ssh
    ///
    /// The token of the bus is in none of the texts: they name the secret or the file that has it.
    Render(Box<render::RenderArgs>),
    /// Start a bus and agents on this machine, until Ctrl-C
    ///
    /// The bus listens on loopback. It requires a token, since agents send load where a message on the bus says, and every user of
    /// this machine reaches loopback. When one process ends, all end; none is started again.
    Up(Box<up::UpArgs>),
}

impl Job for FleetArgs {
    const NAME: &'static str = "fleet";

    fn run(&self, _: &Program) -> Result<u8> {
        match &self.task {
            Task::Render(render) => render.run(),
            Task::Up(up) => up.run(),
        }
    }
}
