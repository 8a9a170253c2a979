//! CPU time of a server on this machine: of a process and everything that it started, or of whoever listens on a port.

use plimsoll_resources::resolve::hands_on;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Ticks of `/proc/PID/stat` in a second: the kernel's USER_HZ, the same on every platform that Linux runs on today.
const TICKS_PER_S: f64 = 100.0;

/// Looks at the processes of a server before its time counts as unknown.
const LOOKS_MOST: u32 = 20;

/// User and system time of a process and of its living descendants, s. The time of a descendant that has ended and was
/// waited for is in its parent's. Unknown if descendants end all the time.
///
/// Processes are read one after the other: one that ends meanwhile may be gone before its turn, after its parent was read without its
/// time. So the sum counts once two looks have found the same processes, which had waited for the same children.
#[must_use]
pub fn tree_cpu_s(pid: u32) -> Option<f64> {
    let mut before = tree(pid)?;
    for _ in 1..LOOKS_MOST {
        let now = tree(pid)?;
        if is_same(&before, &now) {
            let ticks: u64 = now.values().map(|used| used.own + used.waited_for).sum();
            return Some(ticks as f64 / TICKS_PER_S);
        }
        before = now;
    }
    None
}

/// Time that a process has used, ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Used {
    own: u64,
    /// That of the children that have ended and for which it has waited.
    waited_for: u64,
}

/// A process and its living descendants.
type Tree = BTreeMap<u32, Used>;

fn tree(pid: u32) -> Option<Tree> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut all = Tree::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(own) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(text) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some((parent, used)) = parse_stat(&text) {
            children.entry(parent).or_default().push(own);
            all.insert(own, used);
        }
    }
    let mut tree = Tree::from([(pid, *all.get(&pid)?)]);
    let mut open = children.remove(&pid).unwrap_or_default();
    while let Some(child) = open.pop() {
        tree.extend(all.get(&child).map(|used| (child, *used)));
        open.extend(children.remove(&child).unwrap_or_default());
    }
    Some(tree)
}

/// Returns whether no process has ended or begun between two looks.
fn is_same(before: &Tree, now: &Tree) -> bool {
    let waited_for = |tree: &Tree| -> Vec<(u32, u64)> {
        tree.iter().map(|(pid, used)| (*pid, used.waited_for)).collect()
    };
    waited_for(before) == waited_for(now)
}

/// Parent of a process, and the time that it has used.
fn parse_stat(text: &str) -> Option<(u32, Used)> {
    // The name in parentheses may hold blanks and parentheses itself.
    let rest = &text[text.rfind(')')? + 1..];
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let ticks = |at: usize| Some(fields.get(at)?.parse::<i64>().ok()?.max(0) as u64);
    let (own, waited_for) = (ticks(11)? + ticks(12)?, ticks(13)? + ticks(14)?);
    Some((parent, Used { own, waited_for }))
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
        assert_eq!(parse_stat(text), Some((7, Used { own: 42, waited_for: 8 })));
        assert_eq!(parse_stat("42 (a) S"), None);
    }

    #[test]
    fn this_process_has_used_time_and_is_found_by_its_port() {
        let before = tree_cpu_s(std::process::id()).unwrap();
        assert!(before >= 0.0);
        let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        assert_eq!(listener(socket.local_addr().unwrap().port()), Some(std::process::id()));
    }

    /// Each child takes 30 ms of a processor, ends and is waited for: its time must not be missing in between.
    #[test]
    fn the_time_of_processes_that_end_is_never_missing() {
        let burn = "n=0; while [ $n -lt 20000 ]; do n=$((n+1)); done";
        let script = format!("for i in $(seq 100); do ({burn}); done");
        let mut shell = std::process::Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let (mut last_s, mut answers) = (0.0, 0);
        while shell.try_wait().unwrap().is_none() {
            let Some(now_s) = tree_cpu_s(shell.id()) else { continue };
            assert!(now_s >= last_s, "{now_s} s after {last_s} s");
            (last_s, answers) = (now_s, answers + 1);
        }
        assert!(answers > 20 && last_s > 0.5, "{answers} answers, {last_s} s");
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
