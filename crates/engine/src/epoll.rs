//! The real network: level-triggered epoll with nanosecond waits.
//!
//! One `recv` and one `send` a request, no `epoll_ctl` (only a send that the kernel takes in part arms
//! `EPOLLOUT`), and no second `recv` just to learn that nothing is left.
//!
//! An only connection needs no epoll: a `recv` that waits is the whole wait, and saves a system call a request. Its limit
//! is counted in the kernel's ticks of some milliseconds, so it is used only where the wait may last much longer.

use crate::net::{Completion, Net, NetError, RoundTrip, WaitMode};
use crate::vitals::{Looks, ThreadFiles, VitalSigns, Waited, stops};
use plimsoll_core::clock::now_ns;
use plimsoll_core::wait::wait;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt};
use rustix::time::Timespec;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

/// Events taken from the kernel at once.
const BATCH: usize = 512;

/// Bytes that a waiting `recv` takes at once.
const LONE_BYTES: usize = 16 << 10;
/// Longest wait in a `recv`. The kernel may make it 10 ms longer, more often than not 4.
const LONE_WAIT: Duration = Duration::from_millis(20);
/// A wait that must be shorter than this, ns, is left to epoll, which is exact.
const LONE_FROM_NS: u64 = 40_000_000;
/// Receives after which a connection is worth the two calls that prepare it.
const LONE_AFTER: u32 = 16;

struct Socket {
    fd: OwnedFd,
    connecting: bool,
    wants_write: bool,
    /// Receives so far.
    received: u32,
    /// True if a `recv` without `MSG_DONTWAIT` waits.
    waits: bool,
}

impl Socket {
    /// Lets a `recv` wait; false where the system refuses that.
    fn let_wait(&mut self) -> bool {
        if !self.waits {
            self.waits =
                sockopt::set_socket_timeout(&self.fd, sockopt::Timeout::Recv, Some(LONE_WAIT))
                    .and_then(|()| rustix::fs::fcntl_setfl(&self.fd, rustix::fs::OFlags::empty()))
                    .is_ok();
        }
        self.waits
    }
}

/// Bytes that a waiting `recv` took, until they are asked for.
#[derive(Default)]
struct Lone {
    buffer: Vec<u8>,
    /// Part of the buffer that has not been asked for.
    left: Range<usize>,
    /// Connection and its completion.
    taken: Option<(u32, Completion)>,
}

#[derive(Default)]
struct Slot {
    socket: Option<Socket>,
    /// Grows with each use of the key, so that events of an earlier socket are distinguished.
    generation: u32,
}

/// Sockets of one shard.
pub struct EpollNet {
    epoll: OwnedFd,
    slots: Vec<Slot>,
    events: Vec<Event>,
    at: usize,
    /// Number of sockets.
    open: u32,
    /// The connection that received last.
    recent: u32,
    lone: Lone,
    idle_ns: u64,
    looks: Looks,
    arrived_after_ns: u64,
    vitals: ThreadFiles,
}

fn net_error(errno: Errno) -> NetError {
    match errno {
        Errno::CONNREFUSED => NetError::Refused,
        Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => NetError::Reset,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::TIMEDOUT => NetError::Unreachable,
        // Of a connection that was not bound to an address, ADDRNOTAVAIL says that no local port is left; see `EpollNet::open`.
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::ADDRNOTAVAIL => {
            NetError::Exhausted
        }
        other => NetError::Other(other.raw_os_error()),
    }
}

/// Returns whether this machine has an address to reach this one from. Without one, as where IPv6 is switched off, a
/// connection fails with the same error as for want of a port; UDP has ports of its own, and asks no one.
fn has_source(family: AddressFamily, address: &SocketAddr) -> bool {
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    socket.and_then(|fd| rustix::net::connect(&fd, address)) != Err(Errno::ADDRNOTAVAIL)
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// A full send buffer must not stop the shard, also where a `recv` may wait.
const SEND: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
const READ: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);

impl EpollNet {
    /// A network without connections, for the calling thread.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            slots: Vec::new(),
            events: Vec::with_capacity(BATCH),
            at: 0,
            open: 0,
            recent: 0,
            lone: Lone::default(),
            idle_ns: 0,
            looks: Looks::default(),
            arrived_after_ns: 0,
            vitals: ThreadFiles::open(),
        })
    }

    fn interest(&self, key: u32, flags: EventFlags, add: bool) -> Result<(), Errno> {
        let slot = &self.slots[key as usize];
        let Some(socket) = &slot.socket else { return Ok(()) };
        let data = EventData::new_u64(u64::from(slot.generation) << 32 | u64::from(key));
        if add {
            epoll::add(&self.epoll, &socket.fd, data, flags)
        } else {
            epoll::modify(&self.epoll, &socket.fd, data, flags)
        }
    }

    fn poll(&mut self, timeout: Option<&Timespec>) {
        self.at = 0;
        // An interrupted wait is an empty batch; the caller looks at its clock and comes back.
        let _ = wait(&self.epoll, &mut self.events, timeout);
    }

    fn open(address: SocketAddr) -> Result<(OwnedFd, bool), Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_tcp_nodelay(&fd, true)?;
        match rustix::net::connect(&fd, &address) {
            Ok(()) => Ok((fd, false)),
            Err(Errno::INPROGRESS) => Ok((fd, true)),
            Err(Errno::ADDRNOTAVAIL) if !has_source(family, &address) => Err(Errno::HOSTUNREACH),
            Err(errno) => Err(errno),
        }
    }

    /// Turns one kernel event into a completion, or nothing when it was stale.
    fn complete(&mut self, event: Event, buffer: &mut [u8]) -> Option<(u32, Completion)> {
        let data = event.data.u64();
        let (key, generation) = (data as u32, (data >> 32) as u32);
        let flags = event.flags;
        let slot = self.slots.get_mut(key as usize)?;
        if slot.generation != generation {
            return None;
        }
        let socket = slot.socket.as_mut()?;
        if socket.connecting {
            socket.connecting = false;
            socket.wants_write = false;
            let result = match sockopt::socket_error(&socket.fd) {
                Ok(Ok(())) => Ok(()),
                Ok(Err(errno)) | Err(errno) => Err(errno),
            };
            let done = match result.and_then(|()| self.interest(key, READ, false)) {
                Ok(()) => Completion::Connected,
                Err(errno) => Completion::Failed(net_error(errno)),
            };
            return Some((key, done));
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
        {
            return match rustix::net::recv(&socket.fd, buffer, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => Some((key, Completion::Closed)),
                Ok((_, n)) => {
                    socket.received = socket.received.saturating_add(1);
                    self.recent = key;
                    Some((key, Completion::Received(n)))
                }
                Err(Errno::AGAIN | Errno::INTR) => self.writable(key, flags),
                Err(errno) => Some((key, Completion::Failed(net_error(errno)))),
            };
        }
        self.writable(key, flags)
    }

    /// Waits in a `recv`, where there is one connection and time enough; false: epoll has to wait.
    fn wait_alone(&mut self, left_ns: u64) -> bool {
        if self.open != 1 || left_ns < LONE_FROM_NS {
            return false;
        }
        let key = self.recent;
        let slot = self.slots.get_mut(key as usize);
        let Some(socket) = slot.and_then(|slot| slot.socket.as_mut()) else { return false };
        let ready = !socket.connecting && !socket.wants_write && socket.received >= LONE_AFTER;
        if !ready || !socket.let_wait() {
            return false;
        }
        self.events.clear();
        self.at = 0;
        self.lone.buffer.resize(LONE_BYTES, 0);
        let result =
            rustix::net::recv(&socket.fd, self.lone.buffer.as_mut_slice(), RecvFlags::empty());
        self.lone.taken = match result {
            Ok((_, 0)) => Some((key, Completion::Closed)),
            Ok((_, n)) => {
                self.lone.left = 0..n;
                Some((key, Completion::Received(n)))
            }
            // Time is up, or a signal came: the caller looks at its clock and comes back.
            Err(Errno::AGAIN | Errno::INTR) => None,
            Err(errno) => Some((key, Completion::Failed(net_error(errno)))),
        };
        true
    }

    /// Gives out what a waiting `recv` took.
    fn next_alone(&mut self, buffer: &mut [u8]) -> Option<(u32, Completion)> {
        let (key, completion) = self.lone.taken.take()?;
        let socket = self.slots.get(key as usize)?.socket.as_ref()?;
        let Completion::Received(_) = completion else { return Some((key, completion)) };
        let Range { start, end } = self.lone.left;
        let mut count = (end - start).min(buffer.len());
        buffer[..count].copy_from_slice(&self.lone.buffer[start..start + count]);
        self.lone.left.start += count;
        if !self.lone.left.is_empty() {
            self.lone.taken = Some((key, completion));
        } else if end == LONE_BYTES && count < buffer.len() {
            // More may have come. A close is seen again at the next wait; an error is reported by the kernel only once.
            match rustix::net::recv(&socket.fd, &mut buffer[count..], RecvFlags::DONTWAIT) {
                Ok((_, more)) => count += more,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => self.lone.taken = Some((key, Completion::Failed(net_error(errno)))),
            }
        }
        Some((key, Completion::Received(count)))
    }

    fn writable(&mut self, key: u32, flags: EventFlags) -> Option<(u32, Completion)> {
        if !flags.contains(EventFlags::OUT) {
            return None;
        }
        let socket = self.slots[key as usize].socket.as_mut()?;
        socket.wants_write = false;
        match self.interest(key, READ, false) {
            Ok(()) => Some((key, Completion::Writable)),
            Err(errno) => Some((key, Completion::Failed(net_error(errno)))),
        }
    }
}

impl Net for EpollNet {
    fn connect(&mut self, key: u32, address: SocketAddr) -> Result<(), NetError> {
        while self.slots.len() <= key as usize {
            self.slots.push(Slot::default());
        }
        let (fd, connecting) = Self::open(address).map_err(net_error)?;
        let slot = &mut self.slots[key as usize];
        slot.generation = slot.generation.wrapping_add(1);
        // Even a connect that succeeded at once is reported through the next batch.
        let _ = connecting;
        let socket = Socket { fd, connecting: true, wants_write: true, received: 0, waits: false };
        self.open += u32::from(slot.socket.replace(socket).is_none());
        self.interest(key, READ | EventFlags::OUT, true).map_err(net_error)
    }

    #[inline]
    fn send(&mut self, key: u32, bytes: &[u8]) -> Result<usize, NetError> {
        let slot = self.slots.get_mut(key as usize).ok_or(NetError::Reset)?;
        let socket = slot.socket.as_mut().ok_or(NetError::Reset)?;
        let taken = match rustix::net::send(&socket.fd, bytes, SEND) {
            Ok(taken) => taken,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(errno) => return Err(net_error(errno)),
        };
        if taken < bytes.len() && !socket.wants_write {
            socket.wants_write = true;
            self.interest(key, READ | EventFlags::OUT, false).map_err(net_error)?;
        }
        Ok(taken)
    }

    fn close(&mut self, key: u32) {
        if let Some(slot) = self.slots.get_mut(key as usize) {
            // Closing the descriptor takes it out of the epoll set.
            self.open -= u32::from(slot.socket.take().is_some());
            if self.lone.taken.as_ref().is_some_and(|(own, _)| *own == key) {
                self.lone.taken = None;
            }
            slot.generation = slot.generation.wrapping_add(1);
        }
    }

    fn wait(&mut self, until_ns: u64, mode: WaitMode) {
        let start_ns = now_ns();
        let left_ns = until_ns.saturating_sub(start_ns);
        let (mut in_vain_ns, mut gathered_ns) = (None, None);
        // Completions of the last wait that were not taken are found again, and have been there since before that wait.
        let left_over = self.at < self.events.len() || self.lone.taken.is_some();
        let before_ns = self.arrived_after_ns;
        match mode {
            WaitMode::Sleep => {
                if !self.wait_alone(left_ns) {
                    self.poll(Some(&timespec(left_ns)));
                }
            }
            WaitMode::Hold => {
                self.events.clear();
                self.at = 0;
                // An interrupted nap is a short one; the caller looks at its clock and comes back.
                let _ = rustix::thread::nanosleep(&timespec(left_ns));
            }
            WaitMode::Spin { before_ns } => {
                if left_ns > before_ns {
                    self.poll(Some(&timespec(left_ns - before_ns)));
                } else {
                    self.poll(Some(&timespec(0)));
                    let mut looked_ns = start_ns;
                    while self.events.is_empty() && looked_ns < until_ns {
                        in_vain_ns = Some(looked_ns);
                        looked_ns = now_ns();
                        self.poll(Some(&timespec(0)));
                    }
                }
            }
            WaitMode::Batch { gather_ns } => {
                let nap = timespec(gather_ns.min(left_ns));
                let _ = rustix::thread::nanosleep(&nap);
                let napped_ns = now_ns();
                gathered_ns = Some(napped_ns);
                let left_ns = until_ns.saturating_sub(napped_ns);
                self.poll(Some(&timespec(left_ns)));
            }
        }
        let to_ns = now_ns();
        self.idle_ns += to_ns.saturating_sub(start_ns);
        if mode == WaitMode::Hold {
            return;
        }
        self.arrived_after_ns = self.looks.arrived_after(&Waited {
            from_ns: start_ns,
            to_ns,
            until_ns,
            gathered_ns,
            in_vain_ns,
            stops: stops(),
        });
        if left_over {
            self.arrived_after_ns = self.arrived_after_ns.min(before_ns);
        }
    }

    #[inline]
    fn next(&mut self, buffer: &mut [u8]) -> Option<(u32, Completion)> {
        if self.lone.taken.is_some() {
            return self.next_alone(buffer);
        }
        while let Some(&event) = self.events.get(self.at) {
            self.at += 1;
            if let Some(completion) = self.complete(event, buffer) {
                return Some(completion);
            }
        }
        None
    }

    fn unread(&mut self, key: u32, buffer: &mut [u8]) -> usize {
        if matches!(self.lone.taken, Some((own, Completion::Received(_))) if own == key)
            && let Some((_, Completion::Received(count))) = self.next_alone(buffer)
        {
            return count;
        }
        let socket = self.slots.get(key as usize).and_then(|slot| slot.socket.as_ref());
        // The kernel gives out what came before a reset, and the reset behind it.
        let received = socket.map(|own| rustix::net::recv(&own.fd, buffer, RecvFlags::DONTWAIT));
        received.and_then(Result::ok).map_or(0, |(_, count)| count)
    }

    fn round_trip(&self, key: u32) -> Option<RoundTrip> {
        let socket = self.slots.get(key as usize)?.socket.as_ref()?;
        tcp_info(socket.fd.as_fd().as_raw_fd())
    }

    fn idle_ns(&self) -> u64 {
        self.idle_ns
    }

    fn arrived_after_ns(&self) -> u64 {
        self.arrived_after_ns
    }

    fn vitals(&mut self) -> VitalSigns {
        self.vitals.read()
    }
}

fn tcp_info(fd: i32) -> Option<RoundTrip> {
    let mut info = std::mem::MaybeUninit::<TcpInfo>::zeroed();
    let mut length = size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `info`, which is that long and zeroed.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 || (length as usize) < size_of::<TcpInfo>() {
        return None;
    }
    // SAFETY: every bit pattern is a valid `TcpInfo`, and all of it was zeroed or written.
    let info = unsafe { info.assume_init() };
    Some(RoundTrip {
        min_us: info.min_rtt_us,
        smoothed_us: info.rtt_us,
        retransmits: info.total_retrans,
    })
}

/// The front of the kernel's `struct tcp_info` (linux/tcp.h), up to `tcpi_min_rtt`, which `libc` does not have.
#[repr(C)]
#[derive(Clone, Copy)]
struct TcpInfo {
    states: [u8; 8],
    rto_ato_mss: [u32; 4],
    unacked_sacked_lost_retrans_fackets: [u32; 5],
    last_times: [u32; 4],
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt_us: u32,
    rttvar_us: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt_us: u32,
}

#[cfg(test)]
mod tests;
