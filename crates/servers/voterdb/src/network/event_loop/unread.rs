//! Answers that their clients do not read: bounded for each connection, and over all of them.

use super::super::connection::OUTPUT_BYTES_MAX;
use super::Network;
use plimsoll_serving::tickets::Ticket;
use rustix::event::epoll::{self, EventData, EventFlags};

/// Bytes of answers that wait for peers which do not read them, over all connections of a thread. A peer that adds more is closed.
const OUTPUT_BYTES_ALL_MAX: usize = 512 << 20;

impl Network {
    /// Counts what waits for a peer. One whose answers make it too much for all of them is closed.
    pub(super) fn count_output(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let waiting = connection.waiting_bytes();
        self.output_bytes = self.output_bytes - connection.counted + waiting;
        let adds = waiting > connection.counted;
        connection.counted = waiting;
        if adds && self.output_bytes > OUTPUT_BYTES_ALL_MAX {
            self.close(ticket);
        }
    }

    /// Leaves a socket alone while too much waits for its peer, or its next call waits.
    pub(super) fn watch(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        let is_unread = connection.waiting_bytes() > OUTPUT_BYTES_MAX || connection.waits_to_ask;
        if is_unread != connection.is_unread {
            connection.is_unread = is_unread;
            let wanted = if is_unread { EventFlags::empty() } else { EventFlags::IN };
            let data = EventData::new_u64(ticket);
            if epoll::modify(&self.readers, &connection.fd, data, wanted).is_err() {
                self.close(ticket);
            }
        }
    }
}
