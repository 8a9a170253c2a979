//! Systems that do not have the newer system calls: a filter of the kernel takes them away from the program.

use crate::process::{PATIENCE, Place, Running};
use crate::record::Record;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The first system call that came after Linux 4.8, on x86_64; on aarch64 those are from 288 on.
const FIRST_NEW: u32 = if cfg!(target_arch = "x86_64") { 329 } else { 288 };
/// `epoll_pwait2`, on all processors.
const EPOLL_PWAIT2: u32 = 441;

/// Takes system calls away from a command: those from `first` to `last` fail with `errno`.
fn without_calls(command: &mut Command, first: u32, last: u32, errno: i32) {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let return_of = |value| step(libc::BPF_RET | libc::BPF_K, 0, 0, value);
    let filter = [
        // The number of the call.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 2, first),
        step(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 1, 0, last),
        return_of(libc::SECCOMP_RET_ERRNO | errno as u32),
        return_of(libc::SECCOMP_RET_ALLOW),
    ];
    let install = move || {
        let mut filter = filter;
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: both calls only read what is on this stack, and are allowed between fork and exec.
        let done = unsafe {
            let (yes, no, mode) = (
                1 as libc::c_ulong,
                0 as libc::c_ulong,
                libc::c_ulong::from(libc::SECCOMP_MODE_FILTER),
            );
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, no, no, no) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, mode, &program) == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: it allocates nothing and takes no lock.
    unsafe { command.pre_exec(install) };
}

/// Starts plimsoll with these words and without those calls.
fn start(place: &Place, words: &[&str], first: u32, last: u32, errno: i32) -> Running {
    let mut command = place.plimsoll(words);
    without_calls(&mut command, first, last, errno);
    Running::start(command, b"")
}

/// Loads each server, both without some system calls.
fn serves_and_loads(first: u32, last: u32, errno: i32) {
    let place = Place::new();
    for server in ["null", "queue", "search"] {
        let running = start(&place, &["serve", server], first, last, errno);
        let text = running.wait_for("ready ", PATIENCE);
        let url = text.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        for flags in
            [&["--rate", "200", "--duration", "1s"][..], &["--clients", "4", "--requests", "400"]]
        {
            let words = [&["load", url], flags, &["--no-record", "--json", "-"]].concat();
            let ended = start(&place, &words, first, last, errno).wait(PATIENCE);
            let record = Record::of(&ended);
            assert_eq!(record.ok(), record.sent(), "{server}: {}", ended.stderr);
            assert!(record.ok() >= 150, "{server}: {}", record.0["ledger"]);
        }
    }
    let words = ["voter", "VSD", "--calls", "300", "--no-record", "--json", "-"];
    let record = Record::of(&start(&place, &words, first, last, errno).wait(PATIENCE));
    assert!(record.ok() > 0 && record.ok() == record.sent(), "{}", record.0["ledger"]);
}

#[test]
fn a_system_of_2016_is_enough() {
    serves_and_loads(FIRST_NEW, u32::MAX, libc::ENOSYS);
}

#[test]
fn a_sandbox_that_forbids_epoll_pwait2_is_enough() {
    serves_and_loads(EPOLL_PWAIT2, EPOLL_PWAIT2, libc::EPERM);
}
