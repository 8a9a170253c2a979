//! Waiting for the events of an epoll set, exact to the nanosecond on Linux of any age.

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::sync::atomic::{AtomicBool, Ordering};

/// True if this system does not have `epoll_pwait2`.
static IS_OLD: AtomicBool = AtomicBool::new(false);

/// Waits, and puts what happened into `events`, as many as it has room for without growing; without a timeout, until something
/// happens.
///
/// Linux 5.11 and later have `epoll_pwait2` for it. Before that, and where a sandbox forbids the call, `ppoll` waits for the set
/// itself, which is as exact and costs a system call more.
///
/// # Errors
/// Those of `epoll_wait`, with `events` empty.
pub fn wait(
    set: impl AsFd,
    events: &mut Vec<Event>,
    timeout: Option<&Timespec>,
) -> Result<(), Errno> {
    events.clear();
    if !IS_OLD.load(Ordering::Relaxed) {
        match epoll::wait(&set, spare_capacity(events), timeout) {
            // Old sandboxes answer to a call that they do not know as if it were forbidden.
            Err(Errno::NOSYS | Errno::PERM) => IS_OLD.store(true, Ordering::Relaxed),
            other => return other.map(|_| ()),
        }
    }
    poll(&mut [PollFd::new(&set, PollFlags::IN)], timeout)?;
    take(set, events)
}

/// Puts what has happened into `events`, without waiting.
fn take(set: impl AsFd, events: &mut Vec<Event>) -> Result<(), Errno> {
    const { assert!(size_of::<Event>() == size_of::<libc::epoll_event>()) };
    let (room, set) = (events.capacity() as libc::c_int, set.as_fd().as_raw_fd());
    // SAFETY: the set is open, and the vector has room for that many events, whose form is that of the kernel in both libraries.
    let count = unsafe { libc::epoll_wait(set, events.as_mut_ptr().cast(), room, 0) };
    match usize::try_from(count) {
        // SAFETY: the kernel has written this many.
        Ok(count) => unsafe { events.set_len(count) },
        Err(_) => {
            let error = std::io::Error::last_os_error();
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now_ns;
    use rustix::event::epoll::{CreateFlags, EventData, EventFlags};
    use std::io::{Write, pipe};

    /// Returns the pipes with bytes, of a set of three of which two have some, as far as there is room for their events.
    fn found(room: usize) -> Vec<u64> {
        let set = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let pipes: Vec<_> = (0..3).map(|_| pipe().unwrap()).collect();
        for (number, (reader, writer)) in pipes.iter().enumerate() {
            let mut writer = writer;
            epoll::add(&set, reader, EventData::new_u64(number as u64), EventFlags::IN).unwrap();
            if number != 1 {
                writer.write_all(b"x").unwrap();
            }
        }
        let mut events = Vec::with_capacity(room);
        wait(&set, &mut events, None).unwrap();
        let mut found: Vec<u64> = events
            .iter()
            .map(|event| {
                let data = event.data;
                data.u64()
            })
            .collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn old_and_new_systems_find_the_same_events_and_wait_as_long() {
        for is_old in [false, true] {
            IS_OLD.store(is_old, Ordering::Relaxed);
            assert_eq!(found(8), [0, 2], "old: {is_old}");
            assert_eq!(found(1).len(), 1, "old: {is_old}");
            let set = epoll::create(CreateFlags::CLOEXEC).unwrap();
            let mut events = Vec::with_capacity(1);
            let timeout = Timespec { tv_sec: 0, tv_nsec: 300_000 };
            let before_ns = now_ns();
            wait(&set, &mut events, Some(&timeout)).unwrap();
            assert!(now_ns() - before_ns >= 300_000 && events.is_empty(), "old: {is_old}");
            wait(&set, &mut events, Some(&Timespec::default())).unwrap();
        }
        IS_OLD.store(false, Ordering::Relaxed);
    }
}
