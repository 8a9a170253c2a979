//! The machine as a whole: processors, memory, network, disks.

use crate::process_files::number_after;
use crate::reading::Buffer;
use plimsoll_record::resources::MachineSecond;
use std::path::{Path, PathBuf};

/// Bytes of a sector in `/proc/diskstats`, whatever the disk's own are.
const SECTOR_BYTES: u64 = 512;
/// Devices that pass on to others, or are memory: their bytes are those of others, or none of a disk.
const NO_DISKS: [&str; 7] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"];

/// Counts of the machine at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineCounts {
    /// Busy and whole time of each processor by its number, clock ticks; `None` for one that is offline.
    cores: Vec<Option<(u64, u64)>>,
    memory_bytes: Option<u64>,
    memory_available_bytes: Option<u64>,
    network: Option<NetworkBytes>,
    disks: Option<Vec<DiskCounts>>,
}

/// Bytes of network interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkBytes {
    /// Received by all but the loopback.
    pub received: u64,
    /// Sent by all but the loopback.
    pub sent: u64,
    /// Through the loopback.
    pub loopback: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct DiskCounts {
    name: String,
    read_bytes: u64,
    written_bytes: u64,
    busy_ms: u64,
}

/// Reads the counts of the machine.
#[derive(Debug)]
pub struct Machine {
    stat: PathBuf,
    memory: PathBuf,
    network: PathBuf,
    disks: PathBuf,
    /// Folder with a link for each whole disk.
    blocks: PathBuf,
    names: Vec<String>,
    /// Interfaces whose bytes are those of others.
    stacked: Vec<String>,
    buffer: Buffer,
}

impl Machine {
    /// Reads from these folders, which are `/proc` and `/sys` on a real machine.
    #[must_use]
    pub fn new(proc: &Path, sys: &Path) -> Self {
        let (blocks, interfaces) = (sys.join("block"), sys.join("class/net"));
        let names = names_in(&blocks);
        Self {
            stat: proc.join("stat"),
            memory: proc.join("meminfo"),
            network: proc.join("net/dev"),
            disks: proc.join("diskstats"),
            blocks,
            names: names.filter(|name| is_disk(name)).collect(),
            stacked: names_in(&interfaces).filter(|name| is_stacked(&interfaces, name)).collect(),
            buffer: Buffer::default(),
        }
    }

    /// Reads them.
    #[must_use]
    pub fn counts(&mut self) -> MachineCounts {
        let cores = self.buffer.read(&self.stat).map(parse_cores).unwrap_or_default();
        let memory = self.buffer.read(&self.memory).unwrap_or_default();
        let kib = |name: &str| {
            let line = memory.lines().find_map(|line| line.strip_prefix(name))?;
            number_after(line.trim_start(), "").map(|kib| kib * 1024)
        };
        let (memory_bytes, available) = (kib("MemTotal:"), kib("MemAvailable:"));
        let (names, stacked) = (&self.names, &self.stacked);
        let network = self.buffer.read_table(&self.network).ok();
        let network = network.map(|text| parse_interfaces(text, stacked));
        let disks = self.buffer.read_table(&self.disks).ok().map(|text| parse_disks(text, names));
        MachineCounts {
            cores,
            memory_bytes,
            memory_available_bytes: available,
            network,
            disks: disks.filter(|disks| !disks.is_empty()),
        }
    }

    /// Reasons why figures of the machine are unknown, by their names.
    pub fn unknown(&self, counts: &MachineCounts) -> Vec<(&'static str, String)> {
        let mut reasons = Vec::new();
        let mut add = |names: &[&'static str], is_known: bool, why: String| {
            if !is_known {
                reasons.extend(names.iter().map(|name| (*name, why.clone())));
            }
        };
        let unread = |path: &Path| format!("{} cannot be read", path.display());
        add(&["cores_busy"], !counts.cores.is_empty(), unread(&self.stat));
        let memory = counts.memory_available_bytes.is_some();
        add(&["memory_available_bytes"], memory, unread(&self.memory));
        let network = ["network_received_bytes", "network_sent_bytes", "loopback_bytes"];
        add(&network, counts.network.is_some(), unread(&self.network));
        let disks = ["disk_read_bytes", "disk_written_bytes", "disk_busy"];
        let why = match self.names.is_empty() {
            true => format!("{} names no disk", self.blocks.display()),
            false => unread(&self.disks),
        };
        add(&disks, counts.disks.is_some(), why);
        reasons
    }
}

impl MachineCounts {
    /// Number of processors that are online.
    #[must_use]
    pub fn online(&self) -> usize {
        self.cores.iter().flatten().count()
    }

    /// All memory, bytes.
    #[must_use]
    pub const fn memory_bytes(&self) -> Option<u64> {
        self.memory_bytes
    }

    /// The use of the machine since `earlier`, `span_s` seconds ago.
    #[must_use]
    pub fn since(&self, earlier: &Self, span_s: f64) -> MachineSecond {
        let core = |(index, now): (usize, &Option<(u64, u64)>)| {
            let (now, before) = ((*now)?, (*earlier.cores.get(index)?)?);
            let whole = now.1.saturating_sub(before.1);
            // Without a tick nothing is known; that takes a stretch of less than 10 ms.
            (whole > 0).then(|| now.0.saturating_sub(before.0) as f64 / whole as f64)
        };
        let network = self.network.zip(earlier.network);
        let bytes = |of: fn(&NetworkBytes) -> u64| {
            network.map(|(now, before)| of(&now).saturating_sub(of(&before)))
        };
        let disks = self.disks.as_deref().zip(earlier.disks.as_deref());
        let disk = |of: fn(&DiskCounts) -> u64| disks.map(|(now, before)| grown(now, before, of));
        let busy_ms = disk(|disk| disk.busy_ms).map(|each| each.into_iter().max().unwrap_or(0));
        MachineSecond {
            cores_busy: self.cores.iter().enumerate().map(core).collect(),
            memory_available_bytes: self.memory_available_bytes,
            network_received_bytes: bytes(|network| network.received),
            network_sent_bytes: bytes(|network| network.sent),
            loopback_bytes: bytes(|network| network.loopback),
            disk_read_bytes: disk(|disk| disk.read_bytes).map(|each| each.iter().sum()),
            disk_written_bytes: disk(|disk| disk.written_bytes).map(|each| each.iter().sum()),
            disk_busy: busy_ms
                .filter(|_| span_s > 0.0)
                .map(|ms| (ms as f64 / 1e3 / span_s).min(1.0)),
        }
    }
}

/// The increase of a count of each disk that was there before.
fn grown(now: &[DiskCounts], before: &[DiskCounts], of: fn(&DiskCounts) -> u64) -> Vec<u64> {
    let increase = |disk: &DiskCounts| {
        let earlier = before.iter().find(|one| one.name == disk.name)?;
        Some(of(disk).saturating_sub(of(earlier)))
    };
    now.iter().filter_map(increase).collect()
}

/// Names of the entries of a folder; none if it cannot be read.
fn names_in(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Returns true for a bridge, a bond or a VLAN: what passes it is also counted by the interfaces below it.
fn is_stacked(interfaces: &Path, name: &str) -> bool {
    names_in(&interfaces.join(name)).any(|entry| entry.starts_with("lower_"))
}

fn is_disk(name: &str) -> bool {
    let rest = |prefix: &str| name.strip_prefix(prefix).is_some_and(starts_with_digit);
    !NO_DISKS.iter().any(|prefix| rest(prefix))
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn parse_cores(text: &str) -> Vec<Option<(u64, u64)>> {
    let mut cores = Vec::new();
    for line in text.lines().take_while(|line| line.starts_with("cpu")) {
        let mut words = line.split_ascii_whitespace();
        let index = words.next().and_then(|word| word.strip_prefix("cpu")?.parse::<usize>().ok());
        // The first line is the sum of all.
        let Some(index) = index else { continue };
        // user, nice, system, idle, iowait, irq, softirq, steal; what follows is in user and nice already.
        let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
        if ticks.len() < 4 || index > 1 << 16 {
            continue;
        }
        let whole: u64 = ticks.iter().sum();
        let idle = ticks[3] + ticks.get(4).copied().unwrap_or(0);
        cores.resize(cores.len().max(index + 1), None);
        cores[index] = Some((whole - idle, whole));
    }
    cores
}

/// Sums a table of network interfaces, without those whose bytes are those of others.
pub fn parse_interfaces(text: &str, stacked: &[String]) -> NetworkBytes {
    let mut sum = NetworkBytes::default();
    for line in text.lines().skip(2) {
        let Some((name, counts)) = line.split_once(':') else { continue };
        let counts: Vec<u64> =
            counts.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        let (Some(received), Some(sent)) = (counts.first(), counts.get(8)) else { continue };
        if name.trim() == "lo" {
            sum.loopback += sent;
        } else if !stacked.iter().any(|one| one == name.trim()) {
            sum.received += received;
            sum.sent += sent;
        }
    }
    sum
}

fn parse_disks(text: &str, names: &[String]) -> Vec<DiskCounts> {
    let disk = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let name = *fields.get(2)?;
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        names.iter().any(|one| one == name).then_some(())?;
        Some(DiskCounts {
            name: name.to_owned(),
            read_bytes: number(5)? * SECTOR_BYTES,
            written_bytes: number(9)? * SECTOR_BYTES,
            busy_ms: number(12)?,
        })
    };
    text.lines().filter_map(disk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(root: &Path) -> MachineCounts {
        Machine::new(&root.join("proc"), root).counts()
    }

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    /// Two moments of a machine with three processors of which the second is offline, one disk, and one partition of it.
    #[test]
    fn the_machine_is_the_difference_of_two_moments() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["sda", "loop0", "dm-0", "md1", "mdisk"] {
            std::fs::create_dir_all(dir.path().join("block").join(name)).unwrap();
        }
        let head = "Inter-| Receive\n face |bytes\n";
        let interface = |lo: u64, eth: u64| {
            format!("{head}    lo: {lo} 1 0 0 0 0 0 0 {lo} 1 0\n  eth0:{eth} 1 0 0 0 0 0 0 7 1 0\n")
        };
        let disk = |sectors: u64, ms: u64| {
            format!(
                "8 0 sda 1 0 {sectors} 0 1 0 4 0 0 {ms} 0\n8 1 sda1 1 0 {sectors} 0 1 0 4 0 0 9 0\n7 0 loop0 1 0 99 0 1 0 99 0 0 9 0\n"
            )
        };
        write(
            dir.path(),
            &[
                (
                    "proc/stat",
                    "cpu  9 9\ncpu0 10 0 10 80 0 0 0 0 5 0\ncpu2 0 0 0 50 50 0 0 0\nintr 7\n",
                ),
                ("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:    60 kB\n"),
                ("proc/net/dev", &interface(100, 10)),
                ("proc/diskstats", &disk(8, 100)),
            ],
        );
        let before = counts(dir.path());
        write(
            dir.path(),
            &[
                (
                    "proc/stat",
                    "cpu  9 9\ncpu0 30 0 20 140 0 0 0 10 9 0\ncpu2 0 0 0 100 100 0 0 0\nintr 7\n",
                ),
                ("proc/net/dev", &interface(700, 40)),
                ("proc/diskstats", &disk(10, 600)),
            ],
        );
        let second = counts(dir.path()).since(&before, 1.0);
        let expected = MachineSecond {
            cores_busy: vec![Some(0.4), None, Some(0.0)],
            memory_available_bytes: Some(60 * 1024),
            network_received_bytes: Some(30),
            network_sent_bytes: Some(0),
            loopback_bytes: Some(600),
            disk_read_bytes: Some(1024),
            disk_written_bytes: Some(0),
            disk_busy: Some(0.5),
        };
        assert_eq!(second, expected);
    }

    /// A bond has the bytes of its members, and a bridge those of the containers behind it.
    #[test]
    fn bytes_of_a_bond_are_counted_once() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["eth0/upper_bond0", "bond0/lower_eth0"] {
            std::fs::create_dir_all(dir.path().join("class/net").join(folder)).unwrap();
        }
        let row = |name: &str| format!("  {name}: 50 1 0 0 0 0 0 0 70 1 0\n");
        let table = format!("Inter-| Receive\n face |bytes\n{}{}", row("eth0"), row("bond0"));
        write(dir.path(), &[("proc/net/dev", &table)]);
        let network = counts(dir.path()).network.unwrap();
        assert_eq!((network.received, network.sent), (50, 70));
    }

    #[test]
    fn a_machine_that_tells_nothing_has_no_figures_and_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let mut machine = Machine::new(&dir.path().join("proc"), dir.path());
        let counts = machine.counts();
        assert_eq!(counts.since(&counts, 1.0), MachineSecond::default());
        let reasons = machine.unknown(&counts);
        assert_eq!(reasons.len(), 8);
        assert!(
            reasons
                .iter()
                .all(|(_, why)| why.contains("cannot be read") || why.contains("names no disk"))
        );
    }

    #[test]
    fn this_machine_has_processors_and_memory() {
        let mut machine = Machine::new(Path::new("/proc"), Path::new("/sys"));
        let before = machine.counts();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let second = machine.counts().since(&before, 0.05);
        assert!(second.cores_busy.iter().flatten().count() > 0, "{second:?}");
        assert!(second.memory_available_bytes.is_some_and(|bytes| bytes > 0));
        assert!(second.loopback_bytes.is_some());
    }
}
