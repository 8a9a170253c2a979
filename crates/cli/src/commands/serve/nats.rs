//! `plimsoll serve nats`: the flags of the server of the message bus.

use anyhow::Result;
use clap::Args;
use plimsoll_catalogue::engines::{NatsServe, NatsTls, serve_nats};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct NatsArgs {
    /// Port; 0: any free one, printed
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Address to listen on
    ///
    /// An address other than loopback also needs --token-file, --user, --nkey or --tls-ca.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: String,
    /// File with a token that clients need
    ///
    /// If the file does not exist, a new token is written to it, for its owner alone.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "nkey"])]
    token_file: Option<PathBuf>,
    /// Only user who may connect [default: all users]
    ///
    /// The password comes from NATS_PASSWORD.
    #[arg(long, value_name = "NAME", conflicts_with = "nkey")]
    user: Option<String>,
    /// Public NKey of the only user who may connect
    ///
    /// 56 letters and digits, beginning with U. The client has the seed.
    #[arg(long, value_name = "KEY")]
    nkey: Option<String>,
    /// Certificate of the server (PEM); clients must use TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Authorities of clients' certificates (PEM); clients must have one
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_ca: Option<PathBuf>,
    /// Also write the ready line to this file
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// File for the engine's output [default: engine.log]
    ///
    /// Up to 16 MiB. The default is in a temporary folder, which goes with the server.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// Runs the server.
///
/// # Errors
/// As [`serve_nats`].
pub fn run(args: &NatsArgs) -> Result<u8> {
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(NatsTls { certificate, key, client_ca: args.tls_ca.as_deref() })
        }
        _ => None,
    };
    serve_nats(&NatsServe {
        host: &args.host,
        port: args.port,
        log: args.log.as_deref(),
        ready_file: args.ready_file.as_deref(),
        token_file: args.token_file.as_deref(),
        user: args.user.as_deref(),
        nkey: args.nkey.as_deref(),
        tls,
    })
}
