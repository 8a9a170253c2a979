//! One connection of the loop: reading, asking the service, writing.

use super::{EventLoop, OUTPUT_BATCH_BYTES, Service, Step, WAITING_BYTES_MAX};
use crate::http::connection::Phase;
use crate::http::head::{self, Persistence};
use crate::http::refusal::{HEAD_BYTES_MAX, Refusal};
use crate::http::reply;
use crate::tickets::Ticket;
use plimsoll_core::clock::now_ns;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

/// Received bytes kept for a connection that cannot use them yet, before its socket is left alone.
const INPUT_BYTES_MAX: usize = 2 * HEAD_BYTES_MAX;
/// Largest number of bytes that a refused peer may still send before its connection is cut instead of drained.
const DRAIN_BYTES_MAX: usize = 1024 * 1024;

impl<S: Service> EventLoop<S> {
    pub(super) fn on_readable(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let received = rustix::net::recv(&connection.fd, &mut self.buffer[..], RecvFlags::empty());
        match received {
            Ok((0, _)) => self.on_end(ticket),
            Ok((count, _)) => {
                self.now_ns = now_ns();
                // Moved out and back in, so that the bytes can be used while the loop changes.
                let buffer = std::mem::take(&mut self.buffer);
                self.take_in(ticket, &buffer[..count]);
                self.buffer = buffer;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.close(ticket),
        }
    }

    /// The peer has closed its side. Its earlier requests are still answered.
    fn on_end(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        if connection.phase == Phase::Waiting || connection.is_blocked() {
            connection.is_read_closed = true;
            self.watch(ticket);
        } else {
            self.close(ticket);
        }
    }

    fn take_in(&mut self, ticket: Ticket, received: &[u8]) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        if connection.phase == Phase::Draining {
            connection.drained_bytes += received.len();
            if connection.drained_bytes > DRAIN_BYTES_MAX {
                self.close(ticket);
            }
        } else if connection.input.is_empty() && connection.phase != Phase::Waiting {
            let used = self.consume(ticket, received);
            if used < received.len()
                && let Some(connection) = self.table.get_mut(ticket)
            {
                connection.input.extend_from_slice(&received[used..]);
                self.watch(ticket);
            }
        } else {
            connection.input.extend_from_slice(received);
            let is_split_head = connection.phase == Phase::Head
                && connection.input.len() < HEAD_BYTES_MAX
                && !head::may_be_whole(&connection.input, received.len());
            if connection.phase == Phase::Waiting {
                self.watch(ticket);
            } else if !is_split_head {
                self.resume(ticket);
            }
        }
    }

    /// Continues with bytes that were received earlier.
    fn resume(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let mut input = std::mem::take(&mut connection.input);
        let used = self.consume(ticket, &input);
        if let Some(connection) = self.table.get_mut(ticket) {
            if used < input.len() {
                input.drain(..used);
                connection.input = input;
            }
            self.watch(ticket);
        }
    }

    /// Uses as much of `data` as can be used now and says how many bytes that were.
    fn consume(&mut self, ticket: Ticket, data: &[u8]) -> usize {
        let mut used = 0;
        while let Some(connection) = self.table.get_mut(ticket) {
            if connection.is_blocked() || connection.is_closing {
                break;
            }
            let step = match connection.phase {
                Phase::Waiting | Phase::Draining => break,
                _ if used == data.len() => break,
                Phase::Head => head::parse(&data[used..]).map(|head| {
                    let head = head?;
                    connection.asked = head.asked;
                    connection.body = head.body;
                    connection.phase = Phase::Body;
                    let is_body_due = !connection.body.is_done();
                    if head.expects_continue && is_body_due && used + head.length == data.len() {
                        self.out.extend_from_slice(reply::CONTINUE);
                    }
                    Some(head.length)
                }),
                Phase::Body => connection.body.take(&data[used..]).map(Some),
            };
            match step {
                Ok(Some(count)) => used += count,
                Ok(None) => break,
                Err(refusal) => {
                    self.refuse(ticket, refusal);
                    return data.len();
                }
            }
            if connection.phase == Phase::Body && connection.body.is_done() {
                self.complete(ticket);
            }
        }
        self.send(ticket);
        used
    }

    /// Hands a request that was read whole to the service.
    #[inline]
    fn complete(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let asked = connection.asked;
        match self.service.request(&asked, ticket, self.now_ns, &mut self.out) {
            Step::Waiting => connection.phase = Phase::Waiting,
            Step::Replied => {
                connection.phase = Phase::Head;
                connection.is_closing = asked.persistence == Persistence::Closed;
                if self.out.len() >= OUTPUT_BATCH_BYTES {
                    self.send(ticket);
                }
            }
        }
    }

    /// Tells the peer what was wrong, then reads on for a while: closing with unread bytes would
    /// reset the connection and could destroy the reply on its way.
    fn refuse(&mut self, ticket: Ticket, refusal: Refusal) {
        self.counters.bad_requests.fetch_add(1, Ordering::Relaxed);
        reply::write_refusal(refusal, &mut self.out);
        if let Some(connection) = self.table.get_mut(ticket) {
            connection.phase = Phase::Draining;
        }
        self.send(ticket);
        if let Some(connection) = self.table.get_mut(ticket)
            && !connection.is_blocked()
        {
            let _ = rustix::net::shutdown(&connection.fd, Shutdown::Write);
        }
    }

    /// Sends the appended bytes. Bytes that the socket does not take are kept until it is writable.
    pub(super) fn send(&mut self, ticket: Ticket) {
        if self.out.is_empty() {
            return;
        }
        if let Some(connection) = self.table.get_mut(ticket) {
            if connection.is_blocked() {
                // Bytes of an earlier reply wait for the socket and go first.
                connection.output.append(&mut self.out);
                return;
            }
            let sent = match rustix::net::send(&connection.fd, &self.out, SendFlags::NOSIGNAL) {
                Ok(sent) => sent,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                Err(_) => {
                    self.out.clear();
                    return self.close(ticket);
                }
            };
            if sent < self.out.len() {
                connection.output.extend_from_slice(&self.out[sent..]);
                self.watch(ticket);
            } else if connection.is_closing {
                self.close(ticket);
            }
        }
        self.out.clear();
    }

    pub(super) fn on_writable(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let rest = &connection.output[connection.output_sent..];
        match rustix::net::send(&connection.fd, rest, SendFlags::NOSIGNAL) {
            Ok(sent) => connection.output_sent += sent,
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => return self.close(ticket),
        }
        if connection.output_sent < connection.output.len() {
            return;
        }
        connection.output = Vec::new();
        connection.output_sent = 0;
        if connection.phase == Phase::Draining {
            let _ = rustix::net::shutdown(&connection.fd, Shutdown::Write);
        }
        self.after_reply(ticket);
    }

    /// A reply has been sent: the connection ends, continues with pipelined bytes, or reads.
    pub(super) fn after_reply(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        if connection.is_blocked() {
            return;
        }
        if connection.is_closing {
            return self.close(ticket);
        }
        if connection.input.is_empty() {
            self.watch(ticket);
        } else if connection.phase != Phase::Waiting {
            self.resume(ticket);
        }
        if let Some(connection) = self.table.get_mut(ticket)
            && connection.is_read_closed
            && connection.phase != Phase::Waiting
            && !connection.is_blocked()
        {
            self.close(ticket);
        }
    }

    /// Asks the kernel for the events that this connection can use, if they are not those it asked
    /// for before.
    fn watch(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let waiting = connection.output.len() + connection.input.len();
        if waiting != connection.counted {
            self.waiting_bytes = self.waiting_bytes - connection.counted + waiting;
            let adds = waiting > connection.counted;
            connection.counted = waiting;
            if adds && self.waiting_bytes > WAITING_BYTES_MAX {
                return self.close(ticket);
            }
        }
        let mut wanted = EventFlags::empty();
        if connection.is_blocked() {
            wanted |= EventFlags::OUT;
        } else if !connection.is_read_closed && connection.input.len() < INPUT_BYTES_MAX {
            wanted |= EventFlags::IN;
        }
        if wanted != connection.interest {
            connection.interest = wanted;
            let data = EventData::new_u64(ticket);
            if epoll::modify(&self.epoll, connection.fd.as_fd(), data, wanted).is_err() {
                self.close(ticket);
            }
        }
    }
}
