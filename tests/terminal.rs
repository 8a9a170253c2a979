//! What a person sees on a terminal: a pseudo-terminal takes the bytes, and an emulator says what stands on the screen.

use crate::process::Place;
use crate::server::{Server, Step, reply};
use plimsoll_core::clock::now_ns;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use vt100::Parser;

/// The line before the program's own, which must stay.
const PROMPT: &str = "$ plimsoll";
const ROWS: u16 = 40;
const LONG: Duration = Duration::from_secs(60);

/// A program whose output is on a terminal.
struct Shown {
    child: Child,
    terminal: Arc<OwnedFd>,
    screen: Arc<Mutex<Parser>>,
    /// All bytes.
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

fn size(columns: u16) -> Winsize {
    Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Shown {
    /// Starts a command on a terminal of so many columns; `stdout` elsewhere if it is given.
    fn start(mut command: Command, columns: u16, stdout: Option<File>) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        tcsetwinsize(&terminal, size(columns)).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let end = || File::options().read(true).write(true).open(&name).unwrap();
        command.stdin(Stdio::null()).stderr(end());
        command.stdout(stdout.unwrap_or_else(end));
        command.env("TERM", "xterm-256color");
        let child = command.spawn().unwrap();
        // The command holds the other end too, and with it the terminal would never say that all have gone.
        drop(command);
        let mut parser = Parser::new(ROWS, columns, 0);
        parser.process(format!("{PROMPT}\r\n").as_bytes());
        let (screen, bytes) = (Arc::new(Mutex::new(parser)), Arc::new(Mutex::new(Vec::new())));
        let (own_screen, own_bytes) = (screen.clone(), bytes.clone());
        let mut from = File::from(terminal.try_clone().unwrap());
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            // An error says that nobody writes any more.
            while let Ok(n @ 1..) = from.read(&mut chunk) {
                own_screen.lock().unwrap().process(&chunk[..n]);
                own_bytes.lock().unwrap().extend(&chunk[..n]);
            }
        });
        Self { child, terminal: Arc::new(terminal), screen, bytes, reader }
    }

    /// The rows that have something on them, and where the cursor is.
    fn rows(&self) -> (Vec<String>, (u16, u16)) {
        let screen = self.screen.lock().unwrap();
        let columns = screen.screen().size().1;
        let mut rows: Vec<String> =
            screen.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        (rows, screen.screen().cursor_position())
    }

    /// Waits until the line below the prompt has this on it, and returns it.
    fn line_with(&self, what: &str) -> String {
        let begin = now_ns();
        loop {
            let (rows, cursor) = self.rows();
            if let [prompt, line] = &rows[..]
                && line.contains(what)
            {
                assert_eq!(prompt, PROMPT, "nothing scrolls: {rows:?}");
                // The cursor rests at the beginning of the line, but for the moment in which the line is written.
                if cursor == (1, 0) {
                    return line.clone();
                }
            }
            let waits = now_ns() - begin < LONG.as_nanos() as u64;
            assert!(waits, "no '{what}' with the cursor at rest in {rows:?}, cursor {cursor:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn resize(&self, columns: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(ROWS, columns);
        tcsetwinsize(&*self.terminal, size(columns)).unwrap();
    }

    fn interrupt(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
    }

    /// Waits for the end; the rows that are left.
    fn end(mut self) -> (ExitStatus, Vec<String>) {
        let begin = now_ns();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if now_ns() - begin > LONG.as_nanos() as u64 {
                self.child.kill().unwrap();
                panic!("it does not end: {:?}", self.rows());
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        while !self.reader.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        (status, self.rows().0)
    }
}

/// The text of each time that the line was drawn.
fn drawn(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let drawn = text.split("\x1b[J").filter_map(|piece| piece.rsplit('\r').next());
    drawn.filter(|text| text.contains("/5s")).map(str::to_owned).collect()
}

fn load(place: &Place, url: &str, more: &[&str]) -> Command {
    let args = ["load", url, "--rate", "200", "--duration", "5s", "--slo", "p95=2s"];
    place.plimsoll([&args[..], more].concat())
}

#[test]
fn one_line_shows_the_state_and_nothing_of_it_is_left() {
    let place = Place::busy();
    let target = place.serve(&["null"]);
    for columns in [60, 120] {
        let shown =
            Shown::start(load(&place, &target.url, &["--max-failed", "100%"]), columns, None);
        let line = shown.line_with("3s/5s");
        for part in ["/s  p50", "p99", "failed 0"] {
            assert!(line.contains(part), "no {part} at {columns}: {line}");
        }
        // Other programs may have the generator's core.
        let verdicts = ["valid", "generator-limited", "missing p95"];
        assert!(verdicts.iter().any(|word| line.contains(word)), "{line}");
        assert_eq!(line.contains('['), columns > 100, "the bar: {line}");
        assert!(line.chars().count() < usize::from(columns), "{line}");
        let bytes = shown.bytes.clone();
        let (_, rows) = shown.end();
        // A line once a second is calm.
        let redrawn = drawn(&bytes.lock().unwrap()).len();
        assert!(redrawn < 20, "drawn {redrawn} times in 5 s");
        assert_eq!(rows[0], PROMPT);
        assert!(rows[1].starts_with("Result     "), "{rows:?}");
        let all = rows.join("\n");
        assert!(!all.contains("so far") && !all.contains("5s/5s"), "{all}");
        assert!(all.contains("Latency, ms") && all.contains("Record "), "{all}");
    }
}

/// The page has the width of the terminal whatever the environment says.
#[test]
fn the_terminal_knows_its_width_better_than_the_environment() {
    let (place, server) = (Place::new(), Server::ok());
    let args = ["load", &server.url(), "--clients", "1", "--requests", "20", "--quiet"];
    place.run(args);
    let widest = |columns: u16, told: Option<&str>| {
        let mut command = place.plimsoll(["report", "--verbose"]);
        if let Some(told) = told {
            command.env("COLUMNS", told);
        }
        let (status, rows) = Shown::start(command, columns, None).end();
        assert_eq!(status.code(), Some(0));
        let is_free = |row: &&String| !row.contains('/');
        rows.iter().filter(is_free).map(|row| row.chars().count()).max().unwrap()
    };
    let (narrow, wide) = (widest(60, Some("200")), widest(120, Some("60")));
    assert!(narrow <= 60 && wide > 75, "{narrow}, {wide}");
    // Without a terminal, COLUMNS counts, and 100 otherwise.
    let piped = |told: Option<&str>| {
        let mut command = place.plimsoll(["report", "--verbose"]);
        if let Some(told) = told {
            command.env("COLUMNS", told);
        }
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        text.lines().filter(|line| !line.contains('/')).map(|line| line.chars().count()).max()
    };
    assert!(piped(Some("60")) <= Some(60) && piped(None) <= Some(100), "{:?}", piped(None));
    assert!(piped(None) > Some(75), "{:?}", piped(None));
}

#[test]
fn the_line_follows_the_terminal_and_leaves_nothing_where_it_was_broken() {
    let place = Place::busy();
    let target = place.serve(&["null"]);
    let out = File::create(place.path().join("out")).unwrap();
    let shown = Shown::start(load(&place, &target.url, &[]), 120, Some(out));
    let wide = shown.line_with("2s/5s");
    shown.resize(60);
    let narrow = shown.line_with("4s/5s");
    assert!(wide.contains('[') && !narrow.contains('['), "{wide}\n{narrow}");
    assert!(narrow.chars().count() < 60 && narrow.contains("failed 0"), "{narrow}");
    let bytes = shown.bytes.clone();
    let (_, rows) = shown.end();
    // Only the outcome is said on stderr, and only one that is not fine.
    assert!(rows.len() == 1 || rows[1].starts_with("plimsoll: "), "{rows:?}");
    // Terminals that break a line which has become too long keep the cursor at its beginning.
    let drawn = drawn(&bytes.lock().unwrap());
    let long = drawn.iter().max_by_key(|line| line.chars().count()).unwrap();
    let short = drawn.last().unwrap();
    assert!(long.chars().count() > 60, "{long}");
    let mut broken = Parser::new(ROWS, 60, 0);
    broken.process(format!("{PROMPT}\r\n{long}\x1b[1A").as_bytes());
    broken.process(format!("\r{short}\x1b[J\r").as_bytes());
    assert_eq!(broken.screen().contents().trim_end(), format!("{PROMPT}\n{short}"));
}

#[test]
fn failures_and_the_verdict_are_those_so_far() {
    let server = Server::start(|_| vec![Step::Send(reply(500, "", b"no"))]);
    let place = Place::new();
    let out = File::create(place.path().join("out")).unwrap();
    let args = ["load", &server.url(), "--rate", "100", "--duration", "20s"];
    let shown = Shown::start(place.plimsoll(args), 100, Some(out));
    let line = shown.line_with("failing");
    let failed = |line: &str| -> u64 {
        let rest = line.split("failed ").nth(1).unwrap();
        rest.split_whitespace().next().unwrap().replace(',', "").parse().unwrap()
    };
    let before = failed(&line);
    let line = shown.line_with("5s/20s");
    assert!(failed(&line) > before.max(300), "{before}, then {line}");
    shown.interrupt();
    let (status, rows) = shown.end();
    assert!(matches!(status.code(), Some(3 | 4)), "{status}");
    assert!(rows[1].starts_with("plimsoll: ") && !rows.join(" ").contains("so far"), "{rows:?}");
}

/// A search has its phases on the line; what it finds scrolls only for those who ask.
#[test]
fn a_search_shows_its_phase_on_the_same_line() {
    let place = Place::busy();
    let target = place.serve(&["queue", "--servers", "4", "--service", "exponential:5ms"]);
    let out = || File::create(place.path().join("out")).unwrap();
    let args = ["seek", &target.url, "--slo", "p95=100ms", "--budget", "8s", "--max-rate", "60"];
    let shown = Shown::start(place.plimsoll(args), 120, Some(out()));
    let line = shown.line_with("ramp");
    assert!(line.contains("/8s") && line.contains("p95") && line.contains("failed 0"), "{line}");
    let (_, rows) = shown.end();
    assert!(rows.len() == 1 || rows[1].starts_with("plimsoll: "), "{rows:?}");
    let shown =
        Shown::start(place.plimsoll([&args[..], &["--verbose"]].concat()), 120, Some(out()));
    let (_, rows) = shown.end();
    assert!(rows.iter().any(|row| row.contains("ramp: doubling the rate")), "{rows:?}");
    assert!(!rows.join("\n").contains("[="), "{rows:?}");
}

#[test]
fn quiet_shows_nothing_on_a_terminal_either() {
    let (place, server) = (Place::new(), Server::ok());
    let out = File::create(place.path().join("out")).unwrap();
    let args = ["load", &server.url(), "--rate", "20", "--duration", "2s", "--quiet"];
    let shown = Shown::start(place.plimsoll(args), 80, Some(out));
    let bytes = shown.bytes.clone();
    let (_, rows) = shown.end();
    assert!(rows.len() == 1 || rows[1].starts_with("plimsoll: "), "{rows:?}");
    assert!(!bytes.lock().unwrap().contains(&0x1b));
}
