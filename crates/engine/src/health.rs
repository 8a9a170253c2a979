//! Facts about the generator and its machine.

use plimsoll_core::record::Machine;
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// CPU time of the calling thread, ns.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The most memory that the process has had resident, bytes; 0 when `/proc` does not tell.
#[must_use]
pub fn rss_max_bytes() -> u64 {
    field("/proc/self/status", "VmHWM:").and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Lets this process open as many descriptors as the system allows, and says how many that are.
pub fn raise_descriptor_limit() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Refused where a sandbox forbids it; the run then lives with what there is.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Number of connections that this process may still open: its limit of descriptors, less those that are open and those that
/// `threads` threads, a record and a look at the machine need.
pub fn openable_connections(threads: u32) -> u32 {
    let open = std::fs::read_dir("/proc/self/fd").map_or(8, |entries| entries.count() as u64);
    let kept = open + RESERVED + u64::from(threads) * PER_THREAD;
    raise_descriptor_limit().saturating_sub(kept).min(u64::from(u32::MAX)) as u32
}

/// Descriptors for the files of a record, for name lookups and the like.
const RESERVED: u64 = 12;
/// Descriptors of a thread: its reactor and its vital signs.
const PER_THREAD: u64 = 3;

/// The first word after `name` in a file of `name value` lines.
fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let value = line.trim_start_matches([' ', '\t', ':']).trim_matches('"');
    value.split_whitespace().next().map(str::to_owned)
}

fn whole_field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches([' ', '\t', ':', '=']).trim_matches('"').to_owned())
}

/// This machine, as records describe it.
#[must_use]
pub fn machine() -> Machine {
    let read =
        |path| std::fs::read_to_string(path).map(|s| s.trim().to_owned()).unwrap_or_default();
    let allowed = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let cpus = online(&read("/sys/devices/system/cpu/online")).unwrap_or(allowed);
    Machine {
        cpu: whole_field("/proc/cpuinfo", "model name").unwrap_or_default(),
        cpus,
        cpus_allowed: (allowed < cpus).then_some(allowed),
        memory_bytes: field("/proc/meminfo", "MemTotal:")
            .and_then(|kb| kb.parse::<u64>().ok())
            .unwrap_or(0)
            * 1024,
        kernel: read("/proc/sys/kernel/osrelease"),
        os: whole_field("/etc/os-release", "PRETTY_NAME").unwrap_or_default(),
        hostname: read("/proc/sys/kernel/hostname"),
        architecture: rustix::system::uname().machine().to_string_lossy().into_owned(),
        distribution: whole_field("/etc/os-release", "ID=").unwrap_or_default(),
        caches: caches(Path::new("/sys/devices/system/cpu")),
    }
}

/// Number of processors that a list such as `0-3,6` names.
fn online(list: &str) -> Option<u32> {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.split(',').map(count).sum()
}

/// Size and number of each cache, as `lscpu` says it: `"L1d cache": "96 KiB (2 instances)"`.
///
/// A cache that several processors share is one instance; empty where the system does not tell.
fn caches(cpus: &Path) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, (u64, BTreeSet<String>)> = BTreeMap::new();
    for cpu in std::fs::read_dir(cpus).into_iter().flatten().flatten() {
        for index in std::fs::read_dir(cpu.path().join("cache")).into_iter().flatten().flatten() {
            let read = |name: &str| {
                let text = std::fs::read_to_string(index.path().join(name)).ok()?;
                Some(text.trim().to_owned())
            };
            let (Some(level), Some(kind), Some(size), Some(shared)) =
                (read("level"), read("type"), read("size"), read("shared_cpu_list"))
            else {
                continue;
            };
            let kind = match kind.as_str() {
                "Data" => "d",
                "Instruction" => "i",
                _ => "",
            };
            let Some(kib) = size.strip_suffix('K').and_then(|kib| kib.parse::<u64>().ok()) else {
                continue;
            };
            let (one_kib, instances) = found.entry(format!("L{level}{kind} cache")).or_default();
            *one_kib = kib;
            instances.insert(shared);
        }
    }
    let shown = |(one_kib, instances): (u64, BTreeSet<String>)| {
        let (kib, count) = (one_kib * instances.len() as u64, instances.len());
        let size = if kib >= 1024 && kib.is_multiple_of(1024) {
            format!("{} MiB", kib / 1024)
        } else {
            format!("{kib} KiB")
        };
        format!("{size} ({count} instance{})", if count == 1 { "" } else { "s" })
    };
    found.into_iter().map(|(name, cache)| (name, shown(cache))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = machine();
        assert!(machine.cpus > 0 && machine.memory_bytes > 0 && !machine.kernel.is_empty());
        assert!(rss_max_bytes() > 0 && !machine.architecture.is_empty());
        let before = thread_cpu_ns();
        let spent: u64 = (0..2_000_000u64).fold(0, |a, b| a ^ b.wrapping_mul(a | 1));
        assert!(thread_cpu_ns() > before, "{spent}");
    }

    #[test]
    fn processors_are_those_of_the_machine_and_those_allowed() {
        assert_eq!((online("0"), online("0-3,6"), online("0-1\n")), (Some(1), Some(5), Some(2)));
        assert_eq!((online(""), online("3-1"), online("x")), (None, None, None));
        let all = machine();
        let pinned = std::thread::spawn(|| {
            let mut one = rustix::thread::CpuSet::new();
            let mine = rustix::thread::sched_getaffinity(None).unwrap();
            let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| mine.is_set(cpu)).unwrap();
            one.set(first);
            rustix::thread::sched_setaffinity(None, &one).unwrap();
            machine()
        });
        let pinned = pinned.join().unwrap();
        assert_eq!(pinned.cpus, all.cpus);
        assert_eq!(pinned.cpus_allowed, (all.cpus > 1).then_some(1));
    }

    #[test]
    fn a_shared_cache_is_counted_once() {
        let dir = tempfile::tempdir().unwrap();
        for cpu in 0..2 {
            for (index, level, kind, size, shared) in [
                (0, "1", "Data", "48K", cpu.to_string()),
                (1, "1", "Instruction", "32K", cpu.to_string()),
                (2, "3", "Unified", "107520K", "0-1".to_owned()),
            ] {
                let cache = dir.path().join(format!("cpu{cpu}/cache/index{index}"));
                std::fs::create_dir_all(&cache).unwrap();
                let files = [("level", level), ("type", kind), ("size", size)];
                for (name, text) in files.into_iter().chain([("shared_cpu_list", shared.as_str())])
                {
                    std::fs::write(cache.join(name), format!("{text}\n")).unwrap();
                }
            }
        }
        let told = [
            ("L1d cache", "96 KiB (2 instances)"),
            ("L1i cache", "64 KiB (2 instances)"),
            ("L3 cache", "105 MiB (1 instance)"),
        ];
        let told = told.map(|(name, size)| (name.to_owned(), size.to_owned()));
        assert_eq!(caches(dir.path()), BTreeMap::from(told));
    }
}
