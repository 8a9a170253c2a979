//! Limits of a watched thing and of the machine, and the resources that were used up.

use crate::groups::Groups;
use crate::process_files::ProcessFiles;
use crate::subject::{Roots, Subject};
use plimsoll_record::resources::{MachineResult, WatchedResult};
use std::path::Path;

/// Share of a resource from which on it counts as used up.
const USED_UP: f64 = 0.95;
/// Share of the machine's memory below which what is left counts as used up.
const LEFT_MIN: f64 = 0.05;
/// Processors' worth of time by a quota from which on it is named.
const THROTTLED_MIN: f64 = 0.01;

/// Time that must have been seen before anything counts as used up, s. The kernel counts processor time in ticks of up to 10 ms, which
/// are most of a run of a few milliseconds.
pub const SEEN_MIN_S: f64 = 0.5;

/// Processors and memory, bytes, that a thing may use, if that is less than the machine's `online` processors and all memory.
pub fn allowed(subject: &Subject, first: Option<u32>, online: usize) -> (Option<f64>, Option<u64>) {
    let mut files = ProcessFiles::new(Path::new("/proc"));
    let mut groups = Groups::of_machine();
    let group = match &subject.roots {
        Roots::Group(group) => Some(group.clone()),
        _ => first.and_then(|pid| files.control_group(pid)),
    };
    let affinity = first.and_then(|pid| files.processors(pid)).map(f64::from);
    let (mut quota, mut memory) = (None, None);
    if let (Some(groups), Some(group)) = (&mut groups, &group) {
        quota = groups.processors(group);
        memory = groups.memory(group);
    }
    let least = [affinity, quota].into_iter().flatten().min_by(f64::total_cmp);
    (least.filter(|own| online == 0 || *own < online as f64), memory)
}

/// Says in words what a thing used up. `online` is the number of the machine's processors.
pub fn tell(result: &mut WatchedResult, online: usize) {
    let mut told = Vec::new();
    let allowed = result.cpu_cores_allowed.unwrap_or(online as f64);
    if let Some(cpu) = result.cpu_cores {
        let is_single = result.threads.is_some_and(|threads| threads.max <= 1.0);
        if allowed > 0.0 && cpu.mean >= USED_UP * allowed {
            told.push(format!("CPU {:.2} of {} cores", cpu.mean, trimmed(allowed)));
        } else if is_single && cpu.mean >= USED_UP {
            told.push(format!("its only thread, {:.0} % busy", 100.0 * cpu.mean));
        }
    }
    if let Some(throttled) = result.throttled_cores
        && throttled.mean >= THROTTLED_MIN
    {
        told.push(format!("CPU quota, which held back {:.2} cores", throttled.mean));
    }
    if let (Some(memory), Some(allowed)) = (result.rss_bytes, result.memory_allowed_bytes)
        && memory.max >= USED_UP * allowed as f64
    {
        let megabytes = |bytes: f64| bytes / 1e6;
        told.push(format!(
            "memory {:.0} of {:.0} MB",
            megabytes(memory.max),
            megabytes(allowed as f64)
        ));
    }
    result.at_limit = told;
}

/// Says in words what of the machine was used up. `memory_bytes` is all memory of the machine.
pub fn tell_machine(result: &mut MachineResult, memory_bytes: Option<u64>) {
    let mut told = Vec::new();
    let cores: Vec<(usize, f64)> = result
        .cores_busy
        .iter()
        .enumerate()
        .filter_map(|(index, busy)| Some((index, (*busy)?.mean)))
        .collect();
    let busy: Vec<&(usize, f64)> = cores.iter().filter(|(_, mean)| *mean >= USED_UP).collect();
    if !cores.is_empty() && busy.len() == cores.len() {
        let mean = cores.iter().map(|(_, mean)| mean).sum::<f64>() / cores.len() as f64;
        told.push(format!("all {} processors, {:.0} % busy", cores.len(), 100.0 * mean));
    } else {
        let one = |(index, mean): &&(usize, f64)| {
            format!("processor {index}, {:.0} % busy", 100.0 * mean)
        };
        told.extend(busy.iter().take(LISTED_MAX).map(one));
        if busy.len() > LISTED_MAX {
            told.push(format!("{} more processors", busy.len() - LISTED_MAX));
        }
    }
    if let (Some(left), Some(memory)) = (result.memory_available_min_bytes, memory_bytes)
        && (left as f64) < LEFT_MIN * memory as f64
    {
        told.push(format!(
            "memory, {:.0} MB of {:.0} left",
            left as f64 / 1e6,
            memory as f64 / 1e6
        ));
    }
    if let Some(disk) = result.disk_busy
        && disk.mean >= USED_UP
    {
        told.push(format!("a disk, {:.0} % busy", 100.0 * disk.mean));
    }
    result.at_limit = told;
}

/// Most processors that are named one by one.
const LISTED_MAX: usize = 4;

/// `2` or `1.5`.
fn trimmed(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::resources::Level;

    const fn level(mean: f64) -> Option<Level> {
        Some(Level { mean, max: mean })
    }

    fn told(result: WatchedResult) -> Vec<String> {
        let mut result = result;
        tell(&mut result, 4);
        result.at_limit
    }

    #[test]
    fn a_thing_is_at_a_limit_when_it_uses_what_it_may() {
        let base = WatchedResult {
            cpu_cores: level(1.97),
            threads: level(8.0),
            ..WatchedResult::default()
        };
        assert!(told(base.clone()).is_empty(), "2 of 4 processors");
        let quota = WatchedResult {
            cpu_cores_allowed: Some(2.0),
            throttled_cores: level(0.3),
            ..base.clone()
        };
        assert_eq!(told(quota), ["CPU 1.97 of 2 cores", "CPU quota, which held back 0.30 cores"]);
        let single = WatchedResult { cpu_cores: level(0.98), threads: level(1.0), ..base.clone() };
        assert_eq!(told(single), ["its only thread, 98 % busy"]);
        let memory = WatchedResult {
            rss_bytes: level(99e6),
            memory_allowed_bytes: Some(100_000_000),
            ..base
        };
        assert_eq!(told(memory), ["memory 99 of 100 MB"]);
        assert!(told(WatchedResult::default()).is_empty(), "unknown is not a limit");
    }

    #[test]
    fn the_machine_is_at_a_limit_by_processor_memory_and_disk() {
        let told = |result: MachineResult| {
            let mut result = result;
            tell_machine(&mut result, Some(1_000_000_000));
            result.at_limit
        };
        let all = MachineResult {
            cores_busy: vec![level(0.99), None, level(0.97)],
            ..MachineResult::default()
        };
        assert_eq!(told(all), ["all 2 processors, 98 % busy"]);
        let one = MachineResult {
            cores_busy: vec![level(0.5), level(0.96)],
            memory_available_min_bytes: Some(20_000_000),
            disk_busy: level(0.96),
            ..MachineResult::default()
        };
        let words = ["processor 1, 96 % busy", "memory, 20 MB of 1000 left", "a disk, 96 % busy"];
        assert_eq!(told(one), words);
        assert!(told(MachineResult::default()).is_empty());
    }
}
