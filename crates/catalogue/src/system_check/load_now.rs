//! CPU time that other programs, and other machines on the same hardware, take: measured over one second.

use super::Check;
use plimsoll_core::clock::now_ns;
use std::collections::BTreeMap;
use std::time::Duration;

/// Duration of the measurement.
const LOOK: Duration = Duration::from_secs(1);
/// Most of the machine's time that a hypervisor may take, %.
const STEAL_MAX_PCT: f64 = 1.0;
/// Most of the machine's time that other programs may take, %.
const OTHER_MAX_PCT: f64 = 5.0;
/// Other programs that are named.
const NAMED_MAX: usize = 3;

/// One reading of the machine.
struct Reading {
    /// user, nice, system, idle, iowait, irq, softirq, steal; empty when it is unknown.
    ticks: Vec<u64>,
    /// Ticks and name of each process.
    processes: BTreeMap<u32, (u64, String)>,
}

/// Steal time and other load.
pub fn checks() -> Vec<Check> {
    let (before, start_ns) = (read(), now_ns());
    std::thread::sleep(LOOK);
    let after = read();
    let passed_s = (now_ns() - start_ns) as f64 / 1e9;
    let average = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    judge(&before, &after, passed_s, average.split(' ').next().unwrap_or("?"))
}

fn read() -> Reading {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks =
        line.split_ascii_whitespace().take(8).filter_map(|word| word.parse().ok()).collect();
    let own = std::process::id();
    let process = |entry: std::fs::DirEntry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name stands in brackets and may hold anything, brackets too.
        let (front, rest) = text.rsplit_once(')')?;
        let name = front.split_once('(')?.1.to_owned();
        let mut words = rest.split_ascii_whitespace().skip(11);
        let spent = words.next()?.parse::<u64>().ok()? + words.next()?.parse::<u64>().ok()?;
        (number != own).then_some((number, (spent, name)))
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    Reading { ticks, processes: entries.filter_map(process).collect() }
}

fn judge(before: &Reading, after: &Reading, passed_s: f64, average: &str) -> Vec<Check> {
    let passed: Vec<u64> =
        before.ticks.iter().zip(&after.ticks).map(|(b, a)| a.saturating_sub(*b)).collect();
    let total: u64 = passed.iter().sum();
    let share = |ticks: u64| ticks as f64 / total.max(1) as f64 * 100.0;
    let steal = passed.get(7).filter(|_| total > 0).map(|&ticks| share(ticks));
    let mut spent: Vec<(u64, &str)> = after
        .processes
        .iter()
        .filter_map(|(number, (ticks, name))| {
            let (earlier, _) = before.processes.get(number)?;
            Some((ticks.saturating_sub(*earlier), name.as_str()))
        })
        .filter(|(ticks, _)| *ticks > 0)
        .collect();
    spent.sort_unstable_by(|a, b| b.cmp(a));
    // Of the whole machine: all that is neither idle nor waiting nor stolen. This program itself sleeps.
    let busy =
        passed.iter().enumerate().filter(|(at, _)| !matches!(at, 3 | 4 | 7)).map(|(_, t)| t).sum();
    let other = (total > 0).then(|| share(busy));
    let named: Vec<String> = spent
        .iter()
        .take(NAMED_MAX)
        .map(|(ticks, name)| format!("{name} {:.0} %", share(*ticks)))
        .collect();
    let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    vec![
        Check::new(
            "steal time",
            steal.map(|steal| steal <= STEAL_MAX_PCT),
            steal
                .map_or("unknown".to_owned(), |steal| format!("{steal:.1} % over {passed_s:.1} s")),
            "other virtual machines on the same hardware take processor time away, invisibly to this machine",
            "measure on a machine with processors of its own, or repeat when its neighbours are quiet",
        ),
        Check::new(
            "other load",
            other.map(|other| other <= OTHER_MAX_PCT),
            other.map_or("unknown".to_owned(), |other| {
                format!("{other:.1} % of the machine, load average {average}{named}")
            }),
            "other programs take processor time and cache from generator and target",
            "stop them (top tells which), or keep them off: taskset -c 0 PROGRAM",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn reading(ticks: [u64; 8], processes: &[(u32, u64, &str)]) -> Reading {
        let process =
            |(number, ticks, name): &(u32, u64, &str)| (*number, (*ticks, (*name).to_owned()));
        Reading { ticks: ticks.to_vec(), processes: processes.iter().map(process).collect() }
    }

    #[test]
    fn a_quiet_and_a_busy_machine() {
        let start = reading([0; 8], &[(1, 10, "init"), (7, 100, "cc1")]);
        let quiet = reading([1, 0, 1, 195, 2, 0, 0, 1], &[(1, 10, "init"), (7, 101, "cc1")]);
        let told = judge(&start, &quiet, 1.0, "0.10");
        assert!(told.iter().all(|check| check.state == State::Good), "{told:?}");
        let busy = reading(
            [60, 0, 10, 110, 0, 0, 0, 20],
            &[(1, 12, "init"), (7, 160, "cc1"), (8, 5, "new")],
        );
        let told = judge(&start, &busy, 1.0, "1.50");
        assert!(
            told.iter().all(|check| check.state == State::Bad && check.fix.is_some()),
            "{told:?}"
        );
        assert!(told[0].found.starts_with("10.0 %"), "{}", told[0].found);
        assert_eq!(told[1].found, "35.0 % of the machine, load average 1.50: cc1 30 %, init 1 %");
        let nothing = Reading { ticks: Vec::new(), processes: BTreeMap::new() };
        assert!(
            judge(&nothing, &nothing, 1.0, "?").iter().all(|check| check.state == State::Unknown)
        );
    }

    #[test]
    fn this_machine_can_be_read() {
        let reading = read();
        assert_eq!(reading.ticks.len(), 8);
        assert!(!reading.processes.contains_key(&std::process::id()));
    }
}
