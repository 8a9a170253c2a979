//! Resources of the target, the generator and the machine while load was on: a line a second, and what a record keeps of them.
//!
//! A figure that could not be read is absent. It is never 0, which would be a measurement.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the file in a record's folder: one [`ResourceLine`] a line, in the order of time.
pub const RESOURCES: &str = "resources.ndjson";

/// Name under which the generator's own process is watched.
pub const GENERATOR: &str = "generator";

/// One line of `resources.ndjson`: the use of resources in a stretch of about a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceLine {
    /// End of the stretch, s from the start of the measured stretch, on the clock of `intervals.ndjson`. Negative in the
    /// warm-up. A line after the schedule's end, while the last replies are awaited, lies beyond the last interval.
    pub at_s: f64,
    /// Length of the stretch, s.
    pub span_s: f64,
    /// The watched things, always in the same order; one that did not exist in the stretch has no processes and no figures.
    pub watched: Vec<WatchedSecond>,
    /// The machine.
    pub machine: MachineSecond,
}

/// Kind of a watched thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WatchedKind {
    /// Processes and the processes that they started.
    #[default]
    Pid,
    /// A control group (version 2).
    Cgroup,
}

/// Use of resources by one watched thing in one stretch. Sums are those of the stretch; levels are those at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchedSecond {
    /// Its name, unique in a record; `generator` is plimsoll itself.
    pub name: String,
    /// Its kind.
    pub kind: WatchedKind,
    /// Processes at the end; 0 if none existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Threads at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// CPU time in user mode, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_user_s: Option<f64>,
    /// CPU time in the kernel, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_system_s: Option<f64>,
    /// Time for which a quota of the control group held it back, s, summed over processors. Control groups only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_s: Option<f64>,
    /// Memory at the end, bytes: resident memory of processes (pages that they share are counted in each), or all memory that
    /// is charged to a control group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
    /// Page faults without reading from disk. Of a control group, all page faults less the major ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minor_faults: Option<u64>,
    /// Page faults that read from disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub major_faults: Option<u64>,
    /// Times that a thread gave up its processor to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// Times that a thread's processor was taken away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// Bytes read from disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_read_bytes: Option<u64>,
    /// Bytes written to disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_written_bytes: Option<u64>,
    /// Bytes received from the network; known only if it has a network namespace of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_received_bytes: Option<u64>,
    /// Bytes sent to the network; known only if it has a network namespace of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_sent_bytes: Option<u64>,
}

/// Use of the machine in one stretch: everything that ran on it, plimsoll too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineSecond {
    /// Busy share of each processor, 0 to 1, by its number; time that the hypervisor gave to other machines counts as busy.
    /// `null` for one that is offline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cores_busy: Vec<Option<f64>>,
    /// Memory that programs could still get without swapping, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_available_bytes: Option<u64>,
    /// Bytes received by all network interfaces but the loopback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_received_bytes: Option<u64>,
    /// Bytes sent by all network interfaces but the loopback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_sent_bytes: Option<u64>,
    /// Bytes through the loopback interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loopback_bytes: Option<u64>,
    /// Bytes read from all disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_read_bytes: Option<u64>,
    /// Bytes written to all disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_written_bytes: Option<u64>,
    /// Share of the stretch in which the busiest disk had work, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_busy: Option<f64>,
}

/// Resources over the measured stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResourcesResult {
    /// Lines of `resources.ndjson` that lie in the measured stretch, from which the figures are made.
    pub samples: u64,
    /// The watched things, in the order of the file.
    pub watched: Vec<WatchedResult>,
    /// The machine: everything that ran on it.
    pub machine: MachineResult,
    /// Remarks: a process that ended, lines that could not be written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Resources of other machines, each from an agent there that watches (`plimsoll agent --role watch`). The fields above are
    /// those of the machine that kept this record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watchers: Vec<WatcherResult>,
}

/// Resources of the machine of an agent that watches, over the measured stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatcherResult {
    /// Name of the agent.
    pub agent: String,
    /// Name of its machine.
    pub host: String,
    /// File in the record's folder with its lines: the form and the clock are those of `resources.ndjson`. Absent without a
    /// record's folder, and if the agent sent no line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Reason why the agent did not watch to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// End of its last line, s from the start of the measured stretch; absent if it sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
    /// Lines in the measured stretch, from which the figures are made.
    pub samples: u64,
    /// The watched things, in the order of the file; the name of the agent stands before each name.
    pub watched: Vec<WatchedResult>,
    /// The machine: everything that ran on it.
    pub machine: MachineResult,
    /// Remarks, as those of the machine that kept the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// Name of a watched thing with that of the agent before it: `db: mysqld`.
#[must_use]
pub fn name_with_agent(agent: &str, thing: &str) -> String {
    format!("{agent}: {thing}")
}

/// Name of the file with the lines of an agent that watches: `resources-db.ndjson`. `taken` are the names of other files; signs that
/// do not belong into the name of a file are replaced.
#[must_use]
pub fn file_of_agent(agent: &str, taken: &[String]) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
    let plain: String = agent.chars().map(|sign| if is_plain(sign) { sign } else { '-' }).collect();
    let numbered = (2..).map(|number| format!("resources-{plain}-{number}.ndjson"));
    std::iter::once(format!("resources-{plain}.ndjson"))
        .chain(numbered)
        .find(|name| !taken.contains(name))
        .unwrap_or_default()
}

impl ResourcesResult {
    /// The watched things other than the generator itself.
    pub fn targets(&self) -> impl Iterator<Item = &WatchedResult> {
        self.watched.iter().filter(|one| one.name != GENERATOR)
    }

    /// The generator.
    #[must_use]
    pub fn generator(&self) -> Option<&WatchedResult> {
        self.watched.iter().find(|one| one.name == GENERATOR)
    }
}

/// Mean and largest value over the lines of a stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    /// Mean, weighted by the lengths of the lines.
    pub mean: f64,
    /// Largest value of a line.
    pub max: f64,
}

/// Resources of one watched thing over the measured stretch. A figure that could not be read is absent, and `unknown` says why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchedResult {
    /// Its name, unique in a record; `generator` is plimsoll itself.
    pub name: String,
    /// Its kind.
    pub kind: WatchedKind,
    /// Reason why it is watched: `--watch nginx`, `listens on port 8080`, `started by plimsoll`.
    pub found_by: String,
    /// Its processes at the first look, without those that they had started: at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<u32>,
    /// Name of the program, or path of the control group.
    pub program: String,
    /// Processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Level>,
    /// Threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Level>,
    /// CPU time by time, user mode and kernel together: busy processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<Level>,
    /// Part of `cpu_cores` in user mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_user_cores: Option<Level>,
    /// Part of `cpu_cores` in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_system_cores: Option<Level>,
    /// Processors that it may use, by its affinity or the quota of its control group; absent if it may use all of the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_cores_allowed: Option<f64>,
    /// Time for which a quota of the control group held it back, by time, summed over processors. Control groups only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_cores: Option<Level>,
    /// Memory, bytes: resident memory of processes, or all memory that is charged to a control group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<Level>,
    /// Memory that it may use, bytes; absent if only the machine limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_allowed_bytes: Option<u64>,
    /// Page faults without reading from disk, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor_faults_per_s: Option<Level>,
    /// Page faults that read from disk, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_faults_per_s: Option<Level>,
    /// Times that a thread gave up its processor to wait, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary_switches_per_s: Option<Level>,
    /// Times that a thread's processor was taken away, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches_per_s: Option<Level>,
    /// Bytes read from disk, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_read_bytes_per_s: Option<Level>,
    /// Bytes written to disk, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_written_bytes_per_s: Option<Level>,
    /// Bytes received from the network, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_received_bytes_per_s: Option<Level>,
    /// Bytes sent to the network, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_sent_bytes_per_s: Option<Level>,
    /// Resources that it used up, in words: `CPU 1.97 of 2 cores`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_limit: Vec<String>,
    /// Reason for each figure that could not be read, by its name in `resources.ndjson`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<String, String>,
}

/// Resources of the machine over the measured stretch: everything that ran on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineResult {
    /// Busy share of each processor, 0 to 1, by its number; `null` for one that is offline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores_busy: Vec<Option<Level>>,
    /// Smallest memory that programs could still get without swapping, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_available_min_bytes: Option<u64>,
    /// Bytes received by all network interfaces but the loopback, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_received_bytes_per_s: Option<Level>,
    /// Bytes sent by all network interfaces but the loopback, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_sent_bytes_per_s: Option<Level>,
    /// Bytes through the loopback interface, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loopback_bytes_per_s: Option<Level>,
    /// Bytes read from all disks, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_read_bytes_per_s: Option<Level>,
    /// Bytes written to all disks, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_written_bytes_per_s: Option<Level>,
    /// Share of the time in which the busiest disk had work, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_busy: Option<Level>,
    /// Resources that were used up, in words: `processor 3 busy 99 %`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_limit: Vec<String>,
    /// Reason for each figure that could not be read, by its name in `resources.ndjson`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_a_file_of_its_own_in_the_folder_of_the_record() {
        let mut taken = vec![RESOURCES.to_owned()];
        for (agent, file) in [
            ("db-1", "resources-db-1.ndjson"),
            ("../db", "resources-..-db.ndjson"),
            ("db/1", "resources-db-1-2.ndjson"),
            ("db*1", "resources-db-1-3.ndjson"),
        ] {
            assert_eq!(file_of_agent(agent, &taken), file);
            taken.push(file.to_owned());
        }
        assert_eq!(name_with_agent("db", "mysqld"), "db: mysqld");
    }

    /// A figure that is not known is not in the line at all, and comes back as unknown.
    #[test]
    fn an_unknown_figure_is_absent_and_never_zero() {
        let second = WatchedSecond {
            name: "nginx".to_owned(),
            processes: Some(0),
            cpu_user_s: Some(0.25),
            ..WatchedSecond::default()
        };
        let line = ResourceLine {
            at_s: -0.5,
            span_s: 1.0,
            watched: vec![second],
            machine: MachineSecond {
                cores_busy: vec![Some(0.5), None],
                ..MachineSecond::default()
            },
        };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"at_s":-0.5,"span_s":1.0,"watched":[{"name":"nginx","kind":"pid","processes":0,"cpu_user_s":0.25}],"machine":{"cores_busy":[0.5,null]}}"#
        );
        assert_eq!(serde_json::from_str::<ResourceLine>(&text).unwrap(), line);
    }
}
