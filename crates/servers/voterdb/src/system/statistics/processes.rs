//! The kernel's figures about this process.

use plimsoll_core::clock::now_ns;
use plimsoll_serving::cpu_time::process_cpu_ns;

/// CPU time at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuReading {
    at_ns: u64,
    cpu_ns: u64,
}

impl Default for CpuReading {
    fn default() -> Self {
        Self { at_ns: now_ns(), cpu_ns: process_cpu_ns() }
    }
}

impl CpuReading {
    /// Percent of all processors since the reading before, which this one replaces.
    pub(super) fn percent(&mut self) -> u64 {
        let now = Self::default();
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let elapsed_ns = now.at_ns.saturating_sub(self.at_ns).max(1) * processors;
        let used_ns = now.cpu_ns.saturating_sub(self.cpu_ns);
        *self = now;
        used_ns * 100 / elapsed_ns
    }
}

/// Resident memory of this process, kB.
pub(super) fn resident_kb() -> u64 {
    field_kb("/proc/self/status", "VmRSS:")
}

/// Memory of the machine, kB.
pub(super) fn physical_kb() -> u64 {
    field_kb("/proc/meminfo", "MemTotal:")
}

/// A line such as `VmRSS:   1234 kB`; 0 where the kernel tells nothing.
fn field_kb(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
