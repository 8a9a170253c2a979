//! The loop itself: waiting, accepting, handing events to their connections.

mod dialogue;

use super::ConnectionCounters;
use super::connection::{Connection, Phase};
use super::head::{Asked, Persistence};
use super::intake::Intake;
use super::refusal::HEAD_BYTES_MAX;
use crate::stop::Stop;
use crate::tickets::{Table, Ticket};
use plimsoll_core::clock::now_ns;
use plimsoll_core::wait::wait;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Largest number of bytes of one `recv`; a head always fits.
const READ_BYTES: usize = HEAD_BYTES_MAX;
/// Bytes of replies to pipelined requests that are sent together.
const OUTPUT_BATCH_BYTES: usize = 256 * 1024;
/// Connections accepted before the others have their turn.
const ACCEPT_BATCH: usize = 256;
/// Events taken from the kernel at once.
const EVENT_BATCH: usize = 512;

/// Bytes that wait for peers which do not read them, over all connections of a thread. A peer that adds more is closed.
const WAITING_BYTES_MAX: usize = 512 << 20;

const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
const INBOX: u64 = u64::MAX - 2;

/// The reply of a service to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The reply has been appended.
    Replied,
    /// The reply follows when the service says that it is due.
    Waiting,
}

/// The service behind the loop.
pub trait Service {
    /// A request was read whole at `now_ns`; its answer goes to the end of `out`.
    fn request(&mut self, asked: &Asked, ticket: Ticket, now_ns: u64, out: &mut Vec<u8>) -> Step;

    /// Time at which the next awaited answer is due; `u64::MAX` when none is.
    #[inline]
    fn due_ns(&self) -> u64 {
        u64::MAX
    }

    /// Takes one answer that is due by `now_ns`.
    fn pop_due(&mut self, _now_ns: u64) -> Option<Ticket> {
        None
    }

    /// Appends the answer just popped; it leaves at `now_ns`.
    fn reply(&mut self, _asked: &Asked, _now_ns: u64, _out: &mut Vec<u8>) {}

    /// The peer of the answer just popped is gone.
    fn abandoned(&mut self) {}
}

/// The way a loop waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Never sleep: ask the kernel again and again. Takes a whole core.
    pub busy_poll: bool,
    /// Sleep until this many nanoseconds before an answer is due, then spin.
    pub spin_ns: u64,
}

/// One thread's loop.
pub struct EventLoop<S> {
    epoll: OwnedFd,
    intake: Intake,
    /// Counts accepted connections, to hand them out in turn.
    turn: usize,
    /// Given up for a moment when the process is out of descriptors, so that a connection can be
    /// accepted and closed instead of waking the loop for ever.
    reserve: Option<File>,
    table: Table<Connection>,
    service: S,
    options: Options,
    stop: Stop,
    counters: Arc<ConnectionCounters>,
    buffer: Vec<u8>,
    out: Vec<u8>,
    /// Bytes of replies and of pipelined requests that wait for peers.
    waiting_bytes: usize,
    /// The latest reading of the clock.
    now_ns: u64,
}

impl<S: Service> EventLoop<S> {
    /// Registers the intake and the stop.
    ///
    /// # Errors
    /// When the kernel refuses an event queue.
    pub fn new(
        service: S,
        intake: Intake,
        options: Options,
        stop: Stop,
        counters: Arc<ConnectionCounters>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        match &intake {
            Intake::Listener { listener, .. } => {
                listener.set_nonblocking(true)?;
                // Accepted connections inherit this, which saves a call for each.
                rustix::net::sockopt::set_tcp_nodelay(listener, true)?;
                epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
            }
            Intake::Inbox(inbox) => {
                epoll::add(&epoll, &inbox.wake, EventData::new_u64(INBOX), EventFlags::IN)?;
            }
        }
        Ok(Self {
            epoll,
            intake,
            turn: 0,
            reserve: File::open("/dev/null").ok(),
            table: Table::default(),
            service,
            options,
            stop,
            counters,
            buffer: vec![0; READ_BYTES],
            out: Vec::with_capacity(OUTPUT_BATCH_BYTES),
            waiting_bytes: 0,
            now_ns: now_ns(),
        })
    }

    /// Serves until a stop is requested; then all connections are closed and the service returned.
    ///
    /// # Errors
    /// When the kernel refuses to wait for events, which no peer can cause.
    pub fn run(mut self) -> io::Result<S> {
        // Without it the kernel may wake this thread 50 us late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut events = Vec::with_capacity(EVENT_BATCH);
        while !self.stop.is_requested() {
            let timeout = self.timeout();
            match wait(&self.epoll, &mut events, timeout.as_ref()) {
                Ok(()) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                // The fields of a packed structure are copied before they are used.
                let (flags, data) = (event.flags, event.data);
                self.dispatch(data.u64(), flags);
                self.answer_due();
            }
            if self.service.due_ns() != u64::MAX {
                self.now_ns = now_ns();
                self.answer_due();
            }
        }
        Ok(self.service)
    }

    /// Time to sleep; `None` is until something happens.
    fn timeout(&self) -> Option<Timespec> {
        let due_ns = self.service.due_ns();
        let wait_ns = match due_ns {
            _ if self.options.busy_poll => 0,
            u64::MAX => return None,
            due_ns => due_ns.saturating_sub(now_ns().saturating_add(self.options.spin_ns)),
        };
        Some(Timespec {
            tv_sec: (wait_ns / 1_000_000_000) as i64,
            tv_nsec: (wait_ns % 1_000_000_000) as i64,
        })
    }

    fn dispatch(&mut self, token: u64, flags: EventFlags) {
        match token {
            STOP => {}
            LISTENER => self.accept(),
            INBOX => {
                if let Intake::Inbox(inbox) = &self.intake {
                    for fd in inbox.take() {
                        self.adopt(fd);
                    }
                }
            }
            ticket if flags.intersects(EventFlags::ERR | EventFlags::HUP) => self.close(ticket),
            ticket if flags.contains(EventFlags::OUT) => self.on_writable(ticket),
            ticket => self.on_readable(ticket),
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPT_BATCH {
            let Intake::Listener { listener, others } = &self.intake else { return };
            match rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(fd) => {
                    self.counters.accepted.fetch_add(1, Ordering::Relaxed);
                    let place = self.turn % (others.len() + 1);
                    self.turn = self.turn.wrapping_add(1);
                    match others.get(place) {
                        Some(inbox) => inbox.push(fd),
                        None => self.adopt(fd),
                    }
                }
                Err(Errno::MFILE | Errno::NFILE) => {
                    if !self.turn_away() {
                        return;
                    }
                }
                // Nothing left, or a peer that gave up in the queue: the event comes again.
                Err(_) => return,
            }
        }
    }

    /// Accepts and closes one connection for which there is no descriptor.
    fn turn_away(&mut self) -> bool {
        let Intake::Listener { listener, .. } = &self.intake else { return false };
        let had_reserve = self.reserve.take().is_some();
        let accepted = rustix::net::accept(listener).is_ok();
        self.reserve = File::open("/dev/null").ok();
        if accepted {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
        }
        had_reserve && accepted
    }

    fn adopt(&mut self, fd: OwnedFd) {
        let ticket = self.table.insert(Connection::new(fd));
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let data = EventData::new_u64(ticket);
        if epoll::add(&self.epoll, &connection.fd, data, EventFlags::IN).is_err() {
            self.close(ticket);
        }
    }

    /// Closing the descriptor also takes it out of the event queue.
    fn close(&mut self, ticket: Ticket) {
        if let Some(connection) = self.table.remove(ticket) {
            self.waiting_bytes -= connection.counted;
            self.counters.closed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends every answer that is due at the latest reading of the clock.
    #[inline]
    fn answer_due(&mut self) {
        while self.service.due_ns() <= self.now_ns {
            let Some(ticket) = self.service.pop_due(self.now_ns) else { return };
            let Some(connection) = self.table.get_mut(ticket) else {
                self.service.abandoned();
                continue;
            };
            let asked = connection.asked;
            connection.phase = Phase::Head;
            connection.is_closing = asked.persistence == Persistence::Closed;
            self.service.reply(&asked, now_ns(), &mut self.out);
            self.send(ticket);
            self.after_reply(ticket);
        }
    }
}
