//! Agents that watch: their side, and that of the coordinator, whose record has the resources of their machines.

use super::{Watch, find_named};
use anyhow::Result;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_fleet::coordinator::WatcherReport;
use plimsoll_fleet::place::{AgentPost, CoordinatorPost, Place, WatchOrder, place};
use plimsoll_record::resources::{
    ResourceLine, ResourcesResult, WatcherResult, file_of_agent, name_with_agent,
};
use plimsoll_report::folder::RunFolder;
use plimsoll_resources::account::Account;
use plimsoll_resources::sampling::{Keep, Sampling};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Watches for one run, as an agent that was started to watch these things; its machine is always watched. The names come from the
/// command line of the agent, and none from the bus.
///
/// # Errors
/// A name that nothing has, and the end of the run.
pub fn watch_as_agent(post: &Arc<AgentPost>, watches: &[Watch]) -> Result<()> {
    post.watch_order()?;
    let found = find_named(watches)?;
    let keep = Sender { post: post.clone() };
    let sampling = Sampling::start_with(found, Some(Box::new(keep)))?;
    while let WatchOrder::MeasuredFrom(at_ns) = post.next_watch_order()? {
        sampling.measured_from(at_ns);
    }
    // The coordinator makes the figures from the lines: it knows the length of the measured stretch.
    let things = sampling.finish(u64::MAX);
    post.watched(ResourcesResult {
        watched: things.watched,
        machine: things.machine,
        remarks: things.remarks,
        ..ResourcesResult::default()
    })?;
    if !post.was_told_to_stop() {
        anyhow::bail!("it was stopped on its own machine");
    }
    Ok(post.finish(Verdict::new(VerdictKind::Valid, Vec::new()), None)?)
}

/// Sends lines to the coordinator.
struct Sender {
    post: Arc<AgentPost>,
}

impl Keep for Sender {
    fn begin(&mut self, things: &ResourcesResult) {
        self.post.watches(things.clone());
    }

    fn line(&mut self, line: &ResourceLine) -> io::Result<()> {
        self.post.used(line).map_err(io::Error::other)
    }
}

/// The agents of a run that watch, at its coordinator.
pub(super) struct Elsewhere {
    post: Arc<CoordinatorPost>,
    folder: Option<PathBuf>,
    all: Mutex<Vec<Kept>>,
}

/// Lines of one of them.
struct Kept {
    agent: String,
    /// Name of its file, if lines are kept.
    name: Option<String>,
    /// Open from the first line on.
    file: Option<File>,
    account: Account,
    remarks: Vec<String>,
}

impl Kept {
    fn take(&mut self, mut line: ResourceLine, folder: Option<&PathBuf>) {
        for one in &mut line.watched {
            one.name = name_with_agent(&self.agent, &one.name);
        }
        if let (Some(folder), Some(name)) = (folder, &self.name) {
            let written = match &mut self.file {
                Some(file) => file.line(&line),
                None => File::create(folder.join(name))
                    .and_then(|file| self.file.insert(file).line(&line)),
            };
            if let Err(error) = written {
                self.remarks.push(format!("{name} could not be written completely: {error}"));
                self.name = None;
            }
        }
        self.account.take(line);
    }
}

impl Elsewhere {
    /// Those of this run; none if this process is not its coordinator, or no agent watches.
    pub fn of_place(folder: Option<&RunFolder>) -> Option<Self> {
        let Place::Coordinator(post) = place() else { return None };
        let mut taken = Vec::new();
        let kept = |report: WatcherReport| {
            let name = file_of_agent(&report.name, &taken);
            taken.push(name.clone());
            Kept {
                agent: report.name,
                name: folder.is_some().then_some(name),
                file: None,
                account: Account::default(),
                remarks: Vec::new(),
            }
        };
        let all: Vec<Kept> = post.watchers().into_iter().map(kept).collect();
        let folder = folder.map(|folder| folder.path().to_owned());
        (!all.is_empty()).then(|| Self { post: post.clone(), folder, all: Mutex::new(all) })
    }

    /// The start of the measured stretch is known, ns.
    pub fn measured_from(&self, start_ns: u64) {
        self.post.watched_from(start_ns);
    }

    /// A second of the run is over, ns since the start of the measured stretch: takes the lines that came meanwhile.
    pub fn reached(&self, to_ns: u64) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for (kept, lines) in all.iter_mut().zip(self.post.take_watched()) {
            lines.into_iter().for_each(|line| kept.take(line, self.folder.as_ref()));
            kept.account.reached(to_ns as f64);
        }
    }

    /// The sections of the record.
    pub fn finish(self, measured_ns: u64) -> Vec<WatcherResult> {
        self.reached(0);
        let reports = self.post.watchers();
        let all = self.all.into_inner().unwrap_or_else(PoisonError::into_inner);
        let each = |(kept, report): (Kept, WatcherReport)| {
            let mut things = report.things();
            for one in &mut things.watched {
                one.name = name_with_agent(&kept.agent, &one.name);
            }
            things.remarks.extend(kept.remarks);
            let memory = report.watches.map(|watches| watches.machine.memory_bytes);
            let memory = memory.filter(|&bytes| bytes > 0);
            let figures = kept.account.finish(measured_ns as f64, things, memory);
            WatcherResult {
                agent: kept.agent,
                host: report.host,
                file: kept.file.and(kept.name),
                trouble: report.trouble,
                until_s: report.until_s,
                samples: figures.samples,
                watched: figures.watched,
                machine: figures.machine,
                remarks: figures.remarks,
            }
        };
        all.into_iter().zip(reports).map(each).collect()
    }
}
