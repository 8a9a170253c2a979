//! What the generator knows of itself and of the machine it runs on.

use plimsoll_core::record::Machine;
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread, ns.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

/// CPU time of the whole process, ns.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    cpu_ns(ClockId::ProcessCPUTime)
}

fn cpu_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
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
    Machine {
        cpu: whole_field("/proc/cpuinfo", "model name").unwrap_or_default(),
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        memory_bytes: field("/proc/meminfo", "MemTotal:")
            .and_then(|kb| kb.parse::<u64>().ok())
            .unwrap_or(0)
            * 1024,
        kernel: read("/proc/sys/kernel/osrelease"),
        os: whole_field("/etc/os-release", "PRETTY_NAME").unwrap_or_default(),
        hostname: read("/proc/sys/kernel/hostname"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = machine();
        assert!(machine.cpus > 0 && machine.memory_bytes > 0 && !machine.kernel.is_empty());
        assert!(rss_max_bytes() > 0);
        let before = thread_cpu_ns();
        let spent: u64 = (0..2_000_000u64).fold(0, |a, b| a ^ b.wrapping_mul(a | 1));
        assert!(thread_cpu_ns() > before, "{spent}");
    }
}
