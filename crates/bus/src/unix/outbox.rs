//! Frames on their way out: bounded, so that a side that does not read costs no memory, and written by a thread of its own, so
//! that no one waits for it.

use super::frame::Frame;
use crate::bus::BusError;
use plimsoll_core::clock::now_ns;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that are written at once.
const BATCH: usize = 128 * 1024;
/// Longest time for which the last frames of an outbox that was closed wait for a side that does not read.
const STALL_MAX: Duration = Duration::from_millis(500);

#[derive(Default)]
struct Held {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Messages of a subscription that were dropped and not reported yet.
    lost: BTreeMap<u64, u64>,
    /// The last question that was answered; it answers those before it too.
    flushed: Option<u64>,
    is_closed: bool,
}

/// The frames of one connection.
pub struct Outbox {
    held: Mutex<Held>,
    has_changed: Condvar,
    bytes_max: usize,
}

impl Outbox {
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { held: Mutex::default(), has_changed: Condvar::new(), bytes_max })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, mut held: MutexGuard<'_, Held>, frame: Vec<u8>) {
        held.bytes += frame.len();
        held.frames.push_back(frame);
        drop(held);
        self.has_changed.notify_all();
    }

    fn has_room(&self, held: &Held, frame: &[u8]) -> bool {
        held.bytes + frame.len() <= self.bytes_max
    }

    /// Adds a message of a subscription, or counts it as lost.
    pub fn offer(&self, id: u64, frame: Vec<u8>) {
        let mut held = self.held();
        if held.is_closed {
            return;
        }
        if self.has_room(&held, &frame) {
            self.add(held, frame);
        } else {
            *held.lost.entry(id).or_default() += 1;
        }
    }

    /// Adds a frame; waits until there is room for it.
    pub fn put(&self, frame: Vec<u8>, within: Duration) -> Result<(), BusError> {
        let is_full = |held: &mut Held| !held.is_closed && !self.has_room(held, &frame);
        let waited = self.has_changed.wait_timeout_while(self.held(), within, is_full);
        let (held, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        match (held.is_closed, timeout.timed_out()) {
            (true, _) => Err(BusError::Disconnected),
            (false, true) => Err(BusError::NotInTime { within }),
            (false, false) => {
                self.add(held, frame);
                Ok(())
            }
        }
    }

    /// Answers a question.
    pub fn answer(&self, number: u64) {
        let mut held = self.held();
        held.flushed = held.flushed.max(Some(number));
        drop(held);
        self.has_changed.notify_all();
    }

    /// Forgets the losses of a subscription that has ended.
    pub fn forget(&self, id: u64) {
        self.held().lost.remove(&id);
    }

    /// Ends the outbox; what it holds is still written.
    pub fn close(&self) {
        self.held().is_closed = true;
        self.has_changed.notify_all();
    }

    fn is_closed(&self) -> bool {
        self.held().is_closed
    }

    /// Waits for frames, and moves some into `bytes`; false once the outbox is closed and empty.
    fn next(&self, bytes: &mut Vec<u8>) -> bool {
        let is_idle = |held: &mut Held| {
            let is_empty = held.frames.is_empty() && held.lost.is_empty() && held.flushed.is_none();
            is_empty && !held.is_closed
        };
        let waited = self.has_changed.wait_while(self.held(), is_idle);
        let mut held = waited.unwrap_or_else(PoisonError::into_inner);
        while bytes.len() < BATCH
            && let Some(frame) = held.frames.pop_front()
        {
            held.bytes -= frame.len();
            bytes.extend(frame);
        }
        for (id, messages) in std::mem::take(&mut held.lost) {
            bytes.extend(Frame::Lost { id, messages }.encode());
        }
        if let Some(number) = held.flushed.take() {
            bytes.extend(Frame::Flushed { number }.encode());
        }
        drop(held);
        self.has_changed.notify_all();
        !bytes.is_empty()
    }

    /// Writes all frames until the outbox is closed, or the other side is gone.
    pub fn write_to(&self, stream: &UnixStream) {
        // Without a limit a side that does not read would keep this thread for ever.
        if stream.set_write_timeout(Some(Duration::from_millis(100))).is_ok() {
            let mut bytes = Vec::new();
            while self.next(&mut bytes) && self.write(stream, &bytes).is_ok() {
                bytes.clear();
                bytes.shrink_to(2 * BATCH);
            }
        }
        self.close();
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }

    fn write(&self, mut stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
        let mut since_ns = now_ns();
        while !bytes.is_empty() {
            match stream.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    since_ns = now_ns();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let stalled = Duration::from_nanos(now_ns().saturating_sub(since_ns));
                    if self.is_closed() && stalled > STALL_MAX {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
