//! A look at everything that is watched, and the line between two looks.

use crate::group_use;
use crate::groups::{GroupCounts, Groups};
use crate::limits;
use crate::machine::{Machine, MachineCounts};
use crate::processes::{Processes, Used};
use crate::subject::{Roots, Subject};
use plimsoll_record::resources::{MachineSecond, WatchedSecond};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Looks at the watched things and the machine, again and again.
#[derive(Debug)]
pub struct Looking {
    subjects: Vec<Subject>,
    processes: Processes,
    groups: Option<Groups>,
    group_counts: HashMap<usize, GroupCounts>,
    machine: Machine,
    machine_counts: Option<MachineCounts>,
    /// Processes of each thing at its first look, and at the last one.
    first_roots: Vec<Vec<u32>>,
    last_roots: Vec<Vec<u32>>,
    /// Processors and memory, bytes, that each thing may use, if that is less than the machine has.
    allowed: Vec<(Option<f64>, Option<u64>)>,
    /// Reasons why figures are unknown, for each thing, and for the machine behind them.
    unknown: Vec<BTreeMap<String, String>>,
}

/// Everything since the look before.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The watched things, in the order of the subjects.
    pub watched: Vec<WatchedSecond>,
    /// The machine.
    pub machine: MachineSecond,
    /// Events for the record: a process ended, or another one took its place.
    pub events: Vec<String>,
}

impl Looking {
    /// Prepares to look at these things; nothing is read yet.
    #[must_use]
    pub fn new(subjects: Vec<Subject>) -> Self {
        let proc = Path::new("/proc");
        let count = subjects.len();
        Self {
            processes: Processes::new(proc),
            groups: Groups::of_machine(),
            group_counts: HashMap::new(),
            machine: Machine::new(proc, Path::new("/sys")),
            machine_counts: None,
            first_roots: vec![Vec::new(); count],
            last_roots: vec![Vec::new(); count],
            allowed: vec![(None, None); count],
            unknown: vec![BTreeMap::new(); count + 1],
            subjects,
        }
    }

    /// Looks, `span_s` seconds after the look before. The first look sees levels alone.
    pub fn look(&mut self, span_s: f64) -> Seen {
        let used = self.processes.look(&self.subjects);
        let machine = self.machine(span_s);
        let mut events = Vec::new();
        let mut watched = Vec::with_capacity(used.len());
        for (index, used) in used.into_iter().enumerate() {
            let used = match &self.subjects[index].roots {
                Roots::Group(group) => {
                    let group = group.clone();
                    self.group(index, &group)
                }
                _ => used,
            };
            events.extend(self.event(index, &used));
            for (name, why) in used.unknown {
                self.unknown[index].entry(name.to_owned()).or_insert(why);
            }
            watched.push(used.second);
        }
        Seen { watched, machine, events }
    }

    fn machine(&mut self, span_s: f64) -> MachineSecond {
        let counts = self.machine.counts();
        if let Some(reasons) = self.unknown.last_mut() {
            for (name, why) in self.machine.unknown(&counts) {
                reasons.entry(name.to_owned()).or_insert(why);
            }
        }
        let before = self.machine_counts.replace(counts.clone());
        before.map(|before| counts.since(&before, span_s)).unwrap_or_default()
    }

    fn group(&mut self, index: usize, group: &str) -> Used {
        let name = &self.subjects[index].name;
        let there = self.groups.as_mut().filter(|groups| groups.exists(group));
        let Some(groups) = there else {
            self.group_counts.remove(&index);
            let second = WatchedSecond {
                processes: Some(0),
                ..group_use::second_of(name, &GroupCounts::default(), None)
            };
            return Used { second, ..Used::default() };
        };
        let now = groups.counts(group);
        let before = self.group_counts.insert(index, now);
        let second = group_use::second_of(name, &now, before.as_ref());
        let roots = if before.is_none() { groups.members(group, PIDS_MAX) } else { Vec::new() };
        Used { second, roots, unknown: group_use::unknown(&now) }
    }

    /// Event of the processes of a thing since the look before.
    fn event(&mut self, index: usize, used: &Used) -> Option<String> {
        let now = &used.roots;
        let before = std::mem::replace(&mut self.last_roots[index], now.clone());
        if self.first_roots[index].is_empty() && !now.is_empty() {
            self.first_roots[index] = now.iter().copied().take(PIDS_MAX).collect();
            let online = self.machine_counts.as_ref().map_or(0, MachineCounts::online);
            let first = now.first().copied();
            self.allowed[index] = limits::allowed(&self.subjects[index], first, online);
            return None;
        }
        let subject = &self.subjects[index];
        // Of these it is no event that processes come and go.
        if matches!(subject.roots, Roots::Group(_) | Roots::StartedBy(_)) {
            return None;
        }
        let name = &subject.name;
        let stays = before.iter().any(|pid| now.contains(pid));
        match (before.is_empty(), now.is_empty()) {
            (false, true) => {
                Some(format!("{name}: no process any more, {} ended", listed(&before)))
            }
            (true, false) => Some(format!("{name}: runs again, {}", listed(now))),
            (false, false) if !stays => Some(format!(
                "{name}: restarted, {} ended and {} began",
                listed(&before),
                listed(now)
            )),
            _ => None,
        }
    }

    /// The things, each with its first processes.
    pub fn subjects(&self) -> impl Iterator<Item = (&Subject, &[u32])> {
        self.subjects.iter().zip(self.first_roots.iter().map(Vec::as_slice))
    }

    /// Processors and memory, bytes, that a thing may use, if that is less than the machine has.
    #[must_use]
    pub fn allowed(&self, index: usize) -> (Option<f64>, Option<u64>) {
        self.allowed.get(index).copied().unwrap_or_default()
    }

    /// All memory of the machine, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        self.machine_counts.as_ref()?.memory_bytes()
    }

    /// Reasons why figures of a thing are unknown, by their names; behind the last thing, those of the machine.
    #[must_use]
    pub fn unknown(&self, index: usize) -> BTreeMap<String, String> {
        self.unknown.get(index).cloned().unwrap_or_default()
    }
}

/// Most processes of a thing that the record lists.
const PIDS_MAX: usize = 20;
/// Most processes that a remark lists.
const LISTED_MAX: usize = 4;

/// `process 12`, or `processes 12, 13`.
fn listed(pids: &[u32]) -> String {
    let some: Vec<String> = pids.iter().take(LISTED_MAX).map(u32::to_string).collect();
    let more = if pids.len() > LISTED_MAX { ", ..." } else { "" };
    let word = if pids.len() == 1 { "process" } else { "processes" };
    format!("{word} {}{more}", some.join(", "))
}
