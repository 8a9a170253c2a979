//! The requests in flight on one connection, found by their stream's number.

use crate::Fault;
use crate::http1::{Encoding, Keep, Limits, REFUSAL_BYTES, RETAINED_BYTES, is_refusal};
use plimsoll_core::holding::Hold;

/// Number of small buffers that a connection keeps for replies to come, so that it holds at most 64 KiB at rest. More
/// than one is used only where replies that are kept arrive in turns.
const SPARE_BUFFERS: usize = 8;

/// One request in flight.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Its number; 0 in a slot that is free.
    pub(super) id: u32,
    pub(super) tag: u32,
    pub(super) keep: Keep,
    /// The request was HEAD.
    pub(super) to_head: bool,
    /// The final head has come: what follows is body or trailers.
    pub(super) begun: bool,
    pub(super) truncated: bool,
    pub(super) status: u16,
    pub(super) encoding: Encoding,
    /// Length that the body must have, bytes: 0 where a reply has none; `None` if the head does not declare it.
    pub(super) length: Option<u64>,
    pub(super) body_bytes: u64,
    /// Bytes received since the peer was last given more room.
    pub(super) received: u32,
    /// Amount that may be sent; below 0 when the peer has made its windows smaller.
    pub(super) window: i64,
    /// The unsent bytes of the request's body, from `sent` on.
    pub(super) unsent: Vec<u8>,
    pub(super) sent: usize,
    /// The header lines that are kept, then what is kept of the body.
    pub(super) kept: Vec<u8>,
    pub(super) head_len: usize,
    pub(super) hold: Hold,
}

impl Stream {
    /// Part of the body that is kept, bytes.
    #[inline]
    pub(super) fn room(&self, limits: &Limits) -> usize {
        match self.keep.body {
            true => limits.body_bytes_kept,
            false if is_refusal(self.status) => REFUSAL_BYTES.min(limits.body_bytes_kept),
            false => 0,
        }
    }

    /// Returns true if the body is given out as it comes.
    #[inline]
    pub(super) fn streams(&self) -> bool {
        self.keep.stream && !is_refusal(self.status)
    }

    /// Keeps what fits into `room`, the most that is kept of the whole body, and into the memory for all replies.
    pub(super) fn push_body(&mut self, bytes: &[u8], room: usize) {
        let room = room.saturating_sub(self.kept.len() - self.head_len);
        let mut taken = bytes.len().min(room);
        if self.truncated || !self.hold.covers(self.kept.len() + taken) {
            taken = 0;
        }
        self.truncated |= taken < bytes.len();
        self.kept.extend_from_slice(&bytes[..taken]);
    }

    /// Notes that more of the body comes.
    ///
    /// # Errors
    /// When it is longer than it says, or than is allowed.
    #[inline]
    pub(super) fn count_body(&mut self, bytes: u32, limits: &Limits) -> Result<(), Fault> {
        self.body_bytes += u64::from(bytes);
        if self.length.is_some_and(|length| self.body_bytes > length) {
            return Err(Fault::Protocol("the reply's body is longer than it may be"));
        }
        if self.body_bytes > limits.body_bytes && !self.streams() {
            return Err(crate::http1::BODY_TOO_LONG);
        }
        Ok(())
    }
}

/// All streams of one connection. Slots are used again, the last one first.
#[derive(Debug, Default)]
pub(super) struct Streams {
    slots: Vec<Stream>,
    free: Vec<u32>,
    /// Open addressing with steps of one: number and slot, number 0 where there is none. The length is a power
    /// of two and at least twice the streams, so that a search ends soon: numbers follow on one another.
    index: Vec<(u32, u32)>,
    spare: Vec<Vec<u8>>,
}

impl Streams {
    /// Number of requests in flight.
    #[inline]
    pub(super) fn active(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// All requests in flight, with their slots.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Stream)> {
        let slots = self.slots.iter_mut().enumerate().map(|(slot, stream)| (slot as u32, stream));
        slots.filter(|(_, stream)| stream.id != 0)
    }

    /// All requests in flight.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.slots.iter().filter(|stream| stream.id != 0)
    }

    #[inline]
    pub(super) fn get(&mut self, slot: u32) -> &mut Stream {
        &mut self.slots[slot as usize]
    }

    /// Takes a slot for a stream with this number.
    pub(super) fn begin(&mut self, id: u32) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Stream::default());
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize].id = id;
        if self.active() * 2 > self.index.len() {
            self.grow();
        } else {
            self.enter(id, slot);
        }
        slot
    }

    /// The slot of the stream with this number, if it is in flight.
    #[inline]
    pub(super) fn find(&self, id: u32) -> Option<u32> {
        let mask = self.index.len().checked_sub(1)?;
        let mut place = (id >> 1) as usize & mask;
        loop {
            match self.index[place] {
                (found, slot) if found == id => return Some(slot),
                (0, _) => return None,
                _ => place = (place + 1) & mask,
            }
        }
    }

    /// Gives the slot back; what was kept in it goes to the buffers for use again.
    pub(super) fn release(&mut self, slot: u32) {
        let stream = &mut self.slots[slot as usize];
        let id = stream.id;
        let old = std::mem::take(stream);
        self.leave(id);
        self.free.push(slot);
        self.give_buffer(old.kept);
        self.give_buffer(old.unsent);
    }

    /// A buffer, empty; perhaps with room.
    #[inline]
    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a buffer back, unless it is large or there are enough.
    #[inline]
    pub(super) fn give_buffer(&mut self, mut buffer: Vec<u8>) {
        if (1..=RETAINED_BYTES).contains(&buffer.capacity()) && self.spare.len() < SPARE_BUFFERS {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    fn enter(&mut self, id: u32, slot: u32) {
        let mask = self.index.len() - 1;
        let mut place = (id >> 1) as usize & mask;
        while self.index[place].0 != 0 {
            place = (place + 1) & mask;
        }
        self.index[place] = (id, slot);
    }

    /// Takes a number out of the index and moves up those behind that it had kept from their place.
    fn leave(&mut self, id: u32) {
        let Some(mask) = self.index.len().checked_sub(1) else { return };
        let mut hole = (id >> 1) as usize & mask;
        while self.index[hole].0 != id {
            if self.index[hole].0 == 0 {
                return;
            }
            hole = (hole + 1) & mask;
        }
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let (other, _) = self.index[place];
            if other == 0 {
                break;
            }
            let home = (other >> 1) as usize & mask;
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(hole) & mask) {
                self.index[hole] = self.index[place];
                hole = place;
            }
        }
        self.index[hole] = (0, 0);
    }

    #[cold]
    fn grow(&mut self) {
        let length = (self.active() * 2).next_power_of_two().max(16);
        self.index.clear();
        self.index.resize(length, (0, 0));
        for slot in 0..self.slots.len() {
            let id = self.slots[slot].id;
            if id != 0 {
                self.enter(id, slot as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn numbers_are_found_as_long_as_they_are_under_way() {
        let (mut rng, mut streams) = (Rng::new(4), Streams::default());
        let mut expected = BTreeMap::new();
        let mut next = 1;
        for _ in 0..100_000 {
            if rng.below(100) < 50 && expected.len() < 300 {
                // Gaps make collisions, as streams that last long do.
                let gap = if rng.below(10) == 0 { 1000 } else { 1 };
                next += 2 * (1 + rng.below(gap) as u32);
                let slot = streams.begin(next);
                assert_eq!(streams.get(slot).id, next);
                assert_eq!(expected.insert(next, slot), None);
            } else if let Some(&id) = expected.keys().nth(rng.below(300) as usize) {
                let slot = expected.remove(&id).unwrap();
                assert_eq!(streams.find(id), Some(slot));
                streams.release(slot);
                assert_eq!(streams.find(id), None);
            }
            assert_eq!(streams.active(), expected.len());
        }
        for (id, slot) in &expected {
            assert_eq!(streams.find(*id), Some(*slot));
        }
        assert!(streams.slots.len() <= 300);
    }
}
