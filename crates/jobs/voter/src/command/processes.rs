//! Several client processes: started, let go at one time, waited for, and taken together.

mod merging;
mod seconds;

use super::address::Database;
use super::contact::Contact;
use super::flags::{BenchFlags, IsolationFlag, SqlFlag, Switch};
use super::start::{BEFORE_START, HANDOVER_US, draw_near};
use super::task::Task;
use super::telling::is_told;
use anyhow::{Context, Result};
use plimsoll_core::bench_shape::{Rhythm, Verbosity};
use plimsoll_core::clock::{now_ns, wall_us};
use plimsoll_core::schedule::{Arrivals, Slice};
use plimsoll_job::child::{LOOK_EVERY, plimsoll, signal};
use plimsoll_job::keeping::{About, Finished, carry_out};
use plimsoll_job::output::Output;
use plimsoll_job::progress::{Lines, RunProgress, Voice};
use plimsoll_job::signals::{self, Stopped};
use plimsoll_job::temporary::temporary_folder;
use plimsoll_job::usage::usage;
use plimsoll_record::RunRecord;
use plimsoll_workloads::http::Troubles;
use rustix::process::Signal;
use seconds::Seconds;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Longest time that a process may take until it is ready: it logs in and counts its rows.
const READY_WITHIN_NS: u64 = 120_000_000_000;
/// Longest time that the last lines of a process that has ended may take.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);
/// Time for all processes to open their connections, if no start was requested.
const SLACK_US: u64 = 500_000;

/// One process.
struct Client {
    name: String,
    child: Child,
    lines: Receiver<String>,
    json: PathBuf,
    /// Rows of its key range before its calls.
    rows_before: Option<u64>,
}

/// End of one process.
pub(super) struct Ended {
    name: String,
    index: u32,
    rows_before: Option<u64>,
    /// Its record, or why there is none.
    record: Result<RunRecord, String>,
}

/// Runs the processes.
///
/// # Errors
/// The database is not there or not ready, or a process does not start.
pub fn run(flags: &BenchFlags, task: &Task, output: &Output) -> Result<Finished> {
    let has_lines = output.voice() == Voice::Verbose && task.shape.verbosity > Verbosity::Quiet;
    let lines = if has_lines { Lines::Progress } else { Lines::None };
    let say = |text: &str| lines.say(text);
    say("connect ...");
    let mut contact = Contact::open(&task.database, task.scenario.connect_timeout)?;
    say("preparation ...");
    let prepared = contact.prepare(task.shape.bench, &task.names)?;
    drop(contact);
    let plan = task.plan();
    let about = About {
        plan: &plan,
        class_names: vec![task.class()],
        distinct_requests: None,
        troubles: Troubles::default(),
    };
    let folder = temporary_folder("voter")?;
    carry_out(&task.scenario, &about, output, |keeping| {
        let mut clients = Clients(Vec::new());
        for index in 0..flags.processes {
            clients.0.push(spawn(flags, task, output, folder.path(), index)?);
        }
        for client in &mut clients.0 {
            client.wait_until_ready()?;
        }
        let agreed_us = flags.start_us()?;
        let start_us = agreed_us.unwrap_or_else(|| wall_us() + SLACK_US);
        say(&format!("start at {} ...", plimsoll_core::clock::format_utc(start_us)));
        // Until then whoever stops the run stops this process, and the others end with it.
        draw_near(start_us, HANDOVER_US + SLACK_US)?;
        for client in &mut clients.0 {
            client.let_go(start_us);
        }
        say("calls ...");
        let left_us = start_us.saturating_sub(wall_us());
        keeping.sink.counts_from(now_ns().saturating_add(left_us.saturating_mul(1_000)));
        let progress = RunProgress::new(&task.scenario, output.voice());
        let mut watched = progress.watching(keeping.sink);
        let mut seconds = Seconds::of(clients.0.len(), &mut watched);
        let ended = clients.wait(&mut seconds);
        if signals::is_stopped() && ended.iter().all(|one| one.record.is_err()) {
            return Err(Stopped { during: BEFORE_START.to_owned() }.into());
        }
        let error = seconds.error;
        progress.done();
        merging::together(task, &ended, agreed_us, prepared, error)
    })
}

/// All processes; what still runs when this is dropped is ended.
struct Clients(Vec<Client>);

impl Drop for Clients {
    fn drop(&mut self) {
        for client in &mut self.0 {
            if matches!(client.child.try_wait(), Ok(None)) {
                let _ = client.child.kill();
            }
            let _ = client.child.wait();
        }
    }
}

impl Clients {
    /// Waits for all ends, takes their seconds meanwhile, and passes a stop on once.
    fn wait(&mut self, seconds: &mut Seconds<'_>) -> Vec<Ended> {
        let mut statuses: Vec<Option<ExitStatus>> = vec![None; self.0.len()];
        let mut told = false;
        while statuses.iter().any(Option::is_none) {
            for (place, (client, status)) in self.0.iter_mut().zip(&mut statuses).enumerate() {
                client.lines.try_iter().for_each(|line| seconds.line(place, &line));
                if status.is_none() {
                    *status = client.child.try_wait().ok().flatten();
                    if status.is_some() {
                        client.last_lines(|line| seconds.line(place, line));
                        seconds.ended(place);
                    }
                }
            }
            if signals::is_stopped() && !told {
                told = true;
                self.0.iter().for_each(|client| signal(&client.child, Signal::TERM));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let ended = |(index, (client, status)): (u32, (&Client, Option<ExitStatus>))| Ended {
            name: client.name.clone(),
            index,
            rows_before: client.rows_before,
            record: client.record(status),
        };
        (0..).zip(self.0.iter().zip(statuses)).map(ended).collect()
    }
}

impl Client {
    fn wait_until_ready(&mut self) -> Result<()> {
        let until_ns = now_ns() + READY_WITHIN_NS;
        loop {
            signals::go_on("before all client processes were ready")?;
            match self.lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => {
                    let rows = line.strip_prefix("ready ");
                    let rows = rows.with_context(|| {
                        format!("client process {} said '{line}' instead of ready", self.name)
                    })?;
                    self.rows_before = rows.trim().parse().ok();
                    return Ok(());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // It has said why, in a line of its own.
                    return Err(usage(format!(
                        "client process {} ended before it was ready; see its line above",
                        self.name
                    )));
                }
                Err(RecvTimeoutError::Timeout) if now_ns() > until_ns => {
                    anyhow::bail!("client process {} was not ready in time", self.name);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Tells it when to start. One that has died in the meantime is reported of later.
    fn let_go(&mut self, start_us: u64) {
        if let Some(mut stdin) = self.child.stdin.take() {
            let _ = writeln!(stdin, "start {start_us}");
        }
    }

    /// Lines that it printed before it ended.
    fn last_lines(&self, mut take: impl FnMut(&str)) {
        // Its end closes the stream, so that this is no wait.
        while let Ok(line) = self.lines.recv_timeout(LAST_LINES_WITHIN) {
            take(&line);
        }
    }

    fn record(&self, status: Option<ExitStatus>) -> Result<RunRecord, String> {
        let read = std::fs::read_to_string(&self.json).ok();
        let record = read.and_then(|text| serde_json::from_str(&text).ok());
        record.ok_or_else(|| match status.map(|status| status.to_string()) {
            Some(status) => format!("the process left no record ({status})"),
            None => "the process left no record".to_owned(),
        })
    }
}

/// The lines of a stream, read on a thread so that waiting for them has a limit; whatever no one takes is let go.
fn lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if !line.starts_with("ready ") && !is_told(&line) {
                continue;
            }
            let _ = sender.send(line);
        }
    });
    lines
}

fn spawn(
    flags: &BenchFlags,
    task: &Task,
    output: &Output,
    folder: &Path,
    index: u32,
) -> Result<Client> {
    let name = format!("{}{}", task.shape.client, index + 1);
    let json = folder.join(format!("{index}.json"));
    let own = flags.slice()?;
    // A share of a share is a share of the whole, and lies within the first one.
    let slice = Slice { index: own.index * flags.processes + index, of: own.of * flags.processes };
    let mut arguments = arguments(flags, task, (index, slice), &name);
    arguments.extend(["--no-record".to_owned(), "--json".to_owned(), json.display().to_string()]);
    let voice = if output.voice() == Voice::Verbose { "--verbose" } else { "--quiet" };
    arguments.push(voice.to_owned());
    // This process watches the database, and its own processes with itself.
    arguments.extend(["--watch", "none"].map(str::to_owned));
    let mut command = plimsoll(&arguments)?;
    if let Some((variable, password)) = task.database.password() {
        command.env(variable, password);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().with_context(|| format!("starting client process {name}"))?;
    let stdout = child.stdout.take().context("its stdout")?;
    Ok(Client { name, child, lines: lines(stdout), json, rows_before: None })
}

/// The whole run in flags, with what this process's part of it is.
fn arguments(
    flags: &BenchFlags,
    task: &Task,
    (index, slice): (u32, Slice),
    name: &str,
) -> Vec<String> {
    let shape = &task.shape;
    let mut all = vec![shape.bench.name().to_owned(), "--gate".to_owned()];
    let mut add = |flag: &str, value: Option<String>| {
        if let Some(value) = value {
            all.extend([flag.to_owned(), value]);
        }
    };
    for target in task.database.written() {
        add("--target", Some(target));
    }
    add("--part", Some(format!("{index}/{}", flags.processes)));
    add("--slice", Some(format!("{}/{}", slice.index + 1, slice.of)));
    add("--client", Some(name.to_owned()));
    match &shape.rhythm {
        Rhythm::Burst => {
            add("--rhythm", Some("burst".to_owned()));
            add("--burst", Some(shape.size.to_string()));
            add("--delay", shape.delay.map(|delay| delay.to_string()));
        }
        Rhythm::Open { rate_per_s, arrivals } => {
            add("--rate", Some(rate_per_s.to_string()));
            let word = if *arrivals == Arrivals::Poisson { "poisson" } else { "uniform" };
            add("--arrivals", Some(word.to_owned()));
        }
        _ => {
            add("--rhythm", Some("steady".to_owned()));
            add("--clients", Some(shape.size.to_string()));
        }
    }
    add("--calls", shape.calls.map(|calls| calls.to_string()));
    add("--duration", flags.duration.map(|duration| duration.to_string()));
    let mode = if shape.managed.is_some() { "managed" } else { "direct" };
    add("--mode", Some(mode.to_owned()));
    add("--queue", shape.managed.and_then(|m| m.queue).map(|queue| queue.to_string()));
    add("--slots", shape.managed.map(|managed| managed.slots.to_string()));
    add("--queue-timeout", Some(flags.queue_timeout.to_string()));
    add("--limit", shape.limit.map(|limit| limit.to_string()));
    // Connections to PostgreSQL are shared out here, those to hosts are each process's own.
    let own = task.scenario.connection_count() / flags.processes;
    let connections = match task.database {
        Database::Volt(_) => flags.connections,
        Database::Postgres(_) => Some(own),
    };
    add("--connections", connections.map(|n| n.to_string()));
    add("--affinity", (flags.affinity == Switch::Off).then(|| "off".to_owned()));
    let sql = flags.sql.map(|way| match way {
        SqlFlag::Function => "function",
        SqlFlag::Statements => "statements",
    });
    add("--sql", sql.map(str::to_owned));
    let isolation = flags.isolation.map(|level| match level {
        IsolationFlag::ReadCommitted => "read-committed",
        IsolationFlag::RepeatableRead => "repeatable-read",
        IsolationFlag::Serializable => "serializable",
    });
    add("--isolation", isolation.map(str::to_owned));
    add("--retries", flags.retries.map(|n| n.to_string()));
    add("--contestants", Some(task.names.len().to_string()));
    add("--max-votes", Some(flags.max_votes.to_string()));
    add("--seed", Some(flags.seed.to_string()));
    add("--threads", Some(flags.cores.to_string()));
    add("--timeout", Some(flags.timeout.to_string()));
    add("--connect-timeout", Some(flags.connect_timeout.to_string()));
    add("--give-up", Some(flags.give_up.to_string()));
    add("--dump-interval", Some(shape.dump_interval.to_string()));
    // What it prints on stdout nobody reads; its lines are progress.
    let verbosity = shape.verbosity.min(Verbosity::Verbose);
    add("--verbosity", Some(verbosity.name().to_owned()));
    all
}
