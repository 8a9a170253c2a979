//! Use of resources by a control group since the look before.

use crate::groups::GroupCounts;
use plimsoll_record::resources::{WatchedKind, WatchedSecond};

/// The figures of a group that is called `name`; those of the first look, which has no earlier one, are levels alone.
#[must_use]
pub fn second_of(name: &str, now: &GroupCounts, earlier: Option<&GroupCounts>) -> WatchedSecond {
    let grown = |of: fn(&GroupCounts) -> Option<u64>| Some(of(now)?.saturating_sub(of(earlier?)?));
    let seconds = |of| grown(of).map(|us| us as f64 / 1e6);
    let faults = grown(|counts| counts.faults);
    let major_faults = grown(|counts| counts.major_faults);
    WatchedSecond {
        name: name.to_owned(),
        kind: WatchedKind::Cgroup,
        processes: now.processes,
        threads: now.tasks,
        cpu_user_s: seconds(|counts| counts.user_us),
        cpu_system_s: seconds(|counts| counts.system_us),
        throttled_s: seconds(|counts| counts.throttled_us),
        rss_bytes: now.memory_bytes,
        minor_faults: faults.zip(major_faults).map(|(all, major)| all.saturating_sub(major)),
        major_faults,
        disk_read_bytes: grown(|counts| counts.read_bytes),
        disk_written_bytes: grown(|counts| counts.written_bytes),
        ..WatchedSecond::default()
    }
}

/// Reasons why figures of a group are unknown, by their names.
#[must_use]
pub fn unknown(counts: &GroupCounts) -> Vec<(&'static str, String)> {
    let files: [(&str, bool, &[&'static str]); 5] = [
        ("cpu.stat", counts.user_us.is_some(), &["cpu_user_s", "cpu_system_s", "throttled_s"]),
        ("memory.current", counts.memory_bytes.is_some(), &["rss_bytes"]),
        ("memory.stat", counts.faults.is_some(), &["minor_faults", "major_faults"]),
        ("io.stat", counts.read_bytes.is_some(), &["disk_read_bytes", "disk_written_bytes"]),
        ("pids.current", counts.tasks.is_some(), &["threads"]),
    ];
    let mut reasons = Vec::new();
    for (file, is_known, names) in files {
        let why =
            || format!("{file} of the control group cannot be read; its controller may be off");
        reasons.extend(names.iter().filter(|_| !is_known).map(|name| (*name, why())));
    }
    for name in ["voluntary_switches", "involuntary_switches"] {
        reasons.push((name, "control groups do not count context switches".to_owned()));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_a_group_is_the_difference_of_its_counts() {
        let before = GroupCounts {
            user_us: Some(1_000_000),
            faults: Some(10),
            major_faults: Some(1),
            ..GroupCounts::default()
        };
        let now = GroupCounts {
            user_us: Some(1_250_000),
            faults: Some(30),
            major_faults: Some(4),
            memory_bytes: Some(9),
            ..GroupCounts::default()
        };
        let second = second_of("web", &now, Some(&before));
        assert_eq!((second.cpu_user_s, second.cpu_system_s), (Some(0.25), None));
        assert_eq!((second.minor_faults, second.major_faults), (Some(17), Some(3)));
        assert_eq!((second.rss_bytes, second.threads), (Some(9), None));
        assert_eq!(second_of("web", &now, None).cpu_user_s, None, "a first look has no span");
        let names: Vec<&str> = unknown(&now).into_iter().map(|(name, _)| name).collect();
        let expected = [
            "disk_read_bytes",
            "disk_written_bytes",
            "threads",
            "voluntary_switches",
            "involuntary_switches",
        ];
        assert_eq!(names, expected);
    }
}
