//! The bytes of an agent's message: JSON, but for what comes each second and for the sums at the end, which are compact.
//!
//! A compact message begins with a byte that no JSON begins with. The sums of an end stand before the JSON of the rest of it.

use super::Up;
use plimsoll_core::interval::Compact;
use thiserror::Error;

const SECOND: u8 = 1;
const ENDED: u8 = 2;

/// A message that cannot be read.
#[derive(Debug, Error)]
pub enum FrameError {
    /// Its JSON is wrong.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It ends too early.
    #[error("it is cut off")]
    Cut,
}

impl Up {
    /// The bytes of the message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let json = |bytes: Vec<u8>| {
            let mut bytes = bytes;
            // Writing to memory cannot fail, and no key of a message is anything but text.
            let _ = serde_json::to_writer(&mut bytes, self);
            bytes
        };
        match self {
            Self::Second(second) => [&[SECOND], second.as_bytes()].concat(),
            Self::Ended(ended) => match &ended.end {
                Ok(end) => {
                    let mut bytes = vec![ENDED];
                    put(&mut bytes, Some(&end.totals));
                    put(&mut bytes, end.warmup.as_ref());
                    json(bytes)
                }
                Err(_) => json(Vec::new()),
            },
            _ => json(Vec::new()),
        }
    }

    /// Reads the bytes of a message.
    ///
    /// # Errors
    /// When they are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        match bytes.split_first() {
            Some((&SECOND, second)) => Ok(Self::Second(Compact::of_bytes(second.to_vec()))),
            Some((&ENDED, mut bytes)) => {
                let totals = take(&mut bytes)?.ok_or(FrameError::Cut)?;
                let warmup = take(&mut bytes)?;
                let mut message = serde_json::from_slice(bytes)?;
                if let Self::Ended(ended) = &mut message
                    && let Ok(end) = &mut ended.end
                {
                    (end.totals, end.warmup) = (totals, warmup);
                }
                Ok(message)
            }
            _ => Ok(serde_json::from_slice(bytes)?),
        }
    }
}

/// Appends the bytes of an interval behind their length; the length of none is the largest number.
fn put(bytes: &mut Vec<u8>, compact: Option<&Compact>) {
    let own = compact.map(Compact::as_bytes);
    let length = own.map_or(u32::MAX, |own| own.len() as u32);
    bytes.extend(length.to_be_bytes());
    bytes.extend(own.unwrap_or_default());
}

fn take(bytes: &mut &[u8]) -> Result<Option<Compact>, FrameError> {
    let (head, left) = bytes.split_at_checked(4).ok_or(FrameError::Cut)?;
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    if length == u32::MAX {
        *bytes = left;
        return Ok(None);
    }
    let (own, left) = left.split_at_checked(length as usize).ok_or(FrameError::Cut)?;
    *bytes = left;
    Ok(Some(Compact::of_bytes(own.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::end::EndLine;
    use crate::message::Ended;
    use plimsoll_core::interval::Interval;
    use plimsoll_engine::run::RunEnd;

    fn interval(count: u64) -> Interval {
        let mut interval = Interval::new(1);
        (interval.ledger.scheduled, interval.ledger.sent, interval.ledger.ok) =
            (count, count, count);
        (0..count).for_each(|number| interval.classes[0].record_ok(1_000_000 * number, 1));
        interval
    }

    #[test]
    fn a_second_and_the_sums_of_an_end_come_back_as_they_were() {
        let second = Compact::from(&interval(3));
        let Ok(Up::Second(back)) = Up::decode(&Up::Second(second.clone()).encode()) else {
            panic!("not a second");
        };
        assert_eq!(back, second);
        for warmup in [None, Some(interval(5))] {
            let end = RunEnd { totals: interval(9), warmup, cpu_s: 1.5, ..RunEnd::default() };
            let end = Ok(EndLine::from(&end));
            let ended = Ended { phase: 2, seconds: 4, end, windows: Vec::new() };
            let message = Up::Ended(Box::new(ended));
            let back = Up::decode(&message.encode()).unwrap();
            assert_eq!(format!("{back:?}"), format!("{message:?}"));
        }
    }

    #[test]
    fn other_messages_are_json_and_those_that_are_cut_off_are_errors() {
        let failed = Ended { phase: 0, seconds: 0, end: Err("no".to_owned()), windows: Vec::new() };
        for message in [Up::Armed { phase: 3 }, Up::Ended(Box::new(failed))] {
            let bytes = message.encode();
            assert!(bytes.starts_with(b"{"));
            let back = Up::decode(&bytes).unwrap();
            assert_eq!(format!("{back:?}"), format!("{message:?}"));
        }
        let end = RunEnd { totals: interval(2), ..RunEnd::default() };
        let end = Ok(EndLine::from(&end));
        let bytes =
            Up::Ended(Box::new(Ended { phase: 0, seconds: 1, end, windows: Vec::new() })).encode();
        assert!((0..bytes.len()).all(|length| Up::decode(&bytes[..length]).is_err()));
    }
}
