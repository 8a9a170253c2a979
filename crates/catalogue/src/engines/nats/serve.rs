//! The server as a process, from its start to its end.

use super::config::{self, Access, NatsTls};
use super::pin::find;
use crate::engines::LOG_NAME;
use crate::engines::log::EngineLog;
use crate::engines::supervise::{DataFolder, Place, Running, free_port_on, supervise};
use anyhow::{Context, Result};
use plimsoll_job::child::program;
use plimsoll_job::signals;
use plimsoll_job::usage::usage;
use rustix::process::Signal;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Command-line options of the server.
pub struct NatsServe<'a> {
    /// Address to listen on.
    pub host: &'a str,
    /// Its port; 0 is any.
    pub port: u16,
    /// The file that keeps what it says.
    pub log: Option<&'a Path>,
    /// File for a copy of the ready line.
    pub ready_file: Option<&'a Path>,
    /// File with the token that clients need; made if it is not there.
    pub token_file: Option<&'a Path>,
    /// The only user, with the password in the environment.
    pub user: Option<&'a str>,
    /// Public NKey of the only user.
    pub nkey: Option<&'a str>,
    /// Its certificate; `None` is without TLS.
    pub tls: Option<NatsTls<'a>>,
}

/// Runs the server, without JetStream, until the user stops it.
///
/// # Errors
/// It is not installed, the port is in use, a file is missing, it faces a network without credentials, or it ends by itself.
pub fn serve_nats(serve: &NatsServe<'_>) -> Result<u8> {
    signals::stop_flag()?;
    let host = serve.host.trim_start_matches('[').trim_end_matches(']');
    let access = Access::read(serve.token_file, serve.user, serve.nkey)?;
    let tls = serve.tls.map(|tls| checked(&tls)).transpose()?;
    let tls = tls.as_ref().map(Certificates::borrowed);
    check_host(host, access == Access::Open && tls.is_none_or(|tls| tls.client_ca.is_none()))?;
    let server = find()?;
    if serve.port != 0 {
        free_port_on(host, serve.port)?;
    }
    let data = DataFolder::new(None, "nats")?;
    let log =
        EngineLog::create(&serve.log.map_or_else(|| data.path.join(LOG_NAME), PathBuf::from))?;
    let config = config::write(&data.path, host, serve.port, &access, tls.as_ref())?;
    let mut command = program(&server);
    command.arg("-c").arg(&config).current_dir(&data.path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().with_context(|| format!("starting {}", server.display()))?;
    let mut running = Running { child, gently: Signal::TERM };
    log.follow(running.child.stdout.take().context("its stdout")?);
    log.follow(running.child.stderr.take().context("its stderr")?);
    let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let scheme = if tls.is_some() { "tls" } else { "nats" };
    let place = Place { kind: "nats", scheme, host: &shown, ready_file: serve.ready_file };
    // The server writes its ports when it listens on all of them.
    let ports = data.path.join(format!("nats-server_{}.ports", running.child.id()));
    supervise(&place, running, &log, &mut || Ok(port_of(&ports)))
}

fn port_of(file: &Path) -> Option<u16> {
    let text = std::fs::read_to_string(file).ok()?;
    let ports: serde_json::Value = serde_json::from_str(&text).ok()?;
    ports["nats"][0].as_str()?.rsplit_once(':')?.1.parse().ok()
}

/// Files of a certificate with absolute paths: the server runs in another folder.
struct Certificates {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
}

impl Certificates {
    fn borrowed(&self) -> NatsTls<'_> {
        NatsTls {
            certificate: &self.certificate,
            key: &self.key,
            client_ca: self.client_ca.as_deref(),
        }
    }
}

fn checked(tls: &NatsTls<'_>) -> Result<Certificates> {
    let readable = |flag: &str, path: &Path| -> Result<PathBuf> {
        match std::fs::File::open(path) {
            Ok(_) => Ok(std::path::absolute(path)?),
            Err(error) => Err(usage(format!(
                "{flag} {}: {}",
                path.display(),
                plimsoll_core::system_error::with_advice(&error)
            ))),
        }
    };
    Ok(Certificates {
        certificate: readable("--tls-cert", tls.certificate)?,
        key: readable("--tls-key", tls.key)?,
        client_ca: tls.client_ca.map(|ca| readable("--tls-ca", ca)).transpose()?,
    })
}

/// Refuses an address that other machines can reach if it lets in all clients: agents fire where a message on the bus says.
fn check_host(host: &str, is_open: bool) -> Result<()> {
    let addresses = (host, 0).to_socket_addrs();
    let addresses: Vec<_> = addresses.into_iter().flatten().collect();
    if addresses.is_empty() {
        return Err(usage(format!("--host {host}: unknown address; write one such as 127.0.0.1")));
    }
    let is_reachable = !addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
    if is_open && is_reachable {
        return Err(usage(format!(
            "--host {host} lets other machines use the bus; also give --token-file, --user, --nkey or --tls-ca"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_bus_stays_on_loopback() {
        for host in ["127.0.0.1", "::1", "localhost"] {
            assert!(check_host(host, true).is_ok(), "{host}");
        }
        for host in ["0.0.0.0", "::", "10.1.2.3"] {
            let error = check_host(host, true).unwrap_err().to_string();
            assert!(error.contains("--token-file"), "{error}");
            assert!(check_host(host, false).is_ok(), "{host}");
        }
    }
}
