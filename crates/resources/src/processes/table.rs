//! All processes of the machine as far as it takes to know which are watched.

use crate::listening::processes_at;
use crate::process_files::{Counts, DiskBytes, ProcessFiles, Stat, Switches};
use crate::subject::{Identity, Roots, Subject, is_called};
use rustix::io::Result;
use std::collections::{HashMap, HashSet};

/// Looks at which a new process is examined: between `fork` and `exec` it has the name of its parent.
const YOUNG_LOOKS: u8 = 3;
/// Longest chain of parents that is followed.
const DEPTH_MAX: usize = 64;

/// Sums of a process since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Of itself; as the use of a stretch, of itself and of its ended children.
    pub own: Counts,
    /// Of its children that have ended.
    pub children: Counts,
    /// Bytes of itself and of its children that have ended.
    pub disk: DiskBytes,
}

impl Totals {
    /// Adds the use of another process.
    pub fn add(&mut self, other: &Self) {
        self.own.add(&other.own);
        self.disk.read += other.disk.read;
        self.disk.written += other.disk.written;
    }
}

/// A process as far as it is known.
#[derive(Debug, Default)]
pub struct Known {
    parent: u32,
    started_ticks: u64,
    looks: u8,
    /// Watched things of which it is a process itself.
    pub roots: Vec<usize>,
    /// Watched things that it belongs to: those of which it or the nearest process above it is one.
    pub belongs: Vec<usize>,
    last: Option<Totals>,
    /// Switches of its threads at the last look.
    switches: Option<HashMap<u32, Switches>>,
}

impl Known {
    /// The use since the last look, as `own` and `disk`. `children` is by how much the sums of ended children grew.
    pub fn used_until(&mut self, now: Totals, counts_from_now: bool, has_disk: bool) -> Totals {
        let first = if counts_from_now { now } else { Totals::default() };
        let before = self.last.unwrap_or(first);
        self.last = Some(if has_disk { now } else { Totals { disk: before.disk, ..now } });
        let disk = if has_disk {
            DiskBytes {
                read: now.disk.read.saturating_sub(before.disk.read),
                written: now.disk.written.saturating_sub(before.disk.written),
            }
        } else {
            DiskBytes::default()
        };
        Totals {
            own: now.own.since(&before.own),
            children: now.children.since(&before.children),
            disk,
        }
    }

    /// Switches of its threads since the last look; `None` if a thread ended in between, whose switches are not counted anywhere.
    pub fn switches_since(
        &mut self,
        pid: u32,
        files: &mut ProcessFiles,
        counts_from_now: bool,
    ) -> Result<Option<Switches>> {
        let mut now = HashMap::new();
        files.switches(pid, &mut now)?;
        let mut before = self.switches.iter().flat_map(HashMap::keys);
        let is_complete = before.all(|thread| now.contains_key(thread));
        let mut sum = Switches::default();
        for (thread, switches) in &now {
            let before = match &self.switches {
                // A new thread began with none.
                Some(last) => last.get(thread).copied().unwrap_or_default(),
                None if counts_from_now => *switches,
                None => Switches::default(),
            };
            // The number of a thread may have been given to another one.
            let grown = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
            sum.voluntary += grown(switches.voluntary, before.voluntary);
            sum.involuntary += grown(switches.involuntary, before.involuntary);
        }
        self.switches = Some(now);
        Ok(is_complete.then_some(sum))
    }
}

/// Processes by their numbers.
#[derive(Debug, Default)]
pub struct Table {
    known: HashMap<u32, Known>,
    /// Listeners of today, by the index of their subject.
    listening: HashMap<usize, Vec<Identity>>,
}

impl Table {
    /// Learns of new processes and forgets those that have ended, which it returns.
    pub fn refresh(&mut self, files: &mut ProcessFiles, subjects: &[Subject]) -> Vec<Known> {
        let present: HashSet<u32> = files.pids().into_iter().collect();
        let ended: Vec<u32> =
            self.known.keys().filter(|pid| !present.contains(pid)).copied().collect();
        let gone: Vec<Known> = ended.iter().filter_map(|pid| self.known.remove(pid)).collect();
        self.follow_listeners(files, subjects);
        let mut young = Vec::new();
        for pid in present {
            if self.known.get(&pid).is_some_and(|known| known.looks >= YOUNG_LOOKS) {
                continue;
            }
            let Ok(stat) = files.stat(pid) else { continue };
            let roots = self.roots(pid, &stat, files, subjects);
            let known = self.known.entry(pid).or_default();
            (known.parent, known.started_ticks) = (stat.parent, stat.started_ticks);
            known.looks += 1;
            known.roots = roots;
            young.push(pid);
        }
        for pid in young {
            let nearest = self.nearest(pid);
            if let Some(known) = self.known.get_mut(&pid) {
                known.belongs = nearest;
            }
        }
        gone
    }

    /// Watched processes, the oldest first: a parent before those that it started.
    pub fn members(&self) -> Vec<u32> {
        let members = self.known.iter().filter(|(_, known)| !known.belongs.is_empty());
        let mut members: Vec<_> = members.map(|(pid, known)| (known.started_ticks, *pid)).collect();
        members.sort_unstable();
        members.into_iter().map(|(_, pid)| pid).collect()
    }

    /// A process, if it is the one that is known by its number.
    pub fn get_mut(&mut self, pid: u32, started_ticks: u64) -> Option<&mut Known> {
        self.known.get_mut(&pid).filter(|known| known.started_ticks == started_ticks)
    }

    /// Forgets a process that has ended, and returns it.
    pub fn forget(&mut self, pid: u32) -> Option<Known> {
        self.known.remove(&pid)
    }

    /// Indices of the subjects that a process is one of.
    fn roots(
        &self,
        pid: u32,
        stat: &Stat,
        files: &mut ProcessFiles,
        subjects: &[Subject],
    ) -> Vec<usize> {
        let own = Identity { pid, started_ticks: stat.started_ticks };
        let mut argument = None;
        let mut is_root = |index: usize, subject: &Subject| match &subject.roots {
            Roots::Processes(processes) => processes.contains(&own),
            Roots::Listening(..) => {
                self.listening.get(&index).is_some_and(|listeners| listeners.contains(&own))
            }
            // The generator's own line is another one.
            Roots::Named(_) if pid == std::process::id() => false,
            Roots::Named(name) => {
                let argument = argument.get_or_insert_with(|| files.first_argument(pid));
                is_called(&stat.comm, argument, name)
            }
            Roots::StartedBy(parent) => stat.parent == *parent,
            Roots::Group(_) => false,
        };
        let roots = subjects.iter().enumerate().filter(|(index, subject)| is_root(*index, subject));
        roots.map(|(index, _)| index).collect()
    }

    /// The subjects of the nearest watched process: the process itself, or one above it.
    fn nearest(&self, pid: u32) -> Vec<usize> {
        let mut at = pid;
        for _ in 0..DEPTH_MAX {
            let Some(known) = self.known.get(&at) else { break };
            if !known.roots.is_empty() {
                return known.roots.clone();
            }
            // Of one whose parent has ended it is known to whom it belonged.
            if !known.belongs.is_empty() {
                return known.belongs.clone();
            }
            at = known.parent;
        }
        Vec::new()
    }

    /// Looks for those that listen now, where those that listened have ended.
    fn follow_listeners(&mut self, files: &mut ProcessFiles, subjects: &[Subject]) {
        for (index, subject) in subjects.iter().enumerate() {
            let Roots::Listening(address, first) = &subject.roots else { continue };
            let is_first = !self.listening.contains_key(&index);
            let listeners = self.listening.entry(index).or_insert_with(|| first.clone());
            let is_there = |one: &Identity| {
                self.known
                    .get(&one.pid)
                    .is_some_and(|known| known.started_ticks == one.started_ticks)
            };
            if is_first || listeners.iter().any(is_there) {
                continue;
            }
            *listeners = processes_at(files, *address);
            // Among those that were looked at enough there may be one of them.
            for listener in listeners {
                if let Some(known) = self.known.get_mut(&listener.pid) {
                    known.looks = 0;
                }
            }
        }
    }
}

/// Sums of processes that have ended, for as long as they may still be added to those of their parents.
#[derive(Debug, Default)]
pub struct Debts(Vec<(u32, Totals, u8)>);

/// Looks for which a process that has ended is remembered: its parent may wait for it only after the look.
const DEBT_LOOKS: u8 = 2;

impl Debts {
    /// A process has ended.
    pub fn add(&mut self, ended: &Known) {
        let Some(last) = ended.last else { return };
        let mut whole = last;
        whole.own.add(&last.children);
        self.0.push((ended.parent, whole, DEBT_LOOKS));
    }

    /// Adds to the use of a process that of its children which began and ended since the last look: what its sums grew by,
    /// less what was already counted for those that were known.
    pub fn settle(&mut self, parent: u32, used: &mut Totals) {
        // Every process has page faults: without any, the parent has waited for none.
        let has_waited = used.children.minor_faults > 0;
        for (_, owed, _) in self.0.iter_mut().filter(|(of, ..)| has_waited && *of == parent) {
            take(&mut used.children.user_ticks, &mut owed.own.user_ticks);
            take(&mut used.children.system_ticks, &mut owed.own.system_ticks);
            take(&mut used.children.minor_faults, &mut owed.own.minor_faults);
            take(&mut used.children.major_faults, &mut owed.own.major_faults);
            take(&mut used.disk.read, &mut owed.disk.read);
            take(&mut used.disk.written, &mut owed.disk.written);
        }
        used.own.add(&used.children);
        used.children = Counts::default();
    }

    /// A look is over.
    pub fn grow_old(&mut self) {
        self.0.iter_mut().for_each(|(.., looks)| *looks -= 1);
        self.0.retain(|(.., looks)| *looks > 0);
    }
}

/// Takes from both what they have in common.
fn take(from: &mut u64, owed: &mut u64) {
    let common = (*from).min(*owed);
    *from -= common;
    *owed -= common;
}
