//! Connections whose messages wait: for room, or for their turn behind other connections.
//!
//! A client may send more than is ever answered. Its messages take part in turn with those of all other clients, so that none of them
//! waits longer than one turn of each.

use super::super::connection::OUTPUT_BYTES_MAX;
use super::Network;
use plimsoll_serving::tickets::Ticket;

impl Network {
    /// Puts a connection at the end of those that wait.
    pub(super) fn hold(&mut self, ticket: Ticket) {
        let Some(connection) = self.table.get_mut(ticket) else { return };
        if !connection.is_held {
            connection.is_held = true;
            self.held.push_back(ticket);
        }
    }

    /// The same for one whose next call is one over all partitions, while too many of those are in flight.
    pub(super) fn hold_until_asks_end(&mut self, ticket: Ticket) {
        if let Some(connection) = self.table.get_mut(ticket) {
            connection.waits_to_ask = true;
        }
        self.hold(ticket);
        self.watch(ticket);
    }

    /// Returns true if a connection that waits can go on at once.
    pub(super) fn can_resume(&mut self) -> bool {
        let table = &mut self.table;
        let may_ask = self.calls.has_room_to_ask();
        let can_go_on = |ticket: &Ticket| {
            table.get_mut(*ticket).is_none_or(|held| {
                held.waiting_bytes() <= OUTPUT_BYTES_MAX && (may_ask || !held.waits_to_ask)
            })
        };
        !self.calls.is_full() && self.held.iter().any(can_go_on)
    }

    /// Gives each connection that waits its turn, until there is no room.
    pub(super) fn resume(&mut self) {
        for _ in 0..self.held.len() {
            if self.calls.is_full() {
                return;
            }
            let Some(ticket) = self.held.pop_front() else { return };
            let may_ask = self.calls.has_room_to_ask();
            let Some(connection) = self.table.get_mut(ticket) else { continue };
            if connection.waits_to_ask && !may_ask {
                self.held.push_back(ticket);
                continue;
            }
            let had_to_ask = std::mem::take(&mut connection.waits_to_ask);
            connection.is_held = false;
            if connection.input.is_empty() {
                self.on_readable(ticket);
            } else {
                self.take_in(ticket, &[]);
            }
            if had_to_ask {
                self.watch(ticket);
            }
        }
    }
}
