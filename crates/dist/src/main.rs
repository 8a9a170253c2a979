//! `make dist` and `make dist-check`.
#![allow(clippy::print_stderr)]

use anyhow::Result;
use clap::{Parser, Subcommand};
use plimsoll_dist::check;
use plimsoll_dist::compile::Target;
use plimsoll_dist::programs::Toolbox;
use plimsoll_dist::release;
use plimsoll_dist::sources::Sources;
use std::path::PathBuf;
use std::process::ExitCode;

/// Build, pack and check the files of a release of plimsoll.
#[derive(Parser)]
struct Flags {
    #[command(subcommand)]
    what: What,
    /// Folder of the sources
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    root: PathBuf,
    /// Target of the compiler; may be repeated [default: that of this machine]
    #[arg(long, value_name = "TARGET", global = true)]
    target: Vec<String>,
}

#[derive(Subcommand)]
enum What {
    /// Build the binaries and all packages into target/dist
    Make {
        /// Pack the binaries of the last build as they are
        #[arg(long)]
        keep_binaries: bool,
    },
    /// Build again in another folder, compare, and try every package
    Check(check::CheckArgs),
}

fn carry_out(flags: &Flags) -> Result<()> {
    let sources = Sources::at(&flags.root)?;
    let targets = match flags.target.as_slice() {
        [] => vec![Target::own()?],
        names => names.iter().map(|name| Target::named(name)).collect::<Result<Vec<_>>>()?,
    };
    let toolbox = Toolbox::install(&sources.root.join("target/dist-tools"))?;
    match &flags.what {
        What::Make { keep_binaries: false } => release::make(&sources, &toolbox, &targets),
        What::Make { keep_binaries: true } => release::repack(&sources, &targets),
        What::Check(arguments) => check::check(&sources, &toolbox, &targets, arguments),
    }
}

fn main() -> ExitCode {
    match carry_out(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plimsoll-dist: {error:#}");
            ExitCode::FAILURE
        }
    }
}
