//! The loop: waiting, accepting, reading, writing, and not reading sockets while enough calls are in flight.
//!
//! One thread owns its connections. Two `epoll` queues make the back-pressure cheap: one has what arrives, and the other
//! the sockets that take no more; a thread with enough calls in flight waits for answers and for the second one only, with no
//! system call for any connection.

mod messages;
mod turns;
mod unread;

use super::connection::{Connection, Phase};
use crate::connection_counts::ConnectionCounts;
use crate::message::Batch;
use crate::shared::Shared;
use messages::{CallsUnderWay, Rest};
use plimsoll_core::clock::now_ns;
use plimsoll_core::wait::wait;
use plimsoll_serving::http::{Inbox as NewConnections, Intake};
use plimsoll_serving::stop::Stop;
use plimsoll_serving::tickets::{Table, Ticket};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Largest number of bytes of one `recv`.
const READ_BYTES: usize = 256 * 1024;
/// Connections accepted before the others have their turn.
const ACCEPT_BATCH: usize = 256;
/// Events taken from the kernel at once.
const EVENT_BATCH: usize = 512;
/// Longest time that a peer may take to log in, or to go away once refused.
const LOGIN_NS: u64 = 30_000_000_000;
/// Longest time that answers may take when the server stops.
const DRAIN_NS: u64 = 2_000_000_000;
/// The same after the log has failed: only what is on the way already still comes.
const FAILED_DRAIN_NS: u64 = 5_000_000;
/// A buffer that was longer is given back when it is empty.
const KEPT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of messages that are not whole, over all connections of a thread. Room for a few of the longest.
const INPUT_BYTES_MAX: usize = 256 << 20;

const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
const ACCEPTED: u64 = u64::MAX - 2;
const INBOX: u64 = u64::MAX - 3;
const WRITERS: u64 = u64::MAX - 4;

/// One thread's connections.
pub(crate) struct Network {
    pub(super) number: usize,
    pub(super) shared: Arc<Shared>,
    /// Incoming events: calls, connections, answers.
    readers: OwnedFd,
    /// Sockets that took not all of an answer.
    writers: OwnedFd,
    intake: Intake,
    /// Counts accepted connections, to hand them out in turn.
    turn: usize,
    /// Given up for a moment when the process is out of descriptors.
    reserve: Option<File>,
    pub(super) table: Table<Connection>,
    stop: Stop,
    buffer: Vec<u8>,
    /// Connections with answers that have not been sent.
    pub(super) dirty: Vec<Ticket>,
    /// Connections whose messages wait for room or for their turn, those first that have waited longest.
    pub(super) held: VecDeque<Ticket>,
    /// Longest time that a peer may take nothing of its answers.
    unread_ns: u64,
    /// Time at which those that came must have logged in.
    logins: VecDeque<(u64, Ticket)>,
    /// Connections whose sockets took nothing, and when they must have taken something.
    stalled: VecDeque<(u64, Ticket)>,
    /// Bytes of messages that are not whole.
    input_bytes: usize,
    /// Bytes of answers that wait for peers.
    output_bytes: usize,
    calls: CallsUnderWay,
    /// The latest reading of the clock.
    pub(super) now_ns: u64,
    answers: Vec<Batch>,
}

impl Network {
    pub(crate) fn new(
        number: usize,
        shared: Arc<Shared>,
        intake: Intake,
        stop: Stop,
    ) -> io::Result<Self> {
        let readers = epoll::create(CreateFlags::CLOEXEC)?;
        let writers = epoll::create(CreateFlags::CLOEXEC)?;
        let watch = |fd: &dyn std::os::fd::AsFd, token| {
            epoll::add(&readers, fd.as_fd(), EventData::new_u64(token), EventFlags::IN)
        };
        watch(&stop, STOP)?;
        watch(&writers, WRITERS)?;
        watch(&shared.inboxes[number].wake, INBOX)?;
        match &intake {
            Intake::Listener { listener, .. } => {
                listener.set_nonblocking(true)?;
                rustix::net::sockopt::set_tcp_nodelay(listener, true)?;
                watch(listener, LISTENER)?;
            }
            Intake::Inbox(inbox) => watch(&inbox.wake, ACCEPTED)?,
        }
        Ok(Self {
            number,
            readers,
            writers,
            intake,
            turn: 0,
            reserve: File::open("/dev/null").ok(),
            table: Table::default(),
            stop,
            buffer: vec![0; READ_BYTES],
            dirty: Vec::new(),
            held: VecDeque::new(),
            logins: VecDeque::new(),
            stalled: VecDeque::new(),
            input_bytes: 0,
            output_bytes: 0,
            calls: CallsUnderWay::new(&shared),
            now_ns: now_ns(),
            answers: Vec::new(),
            unread_ns: shared.config.unread.as_nanos() as u64,
            shared,
        })
    }

    /// Time that calls in flight have for their answers after a stop.
    fn drain_ns(&self) -> u64 {
        let has_failed = self.shared.log.as_ref().is_some_and(|log| log.has_failed());
        if has_failed { FAILED_DRAIN_NS } else { DRAIN_NS }
    }

    /// Serves until a stop is requested; then calls in flight are answered, for a while, and all connections closed.
    ///
    /// # Errors
    /// When the kernel refuses to wait for events, which no peer can cause.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENT_BATCH);
        let mut until_ns = None;
        loop {
            if self.stop.is_requested() {
                let until_ns = *until_ns.get_or_insert_with(|| now_ns() + self.drain_ns());
                if self.calls.is_idle() || now_ns() > until_ns {
                    return Ok(());
                }
            }
            let is_asleep = self.shared.inboxes[self.number].fall_asleep();
            let may_sleep = is_asleep && !self.can_resume();
            let timeout = if may_sleep { self.timeout(until_ns) } else { Timespec::default() };
            let looks_at_sockets = until_ns.is_none() && !self.calls.is_full();
            if !looks_at_sockets {
                self.wait_for_answers(&timeout)?;
            } else {
                match wait(&self.readers, &mut events, Some(&timeout)) {
                    Ok(()) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                for event in &events {
                    // The fields of a packed structure are copied before they are used.
                    let (flags, data) = (event.flags, event.data);
                    self.dispatch(data.u64(), flags)?;
                }
            }
            self.now_ns = now_ns();
            self.take_answers();
            // Those that wait for their turn could fill all room again, and no other connection would ever be read: first the sockets.
            if looks_at_sockets {
                self.resume();
            }
            self.calls.flush(self.number, &self.shared);
            self.send_all();
            self.expire_logins();
            self.expire_stalled();
        }
    }

    /// Time to sleep.
    fn timeout(&self, until_ns: Option<u64>) -> Timespec {
        let waiting = [&self.logins, &self.stalled];
        let next = waiting.into_iter().filter_map(|all| all.front()).map(|(at_ns, _)| *at_ns);
        let next_ns = until_ns.into_iter().chain(next).min();
        // Nothing happens by itself: a minute is as good as any other time.
        let wait_ns = next_ns
            .map_or(60_000_000_000, |next_ns| next_ns.saturating_sub(now_ns()).max(1_000_000));
        Timespec {
            tv_sec: (wait_ns / 1_000_000_000) as i64,
            tv_nsec: (wait_ns % 1_000_000_000) as i64,
        }
    }

    /// Waits without looking at what clients send.
    fn wait_for_answers(&mut self, timeout: &Timespec) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let inbox = &shared.inboxes[self.number];
        let mut fds = vec![
            PollFd::new(&inbox.wake, PollFlags::IN),
            PollFd::new(&self.writers, PollFlags::IN),
        ];
        if !self.stop.is_requested() {
            fds.push(PollFd::new(&self.stop, PollFlags::IN));
        }
        match poll(&mut fds, Some(timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let (has_answers, is_writable) =
            (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if has_answers {
            inbox.hear();
        }
        if is_writable { self.on_writable() } else { Ok(()) }
    }

    fn dispatch(&mut self, token: u64, flags: EventFlags) -> io::Result<()> {
        match token {
            STOP => {}
            LISTENER => self.accept(),
            ACCEPTED => {
                if let Intake::Inbox(inbox) = &self.intake {
                    for fd in inbox.take() {
                        self.adopt(fd);
                    }
                }
            }
            INBOX => self.shared.inboxes[self.number].hear(),
            WRITERS => self.on_writable()?,
            ticket if flags.intersects(EventFlags::ERR | EventFlags::HUP) => self.close(ticket),
            ticket if self.calls.is_full() => self.hold(ticket),
            ticket => self.on_readable(ticket),
        }
        Ok(())
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPT_BATCH {
            let Intake::Listener { listener, others } = &self.intake else { return };
            match rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(fd) => {
                    let place = self.turn % (others.len() + 1);
                    self.turn = self.turn.wrapping_add(1);
                    match others.get(place).map(Arc::<NewConnections>::clone) {
                        Some(inbox) => inbox.push(fd),
                        None => self.adopt(fd),
                    }
                }
                Err(Errno::MFILE | Errno::NFILE) => {
                    // Accepts and closes one, instead of waking for it for ever.
                    let had_reserve = self.reserve.take().is_some();
                    let accepted = rustix::net::accept(listener).is_ok();
                    self.reserve = File::open("/dev/null").ok();
                    if !(had_reserve && accepted) {
                        return;
                    }
                }
                // Nothing left, or a peer that gave up in the queue: the event comes again.
                Err(_) => return,
            }
        }
    }

    fn adopt(&mut self, fd: OwnedFd) {
        let peer = rustix::net::getpeername(&fd).ok().flatten();
        let peer = peer.and_then(|address| std::net::SocketAddr::try_from(address).ok());
        let host = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.ip().to_string());
        let counts = ConnectionCounts::new(self.shared.registry.next_id(), host);
        let connection = Connection::new(fd, counts);
        self.shared.registry.add(&connection.counts);
        let ticket = self.table.insert(connection);
        self.logins.push_back((now_ns() + LOGIN_NS, ticket));
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let data = EventData::new_u64(ticket);
        if epoll::add(&self.readers, &connection.fd, data, EventFlags::IN).is_err() {
            self.close(ticket);
        }
    }

    /// Closing the descriptor also removes it from the event queues. Calls in flight continue; their answers are dropped.
    pub(super) fn close(&mut self, ticket: Ticket) {
        if let Some(connection) = self.table.remove(ticket) {
            self.input_bytes -= connection.input.len();
            self.output_bytes -= connection.counted;
            self.shared.registry.remove(connection.counts.id);
        }
    }

    fn on_readable(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        if connection.is_held {
            // It has its turn soon; until then it has enough to wait with.
            return;
        }
        let received = rustix::net::recv(&connection.fd, &mut self.buffer[..], RecvFlags::empty());
        match received {
            Ok((0, _)) => self.close(ticket),
            Ok((count, _)) => {
                self.now_ns = now_ns();
                // Moved out and back in, so that the bytes can be used while the connection changes.
                let buffer = std::mem::take(&mut self.buffer);
                self.take_in(ticket, &buffer[..count]);
                self.buffer = buffer;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.close(ticket),
        }
    }

    fn take_in(&mut self, ticket: Ticket, received: &[u8]) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let had_bytes = connection.input.len();
        let mut input = std::mem::take(&mut connection.input);
        let rest = if input.is_empty() {
            self.messages(ticket, received).map(|used| {
                input.extend_from_slice(&received[used..]);
                input
            })
        } else {
            input.extend_from_slice(received);
            self.messages(ticket, &input).map(|used| {
                input.drain(..used);
                if input.is_empty() { Vec::new() } else { input }
            })
        };
        self.input_bytes -= had_bytes;
        match rest {
            Rest::Kept(input) => {
                self.input_bytes += input.len();
                let is_too_much = self.input_bytes > INPUT_BYTES_MAX;
                if let Some(connection) = self.table.get_mut(ticket) {
                    connection.input = input;
                } else {
                    self.input_bytes -= input.len();
                }
                if is_too_much {
                    self.close(ticket);
                }
            }
            Rest::Close => self.close(ticket),
        }
    }

    /// Puts a connection on the list of those with something to send.
    pub(super) fn mark_dirty(dirty: &mut Vec<Ticket>, ticket: Ticket, connection: &mut Connection) {
        if !connection.is_dirty {
            connection.is_dirty = true;
            dirty.push(ticket);
        }
    }

    fn take_answers(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        self.shared.inboxes[self.number].take(&mut answers);
        for batch in answers.drain(..) {
            self.answered(batch);
        }
        self.answers = answers;
    }

    /// One `send` for each connection that has something to send.
    fn send_all(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for ticket in dirty.drain(..) {
            if let Some(connection) = self.table.get_mut(ticket) {
                connection.is_dirty = false;
                if connection.is_blocked {
                    self.count_output(ticket);
                    self.watch(ticket);
                } else {
                    self.send(ticket);
                }
            }
        }
        self.dirty = dirty;
    }

    fn send(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let rest = &connection.output[connection.sent..];
        match rustix::net::send(&connection.fd, rest, SendFlags::NOSIGNAL) {
            Ok(sent) => {
                connection.sent += sent;
                connection.moved_ns = self.now_ns;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return self.close(ticket),
        }
        let data = EventData::new_u64(ticket);
        let is_sent = connection.waiting_bytes() == 0;
        if is_sent {
            connection.sent = 0;
            connection.output.clear();
            if connection.output.capacity() > KEPT_BYTES_MAX {
                connection.output = Vec::new();
            }
            if connection.phase == Phase::Refused {
                let _ = rustix::net::shutdown(&connection.fd, Shutdown::Write);
            }
        }
        let is_changed = if is_sent && connection.is_blocked {
            connection.is_blocked = false;
            epoll::delete(&self.writers, &connection.fd)
        } else if !is_sent && !connection.is_blocked {
            connection.is_blocked = true;
            if !connection.is_looked_after {
                connection.is_looked_after = true;
                connection.moved_ns = self.now_ns;
                self.stalled.push_back((self.now_ns + self.unread_ns, ticket));
            }
            epoll::add(&self.writers, &connection.fd, data, EventFlags::OUT)
        } else {
            Ok(())
        };
        if is_changed.is_err() {
            return self.close(ticket);
        }
        self.count_output(ticket);
        self.watch(ticket);
    }

    /// Goes on sending where sockets take bytes again.
    fn on_writable(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(64);
        match wait(&self.writers, &mut events, Some(&Timespec::default())) {
            Ok(()) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let data = event.data;
            self.send(data.u64());
        }
        Ok(())
    }

    /// Closes those that have taken none of their answers for too long: answers may be long, and they stay in memory.
    fn expire_stalled(&mut self) {
        while let Some((deadline_ns, ticket)) = self.stalled.front().copied() {
            if deadline_ns > self.now_ns {
                return;
            }
            self.stalled.pop_front();
            let Some(connection) = self.table.get_mut(ticket) else { continue };
            let limit_ns = connection.moved_ns + self.unread_ns;
            if !connection.is_blocked {
                connection.is_looked_after = false;
            } else if limit_ns <= self.now_ns {
                self.close(ticket);
            } else {
                self.stalled.push_back((limit_ns, ticket));
            }
        }
    }

    /// Closes those that have not logged in, or have been refused and stay.
    fn expire_logins(&mut self) {
        while let Some((deadline_ns, ticket)) = self.logins.front().copied() {
            if deadline_ns > self.now_ns {
                return;
            }
            self.logins.pop_front();
            if self.table.get_mut(ticket).is_some_and(|open| open.phase != Phase::Open) {
                self.close(ticket);
            }
        }
    }
}
