//! The greeting of a server, read before the client connects: which server it is, and whether it can be used.

use super::errors::ConnectError;
use super::options::NatsOptions;
use plimsoll_core::clock::now_ns;
use plimsoll_core::system_error::words;
use serde_json::Value;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::Duration;

/// Longest greeting that is read. A server sends less than 1 KiB, and a cluster names all its members.
const GREETING_BYTES_MAX: usize = 64 * 1024;
/// Oldest version that is used.
const VERSION_MIN: (u64, u64) = (2, 10);
/// Longest pause between looks at the clock while reading.
const READ_WITHIN: Duration = Duration::from_millis(200);

/// Result of reading from the socket.
enum Greeting {
    Line(Vec<u8>),
    Foreign,
    Silent,
    NoServer(String),
}

/// Reads the greeting, and checks it. A server that begins with TLS has none that can be read, so only that it is there is checked.
pub fn check(options: &NatsOptions) -> Result<(), ConnectError> {
    let place = options.address.place();
    let within = options.connect_within;
    let (host, port) = (options.address.host().to_owned(), options.address.port());
    let is_tls_first = options.tls.is_first;
    let (sender, greeting) = mpsc::channel();
    // The system's resolver has no limit of its own, so it is left behind on a thread when it takes too long.
    let thread = std::thread::Builder::new().name("bus-greeting".to_owned());
    let started = thread.spawn(move || {
        let _ = sender.send(read(&host, port, is_tls_first, within));
    });
    if let Err(error) = started {
        return Err(ConnectError::Other { place, why: words(&error) });
    }
    let slack = Duration::from_millis(200);
    match greeting.recv_timeout(within + slack).unwrap_or(Greeting::Silent) {
        Greeting::Line(_) if is_tls_first => Ok(()),
        Greeting::Line(line) => check_line(&line, options),
        Greeting::Foreign => Err(ConnectError::Foreign { place }),
        Greeting::Silent => Err(ConnectError::Silent { place, within }),
        Greeting::NoServer(why) => Err(ConnectError::NoServer { place, port, why }),
    }
}

fn read(host: &str, port: u16, is_tls_first: bool, within: Duration) -> Greeting {
    let deadline_ns = now_ns().saturating_add(within.as_nanos() as u64);
    let addresses = match (host, port).to_socket_addrs() {
        Ok(addresses) => addresses.collect::<Vec<_>>(),
        Err(_) => return Greeting::NoServer("the name is unknown".to_owned()),
    };
    let mut result = Greeting::NoServer("the name has no address".to_owned());
    for address in addresses {
        result = match connect(&address, deadline_ns) {
            Ok(_) if is_tls_first => Greeting::Line(Vec::new()),
            Ok(stream) => read_line(stream, deadline_ns),
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                Greeting::NoServer("no answer to a connection".to_owned())
            }
            Err(error) => Greeting::NoServer(words(&error)),
        };
        if matches!(result, Greeting::Line(_)) {
            break;
        }
    }
    result
}

fn left(deadline_ns: u64) -> Duration {
    // A zero would mean to wait for ever.
    Duration::from_nanos(deadline_ns.saturating_sub(now_ns())).max(Duration::from_millis(1))
}

fn connect(address: &SocketAddr, deadline_ns: u64) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(address, left(deadline_ns))?;
    stream.set_read_timeout(Some(READ_WITHIN))?;
    Ok(stream)
}

fn read_line(mut stream: TcpStream, deadline_ns: u64) -> Greeting {
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    while now_ns() < deadline_ns {
        match stream.read(&mut buffer) {
            Ok(0) if line.is_empty() => return Greeting::Silent,
            Ok(0) => return Greeting::Foreign,
            Ok(read) => match take(&mut line, &buffer[..read]) {
                Step::More => {}
                Step::Foreign => return Greeting::Foreign,
                Step::Whole => return Greeting::Line(line),
            },
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(_) => return Greeting::Silent,
        }
    }
    Greeting::Silent
}

/// Meaning of the bytes so far.
pub(crate) enum Step {
    /// The beginning of a greeting.
    More,
    /// Not that of a NATS server.
    Foreign,
    /// The whole line.
    Whole,
}

/// Takes more bytes of a greeting; a line that is whole has no end of line any more.
pub(crate) fn take(line: &mut Vec<u8>, bytes: &[u8]) -> Step {
    line.extend_from_slice(bytes);
    let end = line.iter().position(|byte| *byte == b'\n');
    line.truncate(end.unwrap_or(line.len()));
    let beginning = &b"INFO "[..line.len().min(5)];
    match line.starts_with(beginning) && line.len() <= GREETING_BYTES_MAX {
        false => Step::Foreign,
        true if end.is_some() => Step::Whole,
        true => Step::More,
    }
}

pub(crate) fn check_line(line: &[u8], options: &NatsOptions) -> Result<(), ConnectError> {
    let place = options.address.place();
    let info = line.get(5..).and_then(|json| serde_json::from_slice::<Value>(json).ok());
    let Some(info) = info else { return Err(ConnectError::Foreign { place }) };
    check_version(&place, info["version"].as_str().unwrap_or_default())?;
    let offers = ["tls_required", "tls_available"].iter().any(|key| info[*key] == true);
    if options.wants_tls() && !offers {
        return Err(ConnectError::NoTls { place });
    }
    Ok(())
}

/// Checks the version that a server reports.
pub fn check_version(place: &str, version: &str) -> Result<(), ConnectError> {
    let digits = version.trim_start_matches('v');
    let mut parts = digits.split(['.', '-', '+']).map(|part| part.parse::<u64>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found >= VERSION_MIN {
        return Ok(());
    }
    let shown: String = version.chars().filter(|c| c.is_ascii_graphic()).take(40).collect();
    let found = if shown.is_empty() { "unknown".to_owned() } else { shown };
    Err(ConnectError::TooOld { place: place.to_owned(), found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_2_10_are_too_old() {
        for version in ["2.10.0", "2.15.2", "v2.10.1-rc.1", "3.0.0", "2.100"] {
            assert_eq!(check_version("h:1", version), Ok(()), "{version}");
        }
        for version in ["2.9.10", "1.4.1", "", "x", "2"] {
            let error = check_version("h:1", version).unwrap_err().to_string();
            assert!(error.contains("needs 2.10 or later"), "{error}");
        }
        let error = check_version("h:1", "2.9.10").unwrap_err().to_string();
        assert!(error.contains("has version 2.9.10"), "{error}");
    }
}
