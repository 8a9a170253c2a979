use super::*;
use crate::subject::{Identity, Roots};
use std::fs;

/// Ticks of a process that is as old as the machine, and of one that begins after the look before.
const OLD: u64 = 1;
const NEW: u64 = u64::MAX / 2;

/// A folder like `/proc` whose processes say what a test wants.
struct Proc(tempfile::TempDir);

/// A process of it.
#[derive(Clone, Copy)]
struct Process {
    pid: u32,
    parent: u32,
    comm: &'static str,
    started: u64,
    user_ticks: u64,
    children_ticks: u64,
    read_bytes: u64,
    switches: u64,
}

const SHELL: Process = Process {
    pid: 10,
    parent: 1,
    comm: "shell",
    started: OLD,
    user_ticks: 100,
    children_ticks: 0,
    read_bytes: 0,
    switches: 5,
};

impl Proc {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, one: Process) {
        let folder = self.0.path().join(one.pid.to_string());
        let task = folder.join("task").join(one.pid.to_string());
        fs::create_dir_all(&task).unwrap();
        let Process { pid, parent, comm, started, user_ticks, children_ticks, .. } = one;
        // Every process has page faults; so have its ended children.
        let child_faults = 10 * children_ticks;
        let stat = format!(
            "{pid} ({comm}) S {parent} 0 0 0 0 0 1 {child_faults} 0 0 {user_ticks} 0 {children_ticks} 0 0 0 1 0 \
             {started} 0 7 0\n"
        );
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("cmdline"), format!("/bin/{comm}\0-x\0")).unwrap();
        let io = format!(
            "rchar: 1\nread_bytes: {}\nwrite_bytes: 9\ncancelled_write_bytes: 9\n",
            one.read_bytes
        );
        fs::write(folder.join("io"), io).unwrap();
        let status = format!(
            "Name:\tx\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t1\n",
            one.switches
        );
        fs::write(task.join("status"), status).unwrap();
    }

    fn end(&self, pid: u32) {
        fs::remove_dir_all(self.0.path().join(pid.to_string())).unwrap();
    }

    fn processes(&self) -> Processes {
        Processes::new(self.0.path())
    }
}

fn subject(name: &str, roots: Roots) -> Subject {
    Subject { name: name.to_owned(), found_by: String::new(), program: String::new(), roots }
}

fn of(one: Process) -> Roots {
    Roots::Processes(vec![Identity { pid: one.pid, started_ticks: one.started }])
}

/// CPU time of the stretch, ticks of a hundredth of a second.
fn ticks(used: &Used) -> Option<f64> {
    used.second.cpu_user_s.map(|seconds| (seconds * 100.0).round())
}

#[test]
fn the_first_look_gives_levels_and_the_next_one_differences() {
    let proc = Proc::new();
    proc.put(SHELL);
    let (subjects, mut processes) = ([subject("a", of(SHELL))], proc.processes());
    let first = processes.look(&subjects).remove(0);
    assert_eq!((first.second.processes, first.second.threads), (Some(1), Some(1)));
    assert!(first.second.rss_bytes.is_some_and(|bytes| bytes > 0));
    assert_eq!((ticks(&first), first.second.disk_read_bytes), (None, None));
    proc.put(Process { user_ticks: 130, read_bytes: 4096, switches: 8, ..SHELL });
    let second = processes.look(&subjects).remove(0);
    assert_eq!(ticks(&second), Some(30.0));
    assert_eq!(second.second.disk_read_bytes, Some(4096));
    assert_eq!(second.second.disk_written_bytes, Some(0));
    let switches = (second.second.voluntary_switches, second.second.involuntary_switches);
    assert_eq!(switches, (Some(3), Some(0)));
    assert_eq!(second.roots, [10]);
}

/// A child belongs to the process that started it, whole from its beginning, unless it is watched itself.
#[test]
fn a_process_includes_those_that_it_started() {
    let proc = Proc::new();
    proc.put(SHELL);
    let mut processes = proc.processes();
    let subjects = [subject("a", of(SHELL)), subject("b", Roots::Named("server".to_owned()))];
    processes.look(&subjects);
    let child =
        Process { pid: 11, parent: 10, comm: "worker", started: NEW, user_ticks: 20, ..SHELL };
    let server = Process { pid: 12, comm: "server", user_ticks: 50, ..child };
    // Of a process that no one watches nothing is counted.
    let other = Process { pid: 13, parent: 1, comm: "other", user_ticks: 900, ..child };
    [child, server, other].into_iter().for_each(|one| proc.put(one));
    let used = processes.look(&subjects);
    assert_eq!((ticks(&used[0]), ticks(&used[1])), (Some(20.0), Some(50.0)));
    assert_eq!((used[0].second.processes, used[1].second.processes), (Some(2), Some(1)));
    assert_eq!((&used[0].roots[..], &used[1].roots[..]), (&[10][..], &[12][..]));
    // The child of a child; and one whose parent has ended stays where it belongs.
    proc.put(Process { pid: 14, parent: 11, user_ticks: 7, ..child });
    assert_eq!(ticks(&processes.look(&subjects)[0]), Some(7.0));
    proc.end(11);
    proc.put(Process { pid: 14, parent: 1, user_ticks: 10, ..child });
    let used = processes.look(&subjects);
    assert_eq!((ticks(&used[0]), used[0].second.processes), (Some(3.0), Some(2)));
}

/// A child that ended adds to the sums of its parent what was counted for it already, and what was not.
#[test]
fn an_ended_child_is_counted_once() {
    let proc = Proc::new();
    let child = Process { pid: 11, parent: 10, user_ticks: 400, ..SHELL };
    [SHELL, child].into_iter().for_each(|one| proc.put(one));
    let (subjects, mut processes) = ([subject("a", of(SHELL))], proc.processes());
    processes.look(&subjects);
    // It used 5 more before it ended; another one began, used 30 and ended in between.
    proc.end(11);
    proc.put(Process { children_ticks: 435, read_bytes: 0, ..SHELL });
    assert_eq!(ticks(&processes.look(&subjects)[0]), Some(35.0));
    assert_eq!(ticks(&processes.look(&subjects)[0]), Some(0.0));
    // The parent waits for one only after the look.
    let late = Process { pid: 12, parent: 10, started: NEW, user_ticks: 50, ..SHELL };
    proc.put(late);
    proc.put(Process { children_ticks: 435, ..SHELL });
    assert_eq!(ticks(&processes.look(&subjects)[0]), Some(50.0));
    proc.end(12);
    assert_eq!(ticks(&processes.look(&subjects)[0]), Some(0.0));
    proc.put(Process { children_ticks: 486, ..SHELL });
    assert_eq!(ticks(&processes.look(&subjects)[0]), Some(1.0));
}

/// Engines that the watching process starts one after the other are one thing, and the process itself is another.
#[test]
fn what_a_process_starts_is_a_thing_of_its_own() {
    let proc = Proc::new();
    proc.put(SHELL);
    let subjects = [subject("engines", Roots::StartedBy(SHELL.pid)), subject("own", of(SHELL))];
    let mut processes = proc.processes();
    assert_eq!(processes.look(&subjects)[0].second.processes, Some(0));
    let engine = Process { pid: 11, parent: SHELL.pid, started: NEW, user_ticks: 7, ..SHELL };
    [engine, Process { pid: 12, parent: 11, ..engine }].into_iter().for_each(|one| proc.put(one));
    let used = processes.look(&subjects);
    assert_eq!((ticks(&used[0]), ticks(&used[1])), (Some(14.0), Some(0.0)));
    assert_eq!((used[0].second.processes, used[1].second.processes), (Some(2), Some(1)));
}

#[test]
fn a_name_follows_a_restart_and_a_number_does_not() {
    let proc = Proc::new();
    let server = Process { comm: "server", ..SHELL };
    proc.put(server);
    let mut processes = proc.processes();
    let subjects = [subject("pid", of(server)), subject("name", Roots::Named("server".to_owned()))];
    processes.look(&subjects);
    proc.end(10);
    let used = processes.look(&subjects);
    for used in &used {
        assert_eq!(used.second.processes, Some(0));
        assert_eq!((ticks(used), used.second.rss_bytes), (None, None), "gone is not zero");
    }
    proc.put(Process { pid: 20, started: NEW, user_ticks: 4, ..server });
    let used = processes.look(&subjects);
    assert_eq!((used[0].second.processes, used[1].second.processes), (Some(0), Some(1)));
    assert_eq!((ticks(&used[0]), ticks(&used[1])), (None, Some(4.0)));
    // The number of a process that was watched, given to another one.
    proc.end(20);
    proc.put(Process { started: NEW, comm: "other", ..SHELL });
    let used = processes.look(&subjects);
    assert_eq!((used[0].second.processes, used[1].second.processes), (Some(0), Some(0)));
}

/// Between `fork` and `exec` a process has the name of its parent.
#[test]
fn a_process_that_becomes_another_program_is_found_at_the_next_look() {
    let proc = Proc::new();
    let subjects = [subject("name", Roots::Named("server".to_owned()))];
    let mut processes = proc.processes();
    let forked = Process { started: NEW, ..SHELL };
    proc.put(forked);
    assert_eq!(processes.look(&subjects)[0].second.processes, Some(0));
    proc.put(Process { comm: "server", ..forked });
    assert_eq!(processes.look(&subjects)[0].second.processes, Some(1));
}

#[test]
fn a_file_that_cannot_be_read_leaves_its_figures_unknown_with_the_reason() {
    let proc = Proc::new();
    proc.put(SHELL);
    let (subjects, mut processes) = ([subject("a", of(SHELL))], proc.processes());
    processes.look(&subjects);
    fs::remove_file(proc.0.path().join("10/io")).unwrap();
    fs::remove_dir_all(proc.0.path().join("10/task")).unwrap();
    let used = processes.look(&subjects).remove(0);
    assert_eq!((used.second.disk_read_bytes, used.second.voluntary_switches), (None, None));
    assert_eq!(ticks(&used), Some(0.0));
    let why = |name: &str| {
        let found = used.unknown.iter().find(|(one, _)| *one == name);
        found.map(|(_, why)| why.clone()).unwrap_or_default()
    };
    assert!(why("disk_read_bytes").contains("/proc/PID/io cannot be read"), "{used:?}");
    assert!(why("voluntary_switches").contains("task/TID/status"), "{used:?}");
    assert!(why("network_sent_bytes").contains("ns/net"), "{used:?}");
}

/// The CPU time of a real shell is that of the short processes which it starts.
#[test]
fn short_processes_of_a_real_shell_are_counted() {
    let script = "while :; do (i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done); done";
    let mut shell = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
    let mut files = ProcessFiles::new(Path::new("/proc"));
    let started_ticks = files.stat(shell.id()).unwrap().started_ticks;
    let roots = Roots::Processes(vec![Identity { pid: shell.id(), started_ticks }]);
    let (subjects, mut processes) = ([subject("shell", roots)], Processes::new(Path::new("/proc")));
    processes.look(&subjects);
    let cpu_before = cpu_of_children(&mut files, shell.id());
    let mut sum = 0.0;
    for _ in 0..5 {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let used = processes.look(&subjects).remove(0).second;
        sum += used.cpu_user_s.unwrap() + used.cpu_system_s.unwrap();
    }
    let cpu = (cpu_of_children(&mut files, shell.id()) - cpu_before) as f64 / 100.0;
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert!(cpu > 0.1, "{cpu} s: the machine gave it no time");
    assert!((sum - cpu).abs() < 0.1 + 0.2 * cpu, "{sum} s of {cpu} s");
}

fn cpu_of_children(files: &mut ProcessFiles, pid: u32) -> u64 {
    let stat = files.stat(pid).unwrap();
    [stat.own, stat.children].iter().map(|one| one.user_ticks + one.system_ticks).sum()
}
