//! Programs that are started, waited for with a limit, and never left behind.

mod ended;

pub use ended::{Ended, takes_a_processor};

use crate::machine::Share;
use plimsoll_core::clock::now_ns;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for a program that was not given a limit of its own.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// How long a program that nobody needs any more may take to end by itself.
const GENTLE_END: Duration = Duration::from_secs(3);

/// A folder for one test, in which programs run.
pub struct Place {
    dir: tempfile::TempDir,
    // Last: the folder is gone when somebody else begins.
    _share: Share,
}

impl Place {
    pub fn new() -> Self {
        let share = Share::part();
        Self { dir: tempfile::tempdir().unwrap(), _share: share }
    }

    /// For a test that keeps a core busy: fewer others run meanwhile.
    pub fn busy() -> Self {
        let share = Share::busy();
        Self { dir: tempfile::tempdir().unwrap(), _share: share }
    }

    /// For a test whose result depends on time, with a load that leaves most of a core idle: only others like it run meanwhile, two for
    /// each core.
    pub fn quiet() -> Self {
        let share = Share::quiet(false);
        Self { dir: tempfile::tempdir().unwrap(), _share: share }
    }

    /// The same for a test that takes more than half a minute: it begins before the short ones, which fit beside it.
    pub fn quiet_for_long() -> Self {
        let share = Share::quiet(true);
        Self { dir: tempfile::tempdir().unwrap(), _share: share }
    }

    /// For a test whose result depends on time and whose load takes the machine: no other test runs meanwhile.
    pub fn alone() -> Self {
        let share = Share::whole();
        Self { dir: tempfile::tempdir().unwrap(), _share: share }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file into the folder.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Writes a program into the folder. Another process writes it: a program that another test starts while the file is open for writing
    /// has it open, too, and until that one is executed the new one cannot be ("text file busy").
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        let mut shell = Command::new("sh");
        shell.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(&path);
        Running::start(shell, text.as_bytes()).wait(PATIENCE).expect(0);
        path
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.path().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The plimsoll binary under test, in this folder.
    pub fn plimsoll<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        self.program(env!("CARGO_BIN_EXE_plimsoll"), args)
    }

    pub fn program<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.path());
        let left_out =
            ["COLUMNS", "NO_COLOR", "VESPA_TLS_CONFIG_FILE", "PGPASSWORD", "VOLTDB_PASSWORD"];
        let of_others = ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGSSLMODE", "NATS_PASSWORD"];
        for variable in left_out.into_iter().chain(of_others) {
            command.env_remove(variable);
        }
        // Engines are installed beside the folders of the builds, and never into the user's own.
        command.env("PLIMSOLL_HOME", engines_home());
        command
    }

    /// Starts plimsoll.
    pub fn start<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Running {
        Running::start(self.plimsoll(args), b"")
    }

    /// Runs plimsoll to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ended {
        self.start(args).wait(PATIENCE)
    }

    /// Runs plimsoll to its end with something on its stdin.
    pub fn run_with_input<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> Ended {
        Running::start(self.plimsoll(args), input).wait(PATIENCE)
    }

    /// Serves an embedded target until dropped.
    pub fn serve(&self, args: &[&str]) -> Target {
        let mut all = vec!["serve"];
        all.extend(args);
        let running = self.start(all);
        // Real engines take longest, on a machine on which other tests run.
        let text = running.wait_for("ready ", Duration::from_secs(120));
        let line = text.lines().find(|line| line.starts_with("ready ")).unwrap().to_owned();
        Target::from_ready_line(running, &line)
    }
}

/// Where the tests keep real engines.
pub fn engines_home() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
    let target = binary.parent().and_then(Path::parent).unwrap();
    target.join("engines")
}

/// What was started, by its process.
pub struct Running {
    child: Child,
    shown: String,
    started_ns: u64,
    stdout: Captured,
    stderr: Captured,
}

/// A stream that a thread reads as it comes.
struct Captured {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Captured {
    fn new(mut stream: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let own = bytes.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(n) = stream.read(&mut buffer) {
                if n == 0 {
                    break;
                }
                own.lock().unwrap().extend_from_slice(&buffer[..n]);
            }
        });
        Self { bytes, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn all(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.text()
    }
}

impl Running {
    pub fn start(mut command: Command, input: &[u8]) -> Self {
        let shown = format!("{command:?}");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
        let started_ns = now_ns();
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{shown}: {e}"));
        if let Some(mut stdin) = child.stdin.take() {
            let input = input.to_vec();
            std::thread::spawn(move || {
                let _ = std::io::Write::write_all(&mut stdin, &input);
            });
        }
        let stdout = Captured::new(child.stdout.take().unwrap());
        let stderr = Captured::new(child.stderr.take().unwrap());
        Self { child, shown, started_ns, stdout, stderr }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// What it has started, and what that has started: ids and command lines.
    pub fn descendants(&self) -> Vec<(u32, String)> {
        let parents = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name in brackets may hold blanks and brackets itself.
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()?;
            Some((pid, parent))
        });
        let parents: Vec<(u32, u32)> = parents.collect();
        let mut found = vec![self.child.id()];
        let mut looked = 0;
        while let Some(parent) = found.get(looked).copied() {
            found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| pid));
            looked += 1;
        }
        let line = |pid: &u32| {
            let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (*pid, String::from_utf8_lossy(&bytes).replace('\0', " "))
        };
        found[1..].iter().map(line).collect()
    }

    /// Waits until it has started something whose command line holds `word`; returns the id.
    #[track_caller]
    pub fn wait_for_descendant(&self, word: &str, limit: Duration) -> u32 {
        let mut found = None;
        until(&format!("{}: a process with {word:?}", self.shown), limit, || {
            found =
                self.descendants().iter().find(|(_, line)| line.contains(word)).map(|one| one.0);
            // What has ended starts nothing more.
            found.is_some() || !lives(self.child.id())
        });
        found.unwrap_or_else(|| {
            panic!("{} ended without {word:?}\n{}", self.shown, self.stderr.text())
        })
    }

    pub fn has_ended(&mut self) -> bool {
        self.status_within(Duration::ZERO).is_some()
    }

    fn status_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let until_ns = now_ns() + limit.as_nanos() as u64;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            if now_ns() >= until_ns {
                return None;
            }
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Waits for the end.
    #[track_caller]
    pub fn wait(mut self, limit: Duration) -> Ended {
        let Some(status) = self.status_within(limit) else {
            panic!(
                "{} did not end within {limit:?}\n--- stdout\n{}\n--- stderr\n{}",
                self.shown,
                self.stdout.text(),
                self.stderr.text()
            );
        };
        Ended {
            code: status.code(),
            took: Duration::from_nanos(now_ns() - self.started_ns),
            stdout: self.stdout.all(),
            stderr: self.stderr.all(),
        }
    }

    /// Waits until stdout holds `text`; returns all of stdout so far.
    #[track_caller]
    pub fn wait_for(&self, text: &str, limit: Duration) -> String {
        let until_ns = now_ns() + limit.as_nanos() as u64;
        loop {
            let so_far = self.stdout.text();
            if so_far.contains(text) {
                return so_far;
            }
            assert!(
                now_ns() < until_ns,
                "{}: no {text:?} in {so_far:?} within {limit:?}\n--- stderr\n{}",
                self.shown,
                self.stderr.text()
            );
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// What it has said on stderr so far.
    pub fn stderr_so_far(&self) -> String {
        self.stderr.text()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Most memory resident so far, bytes; `None` when the process has ended.
    pub fn memory_peak_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(kib * 1024)
    }
}

impl Drop for Running {
    /// Asks it to end first: what is killed leaves its temporary folder behind.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(rustix::process::Signal::TERM);
            let limit_ns = now_ns() + GENTLE_END.as_nanos() as u64;
            while matches!(self.child.try_wait(), Ok(None)) && now_ns() < limit_ns {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// An embedded target in a process of its own; killed when dropped.
pub struct Target {
    pub process: Running,
    pub url: String,
    /// The addresses of all its front ends; the first is `url`.
    pub urls: Vec<String>,
    pub host: String,
    pub port: u16,
}

impl Target {
    fn from_ready_line(process: Running, line: &str) -> Self {
        // The rank target names its address twice: for frames, then for HTTP.
        let is_known = |word: &&str| {
            ["http://", "postgres://", "volt://", "nats://", "tls://"]
                .iter()
                .any(|scheme| word.starts_with(scheme))
        };
        let urls: Vec<_> = line.split(' ').filter(is_known).map(str::to_owned).collect();
        let url = urls.first().unwrap_or_else(|| panic!("ready line {line:?}")).clone();
        let (_, address) = url.split_once("://").unwrap();
        let (host, port) = address.rsplit_once(':').unwrap();
        Self { process, host: host.to_owned(), port: port.parse().unwrap(), url, urls }
    }

    /// What the target says of itself.
    pub fn stats(&self) -> serde_json::Value {
        let (status, body) = curl(&[&format!("{}/_stats", self.url)]);
        assert_eq!(status, 200);
        serde_json::from_str(&body).unwrap()
    }
}

/// Where a real program is; a missing one fails the test with the way to install it.
pub fn find_program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(more)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{name} is not installed; run: make test-tools"))
}

/// Asks with curl; returns status and body.
#[track_caller]
pub fn curl(args: &[&str]) -> (u16, String) {
    let mut command = Command::new(find_program("curl"));
    command.args(["-sS", "--max-time", "20", "-w", "\n%{http_code}"]).args(args);
    let ended = Running::start(command, b"").wait(Duration::from_secs(30)).expect(0);
    let (body, status) = ended.stdout.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), body.to_owned())
}

/// Share of the processors' time that the host gave to others while `during` ran, 0 to 1: what is measured
/// meanwhile says more of the host than of plimsoll.
pub fn stolen_while<T>(during: impl FnOnce() -> T) -> (T, f64) {
    // user, nice, system, idle, iowait, irq, softirq, steal
    let times = || -> Vec<u64> {
        let text = std::fs::read_to_string("/proc/stat").unwrap();
        let first = text.lines().next().unwrap();
        first.split_whitespace().skip(1).take(8).map(|time| time.parse().unwrap()).collect()
    };
    let before = times();
    let done = during();
    let passed: Vec<u64> = times().iter().zip(&before).map(|(to, from)| to - from).collect();
    (done, passed[7] as f64 / passed.iter().sum::<u64>().max(1) as f64)
}

/// False once a process has ended, whether or not it was waited for.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits until these processes are gone; one that has ended and was not waited for is gone, too.
#[track_caller]
pub fn expect_gone(processes: &[(u32, String)]) {
    for (pid, line) in processes {
        until(&format!("the end of {line}"), Duration::from_secs(10), || !lives(*pid));
    }
}

/// Waits until `condition` holds.
#[track_caller]
pub fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let until_ns = now_ns() + limit.as_nanos() as u64;
    while !condition() {
        assert!(now_ns() < until_ns, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(3));
    }
}
