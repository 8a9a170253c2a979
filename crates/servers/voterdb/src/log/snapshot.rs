//! Snapshots: all rows of a moment, so that the log before it can go.

use super::folder::{Folder, Part, UNFINISHED};
use super::record::Records;
use super::replay::SNAPSHOT_MAGIC;
use crate::tables::{Greeting, Partition, Replicated, Votes};
use plimsoll_disk::{Mode, Stream};
use std::io::{self, Write};
use std::sync::Arc;

/// Bytes written at a time.
const WRITE_BYTES: usize = 1 << 20;

/// The rows of a moment: copied, so that the partitions can go on.
pub struct Rows {
    votes: Vec<Votes>,
    greetings: Vec<(String, Greeting)>,
    replicated: Arc<Replicated>,
}

impl Rows {
    /// The rows of partitions that stand still.
    pub(crate) fn of(partitions: &[Partition]) -> Self {
        let greetings = partitions.iter().flat_map(|partition| partition.greetings());
        Self {
            votes: partitions.iter().map(|partition| partition.votes().clone()).collect(),
            greetings: greetings.map(|(key, row)| (key.clone(), row.clone())).collect(),
            replicated: partitions
                .first()
                .map(|partition| Arc::clone(&partition.replicated))
                .unwrap_or_default(),
        }
    }
}

/// Writes the snapshot of this number, and removes what it makes needless. Until the last step everything from before is
/// there.
pub(crate) fn write_snapshot(folder: &Folder, number: u64, rows: &Rows) -> io::Result<()> {
    let path = folder.file(Part::Snapshot, number);
    let unfinished = path.with_extension(UNFINISHED);
    let mut file = Stream::new(folder.open_file(&unfinished, Mode::Create)?);
    file.write_all(SNAPSHOT_MAGIC)?;
    let (mut records, mut bytes) = (Records::default(), Vec::new());
    let mut flush = |records: &mut Records| {
        records.move_to(&mut bytes);
        let written = file.write_all(&bytes);
        bytes.clear();
        written
    };
    for (number, name) in rows.replicated.contestants() {
        records.contestant(*number, name);
    }
    for (code, state) in rows.replicated.area_codes() {
        records.area_code(*code, *state);
    }
    for (dialect, greeting) in &rows.greetings {
        records.greeting(dialect, greeting);
        if records.len() > WRITE_BYTES {
            flush(&mut records)?;
        }
    }
    for vote in rows.votes.iter().flat_map(Votes::iter) {
        records.vote(vote);
        if records.len() > WRITE_BYTES {
            flush(&mut records)?;
        }
    }
    records.end_snapshot();
    flush(&mut records)?;
    file.file().sync_all()?;
    folder.rename(&unfinished, &path)?;
    folder.sync()?;
    folder.remove_before(number)
}
