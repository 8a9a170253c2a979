//! Reading documents in bucket order.

use super::{DecodeError, Header, Store, StoreError, key};
use std::ops::{Bound, RangeInclusive};

/// Start of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// With this place, or the next one after it.
    At(u64),
    /// Behind this key.
    After(Vec<u8>),
}

/// A record that a scan came across.
pub(crate) struct Found<'a> {
    pub(crate) id: &'a str,
    pub(crate) key: &'a [u8],
    pub(crate) removed: bool,
    pub(crate) timestamp_us: u64,
    /// The stored values; nothing for a document that was removed.
    pub(crate) content: &'a [u8],
}

impl Store {
    /// Calls `visit` with the records of ranges of places, which must be in order and apart unless
    /// they are empty, and with the number of the range; all as of one moment, until `visit` says stop. Gives whether the
    /// last range was read to its end.
    pub(crate) fn scan<E: From<StoreError>>(
        &self,
        ranges: &[RangeInclusive<u64>],
        start: Start,
        mut visit: impl FnMut(usize, &Found<'_>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let fail = |error: redb::Error| E::from(StoreError::from(error));
        let damaged = || E::from(StoreError::from(DecodeError::Damaged));
        let last = ranges.iter().filter(|range| !range.is_empty()).map(|range| *range.end()).max();
        let Some(last) = last else { return Ok(true) };
        let records = self.records()?;
        let behind = last.checked_add(1).map(u64::to_be_bytes);
        let end = match &behind {
            Some(behind) => Bound::Excluded(behind.as_slice()),
            None => Bound::Unbounded,
        };
        let mut start = match start {
            Start::At(place) => place.to_be_bytes().to_vec(),
            // The least key that is greater.
            Start::After(mut key) => {
                key.push(0);
                key
            }
        };
        let mut current = 0;
        'seek: loop {
            let from = Bound::Included(start.as_slice());
            let entries = records.range::<&[u8]>((from, end)).map_err(|e| fail(e.into()))?;
            for entry in entries {
                let (key, record) = entry.map_err(|e| fail(e.into()))?;
                let (place, id) = key::parts(key.value()).ok_or_else(damaged)?;
                while ranges.get(current).is_some_and(|range| place > *range.end()) {
                    current += 1;
                }
                let Some(range) = ranges.get(current) else { return Ok(true) };
                if place < *range.start() {
                    start = range.start().to_be_bytes().to_vec();
                    continue 'seek;
                }
                let header = Header::read(record.value());
                let (header, content) = header.map_err(|_| damaged())?;
                let found = Found {
                    id,
                    key: key.value(),
                    removed: header.removed,
                    timestamp_us: header.timestamp_us,
                    content,
                };
                if !visit(current, &found)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
    }
}
