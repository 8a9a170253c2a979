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
    /// Port; 0: any free one, printed
    ///
    /// On 127.0.0.1.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Folder of the data [default: a temporary one]
    ///
    /// The data is kept across restarts.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Also write the ready line to this file
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// File for the engine's output [default: engine.log]
    ///
    /// Up to 16 MiB. The default is in the folder of the data.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct NodeArgs {
    #[command(flatten)]
    engine: EngineFlags,
    /// Setting of the engine's own
    ///
    /// May be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    setting: Vec<String>,
    /// Size of Java's heap
    ///
    /// The process takes about 100 MB more.
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    heap: Size,
}

#[derive(Args, Debug)]
pub struct ClusterArgs {
    #[command(flatten)]
    engine: EngineFlags,
    /// Setting of the engine's own
    ///
    /// May be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    setting: Vec<String>,
    /// Acknowledgement of a write: sync, async or none
    ///
    /// sync: once on the disk; async: on the disk some tenths of a second later; none: whenever the system writes it, and a
    /// crash of the machine may damage it.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHEN",
        default_value = "sync"
    )]
    durability: Durability,
    /// Login: trust, scram-sha-256, md5 or password
    ///
    /// Method of the login of role plimsoll. trust: everyone on this machine who reaches the port; password: sent as it is.
    /// Except with trust, the password comes from PGPASSWORD.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "HOW",
        default_value = "trust"
    )]
    auth: Method,
    /// Also accept TLS
    ///
    /// With a certificate for localhost and 127.0.0.1. Its authority is created for it and named on stderr.
    #[arg(long)]
    tls: bool,
}

#[derive(Args, Debug)]
pub struct DatabaseArgs {
    #[command(flatten)]
    engine: EngineFlags,
    /// Port of the HTTP JSON API; 0: any free one
    ///
    /// On 127.0.0.1. The port is written to engine.log.
    #[arg(long, value_name = "N", default_value_t = 0)]
    http_port: u16,
    /// Size of Java's heap
    ///
    /// Tables are outside it, and the process takes about 600 MB more.
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    heap: Size,
    /// Partitions, one thread each
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=24))]
    partitions: u16,
    /// Only user who may log in [default: all users]
    ///
    /// The password comes from VOLTDB_PASSWORD.
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
