//! CPU time of a server on this machine: of a process and everything that it started, or of whoever listens on a port.

use plimsoll_resources::resolve::hands_on;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Ticks of `/proc/PID/stat` in a second: the kernel's USER_HZ, the same on every platform that Linux runs on today.
const TICKS_PER_S: f64 = 100.0;

/// User and system time of a process and of its living descendants, s. The time of a descendant that has ended and was
/// waited for is in its parent's.
#[must_use]
pub fn tree_cpu_s(pid: u32) -> Option<f64> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut ticks: BTreeMap<u32, u64> = BTreeMap::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(own) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(text) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some((parent, used)) = parse_stat(&text) {
            children.entry(parent).or_default().push(own);
            ticks.insert(own, used);
        }
    }
    let mut sum = *ticks.get(&pid)?;
    let mut open = children.remove(&pid).unwrap_or_default();
    while let Some(child) = open.pop() {
        sum += ticks.get(&child).copied().unwrap_or(0);
        open.extend(children.remove(&child).unwrap_or_default());
    }
    Some(sum as f64 / TICKS_PER_S)
}

/// Parent, and ticks used by the process and by the children that it has waited for.
fn parse_stat(text: &str) -> Option<(u32, u64)> {
    // The name in parentheses may hold blanks and parentheses itself.
    let rest = &text[text.rfind(')')? + 1..];
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let mut used = 0u64;
    for field in fields.get(11..15)? {
        used += field.parse::<i64>().ok()?.max(0) as u64;
    }
    Some((parent, used))
}

/// The process that listens on a TCP port of this machine, where we may see it and it is the server itself.
#[must_use]
pub fn listener(port: u16) -> Option<u32> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let wanted: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let (pid, folder) = fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        holds(&entry.path().join("fd"), &wanted).then_some((pid, entry.path()))
    })?;
    let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
    (!hands_on(&name)).then_some(pid)
}

fn holds(descriptors: &Path, wanted: &[String]) -> bool {
    let Ok(entries) = fs::read_dir(descriptors) else { return false };
    entries.flatten().any(|entry| {
        fs::read_link(entry.path()).is_ok_and(|link| {
            link.to_str().is_some_and(|link| wanted.iter().any(|own| own == link))
        })
    })
}

/// Inodes of the sockets that listen on a port, from a table of `/proc/net`.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let (_, own) = fields.get(1)?.rsplit_once(':')?;
            let same = u16::from_str_radix(own, 16).ok()? == port;
            let listens = same && *fields.get(3)? == LISTEN;
            fields.get(9).filter(|_| listens).map(|inode| (*inode).to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_no_trouble() {
        let text = "42 (a) b) (c)) S 7 1 1 0 -1 4194304 100 0 0 0 30 12 5 3 20 0 1 0 100 1 1";
        assert_eq!(parse_stat(text), Some((7, 50)));
        assert_eq!(parse_stat("42 (a) S"), None);
    }

    #[test]
    fn this_process_has_used_time_and_is_found_by_its_port() {
        let before = tree_cpu_s(std::process::id()).unwrap();
        assert!(before >= 0.0);
        let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        assert_eq!(listener(socket.local_addr().unwrap().port()), Some(std::process::id()));
    }

    #[test]
    fn who_hands_on_to_a_container_is_not_its_server() {
        assert!(hands_on("docker-proxy\n") && hands_on("pasta"));
        assert!(!hands_on("java\n") && !hands_on("docker-proxy2") && !hands_on(""));
    }

    #[test]
    fn only_sockets_that_listen_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:23F0 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 111 1 0\n\
             1: 0100007F:23F0 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000 0 222 1 0\n";
        assert_eq!(listening_inodes(table, 0x23f0), ["111"]);
        assert!(listening_inodes(table, 80).is_empty());
    }
}
