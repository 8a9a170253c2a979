//! The sockets that listen on this machine, and the processes that have them.

use crate::process_files::ProcessFiles;
use crate::reading::Buffer;
use crate::subject::Identity;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// State of a socket that listens, as the tables write it.
const LISTENS: &str = "0A";

/// Processes that listen on an address, without those that a listening one started: workers have the socket of their master.
#[must_use]
pub fn processes_at(files: &mut ProcessFiles, address: SocketAddr) -> Vec<Identity> {
    let inodes = listeners(files.root(), address);
    if inodes.is_empty() {
        return Vec::new();
    }
    let holders: Vec<u32> =
        files.pids().into_iter().filter(|&pid| files.has_socket(pid, &inodes)).collect();
    let stats: HashMap<u32, _> =
        holders.iter().filter_map(|&pid| Some((pid, files.stat(pid).ok()?))).collect();
    let is_first = |parent: u32| !stats.contains_key(&parent);
    let first = stats.iter().filter(|(_, stat)| is_first(stat.parent));
    let mut found: Vec<Identity> =
        first.map(|(&pid, stat)| Identity { pid, started_ticks: stat.started_ticks }).collect();
    found.sort_by_key(|one| one.pid);
    found
}

/// Inodes of the sockets that take connections to an address of this machine.
fn listeners(proc: &Path, address: SocketAddr) -> Vec<u64> {
    let mut buffer = Buffer::default();
    let mut found = Vec::new();
    for name in ["net/tcp", "net/tcp6"] {
        let Ok(text) = buffer.read_table(&proc.join(name)) else { continue };
        found.extend(text.lines().skip(1).filter_map(parse).filter_map(|(local, inode)| {
            (local.port() == address.port() && takes(local.ip(), address.ip())).then_some(inode)
        }));
    }
    found
}

/// True if a socket that is bound to `bound` takes connections to `asked`.
fn takes(bound: IpAddr, asked: IpAddr) -> bool {
    let plain = |address: IpAddr| address.to_canonical();
    match (plain(bound), plain(asked)) {
        // A socket of version 6 that is bound to no address takes both versions, unless it was told not to.
        (IpAddr::V6(Ipv6Addr::UNSPECIFIED), _) => true,
        (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(_)) => true,
        (bound, asked) => bound == asked,
    }
}

/// Local address and inode of a line about a socket that listens.
fn parse(line: &str) -> Option<(SocketAddr, u64)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if *fields.get(3)? != LISTENS {
        return None;
    }
    let (address, port) = fields.get(1)?.split_once(':')?;
    // Words of 32 bits, each in the order of this machine's bytes.
    let words: Option<Vec<u32>> = (0..address.len() / 8)
        .map(|index| u32::from_str_radix(address.get(8 * index..8 * index + 8)?, 16).ok())
        .collect();
    let bytes: Vec<u8> = words?.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let address = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((SocketAddr::new(address, port), fields.get(9)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_of_this_process_is_found_by_its_address() {
        use std::os::unix::fs::MetadataExt;
        for bound in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(bound) else { continue };
            let fd = std::os::fd::AsRawFd::as_raw_fd(&listener);
            let inode = std::fs::metadata(format!("/proc/self/fd/{fd}")).unwrap().ino();
            let port = listener.local_addr().unwrap().port();
            let own = if bound == "[::1]:0" { "::1" } else { "127.0.0.1" };
            let address = SocketAddr::new(own.parse().unwrap(), port);
            assert_eq!(listeners(Path::new("/proc"), address), [inode], "{bound}");
            let mut files = ProcessFiles::new(Path::new("/proc"));
            let found: Vec<u32> =
                processes_at(&mut files, address).iter().map(|one| one.pid).collect();
            assert_eq!(found, [std::process::id()], "{bound}");
        }
    }

    #[test]
    fn a_socket_takes_its_own_address_or_any() {
        let takes =
            |bound: &str, asked: &str| super::takes(bound.parse().unwrap(), asked.parse().unwrap());
        assert!(takes("127.0.0.1", "127.0.0.1") && takes("0.0.0.0", "127.0.0.1"));
        assert!(
            takes("::", "127.0.0.1")
                && takes("::", "::1")
                && takes("::ffff:127.0.0.1", "127.0.0.1")
        );
        assert!(!takes("127.0.0.2", "127.0.0.1") && !takes("0.0.0.0", "::1"));
    }
}
