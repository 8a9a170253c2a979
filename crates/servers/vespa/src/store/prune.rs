//! Pruning of the store: changes that the index knows, and old removals.

use super::{Header, StoreError};
use plimsoll_core::clock::wall_us;
use redb::{ReadableTable, Table};

/// Time that removals are remembered, in microseconds: 14 days.
const TOMBSTONE_US: u64 = 14 * 24 * 3600 * 1_000_000;
/// Number of removals that are remembered.
const MAX_TOMBSTONES: u64 = 1_000_000;
/// The most that one commit forgets, so that none takes long.
const MAX_PRUNED: u64 = 4096;

/// Forgets the oldest removals, of `count` in all; gives how many.
pub(super) fn tombstones(
    tombstones: &mut Table<'_, u64, &'static [u8]>,
    records: &mut Table<'_, &'static [u8], &'static [u8]>,
    count: u64,
) -> Result<u64, StoreError> {
    let too_old_us = wall_us().saturating_sub(TOMBSTONE_US);
    let mut pruned = 0;
    while pruned < MAX_PRUNED {
        let too_many = count.saturating_sub(pruned) > MAX_TOMBSTONES;
        let first = tombstones.first()?.map(|(time, key)| (time.value(), key.value().to_vec()));
        let Some((time, key)) = first.filter(|(time, _)| too_many || *time < too_old_us) else {
            break;
        };
        tombstones.remove(time)?;
        let same = match records.get(key.as_slice())? {
            Some(record) => {
                let (header, _) = Header::read(record.value())?;
                header.removed && header.timestamp_us == time
            }
            None => false,
        };
        if same {
            records.remove(key.as_slice())?;
        }
        pruned += 1;
    }
    Ok(pruned)
}

/// Forgets the changes of commits that lie wholly at or before a sequence number; gives the last
/// change that is gone.
pub(super) fn changes(
    changes: &mut Table<'_, u64, &'static [u8]>,
    indexed: u64,
) -> Result<Option<u64>, StoreError> {
    let mut last = None;
    for _ in 0..MAX_PRUNED {
        let first = changes.first()?.map(|(first, lids)| {
            (first.value(), first.value() + (lids.value().len() as u64 / 8) - 1)
        });
        let Some((first, end)) = first.filter(|(_, end)| *end <= indexed) else { break };
        changes.remove(first)?;
        last = Some(end);
    }
    Ok(last)
}
