//! A program until its end: how long it took, the most memory it had, and what it printed.

use plimsoll_core::clock::now_ns;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of each stream that are kept; the rest is counted.
const OUTPUT_BYTES_KEPT: usize = 4 << 20;

/// A program that has ended.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// True if it had not ended within its limit, and was killed.
    pub was_killed: bool,
    /// Time from its start to its end.
    pub took: Duration,
    /// Most memory that was resident, bytes (`VmHWM`, looked at every 2 ms).
    pub peak_bytes: u64,
    /// The beginning of its output and of its errors.
    pub output: String,
    /// Bytes of output and errors.
    pub output_bytes: u64,
}

/// Runs a program to its end, or kills it after `limit`. Time in which it was ready and other programs had the processors does not
/// count, up to four times the limit: it is no fault of the program.
///
/// # Errors
/// When it cannot be started.
pub fn run(command: Command, limit: Duration) -> std::io::Result<Ended> {
    run_until(command, limit, None)
}

/// The same; the program is interrupted (SIGINT) after a time.
///
/// # Errors
/// When it cannot be started.
pub fn run_until(
    mut command: Command,
    limit: Duration,
    interrupt: Option<Duration>,
) -> std::io::Result<Ended> {
    let start_ns = now_ns();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let streams = (child.stdout.take().map(keep), child.stderr.take().map(keep));
    let mut ended = reap(&mut child, start_ns, limit, interrupt)?;
    for stream in [streams.0, streams.1].into_iter().flatten() {
        let (bytes, count) = stream.join().unwrap_or_default();
        ended.output += &String::from_utf8_lossy(&bytes);
        ended.output_bytes += count;
    }
    Ok(ended)
}

/// Waits for the end of a child and looks at its memory meanwhile. The system's figure for a child that has ended begins with
/// the memory of the process that started it, and says nothing of a small child of a large one.
fn reap(
    child: &mut Child,
    start_ns: u64,
    limit: Duration,
    mut interrupt: Option<Duration>,
) -> std::io::Result<Ended> {
    let mut ended = Ended::default();
    loop {
        ended.peak_bytes = ended.peak_bytes.max(peak_bytes(child.id()));
        let status = child.try_wait()?;
        ended.took = Duration::from_nanos(now_ns() - start_ns);
        if let Some(status) = status {
            ended.code = status.code();
            return Ok(ended);
        }
        if interrupt.is_some_and(|after| ended.took > after) {
            interrupt = None;
            if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
                kill_process(pid, Signal::INT)?;
            }
        }
        if ended.took > limit && !ended.was_killed && is_over(child.id(), ended.took, limit) {
            ended.was_killed = true;
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// True if a program has taken longer than its limit, without the time in which it waited for a processor.
fn is_over(pid: u32, took: Duration, limit: Duration) -> bool {
    took.saturating_sub(waited_for_processor(pid).min(4 * limit)) > limit
}

/// Time for which a process was ready and had no processor: that of the thread that waited longest. Zero where the system does not
/// count it.
fn waited_for_processor(pid: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let waited_ns = threads.filter_map(|thread| {
        // Time on a processor, time waiting for one, turns: nanoseconds, and a number.
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(waited_ns.max().unwrap_or_default())
}

/// Most memory of a running process that was resident so far, bytes; 0 if it has ended, or has not yet taken the place of the
/// process that started it: for a moment behind its start it has the memory of that one.
#[must_use]
pub fn peak_bytes(pid: u32) -> u64 {
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    if program(&pid.to_string()).is_none_or(|own| Some(own) == program("self")) {
        return 0;
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(0, |kib| kib << 10)
}

fn keep(mut stream: impl Read + Send + 'static) -> JoinHandle<(Vec<u8>, u64)> {
    std::thread::spawn(move || {
        let (mut kept, mut count, mut buffer) = (Vec::new(), 0, [0; 16_384]);
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            count += read as u64;
            let room = OUTPUT_BYTES_KEPT.saturating_sub(kept.len()).min(read);
            kept.extend_from_slice(&buffer[..room]);
        }
        (kept, count)
    })
}

/// The first character that could steer a terminal or reorder what is read on it, with the text around it; `None` if there is
/// none.
#[must_use]
pub fn unprintable(text: &str) -> Option<String> {
    let reorders = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || reorders(c);
    let (at, _) = text.char_indices().find(|&(_, c)| is_bad(c))?;
    let from = text[..at].char_indices().rev().nth(40).map_or(0, |(from, _)| from);
    Some(text[from..].chars().take(90).flat_map(char::escape_default).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_program_is_its_own() {
        // Most of this process, which the child has nothing of.
        let large = std::hint::black_box(vec![1u8; 200 << 20]);
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "x=$(head -c 30000000 /dev/zero | tr '\\0' a); echo ${#x}; echo bad >&2; exit 3",
        ]);
        let ended = run(command, Duration::from_secs(60)).unwrap();
        assert_eq!((ended.code, ended.was_killed), (Some(3), false));
        assert_eq!(ended.output, "30000000\nbad\n");
        assert!((30 << 20..200 << 20).contains(&ended.peak_bytes), "{ended:?}");
        drop(large);
    }

    #[test]
    fn the_memory_of_the_process_that_starts_a_program_is_not_the_programs() {
        // What a child has until its program is there: this one's.
        assert_eq!(peak_bytes(std::process::id()), 0);
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let mut command = Command::new("sleep");
        command.arg("100");
        let ended = run(command, Duration::from_millis(50)).unwrap();
        assert!(ended.was_killed && ended.code.is_none());
    }

    #[test]
    fn time_in_which_others_have_the_processors_is_not_the_programs() {
        // Eight loops for each processor, of which one is watched: it has a small part of a processor.
        let cores = std::thread::available_parallelism().unwrap().get();
        let limit = Duration::from_millis(200);
        let mut loops: Vec<Child> = (0..8 * cores)
            .map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
            .collect();
        std::thread::sleep(Duration::from_secs(1));
        let waited = waited_for_processor(loops[0].id());
        let is_over = is_over(loops[0].id(), Duration::from_secs(1), limit);
        for child in &mut loops {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(waited > Duration::from_millis(500), "waited only {waited:?}");
        assert!(!is_over || waited < Duration::from_millis(800), "waited {waited:?}");
    }

    #[test]
    fn control_characters_and_marks_that_reorder_text_are_found() {
        assert_eq!(unprintable("a\n\tb é"), None);
        assert_eq!(unprintable("x\u{1b}[2J").as_deref(), Some("x\\u{1b}[2J"));
        assert_eq!(unprintable("\u{202e}x").as_deref(), Some("\\u{202e}x"));
        assert!(unprintable("a\rb").is_some() && unprintable("\u{85}").is_some());
    }
}
