//! The operations that a shard holds: waiting, in flight, or about to be sent again.

use super::batch::Item;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A slot's memory beyond this is given back when its operation is settled, bytes.
const KEPT_BYTES: usize = 64 << 10;

/// Stage of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The slot is free.
    #[default]
    Free,
    /// An earlier operation on the same document is not settled.
    Behind,
    /// It can be sent.
    Ready,
    /// It was sent.
    UnderWay,
    /// It was rejected and pauses.
    Paused,
}

/// An operation that is held.
#[derive(Debug, Default)]
pub struct Slot {
    /// Facts about the operation, and the ends of its parts in `bytes`.
    pub item: Item,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Stage that the operation has reached.
    pub stage: Stage,
    /// Time at which its turn came, ns; 0 while that is not known.
    pub first_ns: u64,
    /// Its intended start this time, ns: with a rate and for the first try, that of the schedule; otherwise the time at which it
    /// could be sent. 0 where the engine knows.
    pub due_ns: u64,
    /// Number of times that it was rejected or lost.
    pub tries: u32,
    /// Tries that count against the limit of retries: all except those that were answered with 429.
    pub counted: u32,
    /// The last status, or 0 to 8 for what befell the connection.
    pub last: Option<u16>,
}

impl Slot {
    /// Returns whether it still pauses until then: an operation that has expired leaves its place in the queue behind.
    fn pauses_until(&self, until_ns: u64) -> bool {
        self.stage == Stage::Paused && self.due_ns == until_ns
    }
}

/// All operations of a shard.
#[derive(Default)]
pub struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    ready: VecDeque<u32>,
    paused: BinaryHeap<Reverse<(u64, u32)>>,
    behind: u32,
    bytes: usize,
}

impl Slots {
    /// The number that are held.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Number of bytes that they hold.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number that wait behind earlier ones.
    pub fn behind(&self) -> u32 {
        self.behind
    }

    pub fn get(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }

    /// Takes an operation in; it stands nowhere yet.
    pub fn hold(&mut self, item: Item, bytes: &[u8]) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[number as usize];
        let mut own = std::mem::take(&mut slot.bytes);
        own.clear();
        own.extend_from_slice(bytes);
        self.bytes += bytes.len();
        *slot = Slot { item, bytes: own, stage: Stage::Ready, ..Slot::default() };
        number
    }

    /// Gives a slot back.
    pub fn release(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        self.bytes -= slot.bytes.len();
        slot.stage = Stage::Free;
        slot.bytes.clear();
        slot.bytes.shrink_to(KEPT_BYTES);
        self.free.push(number);
    }

    /// It must wait behind an earlier one since then, ns.
    pub fn wait_behind(&mut self, number: u32, since_ns: u64) {
        self.behind += 1;
        let slot = self.get(number);
        slot.stage = Stage::Behind;
        if slot.first_ns == 0 {
            slot.first_ns = since_ns;
        }
    }

    /// Its turn has come. An intended start of the schedule stays: the wait behind others is part of the response time.
    pub fn comes_up(&mut self, number: u32, now_ns: u64) {
        self.behind -= 1;
        let slot = self.get(number);
        slot.stage = Stage::Ready;
        if slot.due_ns == 0 {
            slot.due_ns = now_ns;
        }
        self.ready.push_back(number);
    }

    /// It pauses until then, ns.
    pub fn pause(&mut self, number: u32, until_ns: u64) {
        let slot = self.get(number);
        (slot.stage, slot.due_ns) = (Stage::Paused, until_ns);
        self.paused.push(Reverse((until_ns, number)));
    }

    /// The next one that can be sent, those that have waited longest first.
    pub fn next_ready(&mut self, now_ns: u64) -> Option<u32> {
        while let Some(number) = self.ready.pop_front() {
            // What has expired meanwhile still stands in the queue.
            if self.slots[number as usize].stage == Stage::Ready {
                return Some(number);
            }
        }
        while self.paused.peek()?.0.0 <= now_ns {
            let Reverse((until_ns, number)) = self.paused.pop()?;
            if self.slots[number as usize].pauses_until(until_ns) {
                return Some(number);
            }
        }
        None
    }

    /// Returns whether any waits to be sent, or to be sent again.
    pub fn is_waiting(&self) -> bool {
        !self.ready.is_empty() || !self.paused.is_empty()
    }

    /// Those that wait to be sent, or to be sent again, and whose turn came at `since_ns` or before.
    pub fn waiting_since(&self, since_ns: u64) -> Vec<u32> {
        let is_old = |slot: &Slot| {
            matches!(slot.stage, Stage::Ready | Stage::Paused)
                && slot.first_ns > 0
                && slot.first_ns <= since_ns
        };
        let all = (0u32..).zip(&self.slots);
        all.filter(|(_, slot)| is_old(slot)).map(|(number, _)| number).collect()
    }

    /// The number that can be sent now, or more.
    pub fn sendable(&self, now_ns: u64) -> usize {
        let due = self.paused.peek().is_some_and(|Reverse((due_ns, _))| *due_ns <= now_ns);
        self.ready.len() + if due { self.paused.len() } else { 0 }
    }

    /// Time at which the first of those that pause can be sent, ns.
    pub fn first_due_ns(&self) -> u64 {
        self.paused.peek().map_or(u64::MAX, |Reverse((due_ns, _))| *due_ns)
    }

    /// All that are held, in the order of the input.
    pub fn held(&self) -> Vec<&Slot> {
        let mut held: Vec<_> = self.slots.iter().filter(|slot| slot.stage != Stage::Free).collect();
        held.sort_by_key(|slot| slot.item.number);
        held
    }
}
