//! `perf`: monitors of processor, memory, network and clock frequency, and `perf stat` where it works.

use super::perf_stat::PerfStat;
use super::sampler::{Sampler, csv};
use super::{Hook, SeriesFile, SeriesForm, proc_stat};
use plimsoll_core::clock::now_ns;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PROCESSORS: &str = "/sys/devices/system/cpu";
const MEMORY: [&str; 10] = [
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "Active",
    "Inactive",
    "Dirty",
    "AnonPages",
    "SwapFree",
];

/// One monitor's options.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Monitor {
    /// Seconds between two samples.
    interval: u16,
    /// True if it runs.
    enabled: bool,
    /// `memstat`: more names of /proc/meminfo. `netstat`: more counters, such as `TcpExt.ListenOverflows`.
    additional_counters: Vec<String>,
    /// `perfstat`: more events.
    additional_events: Vec<String>,
}

impl Default for Monitor {
    fn default() -> Self {
        let (additional_counters, additional_events) = (Vec::new(), Vec::new());
        Self { interval: 1, enabled: true, additional_counters, additional_events }
    }
}

impl Monitor {
    fn every(&self) -> Duration {
        Duration::from_secs(u64::from(self.interval.max(1)))
    }
}

/// The monitors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    mpstat: Monitor,
    memstat: Monitor,
    netstat: Monitor,
    cpufreq_scaling: Monitor,
    cpufreq_cpuinfo: Monitor,
    perfstat: Monitor,
}

pub struct Perf {
    options: Options,
    samplers: Vec<Sampler>,
    perf_stat: Option<PerfStat>,
    files: Vec<&'static str>,
    warnings: Vec<String>,
}

impl Perf {
    pub fn new(options: Options) -> Self {
        let (samplers, files, warnings) = (Vec::new(), Vec::new(), Vec::new());
        Self { options, samplers, perf_stat: None, files, warnings }
    }

    fn begun(&mut self, file: &'static str, sampler: Result<Sampler, String>) {
        match sampler {
            Ok(sampler) => {
                self.samplers.push(sampler);
                self.files.push(file);
            }
            Err(problem) => self.warnings.push(format!("{file}: {problem}")),
        }
    }
}

impl Hook for Perf {
    fn before(&mut self, folder: &Path) -> Result<(), String> {
        let options = self.options.clone();
        let begin = |monitor: &Monitor, make: &dyn Fn(&Monitor) -> Result<Sampler, String>| {
            monitor.enabled.then(|| make(monitor))
        };
        let scaling =
            |m: &Monitor| frequency(&folder.join("cpufreq_scaling.csv"), "scaling_cur_freq", m);
        let cpuinfo =
            |m: &Monitor| frequency(&folder.join("cpufreq_cpuinfo.csv"), "cpuinfo_cur_freq", m);
        let begun = [
            ("mpstat.csv", begin(&options.mpstat, &|m| processors(&folder.join("mpstat.csv"), m))),
            ("mem-stat.csv", begin(&options.memstat, &|m| memory(&folder.join("mem-stat.csv"), m))),
            (
                "net-stat.csv",
                begin(&options.netstat, &|m| network(&folder.join("net-stat.csv"), m)),
            ),
            ("cpufreq_scaling.csv", begin(&options.cpufreq_scaling, &scaling)),
            ("cpufreq_cpuinfo.csv", begin(&options.cpufreq_cpuinfo, &cpuinfo)),
        ];
        for (file, sampler) in begun {
            if let Some(sampler) = sampler {
                self.begun(file, sampler);
            }
        }
        if options.perfstat.enabled {
            let events = &options.perfstat.additional_events;
            match PerfStat::start(folder, options.perfstat.every(), events) {
                Ok(running) => {
                    self.perf_stat = Some(running);
                    self.files.push(super::perf_stat::FILE);
                }
                Err(problem) => self.warnings.push(format!("perf stat: {problem}")),
            }
        }
        Ok(())
    }

    fn after(&mut self, folder: &Path) -> Result<(), String> {
        let mut problems: Vec<String> =
            self.samplers.iter_mut().filter_map(|sampler| sampler.stop().err()).collect();
        self.samplers.clear();
        problems.extend(self.perf_stat.take().and_then(|running| running.finish(folder).err()));
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }

    fn series(&self) -> Vec<SeriesFile> {
        let file = |name: &&str| SeriesFile { name: (*name).to_owned(), form: SeriesForm::Csv };
        self.files.iter().map(file).collect()
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

fn processors(path: &Path, monitor: &Monitor) -> Result<Sampler, String> {
    let all =
        || proc_stat::read().into_iter().find(|(name, _)| name == "all").map(|(_, ticks)| ticks);
    let mut last = all().ok_or("/proc/stat cannot be read")?;
    let columns = proc_stat::COLUMNS.map(str::to_owned);
    csv(path, &columns, monitor.every(), move || {
        let now = all().unwrap_or(last);
        let shares = proc_stat::shares(&last, &now);
        last = now;
        shares.map(|share| format!("{share:.2}")).to_vec()
    })
}

/// `Name:  123 kB` lines.
fn meminfo() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        Some((name.to_owned(), rest.split_ascii_whitespace().next()?.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

fn memory(path: &Path, monitor: &Monitor) -> Result<Sampler, String> {
    let known = meminfo();
    let more = &monitor.additional_counters;
    if let Some(wrong) = more.iter().find(|name| !known.contains_key(*name)) {
        return Err(format!("/proc/meminfo has no {wrong}"));
    }
    let names: Vec<String> = MEMORY.map(str::to_owned).iter().chain(more).cloned().collect();
    let columns: Vec<String> = names.iter().map(|name| format!("{name}_kB")).collect();
    csv(path, &columns, monitor.every(), move || {
        let mut now = meminfo();
        names.iter().map(|name| now.remove(name).unwrap_or_default()).collect()
    })
}

/// Counters of interfaces (`eth0.rx_bytes`) and of protocols (`Tcp.RetransSegs`), since the machine started.
fn counters() -> BTreeMap<String, u64> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut found = BTreeMap::new();
    for line in read("/proc/net/dev").lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let values: Vec<u64> =
            rest.split_ascii_whitespace().filter_map(|v| v.parse().ok()).collect();
        let wanted = [
            ("rx_bytes", 0),
            ("rx_packets", 1),
            ("rx_dropped", 3),
            ("tx_bytes", 8),
            ("tx_packets", 9),
        ];
        for (what, at) in wanted {
            if let Some(value) = values.get(at) {
                found.insert(format!("{}.{what}", name.trim()), *value);
            }
        }
    }
    for path in ["/proc/net/snmp", "/proc/net/netstat"] {
        let text = read(path);
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let (names, values) =
                (pair[0].split_ascii_whitespace(), pair[1].split_ascii_whitespace());
            let group = pair[0].split(':').next().unwrap_or_default();
            for (name, value) in names.zip(values).skip(1) {
                if let Ok(value) = value.parse() {
                    found.insert(format!("{group}.{name}"), value);
                }
            }
        }
    }
    found
}

fn network(path: &Path, monitor: &Monitor) -> Result<Sampler, String> {
    let mut last = counters();
    let more = &monitor.additional_counters;
    if let Some(wrong) = more.iter().find(|name| !last.contains_key(*name)) {
        return Err(format!("/proc/net has no counter {wrong}"));
    }
    let shown = |name: &&String| {
        let of_interface = !name.starts_with(|c: char| c.is_ascii_uppercase());
        of_interface || name.as_str() == "Tcp.RetransSegs" || more.contains(name)
    };
    let names: Vec<String> = last.keys().filter(shown).cloned().collect();
    let columns: Vec<String> = names.iter().map(|name| format!("{name}_per_s")).collect();
    let mut last_ns = now_ns();
    csv(path, &columns, monitor.every(), move || {
        let (now, at_ns) = (counters(), now_ns());
        let passed_s = (at_ns - last_ns).max(1) as f64 / 1e9;
        let rate = |name: &String| {
            let grown = now.get(name)?.saturating_sub(*last.get(name)?);
            Some(format!("{:.1}", grown as f64 / passed_s))
        };
        let row = names.iter().map(|name| rate(name).unwrap_or_default()).collect();
        (last, last_ns) = (now, at_ns);
        row
    })
}

fn frequency(path: &Path, what: &str, monitor: &Monitor) -> Result<Sampler, String> {
    let mut files: Vec<(u32, PathBuf)> = std::fs::read_dir(PROCESSORS)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok()?;
            let file = entry.path().join("cpufreq").join(what);
            std::fs::read(&file).ok().map(|_| (number, file))
        })
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(format!("this machine does not report {what}"));
    }
    let columns: Vec<String> = files.iter().map(|(number, _)| format!("cpu{number}_kHz")).collect();
    csv(path, &columns, monitor.every(), move || {
        let read = |(_, file): &(u32, PathBuf)| std::fs::read_to_string(file).unwrap_or_default();
        files.iter().map(|file| read(file).trim().to_owned()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machines_counters_are_found() {
        let counters = counters();
        assert!(counters.contains_key("lo.rx_bytes") && counters.contains_key("Tcp.RetransSegs"));
        assert!(MEMORY.iter().all(|name| meminfo().contains_key(*name)));
        let dir = tempfile::tempdir().unwrap();
        let wrong =
            Monitor { additional_counters: vec!["Tcp.Nothing".to_owned()], ..Monitor::default() };
        assert!(network(&dir.path().join("x"), &wrong).is_err());
        assert!(memory(&dir.path().join("x"), &wrong).is_err());
    }
}
