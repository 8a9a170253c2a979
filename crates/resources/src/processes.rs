//! Watched processes and their descendants, from one look at `/proc` to the next.
//!
//! A process belongs to the nearest watched process above it, and to nothing else; so a server that plimsoll started is not
//! counted in the generator. CPU time, page faults and disk bytes of a process that began and ended between two looks are those
//! by which its parent's sums of ended children grew.

mod table;

use crate::machine::{NetworkBytes, parse_interfaces};
use crate::process_files::{Counts, ProcessFiles, Stat, Switches, THREADS_READ_MAX};
use crate::reading::Buffer;
use crate::subject::Subject;
use plimsoll_record::resources::WatchedSecond;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use table::{Debts, Table, Totals};

/// Use of resources by one watched thing since the look before.
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// The figures; those of the first look are levels alone.
    pub second: WatchedSecond,
    /// The processes that are watched themselves, without those that they started.
    pub roots: Vec<u32>,
    /// Reasons why figures are unknown, by their names.
    pub unknown: Vec<(&'static str, String)>,
}

/// Looks at processes.
#[derive(Debug)]
pub struct Processes {
    files: ProcessFiles,
    table: Table,
    debts: Debts,
    /// Time of the look before, clock ticks since the machine started; `None` before the first one.
    looked_ticks: Option<u64>,
    page_bytes: u64,
    ticks_per_s: u64,
    /// The network of this process.
    own_network: Option<PathBuf>,
    /// The process through which the network of each watched thing was read, and its counts.
    networks: HashMap<String, (u32, NetworkBytes)>,
    buffer: Buffer,
}

/// Sums over the processes of one watched thing.
#[derive(Default)]
struct Sums {
    totals: Totals,
    processes: u64,
    threads: u64,
    rss_pages: u64,
    /// Reason why the bytes of a process could not be read.
    disk_unknown: Option<String>,
    switches: Switches,
    switches_unknown: Option<String>,
    /// A living process, for what is asked of one of them.
    member: Option<u32>,
    roots: Vec<u32>,
}

impl Sums {
    /// Puts what was used into the line; returns the reasons why figures are unknown.
    fn put(
        &self,
        second: &mut WatchedSecond,
        ticks_per_s: u64,
        network: Result<Option<NetworkBytes>, String>,
    ) -> Vec<(&'static str, String)> {
        let counts = self.totals.own;
        let seconds = |ticks: u64| ticks as f64 / ticks_per_s as f64;
        second.cpu_user_s = Some(seconds(counts.user_ticks));
        second.cpu_system_s = Some(seconds(counts.system_ticks));
        second.minor_faults = Some(counts.minor_faults);
        second.major_faults = Some(counts.major_faults);
        let mut unknown = Vec::new();
        let mut tell = |names: [&'static str; 2], why: &str| {
            unknown.extend(names.map(|name| (name, why.to_owned())));
        };
        match &self.disk_unknown {
            None => {
                second.disk_read_bytes = Some(self.totals.disk.read);
                second.disk_written_bytes = Some(self.totals.disk.written);
            }
            Some(why) => tell(["disk_read_bytes", "disk_written_bytes"], why),
        }
        match &self.switches_unknown {
            None => {
                second.voluntary_switches = Some(self.switches.voluntary);
                second.involuntary_switches = Some(self.switches.involuntary);
            }
            Some(why) => tell(["voluntary_switches", "involuntary_switches"], why),
        }
        match &network {
            Ok(Some(bytes)) => {
                second.network_received_bytes = Some(bytes.received);
                second.network_sent_bytes = Some(bytes.sent);
            }
            Ok(None) => {}
            Err(why) => tell(["network_received_bytes", "network_sent_bytes"], why),
        }
        unknown
    }
}

impl Processes {
    /// Watches processes below this folder, which is `/proc` on a real machine.
    #[must_use]
    pub fn new(proc: &Path) -> Self {
        let files = ProcessFiles::new(proc);
        let own_network = files.network(std::process::id());
        Self {
            files,
            table: Table::default(),
            debts: Debts::default(),
            looked_ticks: None,
            page_bytes: rustix::param::page_size() as u64,
            ticks_per_s: rustix::param::clock_ticks_per_second().max(1),
            own_network,
            networks: HashMap::new(),
            buffer: Buffer::default(),
        }
    }

    /// Looks at the processes of all subjects; the result is in their order. Groups are none of its business.
    pub fn look(&mut self, subjects: &[Subject]) -> Vec<Used> {
        let now_ticks = self.now_ticks();
        let gone = self.table.refresh(&mut self.files, subjects);
        gone.iter().for_each(|known| self.debts.add(known));
        let mut sums: Vec<Sums> = subjects.iter().map(|_| Sums::default()).collect();
        for pid in self.table.members() {
            let Ok(stat) = self.files.stat(pid) else {
                // It ended just now; its parent's sums may grow only later.
                self.table.forget(pid).iter().for_each(|known| self.debts.add(known));
                continue;
            };
            self.add_process(pid, &stat, &mut sums);
        }
        self.debts.grow_old();
        let is_first = self.looked_ticks.replace(now_ticks).is_none();
        let used = subjects.iter().zip(sums);
        used.map(|(subject, sums)| self.used(subject, sums, is_first)).collect()
    }

    fn now_ticks(&self) -> u64 {
        let now = clock_gettime(ClockId::Boottime);
        let ns_per_tick = 1_000_000_000 / self.ticks_per_s;
        now.tv_sec as u64 * self.ticks_per_s + now.tv_nsec as u64 / ns_per_tick
    }

    /// Adds what a process has used to the sums of all things that it belongs to.
    fn add_process(&mut self, pid: u32, stat: &Stat, sums: &mut [Sums]) {
        let is_older = |looked: u64| stat.started_ticks < looked;
        // One that was there before and is watched from now on has used nothing yet.
        let counts_from_now = self.looked_ticks.is_none_or(is_older);
        let disk = if stat.has_ended { Err(Errno::SRCH) } else { self.files.disk_bytes(pid) };
        let Some(known) = self.table.get_mut(pid, stat.started_ticks) else {
            // Its number has been given to another process, which is met at the next look.
            self.table.forget(pid).iter().for_each(|known| self.debts.add(known));
            return;
        };
        let switched = if stat.has_ended {
            Ok(Switches::default())
        } else if stat.threads > THREADS_READ_MAX {
            Err(format!(
                "a process has {} threads; the switches of more than {THREADS_READ_MAX} are not read, as each has a file of \
                 its own",
                stat.threads
            ))
        } else {
            match known.switches_since(pid, &mut self.files, counts_from_now) {
                Ok(Some(switches)) => Ok(switches),
                Ok(None) => {
                    Err("threads ended, whose switches are not counted anywhere".to_owned())
                }
                Err(error) => Err(unread("task/TID/status", error)),
            }
        };
        let now = Totals { own: stat.own, children: stat.children, disk: disk.unwrap_or_default() };
        let mut used = known.used_until(now, counts_from_now, disk.is_ok());
        self.debts.settle(pid, &mut used);
        for &index in &known.belongs {
            let sum = &mut sums[index];
            sum.totals.add(&used);
            if known.roots.contains(&index) && !stat.has_ended {
                sum.roots.push(pid);
            }
            if stat.has_ended {
                continue;
            }
            sum.processes += 1;
            sum.threads += stat.threads;
            sum.rss_pages += stat.rss_pages;
            sum.member.get_or_insert(pid);
            if let Err(error) = disk {
                sum.disk_unknown.get_or_insert_with(|| unread("io", error));
            }
            match &switched {
                Ok(switches) => {
                    sum.switches.voluntary += switches.voluntary;
                    sum.switches.involuntary += switches.involuntary;
                }
                Err(why) => {
                    sum.switches_unknown.get_or_insert_with(|| why.clone());
                }
            }
        }
    }

    /// The figures of a thing from its sums.
    fn used(&mut self, subject: &Subject, sums: Sums, is_first: bool) -> Used {
        let mut second = WatchedSecond {
            name: subject.name.clone(),
            kind: subject.kind(),
            processes: Some(sums.processes),
            ..WatchedSecond::default()
        };
        if sums.processes == 0 && sums.totals.own == Counts::default() {
            self.networks.remove(&subject.name);
            return Used { second, roots: sums.roots, unknown: Vec::new() };
        }
        if sums.processes > 0 {
            second.threads = Some(sums.threads);
            second.rss_bytes = Some(sums.rss_pages * self.page_bytes);
        }
        let network = self.network(subject, sums.member);
        if is_first {
            return Used { second, roots: sums.roots, unknown: Vec::new() };
        }
        let unknown = sums.put(&mut second, self.ticks_per_s, network);
        Used { second, roots: sums.roots, unknown }
    }

    /// Bytes of the thing's own network since the look before; `None` at its first.
    fn network(
        &mut self,
        subject: &Subject,
        member: Option<u32>,
    ) -> Result<Option<NetworkBytes>, String> {
        let Some(pid) = member else { return Ok(None) };
        let Some(network) = self.files.network(pid) else {
            return Err("/proc/PID/ns/net cannot be read".to_owned());
        };
        if Some(&network) == self.own_network.as_ref() {
            let why = "it shares the network of the generator, which the kernel does not count by process";
            return Err(why.to_owned());
        }
        let path = self.files.interfaces(pid);
        let text = self.buffer.read_table(&path).map_err(|error| unread("net/dev", error))?;
        let now = parse_interfaces(text, &[]);
        let before = self.networks.insert(subject.name.clone(), (pid, now));
        Ok(before.filter(|(one, _)| *one == pid).map(|(_, before)| NetworkBytes {
            received: now.received.saturating_sub(before.received),
            sent: now.sent.saturating_sub(before.sent),
            loopback: now.loopback.saturating_sub(before.loopback),
        }))
    }
}

/// The reason why a file of a process gives no figure.
fn unread(name: &str, error: Errno) -> String {
    let why = match error {
        Errno::ACCESS | Errno::PERM => "permission denied: it belongs to another user",
        Errno::NOENT | Errno::SRCH => "the process ended",
        _ => "the kernel refused it",
    };
    format!("/proc/PID/{name} cannot be read ({why})")
}

#[cfg(test)]
mod tests;
