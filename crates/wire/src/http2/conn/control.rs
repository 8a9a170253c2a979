//! Frames about the connection, and about streams as a whole.

use super::{Broken, Conn, Step, broken};
use crate::Fault;
use crate::http2::frame::{self, Head, MOST, code, flag, kind, setting};

/// Number of PING and SETTINGS frames and interim replies that may come without a byte of a reply, or a request,
/// between them. The answers to them are all that a peer can make us say without end.
const IDLE_FRAMES: u32 = 10_000;

const WINDOW_TOO_LARGE: &str = "the peer opens a window beyond 2^31 - 1 bytes";

impl Conn {
    pub(super) fn control(
        &mut self,
        head: Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Broken> {
        match head.kind {
            kind::SETTINGS => self.settings(head, payload, out),
            kind::PING => self.ping(head, payload, out),
            kind::GOAWAY => self.goaway(payload),
            kind::RST_STREAM => self.reset(head.id, word(payload)?),
            _ => self.window_update(head.id, word(payload)?, out),
        }
    }

    /// Counts a frame that only costs.
    pub(in crate::http2) fn count_idle(&mut self) -> Result<(), Broken> {
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES {
            let why = "a flood of PING, SETTINGS or interim replies, and no reply";
            return Err(broken(code::ENHANCE_YOUR_CALM, why));
        }
        Ok(())
    }

    fn settings(
        &mut self,
        head: Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Broken> {
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() || (head.has(flag::ACK) && !payload.is_empty()) {
            return Err(broken(code::FRAME_SIZE_ERROR, "SETTINGS of an impossible length"));
        }
        self.count_idle()?;
        if head.has(flag::ACK) {
            return Ok(None);
        }
        self.peer_streams_max.get_or_insert(u32::MAX);
        for &[n0, n1, v0, v1, v2, v3] in settings {
            self.set(u16::from_be_bytes([n0, n1]), u32::from_be_bytes([v0, v1, v2, v3]))?;
        }
        frame::put(kind::SETTINGS, flag::ACK, 0, &[], out);
        // A window may have opened.
        self.sender.flush(&mut self.streams, out);
        Ok(None)
    }

    fn set(&mut self, name: u16, value: u32) -> Result<(), Broken> {
        match name {
            setting::HEADER_TABLE_SIZE => self.sender.encoder.peer_limit(value),
            setting::MAX_CONCURRENT_STREAMS => self.peer_streams_max = Some(value),
            setting::INITIAL_WINDOW_SIZE => {
                if value > MOST {
                    return Err(broken(code::FLOW_CONTROL_ERROR, WINDOW_TOO_LARGE));
                }
                let change = i64::from(value) - i64::from(self.sender.stream_window);
                self.sender.stream_window = value;
                for (_, stream) in self.streams.iter_mut() {
                    stream.window += change;
                    if stream.window > i64::from(MOST) {
                        return Err(broken(code::FLOW_CONTROL_ERROR, WINDOW_TOO_LARGE));
                    }
                }
            }
            setting::MAX_FRAME_SIZE => {
                if !(frame::PAYLOAD_BYTES_MAX..1 << 24).contains(&value) {
                    let why = "SETTINGS_MAX_FRAME_SIZE is not within 2^14 and 2^24 - 1";
                    return Err(broken(code::PROTOCOL_ERROR, why));
                }
                self.sender.payload_bytes_max = value;
            }
            setting::ENABLE_PUSH if value != 0 => {
                let why = "a server must not set SETTINGS_ENABLE_PUSH";
                return Err(broken(code::PROTOCOL_ERROR, why));
            }
            _ => {}
        }
        Ok(())
    }

    fn ping(
        &mut self,
        head: Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Broken> {
        if payload.len() != 8 {
            return Err(broken(code::FRAME_SIZE_ERROR, "PING is not of 8 bytes"));
        }
        self.count_idle()?;
        if !head.has(flag::ACK) {
            frame::put(kind::PING, flag::ACK, 0, payload, out);
        }
        Ok(None)
    }

    /// The peer takes no more streams than those up to its last one.
    fn goaway(&mut self, payload: &[u8]) -> Result<Option<Step>, Broken> {
        let Some((&[l0, l1, l2, l3, c0, c1, c2, c3], _)) = payload.split_first_chunk::<8>() else {
            return Err(broken(code::FRAME_SIZE_ERROR, "GOAWAY is shorter than 8 bytes"));
        };
        let last = u32::from_be_bytes([l0, l1, l2, l3]) & MOST;
        // It may be said again with an earlier stream, never with a later one.
        let last = self.goaway.map_or(last, |(before, _)| last.min(before));
        self.goaway = Some((last, u32::from_be_bytes([c0, c1, c2, c3])));
        self.leaving = true;
        self.sweeping = true;
        match self.sweep() {
            None if self.is_finished() => Err((code::NO_ERROR, self.closed(false))),
            step => Ok(step),
        }
    }

    /// The next stream that the peer's goodbye leaves out.
    pub(super) fn sweep(&mut self) -> Option<Step> {
        let (last, code) = self.goaway?;
        let beyond = self.streams.iter_mut().find(|(_, stream)| stream.id > last);
        let Some((slot, tag, began)) = beyond.map(|(slot, s)| (slot, s.tag, s.begun)) else {
            self.sweeping = false;
            return None;
        };
        self.release(slot);
        let fault = Fault::Reset { began, why: frame::goaway_text(code) };
        Some(Step::GivenUp { tag, fault, unprocessed: !began })
    }

    /// The peer gives up one stream.
    fn reset(&mut self, id: u32, code: u32) -> Result<Option<Step>, Broken> {
        let Some(slot) = self.streams.find(id) else { return Ok(None) };
        let stream = self.streams.get(slot);
        let (tag, began) = (stream.tag, stream.begun);
        self.release(slot);
        let fault = Fault::Reset { began, why: frame::reset_text(code) };
        let unprocessed = code == code::REFUSED_STREAM && !began;
        Ok(Some(Step::GivenUp { tag, fault, unprocessed }))
    }

    fn window_update(
        &mut self,
        id: u32,
        increment: u32,
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Broken> {
        const NOTHING: &str = "WINDOW_UPDATE opens nothing";
        let increment = i64::from(increment & MOST);
        if id == 0 {
            self.sender.window += increment;
            if increment == 0 {
                return Err(broken(code::PROTOCOL_ERROR, NOTHING));
            }
            if self.sender.window > i64::from(MOST) {
                return Err(broken(code::FLOW_CONTROL_ERROR, WINDOW_TOO_LARGE));
            }
            self.sender.flush(&mut self.streams, out);
            return Ok(None);
        }
        let Some(slot) = self.streams.find(id) else { return Ok(None) };
        let stream = self.streams.get(slot);
        stream.window += increment;
        if increment == 0 {
            return Ok(Some(self.refuse(slot, Fault::Protocol(NOTHING), out)));
        }
        if stream.window > i64::from(MOST) {
            return Ok(Some(self.refuse(slot, Fault::Protocol(WINDOW_TOO_LARGE), out)));
        }
        self.sender.flush_one(&mut self.streams, slot, out);
        Ok(None)
    }
}

/// A payload of one number.
fn word(payload: &[u8]) -> Result<u32, Broken> {
    let bytes = <[u8; 4]>::try_from(payload);
    let why = "RST_STREAM or WINDOW_UPDATE is not of 4 bytes";
    bytes.map(u32::from_be_bytes).map_err(|_| broken(code::FRAME_SIZE_ERROR, why))
}

const HTTP1: &[u8] = b"HTTP/1.";

/// Returns true if the first bytes of a connection are those of another protocol that is known.
pub(super) fn is_foreign(first: &[u8]) -> bool {
    let http1 = first.iter().zip(HTTP1).all(|(byte, wanted)| byte == wanted);
    !first.is_empty() && (http1 || matches!(first, [0x15 | 0x16, 3, ..]))
}

/// Returns the fault for these first bytes of a connection.
pub(super) fn foreign(first: &[u8]) -> Fault {
    Fault::Protocol(match first {
        [b'H', ..] if is_foreign(first) => "the peer speaks HTTP/1.1, not HTTP/2",
        _ if is_foreign(first) => "the peer speaks TLS: ask it with https://",
        _ => "the peer does not begin with SETTINGS, as HTTP/2 must",
    })
}
