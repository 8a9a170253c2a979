//! The real network: level-triggered epoll with nanosecond waits.
//!
//! One `recv` and one `send` a request, no `epoll_ctl` (only a send that the kernel takes in part arms
//! `EPOLLOUT`), and no second `recv` just to learn that nothing is left.

use crate::net::{Completion, Net, NetError, RoundTrip, WaitMode};
use plimsoll_core::clock::now_ns;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt};
use rustix::time::Timespec;
use std::net::SocketAddr;

/// Events taken from the kernel at once.
const BATCH: usize = 512;

struct Socket {
    fd: OwnedFd,
    connecting: bool,
    wants_write: bool,
}

#[derive(Default)]
struct Slot {
    socket: Option<Socket>,
    /// Grows with each use of the key, so that events of an earlier socket are told apart.
    generation: u32,
}

/// Sockets of one shard.
pub struct EpollNet {
    epoll: OwnedFd,
    slots: Vec<Slot>,
    events: Vec<Event>,
    at: usize,
    idle_ns: u64,
}

fn net_error(errno: Errno) -> NetError {
    match errno {
        Errno::CONNREFUSED => NetError::Refused,
        Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => NetError::Reset,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::TIMEDOUT | Errno::ADDRNOTAVAIL => {
            NetError::Unreachable
        }
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => NetError::Exhausted,
        other => NetError::Other(other.raw_os_error()),
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

const READ: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);

impl EpollNet {
    /// A network without connections.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            slots: Vec::new(),
            events: Vec::with_capacity(BATCH),
            at: 0,
            idle_ns: 0,
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
        self.events.clear();
        self.at = 0;
        // An interrupted wait is an empty batch; the caller looks at its clock and comes back.
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        let _ = epoll::wait(&self.epoll, spare, timeout);
    }

    fn open(address: SocketAddr) -> Result<(OwnedFd, bool), Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_tcp_nodelay(&fd, true)?;
        match rustix::net::connect(&fd, &address) {
            Ok(()) => Ok((fd, false)),
            Err(Errno::INPROGRESS) => Ok((fd, true)),
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
            return match rustix::net::recv(&socket.fd, buffer, RecvFlags::empty()) {
                Ok((_, 0)) => Some((key, Completion::Closed)),
                Ok((_, n)) => Some((key, Completion::Received(n))),
                Err(Errno::AGAIN | Errno::INTR) => self.writable(key, flags),
                Err(errno) => Some((key, Completion::Failed(net_error(errno)))),
            };
        }
        self.writable(key, flags)
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
        slot.socket = Some(Socket { fd, connecting: true, wants_write: true });
        self.interest(key, READ | EventFlags::OUT, true).map_err(net_error)
    }

    #[inline]
    fn send(&mut self, key: u32, bytes: &[u8]) -> Result<usize, NetError> {
        let slot = self.slots.get_mut(key as usize).ok_or(NetError::Reset)?;
        let socket = slot.socket.as_mut().ok_or(NetError::Reset)?;
        let taken = match rustix::net::send(&socket.fd, bytes, SendFlags::NOSIGNAL) {
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
            slot.socket = None;
            slot.generation = slot.generation.wrapping_add(1);
        }
    }

    fn wait(&mut self, until_ns: u64, mode: WaitMode) {
        let start_ns = now_ns();
        let left_ns = until_ns.saturating_sub(start_ns);
        match mode {
            WaitMode::Hold => {
                self.events.clear();
                self.at = 0;
                // An interrupted nap is a short one; the caller looks at its clock and comes back.
                let _ = rustix::thread::nanosleep(&timespec(left_ns));
            }
            WaitMode::Sleep => self.poll(Some(&timespec(left_ns))),
            WaitMode::Spin { before_ns } => {
                if left_ns > before_ns {
                    self.poll(Some(&timespec(left_ns - before_ns)));
                } else {
                    self.poll(Some(&timespec(0)));
                    while self.events.is_empty() && now_ns() < until_ns {
                        self.poll(Some(&timespec(0)));
                    }
                }
            }
            WaitMode::Batch { gather_ns } => {
                let nap = timespec(gather_ns.min(left_ns));
                let _ = rustix::thread::nanosleep(&nap);
                let left_ns = until_ns.saturating_sub(now_ns());
                self.poll(Some(&timespec(left_ns)));
            }
        }
        self.idle_ns += now_ns().saturating_sub(start_ns);
    }

    #[inline]
    fn next(&mut self, buffer: &mut [u8]) -> Option<(u32, Completion)> {
        while let Some(&event) = self.events.get(self.at) {
            self.at += 1;
            if let Some(completion) = self.complete(event, buffer) {
                return Some(completion);
            }
        }
        None
    }

    fn round_trip(&self, key: u32) -> Option<RoundTrip> {
        let socket = self.slots.get(key as usize)?.socket.as_ref()?;
        tcp_info(socket.fd.as_fd().as_raw_fd())
    }

    fn idle_ns(&self) -> u64 {
        self.idle_ns
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
mod tests {
    use super::*;
    use plimsoll_core::clock::SECOND_NS;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn until<T>(
        net: &mut EpollNet,
        mut wanted: impl FnMut(u32, Completion, &[u8]) -> Option<T>,
    ) -> T {
        let mut buffer = [0u8; 4096];
        let end_ns = now_ns() + 5 * SECOND_NS;
        while now_ns() < end_ns {
            net.wait(now_ns() + SECOND_NS, WaitMode::Sleep);
            while let Some((key, completion)) = net.next(&mut buffer) {
                if let Some(found) = wanted(key, completion, &buffer) {
                    return found;
                }
            }
        }
        panic!("nothing came within 5 s");
    }

    #[test]
    fn a_round_trip_over_a_real_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let peer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut got = [0u8; 4];
            stream.read_exact(&mut got).unwrap();
            stream.write_all(b"pong").unwrap();
            got
        });
        let mut net = EpollNet::new().unwrap();
        net.connect(3, address).unwrap();
        until(&mut net, |key, c, _| (key == 3 && c == Completion::Connected).then_some(()));
        assert_eq!(net.send(3, b"ping").unwrap(), 4);
        let answer = until(&mut net, |_, c, buffer| match c {
            Completion::Received(n) => Some(buffer[..n].to_vec()),
            _ => None,
        });
        assert_eq!(answer, b"pong");
        assert_eq!(&peer.join().unwrap(), b"ping");
        let trip = net.round_trip(3).unwrap();
        assert!(trip.min_us > 0 && trip.min_us < 1_000_000, "{trip:?}");
        until(&mut net, |_, c, _| (c == Completion::Closed).then_some(()));
    }

    #[test]
    fn a_closed_port_is_refused() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut net = EpollNet::new().unwrap();
        let at_once = net.connect(0, address);
        let error = at_once.err().unwrap_or_else(|| {
            until(&mut net, |_, c, _| match c {
                Completion::Failed(error) => Some(error),
                _ => None,
            })
        });
        assert_eq!(error, NetError::Refused);
    }

    #[test]
    fn the_part_of_tcp_info_that_we_read_has_the_kernels_layout() {
        // linux/tcp.h: tcpi_pacing_rate at 104, tcpi_min_rtt at 148.
        assert_eq!(std::mem::offset_of!(TcpInfo, rtt_us), 68);
        assert_eq!(std::mem::offset_of!(TcpInfo, total_retrans), 100);
        assert_eq!(std::mem::offset_of!(TcpInfo, pacing_rate), 104);
        assert_eq!(std::mem::offset_of!(TcpInfo, min_rtt_us), 148);
    }
}
