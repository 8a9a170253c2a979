//! `plimsoll serve opensearch`, `elasticsearch` and `voltdb`: one node in a Java of its own.

use super::jar_engine::{ARCHIVE, JarEngine, class_path, installed};
use super::java::Java;
use super::log::EngineLog;
use super::supervise::{DataFolder, Place, Running, free_port, supervise};
use super::{Engine, LOG_NAME, check_room};
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::now_ns;
use plimsoll_core::units::Size;
use plimsoll_job::child::{LOOK_EVERY, program, wait_within};
use plimsoll_job::signals;
use plimsoll_job::usage::usage;
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

/// Smallest heap that a node starts with, bytes.
const HEAP_MIN_BYTES: u64 = 128 << 20;
/// Free space that a node asks for, bytes.
const ROOM_BYTES: u64 = 64_000_000;
/// Settings that would open the engine to the network; it knows no passwords.
const ADDRESSES: [&str; 3] = ["network.", "http.", "transport."];
/// Longest first start, and longest end of it: it writes the archive of classes then.
const FIRST_START: Duration = Duration::from_secs(300);

/// Command-line options of a node.
pub struct NodeServe<'a> {
    /// The engine.
    pub engine: Engine,
    /// Port of its HTTP, or of its own protocol; 0 is any.
    pub port: u16,
    /// Folder of its data; `None` is a temporary one.
    pub data: Option<&'a Path>,
    /// The file that keeps what it says.
    pub log: Option<&'a Path>,
    /// File for a copy of the ready line.
    pub ready_file: Option<&'a Path>,
    /// Its heap.
    pub heap: Size,
    /// Settings of its own, `name=value`, as the user gave them.
    pub settings: &'a [String],
    /// Additional arguments of its launcher.
    pub arguments: &'a [String],
    /// True if it really answers at a port on which it listens: yes, or not yet.
    pub answers: &'a dyn Fn(u16) -> bool,
}

/// Runs a node until the user stops it.
///
/// # Errors
/// Java or the engine is missing, the port is in use, or the engine ends by itself.
pub fn serve_node(serve: &NodeServe<'_>) -> Result<u8> {
    let name = serve.engine.name();
    let Some(engine) = serve.engine.jars() else { bail!("{name} is not a Java engine") };
    signals::stop_flag()?;
    check(serve)?;
    let folder = installed(engine)?;
    let java = Java::find(engine)?;
    let port = if serve.port == 0 { 0 } else { free_port(serve.port)? };
    let data = DataFolder::new(serve.data, name)?;
    check_room(&data.path, ROOM_BYTES, name)?;
    let log =
        EngineLog::create(&serve.log.map_or_else(|| data.path.join(LOG_NAME), PathBuf::from))?;
    let mut command = node(engine, &java, &folder, &data.path, serve.heap.bytes)?;
    let archive = folder.join(ARCHIVE);
    if archive.is_file() {
        // Another Java than the one that made it passes over it without a word.
        command.arg(format!("-XX:SharedArchiveFile={}", archive.display()));
    }
    command.args(launcher(engine, &folder, &data.path, port)?);
    command.args(serve.settings).args(serve.arguments);
    let mut running = Running { child: spawn(&mut command)?, gently: Signal::TERM };
    let said = first_line(&mut running.child, &log)?;
    // Its standard input ends with this process, whatever ends that: the node ends with it.
    let _alive = running.child.stdin.take();
    let place = Place {
        kind: name,
        scheme: engine.scheme,
        host: "127.0.0.1",
        ready_file: serve.ready_file,
    };
    let mut known = None;
    supervise(&place, running, &log, &mut || {
        if known.is_none() {
            known = port_of(name, &said)?;
        }
        match known {
            Some(port) if (serve.answers)(port) => Ok(known),
            _ => Ok(None),
        }
    })
}

fn check(serve: &NodeServe<'_>) -> Result<()> {
    if serve.heap.bytes < HEAP_MIN_BYTES {
        return Err(usage("--heap: less than 128 MiB does not start; give more"));
    }
    let memory = rustix::system::sysinfo();
    let all = (memory.totalram as f64 * f64::from(memory.mem_unit)) as u64;
    if serve.heap.bytes > all {
        return Err(usage(format!(
            "--heap: this machine has {} MB of memory; give less",
            all / 1_000_000
        )));
    }
    for setting in serve.settings {
        let Some((name, _)) = setting.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(usage(format!("--setting '{setting}': write name=value")));
        };
        let is_address = name.ends_with("host") || name.ends_with("port");
        if name.starts_with("path.")
            || (is_address && ADDRESSES.iter().any(|begin| name.starts_with(begin)))
        {
            return Err(usage(format!(
                "--setting {name}: ports and folders have flags of their own, and it listens on loopback only"
            )));
        }
    }
    Ok(())
}

/// Java with everything but the archive of classes, the class path and the launcher.
fn node(
    engine: &JarEngine,
    java: &Java,
    folder: &Path,
    data: &Path,
    heap_bytes: u64,
) -> Result<Command> {
    let temporary = data.join("tmp");
    std::fs::create_dir_all(&temporary).map_err(|error| {
        usage(format!("--data {}: {error}; name another folder", data.display()))
    })?;
    let mut command = program(java.program());
    command
        .arg(format!("-Xms{heap_bytes}"))
        .arg(format!("-Xmx{heap_bytes}"))
        // The one that disturbs its neighbours least, and takes the least memory.
        .arg("-XX:+UseSerialGC")
        .arg("-XX:+ExitOnOutOfMemoryError")
        .arg(format!("-XX:ErrorFile={}/java-error.log", data.display()))
        .arg(format!("-Djava.io.tmpdir={}", temporary.display()))
        .arg("-Djava.awt.headless=true")
        .arg("-Dfile.encoding=UTF-8")
        .args(engine.java_options(&folder.display().to_string()))
        .current_dir(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Settings for the user's other programs must not change a measurement.
    for variable in ["JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH"] {
        command.env_remove(variable);
    }
    Ok(command)
}

/// The class path, the launcher and its settings.
fn launcher(engine: &JarEngine, folder: &Path, data: &Path, port: u16) -> Result<[String; 5]> {
    Ok([
        "-cp".to_owned(),
        class_path(folder)?,
        engine.launcher.to_owned(),
        format!("path.home={}", data.display()),
        format!("{}={port}", engine.port),
    ])
}

fn spawn(command: &mut Command) -> Result<Child> {
    command.spawn().with_context(|| format!("starting {}", command.get_program().to_string_lossy()))
}

/// Receives the launcher's first line; everything else of what it says goes to the log.
fn first_line(child: &mut Child, log: &EngineLog) -> Result<Receiver<String>> {
    let stdout = child.stdout.take().context("its stdout")?;
    log.follow(child.stderr.take().context("its stderr")?);
    let (sender, said) = channel();
    let own = log.clone();
    log.wait_for(std::thread::spawn(move || sort_out(stdout, &own, &sender)));
    Ok(said)
}

/// Hands on what the launcher says, and puts all else into the log, until the stream ends. Bytes that are no text end nothing:
/// a pipe that no one empties would stop the engine.
fn sort_out(stdout: impl Read, log: &EngineLog, sender: &Sender<String>) {
    for line in BufReader::new(stdout).split(b'\n') {
        let Ok(line) = line else { break };
        if line.starts_with(b"ready ") || line.starts_with(b"failed ") {
            let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
        } else {
            log.add(&[&line[..], b"\n"].concat());
        }
    }
}

fn port_of(name: &str, said: &Receiver<String>) -> Result<Option<u16>> {
    match said.try_recv() {
        Ok(line) => match line.strip_prefix("failed ") {
            Some(why) => bail!("{name} does not start: {why}"),
            None => {
                let port = line.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
                Ok(Some(port.with_context(|| format!("{name} said '{line}'"))?))
            }
        },
        // The exit status reports a launcher that has ended.
        Err(TryRecvError::Empty | TryRecvError::Disconnected) => Ok(None),
    }
}

/// Starts and stops a node once and has Java keep the classes that it loaded, in the form in which it wants them: a
/// start with them takes less than half the time of one without.
///
/// # Errors
/// When the node does not start, or the archive is not written.
pub fn archive_classes(engine: &JarEngine, java: &Java, folder: &Path) -> Result<()> {
    let data = DataFolder::new(None, engine.name)?;
    let log = EngineLog::create(&data.path.join(LOG_NAME))?;
    let archive = folder.join(ARCHIVE);
    let mut command = node(engine, java, folder, &data.path, 4 * HEAP_MIN_BYTES)?;
    command.arg(format!("-XX:ArchiveClassesAtExit={}", archive.display()));
    command.args(launcher(engine, folder, &data.path, 0)?);
    let mut running = Running { child: spawn(&mut command)?, gently: Signal::TERM };
    let said = first_line(&mut running.child, &log)?;
    let alive = running.child.stdin.take();
    let until_ns = now_ns() + FIRST_START.as_nanos() as u64;
    while port_of(engine.name, &said)?.is_none() {
        signals::go_on("while an engine started for the first time")?;
        let ended = wait_within(&mut running.child, LOOK_EVERY);
        if ended.is_some() || now_ns() > until_ns {
            bail!("it did not start: {}", log.last_words());
        }
    }
    // This is also the end that it takes when its parent dies.
    drop(alive);
    let until_ns = now_ns() + FIRST_START.as_nanos() as u64;
    while wait_within(&mut running.child, LOOK_EVERY).is_none() {
        signals::go_on("while an engine started for the first time")?;
        if now_ns() > until_ns {
            bail!("it did not end");
        }
    }
    if archive.is_file() { Ok(()) } else { bail!("Java wrote no archive: {}", log.last_words()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_launcher_says_is_told_from_what_the_engine_prints() {
        let dir = tempfile::tempdir().unwrap();
        let log = EngineLog::create(&dir.path().join("engine.log")).unwrap();
        let (sender, said) = channel();
        let printed = b"starting \xff\xfe\nready 127.0.0.1:5\nfailed X: na\xefve\nlast";
        sort_out(&printed[..], &log, &sender);
        assert_eq!(port_of("x", &said).unwrap(), Some(5));
        let told = port_of("x", &said).unwrap_err().to_string();
        assert_eq!(told, "x does not start: X: na\u{fffd}ve");
        assert_eq!(port_of("x", &said).unwrap(), None);
        assert_eq!(std::fs::read(log.path()).unwrap(), b"starting \xff\xfe\nlast\n");
    }
}
