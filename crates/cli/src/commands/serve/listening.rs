//! The address of a server, its end, and its ready line.

use anyhow::Result;
use clap::Args;
use plimsoll_core::system_error::{with_advice, words};
use plimsoll_job::output::{note, print_out};
use plimsoll_job::usage::usage;
use plimsoll_serving::stop::Stop;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct ListenArgs {
    /// Port; 0: any free one, printed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
    /// Address to listen on
    ///
    /// An address other than loopback opens the target to the network.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: String,
    /// Also write the ready line to this file
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

/// Connections that may wait to be accepted; the kernel takes `net.core.somaxconn` where that is less.
const ACCEPT_QUEUE: i32 = 4096;

/// Binds with room for thousands of connections that come at once: in the standard library's queue of 128 the others'
/// first packets are dropped, and sent again after a second.
pub fn bind(address: impl ToSocketAddrs) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    rustix::net::listen(&listener, ACCEPT_QUEUE)?;
    Ok(listener)
}

/// Says why an address cannot be listened on, and which flag to change.
fn unbound(host: &str, port: u16, error: &std::io::Error, flag: &str) -> anyhow::Error {
    // Only an address that was resolved has an error of the system with a number.
    let flag = if error.raw_os_error().is_none() { "--host, such as 127.0.0.1" } else { flag };
    usage(format!("cannot listen on {host} port {port}: {}; take another {flag}", words(error)))
}

/// Binds a second port on the same address.
pub fn beside(args: &ListenArgs, port: u16, flag: &str) -> Result<TcpListener> {
    let bare = args.host.trim_start_matches('[').trim_end_matches(']');
    bind((bare, port)).map_err(|error| unbound(&args.host, port, &error, flag))
}

/// Binds, and stops on SIGINT and SIGTERM.
pub fn listen(args: &ListenArgs) -> Result<(TcpListener, Stop)> {
    let bare = args.host.trim_start_matches('[').trim_end_matches(']');
    let listener = bind((bare, args.port))
        .map_err(|error| unbound(&args.host, args.port, &error, "--port (0 takes any free one)"))?;
    let stop = Stop::new()?;
    let asked = stop.clone();
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
    ])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            asked.request();
        }
    })?;
    Ok((listener, stop))
}

/// The listener's queue answers from here on, so that "ready" is true.
pub fn ready(
    kind: &str,
    schemes: &[&str],
    listener: &TcpListener,
    args: &ListenArgs,
) -> Result<()> {
    ready_at(kind, schemes, &[listener.local_addr()?], args)
}

/// The same for several listeners.
pub fn ready_at(
    kind: &str,
    schemes: &[&str],
    addresses: &[SocketAddr],
    args: &ListenArgs,
) -> Result<()> {
    let named = |address: &SocketAddr| {
        let urls = schemes.iter().map(|scheme| format!("{scheme}://{address}"));
        urls.collect::<Vec<_>>().join(" ")
    };
    warn_if_reachable(kind, addresses);
    let addresses: Vec<String> = addresses.iter().map(named).collect();
    ready_line(kind, &addresses, args)
}

/// Reports on stderr that a target can be reached from other machines: most targets let anyone read, write and stop them.
pub fn warn_if_reachable(kind: &str, addresses: &[SocketAddr]) {
    if let Some(address) = addresses.iter().find(|address| is_reachable(address)) {
        note(&format!(
            "plimsoll: serve {kind} listens on {address}, which other machines can reach; it is made for tests, \
             not to face a network"
        ));
    }
}

fn is_reachable(address: &SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// Says that a target answers at these addresses.
pub fn ready_line(kind: &str, urls: &[String], args: &ListenArgs) -> Result<()> {
    let line = format!("ready {kind} {}\n", urls.join(" "));
    if let Some(path) = &args.ready_file {
        std::fs::write(path, &line).map_err(|error| {
            usage(format!("--ready-file {}: {}", path.display(), with_advice(&error)))
        })?;
    }
    print_out(&line)
}

#[cfg(test)]
mod tests {
    use super::is_reachable;

    #[test]
    fn only_loopback_is_out_of_reach() {
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(!is_reachable(&address.parse().unwrap()), "{address}");
        }
        for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1"] {
            assert!(is_reachable(&address.parse().unwrap()), "{address}");
        }
    }
}
