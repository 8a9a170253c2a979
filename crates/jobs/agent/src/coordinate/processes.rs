//! `--processes N`: a run by processes that this one starts. They are agents on a bus of their own, whose hub is here.

use super::conduct;
use crate::build;
use crate::words::{Packed, To, pack};
use anyhow::{Context, Result};
use plimsoll_bus::{Bounds, Bus as _, BusAddress, Hub};
use plimsoll_core::clock::now_ns;
use plimsoll_fleet::hall::{FleetName, HallError, Wanted, find, process_number};
use plimsoll_fleet::message::{Here, Members};
use plimsoll_fleet::place::{CoordinatorPost, Refused, Setting};
use plimsoll_job::child::{LOOK_EVERY, ends_with_us};
use plimsoll_job::exit::{FAILED, NOT_VALID};
use plimsoll_job::output::note;
use plimsoll_job::signals;
use plimsoll_job::usage::usage;
use rustix::process::Signal;
use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// Most processes of a run.
const PROCESSES_MAX: u32 = 64;
/// Longest time until all processes answer.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Longest wait for the processes to end by themselves, and then again without their hub.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of the last lines of a process that are kept.
const LINES_MAX: usize = 8 * 1024;

/// Runs a job as the coordinator of this many processes, whose number is checked here.
///
/// # Errors
/// Flags that do not go together, processes that do not start, or what the job itself says.
pub fn run(
    processes: u32,
    command: &clap::Command,
    words: &[String],
    job: impl FnOnce() -> Result<u8>,
) -> Result<u8> {
    if !(1..=PROCESSES_MAX).contains(&processes) {
        return Err(usage(format!("--processes: use a number from 1 to {PROCESSES_MAX}")));
    }
    if processes == 1 {
        return job();
    }
    let packed = pack(command, words, To::Processes)?;
    signals::stop_flag()?;
    let mut crew = Crew::start(processes)?;
    let post = Arc::new(crew.give(packed)?);
    crew.watch(&post)?;
    let done = conduct(post, job);
    crew.end();
    done
}

/// The processes of a run; what still runs when this is dropped is ended.
struct Crew {
    children: Arc<Mutex<Vec<Member>>>,
    watcher: Option<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
    hub: Option<Hub>,
    /// Socket of the hub, records of the parts, and whatever else the processes keep for a while.
    folder: TempDir,
}

/// One process.
struct Member {
    name: String,
    child: Child,
    /// Its number on the bus, once it is known.
    number: Option<u64>,
    status: Option<ExitStatus>,
    /// True once the coordinator knows of its end.
    is_missed: bool,
    lines: Option<JoinHandle<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Crew {
    /// Starts the hub and the processes.
    fn start(processes: u32) -> Result<Self> {
        // The socket lets everyone in who reaches it: the folder is the user's own.
        let folder = tempfile::Builder::new()
            .prefix("plimsoll-processes-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .context("a folder for the processes; set TMPDIR to another folder")?;
        let socket = folder.path().join("bus");
        let hub = Hub::listen(&socket, Bounds::default()).with_context(|| {
            format!("no socket can be made at {}; set TMPDIR to a shorter path", socket.display())
        })?;
        let crew = Self {
            children: Arc::default(),
            watcher: None,
            is_over: Arc::default(),
            hub: Some(hub),
            folder,
        };
        // All of them before the first process runs: the last one that leaves without this process takes the rest along.
        for number in 1..=processes {
            let own = crew.folder.path().join(format!("{}{number}", Members::PROCESS));
            std::fs::create_dir(&own).with_context(|| own.display().to_string())?;
        }
        for number in 1..=processes {
            let started = start_member(number, &socket, crew.folder.path())?;
            lock(&crew.children).push(started);
        }
        Ok(crew)
    }

    /// Waits until all processes answer, and gives each its part.
    fn give(&mut self, packed: Packed) -> Result<CoordinatorPost> {
        let hub = self.hub.as_ref().context("the hub")?;
        let (own, fleet) = (process_number(), FleetName::default());
        let bus = Arc::new(hub.connection());
        let inbox = bus.subscribe(&fleet.inbox(own))?;
        let children = self.children.clone();
        let has_ended = || lock(&children).iter_mut().any(|one| one.has_ended());
        let wanted =
            Wanted { agents: lock(&self.children).len(), watchers: 0, within: READY_WITHIN };
        let is_over = || signals::is_stopped() || has_ended();
        let note = &mut |line: &str| note(&format!("plimsoll: {line}"));
        let found = find(&*bus, (&fleet, own), &build::own()?, wanted, &is_over, note);
        let agents = found.map_err(|error| self.not_found(&error))?;
        for Here { agent, pid, .. } in &agents {
            let mut children = lock(&self.children);
            let of_pid = children.iter_mut().find(|one| one.child.id() == *pid);
            of_pid.context("a process that is not one of this run is on its bus")?.number =
                Some(*agent);
        }
        Ok(CoordinatorPost::start(Setting {
            bus,
            fleet,
            own,
            inbox,
            members: Members::Processes,
            agents,
            watchers: 0,
            run: format!("{own:016x}"),
            words: packed.words,
            files: packed.files,
        })?)
    }

    /// The reason why not all processes answered.
    fn not_found(&self, error: &HallError) -> Refused {
        let refused = |why: String, code| Refused { why, code: Some(code) };
        if signals::is_stopped() {
            let why = "stopped while the processes started; nothing was measured";
            return refused(why.to_owned(), NOT_VALID);
        }
        let mut children = lock(&self.children);
        let ended = children.iter_mut().find_map(|one| one.status.map(|status| (one, status)));
        match ended {
            Some((one, status)) => {
                let last = one.last_lines();
                let last = last.lines().last().unwrap_or("it printed nothing").to_owned();
                let title = Members::Processes.title(&one.name);
                refused(format!("{title} ended before the run began ({status}): {last}"), FAILED)
            }
            None => refused(of_processes(error, children.len()), NOT_VALID),
        }
    }

    /// Watches the processes, so that one that dies is missed at once.
    fn watch(&mut self, post: &Arc<CoordinatorPost>) -> Result<()> {
        let (children, is_over, post) = (self.children.clone(), self.is_over.clone(), post.clone());
        let watch = move || {
            while !is_over.load(Ordering::Relaxed) {
                let mut gone = Vec::new();
                for one in &mut *lock(&children) {
                    if !one.is_missed
                        && one.has_ended()
                        && let (Some(number), Some(status)) = (one.number, one.status)
                    {
                        one.is_missed = true;
                        gone.push((number, format!("it has ended ({status})")));
                    }
                }
                if !gone.is_empty() {
                    // Its last words may still be on their way.
                    std::thread::sleep(LOOK_EVERY);
                }
                gone.iter().for_each(|(number, why)| post.gone(*number, why));
                std::thread::sleep(LOOK_EVERY);
            }
        };
        self.watcher = Some(std::thread::Builder::new().name("processes".to_owned()).spawn(watch)?);
        Ok(())
    }

    /// Waits for the processes, ends those that do not end by themselves, and shows what those that failed printed.
    fn end(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        if !self.have_ended(PATIENCE) {
            drop(self.hub.take());
            self.have_ended(PATIENCE);
        }
        for one in &mut *lock(&self.children) {
            if !one.has_ended() {
                let _ = one.child.kill();
                one.status = one.child.wait().ok();
            }
            if one.status.is_some_and(|status| !status.success()) {
                let (title, lines) = (Members::Processes.title(&one.name), one.last_lines());
                lines.lines().for_each(|line| note(&format!("plimsoll: {title}: {line}")));
            }
        }
    }

    /// Waits until all have ended; false if some have not in time.
    fn have_ended(&self, within: Duration) -> bool {
        let until_ns = now_ns() + within.as_nanos() as u64;
        let all = || lock(&self.children).iter_mut().all(Member::has_ended);
        while !all() {
            if now_ns() > until_ns {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for one in &mut *lock(&self.children) {
            if !one.has_ended() {
                let _ = one.child.kill();
                let _ = one.child.wait();
            }
        }
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}

impl Member {
    fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// The last lines that it printed; once it has ended.
    fn last_lines(&mut self) -> String {
        self.lines.take().and_then(|lines| lines.join().ok()).unwrap_or_default()
    }
}

/// The reason why processes cannot be used, without the words for agents.
fn of_processes(error: &HallError, processes: usize) -> String {
    match error {
        HallError::TooFew { found, within_s, .. } => format!(
            "{found} of {processes} processes answered within {within_s} s; use fewer --processes, or end other programs on this machine"
        ),
        HallError::OtherBuild { name, .. } => format!(
            "the program was replaced while it was running: {} is another build; start the run again",
            Members::Processes.title(name)
        ),
        other => other.to_string(),
    }
}

fn start_member(number: u32, socket: &Path, folder: &Path) -> Result<Member> {
    let name = format!("{}{number}", Members::PROCESS);
    let own_folder = folder.join(&name);
    let words = [
        "agent".to_owned(),
        format!("--bus={}", BusAddress::of_socket(socket)),
        format!("--name={name}"),
        "--once".to_owned(),
        "--allow-target=any".to_owned(),
        format!("--runs={}", own_folder.display()),
    ];
    // It finds the end of this process by that of its hub, and shuts down cleanly; if it was frozen, it has to be woken for that.
    let own = std::env::current_exe().context("finding this program")?;
    let mut command = ends_with_us(own, Signal::CONT);
    command.args(words).env("TMPDIR", &own_folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child =
        command.spawn().with_context(|| format!("starting {}", Members::Processes.title(&name)))?;
    let stderr = child.stderr.take().context("its stderr")?;
    let lines = std::thread::Builder::new()
        .name("stderr".to_owned())
        .spawn(move || last_lines_of(stderr))
        .ok();
    Ok(Member { name, child, number: None, status: None, is_missed: false, lines })
}

/// Reads to the end, and keeps the last bytes.
fn last_lines_of(mut stderr: ChildStderr) -> String {
    let (mut kept, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = stderr.read(&mut piece) {
        kept.extend(&piece[..length]);
        let excess = kept.len().saturating_sub(LINES_MAX);
        kept.drain(..excess);
    }
    String::from_utf8_lossy(&kept).into_owned()
}
