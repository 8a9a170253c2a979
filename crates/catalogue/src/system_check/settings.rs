//! Settings of processor, kernel and network.

use super::{Check, Root};
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeSet;

/// Files that a generator of many connections must be able to open.
const FILES_MIN: u64 = 65_535;
/// Ports of the default range, 32768 to 60999.
const PORTS_MIN: i64 = 28_000;
/// Connections that may wait to be accepted.
const BACKLOG_MIN: i64 = 4096;
/// Clock sources that are read without a call into the kernel, or at the price of a short one.
const GOOD_CLOCKS: [&str; 6] = [
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "timebase",
    "riscv_clocksource",
];

/// All of them.
pub fn checks(root: &Root) -> Vec<Check> {
    let limit = getrlimit(Resource::Nofile);
    vec![
        clock_source(root),
        governor(root),
        boost(root),
        smt(root),
        open_files(limit.current, limit.maximum),
        ports(root),
        backlog(root),
        time_wait(root),
        huge_pages(root),
        quota(root),
        kernel(root),
    ]
}

fn clock_source(root: &Root) -> Check {
    let found = root.read("sys/devices/system/clocksource/clocksource0/current_clocksource");
    Check::new(
        "clock source",
        found.as_deref().map(|name| GOOD_CLOCKS.contains(&name)),
        found.unwrap_or_else(|| "unknown".to_owned()),
        "a slow clock (hpet, acpi_pm) costs about a microsecond a reading, and every request reads it",
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
    )
}

fn governor(root: &Root) -> Check {
    let found: BTreeSet<String> = root
        .processors()
        .iter()
        .filter_map(|cpu| std::fs::read_to_string(cpu.join("cpufreq/scaling_governor")).ok())
        .map(|text| text.trim().to_owned())
        .collect();
    let is_good = (!found.is_empty()).then(|| found.iter().all(|name| name == "performance"));
    let shown = found.into_iter().collect::<Vec<_>>().join(", ");
    Check::new(
        "frequency governor",
        is_good,
        if shown.is_empty() { "unknown (a virtual machine, or fixed)".to_owned() } else { shown },
        "a governor that saves power slows the processor down between requests, so light load looks slow",
        "sudo cpupower frequency-set -g performance",
    )
}

fn boost(root: &Root) -> Check {
    let generic = "sys/devices/system/cpu/cpufreq/boost";
    let intel = "sys/devices/system/cpu/intel_pstate/no_turbo";
    let (is_good, fix) = match (root.number(generic), root.number(intel)) {
        (Some(on), _) => (Some(on == 1), format!("echo 1 | sudo tee /{generic}")),
        (None, Some(off)) => (Some(off == 0), format!("echo 0 | sudo tee /{intel}")),
        (None, None) => (None, String::new()),
    };
    let found = match is_good {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown (a virtual machine, or fixed)",
    };
    Check::new(
        "frequency boost",
        is_good,
        found,
        "without boost a search for the highest rate ends lower than users of the machine will see",
        fix,
    )
}

fn smt(root: &Root) -> Check {
    let sizes: BTreeSet<usize> = root
        .processors()
        .iter()
        .filter_map(|cpu| std::fs::read_to_string(cpu.join("topology/thread_siblings_list")).ok())
        .map(|text| siblings(text.trim()))
        .collect();
    let active = root.number("sys/devices/system/cpu/smt/active");
    let found = match (active, sizes.len()) {
        (_, 2..) => "some cores have several threads online, others one".to_owned(),
        (Some(1), _) => format!("on, {} threads a core", sizes.first().copied().unwrap_or(2)),
        (Some(_), _) => "off".to_owned(),
        (None, 1) => format!("{} thread(s) a core", sizes.first().copied().unwrap_or(1)),
        (None, _) => "unknown".to_owned(),
    };
    let known = active.is_some() || !sizes.is_empty();
    Check::new(
        "SMT",
        known.then_some(sizes.len() <= 1),
        found,
        "threads of one core share it: an uneven machine gives uneven figures, and 50 % busy may be full",
        "echo on | sudo tee /sys/devices/system/cpu/smt/control",
    )
}

/// Number of processors that a list such as `0,32` or `0-1` names.
fn siblings(list: &str) -> usize {
    let part = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
        Some(to.saturating_sub(from) + 1)
    };
    list.split(',').filter_map(part).sum()
}

/// `None` is unlimited.
fn open_files(soft: Option<u64>, hard: Option<u64>) -> Check {
    let shown =
        |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    Check::new(
        "open files",
        Some(hard.is_none_or(|hard| hard >= FILES_MIN)),
        format!("{} (hard limit {})", shown(soft), shown(hard)),
        "each connection is an open file; plimsoll raises its own limit to the hard one, others do not",
        format!("sudo prlimit --pid $$ --nofile={FILES_MIN}:{FILES_MIN}"),
    )
}

fn ports(root: &Root) -> Check {
    let text = root.read("proc/sys/net/ipv4/ip_local_port_range");
    let range = text.as_deref().and_then(|text| {
        let mut words = text.split_ascii_whitespace();
        let (from, to) = (words.next()?.parse::<i64>().ok()?, words.next()?.parse::<i64>().ok()?);
        Some((from, to, to - from + 1))
    });
    let found =
        range.map_or("unknown".to_owned(), |(from, to, n)| format!("{from} to {to}, {n} ports"));
    Check::new(
        "ephemeral ports",
        range.map(|(_, _, count)| count >= PORTS_MIN),
        found,
        "each connection to one address takes a port, for a minute longer than it lives",
        "sudo sysctl -w net.ipv4.ip_local_port_range='10240 65535'",
    )
}

fn backlog(root: &Root) -> Check {
    let found = root.number("proc/sys/net/core/somaxconn");
    Check::new(
        "somaxconn",
        found.map(|found| found >= BACKLOG_MIN),
        found.map_or("unknown".to_owned(), |found| found.to_string()),
        "if more connections than this arrive at once, the others wait a second before they try again",
        format!("sudo sysctl -w net.core.somaxconn={BACKLOG_MIN}"),
    )
}

fn time_wait(root: &Root) -> Check {
    let found = root.number("proc/sys/net/ipv4/tcp_tw_reuse");
    let shown = match found {
        Some(0) => "off".to_owned(),
        Some(1) => "on".to_owned(),
        Some(2) => "on for loopback".to_owned(),
        Some(other) => other.to_string(),
        None => "unknown".to_owned(),
    };
    Check::new(
        "tcp_tw_reuse",
        found.map(|found| found != 0),
        shown,
        "with a connection for each request, ports that wait for late packets run out",
        "sudo sysctl -w net.ipv4.tcp_tw_reuse=1",
    )
}

fn huge_pages(root: &Root) -> Check {
    let text = root.read("sys/kernel/mm/transparent_hugepage/enabled");
    let chosen = text.as_deref().and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0));
    Check::new(
        "transparent huge pages",
        chosen.map(|chosen| chosen != "always"),
        chosen.unwrap_or("unknown"),
        "with 'always' the kernel stops programs now and then to join pages, which shows in the tail",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    )
}

/// CPU time a second that the control group of this process, or one above it, allows; `None` is unlimited.
fn quota_cpus(root: &Root) -> Option<Option<f64>> {
    let groups = root.read("proc/self/cgroup")?;
    let mut least: Option<f64> = None;
    let mut seen = false;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, kinds, path) = (fields.next()?, fields.next()?, fields.next()?);
        let bases: &[&str] = match kinds {
            "" => &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
            kinds if kinds.split(',').any(|kind| kind == "cpu") => {
                &["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"]
            }
            _ => continue,
        };
        for base in bases {
            let mut place = path.trim_matches('/');
            loop {
                let limit = group_quota(root, &format!("{base}/{place}"));
                seen |= limit.is_some() || root.0.join(base).is_dir();
                if let Some(Some(cpus)) = limit {
                    least = Some(least.map_or(cpus, |least| least.min(cpus)));
                }
                if place.is_empty() {
                    break;
                }
                place = place.rsplit_once('/').map_or("", |(above, _)| above);
            }
        }
    }
    seen.then_some(least)
}

/// The quota of one group in either version's files; `None` when it has none of them.
fn group_quota(root: &Root, group: &str) -> Option<Option<f64>> {
    let (quota, period) = match root.read(&format!("{group}/cpu.max")) {
        Some(text) => {
            let (quota, period) = text.split_once(' ')?;
            (quota.to_owned(), period.parse::<f64>().ok()?)
        }
        None => {
            let quota = root.read(&format!("{group}/cpu.cfs_quota_us"))?;
            (quota, root.number(&format!("{group}/cpu.cfs_period_us"))? as f64)
        }
    };
    let quota = quota.parse::<f64>().ok().filter(|quota| *quota > 0.0 && period > 0.0);
    Some(quota.map(|quota| quota / period))
}

fn quota(root: &Root) -> Check {
    let found = quota_cpus(root);
    let shown = match found {
        None => "unknown".to_owned(),
        Some(None) => "none".to_owned(),
        Some(Some(cpus)) => format!("{cpus:.2} CPUs"),
    };
    Check::new(
        "cgroup CPU quota",
        found.map(|quota| quota.is_none()),
        shown,
        "a program that has used up its quota is paused for up to 100 ms, and the pause looks like a slow server",
        "run without a CPU limit (docker run without --cpus, systemctl set-property UNIT CPUQuota=)",
    )
}

fn kernel(root: &Root) -> Check {
    let found = root.read("proc/sys/kernel/osrelease");
    let version = found.as_deref().and_then(|text| {
        let mut parts = text.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?))
    });
    Check::new(
        "kernel",
        version.map(|version| version >= (5, 11)),
        found.unwrap_or_else(|| "unknown".to_owned()),
        "epoll_pwait2, with which a wait is one system call, came with Linux 5.11; before it, a wait is two",
        "install Linux 5.11 or later",
    )
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        let root = Root(dir.path().to_owned());
        (dir, root)
    }

    fn state(root: &Root, name: &str) -> (State, String, bool) {
        let check = checks(root).into_iter().find(|check| check.name == name).unwrap();
        (check.state, check.found, check.fix.is_some())
    }

    const CPU: &str = "sys/devices/system/cpu";

    #[test]
    fn a_machine_that_tells_nothing_is_unknown_and_nothing_is_to_be_mended() {
        let (_dir, root) = machine(&[]);
        for check in checks(&root).iter().filter(|check| check.name != "open files") {
            assert_eq!((check.state, &check.fix), (State::Unknown, &None), "{}", check.name);
        }
    }

    #[test]
    fn good_and_bad_machines() {
        let cases: [(&str, &str, &str, &str); 8] = [
            (
                "clock source",
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "tsc",
                "hpet",
            ),
            (
                "frequency governor",
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "performance",
                "powersave",
            ),
            ("frequency boost", "sys/devices/system/cpu/intel_pstate/no_turbo", "0", "1"),
            (
                "ephemeral ports",
                "proc/sys/net/ipv4/ip_local_port_range",
                "32768\t60999",
                "60000\t60999",
            ),
            ("somaxconn", "proc/sys/net/core/somaxconn", "4096", "128"),
            ("tcp_tw_reuse", "proc/sys/net/ipv4/tcp_tw_reuse", "2", "0"),
            (
                "transparent huge pages",
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never",
                "[always] madvise never",
            ),
            ("kernel", "proc/sys/kernel/osrelease", "6.18.44-x", "5.10.0-1"),
        ];
        for (name, path, good, bad) in cases {
            let (_dir, root) = machine(&[(path, good)]);
            assert_eq!(state(&root, name).0, State::Good, "{name}");
            let (_dir, root) = machine(&[(path, bad)]);
            let (state, _, has_fix) = state(&root, name);
            assert!(state == State::Bad && has_fix, "{name}");
        }
        assert_eq!(open_files(Some(1024), Some(1024)).state, State::Bad);
        assert_eq!(open_files(Some(1024), Some(1_048_576)).state, State::Good);
        assert_eq!(open_files(None, None).state, State::Good);
    }

    #[test]
    fn threads_a_core_may_be_one_or_two_but_not_both() {
        let list = |cpu: u32| format!("{CPU}/cpu{cpu}/topology/thread_siblings_list");
        let (zero, one, two) = (list(0), list(1), list(2));
        let (_dir, root) = machine(&[(&zero, "0-1"), (&one, "0-1")]);
        assert_eq!(state(&root, "SMT").0, State::Good);
        let (_dir, root) = machine(&[(&zero, "0,1"), (&one, "0,1"), (&two, "2")]);
        assert_eq!(state(&root, "SMT").0, State::Bad);
    }

    #[test]
    fn quotas_of_both_versions_and_of_groups_above() {
        let quota = |files: &[(&str, &str)]| state(&machine(files).1, "cgroup CPU quota");
        let two = ("proc/self/cgroup", "0::/a/b");
        let (dir, root) = machine(&[two, ("sys/fs/cgroup/a/cpu.max", "150000 100000")]);
        assert_eq!(state(&root, "cgroup CPU quota"), (State::Bad, "1.50 CPUs".to_owned(), true));
        drop(dir);
        let (_dir, root) = machine(&[two, ("sys/fs/cgroup/a/b/cpu.max", "max 100000")]);
        assert_eq!(state(&root, "cgroup CPU quota").0, State::Good);
        let one = ("proc/self/cgroup", "1:cpu,cpuacct:/x");
        let base = "sys/fs/cgroup/cpu,cpuacct/x";
        let (q, p) = (format!("{base}/cpu.cfs_quota_us"), format!("{base}/cpu.cfs_period_us"));
        let (_dir, root) = machine(&[one, (&q, "50000"), (&p, "100000")]);
        assert_eq!(state(&root, "cgroup CPU quota").1, "0.50 CPUs");
        let (_dir, root) = machine(&[one, (&q, "-1"), (&p, "100000")]);
        assert_eq!(state(&root, "cgroup CPU quota").0, State::Good);
        assert_eq!(quota(&[]).0, State::Unknown);
    }
}
