//! Connections and the table that holds them.

use super::body::Body;
use super::head::{Asked, Method, Persistence, Route};
use rustix::event::epoll::EventFlags;
use std::os::fd::OwnedFd;

/// What a connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It reads the head of a request.
    Head,
    /// It reads the body of a request.
    Body,
    /// Its request is with the service, which has not answered.
    Waiting,
    /// It was refused; what still arrives is dropped until the peer closes.
    Draining,
}

/// One connection. An idle one owns no buffer, so that tens of thousands fit in a few megabytes.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    pub(super) phase: Phase,
    /// What the event queue was told to report.
    pub(super) interest: EventFlags,
    pub(super) asked: Asked,
    pub(super) body: Body,
    /// Received bytes that could not be used yet.
    pub(super) input: Vec<u8>,
    /// Bytes of replies that the socket did not take.
    pub(super) output: Vec<u8>,
    /// How many bytes of `output` have left since.
    pub(super) output_sent: usize,
    /// Bytes dropped while draining.
    pub(super) drained_bytes: usize,
    /// Whether to close once the output has left.
    pub(super) is_closing: bool,
    /// Whether the peer has closed its side.
    pub(super) is_read_closed: bool,
}

impl Connection {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            phase: Phase::Head,
            interest: EventFlags::IN,
            asked: Asked {
                method: Method::Other,
                persistence: Persistence::Kept,
                route: Route::Load,
            },
            body: Body::sized(0),
            input: Vec::new(),
            output: Vec::new(),
            output_sent: 0,
            drained_bytes: 0,
            is_closing: false,
            is_read_closed: false,
        }
    }

    /// Whether the socket did not take all of an earlier reply.
    pub(super) fn is_blocked(&self) -> bool {
        !self.output.is_empty()
    }
}

/// Names a connection; it is never reused for another within 2^32 connections of one place.
pub(crate) type Ticket = u64;

/// A table of connections under tickets that carry a generation, so that an event or a late
/// answer for a closed connection never reaches the next one in its place.
#[derive(Debug, Default)]
pub(super) struct Table {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place {
    generation: u32,
    connection: Option<Connection>,
}

impl Table {
    /// Takes a connection in and names it.
    pub(super) fn insert(&mut self, connection: Connection) -> Ticket {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, connection: None });
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        place.connection = Some(connection);
        u64::from(place.generation) << 32 | u64::from(index)
    }

    /// The connection of this name, unless it is gone.
    #[inline]
    pub(super) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Connection> {
        let place = self.places.get_mut((ticket & 0xffff_ffff) as usize)?;
        if place.generation != (ticket >> 32) as u32 {
            return None;
        }
        place.connection.as_mut()
    }

    /// Takes the connection of this name out.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Connection> {
        let index = (ticket & 0xffff_ffff) as u32;
        let place = self.places.get_mut(index as usize)?;
        if place.generation != (ticket >> 32) as u32 {
            return None;
        }
        let connection = place.connection.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        Some(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn connection() -> Connection {
        Connection::new(OwnedFd::from(File::open("/dev/null").unwrap()))
    }

    #[test]
    fn an_old_ticket_does_not_reach_the_next_connection_in_its_place() {
        let mut table = Table::default();
        let first = table.insert(connection());
        assert!(table.remove(first).is_some());
        let second = table.insert(connection());
        assert_eq!(first & 0xffff_ffff, second & 0xffff_ffff);
        assert!(table.get_mut(first).is_none() && table.remove(first).is_none());
        assert!(table.get_mut(second).is_some());
    }

    #[test]
    fn an_idle_connection_is_small() {
        let bytes = size_of::<Place>();
        assert!(bytes <= 256, "{bytes} bytes");
    }
}
