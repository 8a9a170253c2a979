//! A store at work on the simulated disk, with each fault at each operation in turn.
//!
//! The same work is done again and again. At each of its operations the power is cut, the process killed, or the disk fails; then the
//! store starts on what is left, and is asked for everything that it had acknowledged. Its start is a work of its own: the power is
//! cut and the disk fails in it as well.

use crate::simulated::{Fault, Forgets, Plan, Simulated};
use plimsoll_core::rng::{Rng, derive_seed};
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds after which a planted defect counts as not found.
const SEEDS_MAX: u64 = 9;
/// The variable of the environment with the number of seeds.
const SEEDS_FROM: &str = "PLIMSOLL_DISK_SEEDS";
/// The variable of the environment with the file that rows of the table are appended to.
const ROWS_TO: &str = "PLIMSOLL_DISK_ROWS";
/// The faults of a disk that goes on.
const FAULTS: [Fault; 4] = [Fault::Io, Fault::IoFromThen, Fault::Full, Fault::FullFromThen];
/// Findings that are kept with everything that led to them.
const FINDINGS_SHOWN: usize = 5;

/// The start of a store on what is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Everything that was acknowledged is there, and nothing is there by half.
    Whole,
    /// The store does not start, or not with everything, and says so in these words.
    Said(String),
    /// Something is missing, or wrong, and nothing says so.
    Wrong(String),
}

/// A store, and what is done with it.
pub trait Store {
    /// The promises of the store when the work ended.
    type Acknowledged;

    /// The name in the table.
    fn name(&self) -> &'static str;

    /// Does the work, until it is done or the store takes no more.
    fn work(&self, disk: &Simulated) -> Self::Acknowledged;

    /// Starts on what is left, and looks for what was acknowledged.
    fn start(&self, disk: &Simulated, acknowledged: &Self::Acknowledged) -> Start;
}

/// The result of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// The store.
    pub name: &'static str,
    /// Seeds for each operation.
    pub seeds: u64,
    /// Distance between two operations that were tried.
    pub every: usize,
    /// Operations of the work.
    pub operations: u64,
    /// Operations of a start.
    pub start_operations: u64,
    /// Starts after a power cut or a kill.
    pub crashes: u64,
    /// EIO and ENOSPC that happened.
    pub faults: u64,
    /// Starts that said what is not there.
    pub said: u64,
    /// Number of findings.
    pub findings: u64,
    /// The first findings.
    pub shown: Vec<Finding>,
}

/// Something that should not be.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The faults that led to it, and the seed.
    pub after: String,
    /// The fault of the store.
    pub what: String,
    /// The operations of the disk.
    pub lines: Vec<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.after, self.what)?;
        self.lines.iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

/// The number of seeds for each operation that the environment asks for.
fn seeds() -> Option<u64> {
    std::env::var(SEEDS_FROM).ok().and_then(|text| text.parse().ok())
}

/// Sweeps a store, and adds its row to the table, if one is wanted: as many seeds for each operation as the environment asks for,
/// otherwise one for each `every`th operation.
///
/// # Panics
/// When the work fails without a fault, or there is a finding.
pub fn must_pass(store: &impl Store, every: usize) {
    let swept = match seeds() {
        Some(seeds) => sweep(store, seeds, 1),
        None => sweep(store, 1, every),
    };
    if let Some(path) = std::env::var_os(ROWS_TO) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let written = file.and_then(|mut file| writeln!(file, "{}", swept.row()));
        assert!(written.is_ok(), "{written:?}");
    }
    let mut text = String::new();
    for finding in &swept.shown {
        let _ = writeln!(text, "{finding}");
    }
    assert_eq!(swept.findings, 0, "{}\n{text}", swept.row());
}

/// Does the work of a store with each fault at each `every`th operation in turn, with this number of seeds for each.
///
/// # Panics
/// When the work fails without a fault.
pub fn sweep(store: &impl Store, seeds: u64, every: usize) -> Swept {
    sweep_until(store, seeds, every, |_| false)
}

/// Returns the first finding of a store that forgets its syncs while it works: a sweep that finds nothing proves nothing.
///
/// # Panics
/// When the work fails without a fault.
pub fn first_finding(store: &impl Store, forgets: Forgets) -> Option<Finding> {
    let planted = Planted { store, forgets };
    sweep_until(&planted, SEEDS_MAX, 1, |swept| swept.findings > 0).shown.into_iter().next()
}

/// A store with a defect.
struct Planted<'s, S> {
    store: &'s S,
    forgets: Forgets,
}

impl<S: Store> Store for Planted<'_, S> {
    type Acknowledged = S::Acknowledged;

    fn name(&self) -> &'static str {
        self.store.name()
    }

    fn work(&self, disk: &Simulated) -> S::Acknowledged {
        disk.forget(self.forgets);
        self.store.work(disk)
    }

    fn start(&self, disk: &Simulated, acknowledged: &S::Acknowledged) -> Start {
        self.store.start(disk, acknowledged)
    }
}

fn sweep_until(
    store: &impl Store,
    seeds: u64,
    every: usize,
    is_enough: impl Fn(&Swept) -> bool,
) -> Swept {
    let disk = Simulated::new();
    let acknowledged = store.work(&disk);
    let operations = disk.operations();
    let swept = Swept { name: store.name(), seeds, every, operations, ..Swept::default() };
    let mut sweep = Sweep { store, swept };
    let kept = disk.after_kill();
    assert_eq!(sweep.start("without a fault", &kept, &acknowledged), Some(Start::Whole));
    sweep.swept.start_operations = kept.operations();
    for seed in 0..seeds {
        for at in (0..operations).step_by(every) {
            let seed = derive_seed(seed, &at.to_string());
            sweep.crash(at, seed);
            for fault in FAULTS {
                sweep.fault(Plan { at, fault }, seed);
            }
            if is_enough(&sweep.swept) {
                return sweep.swept;
            }
        }
        for at in (0..sweep.swept.start_operations).step_by(every) {
            for fault in FAULTS {
                sweep.fault_at_start(&disk, &acknowledged, Plan { at, fault }, seed);
            }
        }
    }
    sweep.swept
}

struct Sweep<'s, S> {
    store: &'s S,
    swept: Swept,
}

impl<S: Store> Sweep<'_, S> {
    /// The power is cut, or the process killed, at one operation.
    fn crash(&mut self, at: u64, seed: u64) {
        let disk = Simulated::new();
        disk.plan(Plan { at, fault: Fault::PowerCut }, seed);
        let Some(acknowledged) = self.work(&disk) else { return };
        disk.switch_off();
        let case = format!("power cut at {at}, seed {seed}");
        let cut = disk.after_power_cut(seed);
        self.must_be_whole(&case, &cut, &acknowledged);
        // What the start has done must be as safe as what was there before it.
        let case = format!("{case}, a start, another power cut");
        self.must_be_whole(&case, &cut.after_power_cut(seed + 1), &acknowledged);
        // The power is cut in the start.
        let cut = disk.after_power_cut(seed + 2);
        let count = self.swept.start_operations.max(1);
        let again = Plan { at: Rng::new(seed).below(count), fault: Fault::PowerCut };
        cut.plan(again, seed);
        let case = format!("power cut at {at}, seed {seed}, another at {} of the start", again.at);
        let _ = self.start(&case, &cut, &acknowledged);
        cut.switch_off();
        self.must_be_whole(&case, &cut.after_power_cut(seed + 3), &acknowledged);
        // The process is killed: the next one reads what is not on the disk yet. Then the power is cut.
        let killed = disk.after_kill();
        let case = format!("kill -9 at {at}");
        self.must_be_whole(&case, &killed, &acknowledged);
        let case = format!("{case}, a start, a power cut, seed {seed}");
        self.must_be_whole(&case, &killed.after_power_cut(seed), &acknowledged);
        self.swept.crashes += 5;
    }

    /// The disk fails while the store works; then it starts on a disk that works.
    fn fault(&mut self, plan: Plan, seed: u64) {
        let disk = Simulated::new();
        disk.plan(plan, seed);
        let Some(acknowledged) = self.work(&disk) else { return };
        if !disk.has_struck() {
            return;
        }
        self.swept.faults += 1;
        let case = format!("{:?} at {}, seed {seed}", plan.fault, plan.at);
        self.must_be_whole(&format!("{case}, kill -9"), &disk.after_kill(), &acknowledged);
        let case = format!("{case}, power cut");
        self.must_be_whole(&case, &disk.after_power_cut(seed), &acknowledged);
        self.swept.crashes += 2;
    }

    /// The disk fails while the store starts, which may end the start; the next one must find everything.
    fn fault_at_start(&mut self, disk: &Simulated, known: &S::Acknowledged, plan: Plan, seed: u64) {
        let failing = disk.after_power_cut(derive_seed(seed, "start"));
        failing.plan(plan, seed);
        let case = format!("{:?} at {} of the start, seed {seed}", plan.fault, plan.at);
        let started = self.start(&case, &failing, known);
        if !failing.has_struck() {
            return;
        }
        self.swept.faults += 1;
        self.swept.said += u64::from(matches!(started, Some(Start::Said(_))));
        self.must_be_whole(&format!("{case}, kill -9"), &failing.after_kill(), known);
        self.must_be_whole(&format!("{case}, power cut"), &failing.after_power_cut(seed), known);
        self.swept.crashes += 2;
    }

    fn must_be_whole(&mut self, case: &str, disk: &Simulated, acknowledged: &S::Acknowledged) {
        if let Some(Start::Said(said)) = self.start(case, disk, acknowledged) {
            self.find(case, format!("it does not start: {said}"), disk);
        }
    }

    /// Does the work; a panic is a finding.
    fn work(&mut self, disk: &Simulated) -> Option<S::Acknowledged> {
        let store = self.store;
        match catch_unwind(AssertUnwindSafe(|| store.work(disk))) {
            Ok(_) if disk.is_endless() => self.find("the work", "it does not end".to_owned(), disk),
            Ok(acknowledged) => return Some(acknowledged),
            Err(panic) => self.find("the work", said(&*panic), disk),
        }
        None
    }

    /// Starts the store; a panic, and something that is wrong, are findings.
    fn start(&mut self, case: &str, disk: &Simulated, known: &S::Acknowledged) -> Option<Start> {
        let store = self.store;
        match catch_unwind(AssertUnwindSafe(|| store.start(disk, known))) {
            Ok(_) if disk.is_endless() => self.find(case, "it does not end".to_owned(), disk),
            Ok(Start::Wrong(what)) => self.find(case, what, disk),
            Ok(start) => return Some(start),
            Err(panic) => self.find(case, said(&*panic), disk),
        }
        None
    }

    fn find(&mut self, case: &str, what: String, disk: &Simulated) {
        self.swept.findings += 1;
        if self.swept.shown.len() < FINDINGS_SHOWN {
            self.swept.shown.push(Finding { after: case.to_owned(), what, lines: disk.lines() });
        }
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a panic: {}", text.unwrap_or("without words"))
}

impl Swept {
    /// The row of the table: store, seeds, operations of the work and of a start, crashes, faults, starts that say what is missing,
    /// findings.
    #[must_use]
    pub fn row(&self) -> String {
        let Self { name, operations, start_operations, crashes, faults, said, findings, .. } = self;
        let seeds = match self.every {
            1 => self.seeds.to_string(),
            every => format!("{}, at each {every}th operation", self.seeds),
        };
        format!(
            "| {name} | {seeds} | {operations} | {start_operations} | {crashes} | {faults} | {said} | {findings} |"
        )
    }
}
