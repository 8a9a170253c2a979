//! The target of a soak as a process of its own: TLS, failures, cuts, resets, silence, and connections that are closed.

use crate::sabotages::cores;
use crate::targets::leak::Leak;
use crate::targets::server::{Language, Script, Server};
use std::time::Duration;

/// Faults of a soak. Replies without a status, and requests that are never answered, hold a connection each for up to a
/// timeout; a connection more costs a handshake.
#[must_use]
pub fn faults() -> Script {
    Script {
        language: Language::Https,
        body_bytes: 200,
        fail_every: 50,
        close_after: 100,
        drop_every: 5_000,
        reset_every: 7_000,
        cut_every: 9_000,
        hang_every: 40_000,
        is_unlogged: true,
        ..Script::default()
    }
}

/// Parses the words that follow the defaults: `leak-bytes=N`, lost with each thousandth request, and `leak-descriptor=N`, one
/// lost every N milliseconds.
///
/// # Errors
/// The first word that is not one of these.
pub fn leak(words: &[String]) -> Result<Leak, String> {
    let mut leak = Leak::default();
    for word in words {
        let unknown =
            || format!("unknown word '{word}'; expected leak-bytes=N or leak-descriptor=N");
        let (name, value) = word.split_once('=').ok_or_else(unknown)?;
        let value: u64 = value.parse().map_err(|_| unknown())?;
        match name {
            "leak-bytes" => leak.bytes_per_thousand = value as usize,
            "leak-descriptor" => leak.descriptor_every = Some(Duration::from_millis(value)),
            _ => return Err(unknown()),
        }
    }
    Ok(leak)
}

/// Starts the server, and returns it with its ready line.
///
/// # Errors
/// When no port is to be had.
pub fn start(leak: Leak) -> Result<(Server, String), String> {
    let (core, _) = cores::two();
    let server = Server::start(Script { leak, ..faults() }, core);
    let server = server.map_err(|error| format!("the target cannot start: {error}"))?;
    let ready = format!("ready soak https://{}", server.address);
    Ok((server, ready))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_plant_leaks_and_unknown_ones_are_rejected() {
        let words = |words: &[&str]| -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        let planted = leak(&words(&["leak-bytes=1024", "leak-descriptor=60000"])).unwrap();
        let minute = Some(Duration::from_secs(60));
        assert_eq!(planted, Leak { bytes_per_thousand: 1_024, descriptor_every: minute });
        assert_eq!(leak(&[]), Ok(Leak::default()));
        for wrong in ["leak-bytes", "leak-bytes=x", "leak=1"] {
            assert!(leak(&words(&[wrong])).unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
