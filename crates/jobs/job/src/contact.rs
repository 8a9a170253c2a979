//! One connection to each target before a run: a typing mistake in an address is known at once, and not after minutes of
//! failures.

use crate::signals;
use crate::usage::unreachable;
use anyhow::Result;
use plimsoll_core::units::Span;
use plimsoll_engine::target::Target;
use plimsoll_fleet::place::is_coordinator;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Pause between two looks at whether the user stops the program.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Connects once to every target, all of them at the same time, and sends nothing.
///
/// # Errors
/// The first target that is not there: no address, nothing that listens, or no answer within `limit`. A target that
/// comes up later is not waited for. [`signals::Stopped`] when the user stops the program meanwhile.
pub fn reach(targets: &[Target], limit: Span) -> Result<()> {
    signals::stop_flag()?;
    if is_coordinator() {
        // The target need not be reachable from here; the agents look for it.
        return Ok(());
    }
    let limit = Duration::from_nanos(limit.ns.max(1));
    let (sender, answers) = channel();
    let mut waiting = 0;
    for (index, target) in targets.iter().enumerate() {
        if targets[..index].contains(target) {
            continue;
        }
        waiting += 1;
        let (sender, target) = (sender.clone(), target.clone());
        std::thread::spawn(move || sender.send(trouble(&target, limit)));
    }
    while waiting > 0 {
        match answers.recv_timeout(LOOK_EVERY) {
            Ok(None) => waiting -= 1,
            Ok(Some(trouble)) => return Err(unreachable(trouble)),
            Err(RecvTimeoutError::Timeout) => signals::go_on("while the target was looked for")?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(())
}

/// Returns why a target cannot be loaded, if it cannot.
fn trouble(target: &Target, limit: Duration) -> Option<String> {
    let (host, port) = (&target.host, target.port);
    let Some(last) = target.addresses.last() else {
        return Some(format!(
            "the host name '{host}' cannot be resolved; check the URL. Nothing was sent"
        ));
    };
    let place = match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    for address in &target.addresses {
        let why = match TcpStream::connect_timeout(address, limit) {
            Ok(_) => return None,
            Err(error) => match error.kind() {
                ErrorKind::ConnectionRefused => "nothing is listening there".to_owned(),
                ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                    format!("no answer to a connection within {} s", limit.as_secs_f64())
                }
                ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => error.to_string(),
                // A fault on this side is reported by the run.
                _ => return None,
            },
        };
        if address == last {
            return Some(format!(
                "{place} cannot be reached: {why}; check the URL, or start the server. Nothing was sent"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_target_that_is_not_there_is_known_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = Target::resolve("127.0.0.1", listener.local_addr().unwrap().port());
        let gone = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            Target::resolve("127.0.0.1", listener.local_addr().unwrap().port())
        };
        let nowhere = Target::resolve("no-such-host.invalid", 80);
        let limit = Span::seconds(5);
        reach(&[there.clone(), there.clone()], limit).unwrap();
        let told = |target: &Target| {
            reach(&[there.clone(), target.clone()], limit).unwrap_err().to_string()
        };
        assert!(told(&gone).contains("nothing is listening"), "{}", told(&gone));
        assert!(told(&nowhere).contains("cannot be resolved"), "{}", told(&nowhere));
        // A host with several addresses is there when one of them is.
        let both = Target {
            addresses: gone.addresses.iter().chain(&there.addresses).copied().collect(),
            ..gone
        };
        reach(&[both], limit).unwrap();
    }
}
