//! Listening sockets: on loopback unless a flag says otherwise, and then with a warning.

use crate::process::{Place, Running};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const SERVERS: [&[&str]; 5] = [
    &["serve", "null"],
    &["serve", "queue", "--servers", "1", "--service", "exponential:1ms"],
    &["serve", "search", "--containers", "2"],
    &["serve", "rank", "--scale", "8"],
    &["serve", "voter", "--http-port", "0"],
];

/// Addresses on which a process listens, by its sockets in /proc.
fn listening(pid: u32) -> Vec<IpAddr> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    let own: Vec<String> = links
        .filter_map(|link| {
            Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
        })
        .collect();
    let mut found = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_listening = fields[3] == "0A" || (table.starts_with("udp") && fields[3] == "07");
            if is_listening && own.iter().any(|inode| inode == fields[9]) {
                found.push(address(fields[1].split(':').next().unwrap()));
            }
        }
    }
    found
}

/// An address as the kernel writes it: words of four bytes, each in the order of this machine.
fn address(hex: &str) -> IpAddr {
    let word = |at: usize| u32::from_str_radix(&hex[at..at + 8], 16).unwrap().to_ne_bytes();
    if hex.len() == 8 {
        return IpAddr::V4(Ipv4Addr::from(word(0)));
    }
    let bytes: Vec<u8> = [word(0), word(8), word(16), word(24)].concat();
    IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap()))
}

fn ready(place: &Place, arguments: &[&str]) -> Running {
    let running = place.start(arguments.iter().copied());
    running.wait_for("ready ", Duration::from_secs(60));
    running
}

#[test]
fn servers_listen_on_loopback_unless_a_flag_says_otherwise() {
    let place = Place::new();
    for arguments in SERVERS {
        let running = ready(&place, arguments);
        let found = listening(running.id());
        assert!(!found.is_empty(), "{arguments:?} listens nowhere");
        for address in found {
            assert!(address.to_canonical().is_loopback(), "{arguments:?} listens on {address}");
        }
        assert_eq!(running.stderr_so_far(), "", "{arguments:?}");
        let running = ready(&place, &[arguments, &["--host", "0.0.0.0"][..]].concat());
        assert!(listening(running.id()).contains(&IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
        let warned = running.stderr_so_far();
        assert!(warned.contains("which other machines can reach"), "{arguments:?}: {warned}");
    }
}

#[test]
fn a_run_listens_nowhere_and_its_live_page_on_loopback() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    let load = ["load", &target.url, "--clients", "1", "--duration", "20s", "--no-record"];
    for (more, expected) in [(&[][..], 0), (&["--live"][..], 1)] {
        let running = place.start([&load[..], more].concat());
        let requests = || target.stats()["requests"].as_u64().unwrap_or(0);
        let before = requests();
        crate::process::until("the run", Duration::from_secs(20), || requests() > before + 10);
        let found = listening(running.id());
        assert_eq!(found.len(), expected, "{more:?}: {found:?}");
        assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
    }
    let running = place.start([&load[..], &["--live=0.0.0.0:0"]].concat());
    crate::process::until("a warning", Duration::from_secs(20), || {
        running
            .stderr_so_far()
            .contains("--live listens on 0.0.0.0:0, which other machines can reach")
    });
}
