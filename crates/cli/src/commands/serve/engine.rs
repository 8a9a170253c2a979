//! `plimsoll serve opensearch`, `elasticsearch`, `postgresql` and `voltdb`: the flags of real engines.

use anyhow::Result;
use clap::Args;
use plimsoll_catalogue::engines::{
    ClusterServe, DatabaseServe, Durability, Engine, Method, NodeServe, serve_cluster,
    serve_database, serve_node,
};
use plimsoll_core::units::Size;
use std::path::PathBuf;

/// Flags of all real engines. They listen on 127.0.0.1 only.
#[derive(Args, Debug)]
struct EngineFlags {
    /// Port on 127.0.0.1; 0 takes any free one and prints it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Folder of its data, kept across restarts [default: a temporary one].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Also write the ready line to this file.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// File for the engine's output, up to 16 MiB [default: engine.log in the folder of its data].
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct NodeArgs {
    #[command(flatten)]
    engine: EngineFlags,
    /// A setting of the engine's own; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    setting: Vec<String>,
    /// Java's heap; the process takes about 100 MB more.
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    heap: Size,
}

#[derive(Args, Debug)]
pub struct ClusterArgs {
    #[command(flatten)]
    engine: EngineFlags,
    /// A setting of the engine's own; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    setting: Vec<String>,
    /// Time of acknowledgement: once on the disk (sync), on the disk some tenths of a second later (async), or whenever
    /// the system writes it; then a crash of the machine may damage it (none).
    #[arg(long, value_enum, value_name = "WHEN", default_value = "sync")]
    durability: Durability,
    /// Login of role 'plimsoll'; except with trust, its password comes from PGPASSWORD.
    #[arg(long, value_enum, value_name = "HOW", default_value = "trust")]
    auth: Method,
    /// Also accept TLS, with a certificate for localhost and 127.0.0.1; its authority is created for it and named on
    /// stderr.
    #[arg(long)]
    tls: bool,
}

#[derive(Args, Debug)]
pub struct DatabaseArgs {
    #[command(flatten)]
    engine: EngineFlags,
    /// Port of its HTTP JSON API on 127.0.0.1; 0 takes any free one and writes it to engine.log.
    #[arg(long, value_name = "N", default_value_t = 0)]
    http_port: u16,
    /// Java's heap; tables are outside it, and the process takes about 600 MB more.
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    heap: Size,
    /// Partitions, one thread each.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=24))]
    partitions: u16,
    /// Only this user may log in, with the password in VOLTDB_PASSWORD [default: every user of this machine].
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

/// Runs a node.
///
/// # Errors
/// As [`serve_node`].
pub fn run_node(engine: Engine, args: &NodeArgs) -> Result<u8> {
    serve_node(&NodeServe {
        engine,
        port: args.engine.port,
        data: args.engine.data.as_deref(),
        log: args.engine.log.as_deref(),
        ready_file: args.engine.ready_file.as_deref(),
        heap: args.heap,
        settings: &args.setting,
        arguments: &[],
        // Its launcher has asked it.
        answers: &|_| true,
    })
}

/// Runs VoltDB.
///
/// # Errors
/// As [`serve_database`].
pub fn run_database(args: &DatabaseArgs) -> Result<u8> {
    serve_database(&DatabaseServe {
        port: args.engine.port,
        http_port: args.http_port,
        data: args.engine.data.as_deref(),
        log: args.engine.log.as_deref(),
        ready_file: args.engine.ready_file.as_deref(),
        heap: args.heap,
        partitions: args.partitions,
        user: args.user.as_deref(),
    })
}

/// Runs a cluster.
///
/// # Errors
/// As [`serve_cluster`].
pub fn run_cluster(args: &ClusterArgs) -> Result<u8> {
    serve_cluster(&ClusterServe {
        port: args.engine.port,
        data: args.engine.data.as_deref(),
        log: args.engine.log.as_deref(),
        ready_file: args.engine.ready_file.as_deref(),
        durability: args.durability,
        method: args.auth,
        tls: args.tls,
        settings: &args.setting,
    })
}
